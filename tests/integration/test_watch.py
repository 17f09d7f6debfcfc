"""Grading on arrival: what waits, what comes through nbgrader's exchange and what comes into submitted/, and nothing before it is whole."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from nbgrader.apps import NbGraderAPI
from nbgrader.utils import temp_attrs
from traitlets.config import Config

from autograder.course import Course
from autograder.grading import watch
from autograder.grading.assignment import Assignment
from autograder.grading.run import local_pool
from autograder.grading.watch import Watch, watch_class
from autograder.judge.verdict import Status
from tests.integration.tinycourse import ANSWERS, answered, hand_in
from tests.processes import end

pytestmark = pytest.mark.slow  # each starts pools of grading processes: make test-runs

_DEADLINE = 600.0


@dataclass
class School:
    """The tiny course on an exchange, as its students see it."""

    course: Course
    exchange: Path
    api: NbGraderAPI

    @property
    def inbound(self) -> Path:
        return self.exchange / "tiny" / "inbound"

    def as_student(self, student: str, what: str):
        """One of nbgrader's own actions on the exchange, as a student runs it in a folder of their own."""
        home = self.exchange.parent / "homes" / student
        (home / "a1").mkdir(parents=True, exist_ok=True)
        with temp_attrs(self.api.coursedir, student_id=student, assignment_id="a1"):
            action = getattr(self.api.exchange, what)(
                coursedir=self.api.coursedir, authenticator=self.api.authenticator, parent=self.api
            )
            action.assignment_dir = str(home)
            action.cache = str(home / "cache")
            action.cached = True  # for List: what was submitted, with its feedback
            return action.start()

    def submit(self, student: str, answer: str | None) -> None:
        home = self.exchange.parent / "homes" / student / "a1"
        home.mkdir(parents=True, exist_ok=True)
        (home / "n1.ipynb").write_text(answered(self.course, answer), encoding="utf-8")
        self.as_student(student, "Submit")

    def fetched(self, student: str) -> list[Path]:
        self.as_student(student, "FetchFeedback")
        return sorted((self.exchange.parent / "homes" / student / "a1").glob("feedback/*/n1.html"))


@pytest.fixture
def school(course, tmp_path) -> School:
    """Released on an exchange, with one submission waiting in submitted/."""
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    (course.root / "nbgrader_config.py").write_text(f"c = get_config()\nc.Exchange.root = {str(exchange)!r}\n")
    for student in set(ANSWERS) - {"right"}:
        shutil.rmtree(course.folder("submitted", student))
    config = Config()
    config.CourseDirectory.root, config.CourseDirectory.course_id = str(course.root), "tiny"
    config.Exchange.root = str(exchange)
    api = NbGraderAPI(config=config)
    released = api.release_assignment("a1")
    assert released["success"], released
    return School(course, exchange, api)


@contextlib.contextmanager
def watched(course: Course, said: list[str] | None = None):
    """The students as they are graded; it ends at the latest when the deadline is over."""
    stop = threading.Event()
    timer = threading.Timer(_DEADLINE, stop.set)
    timer.start()
    graded = watch_class(
        course,
        Assignment.load(course.root, "a1"),
        local_pool(1),
        workers=1,
        stop=stop,
        tell=lambda text: (said if said is not None else []).append(text.en),
    )
    try:
        yield graded
    finally:
        stop.set()
        timer.cancel()
        assert list(graded) == []


def test_through_the_exchange_and_back(school):
    said: list[str] = []
    with watched(school.course, said) as graded:
        assert next(graded).student == "right"
        school.submit("ada", "def double(X):\n    return X * X")
        done = next(graded)
        assert (done.student, done.verdicts[0].points) == ("ada", 0.0)
        (page,) = school.fetched("ada")
        assert "This is the square." in page.read_text(encoding="utf-8")
        (listed,) = school.as_student("ada", "List")
        assert [n["has_exchange_feedback"] for n in listed["submissions"][0]["notebooks"]] == [True]
        school.submit("ada", "def double(X):\n    return X + X")
        done = next(graded)
        assert (done.student, done.verdicts[0].points) == ("ada", 2.0)
        assert len(school.fetched("ada")) == 2, "a page for each submission"
    assert said == []


def test_what_is_half_there_is_not_graded(school, monkeypatch):
    monkeypatch.setattr(watch, "_PATIENCE_SECONDS", 2 * _DEADLINE)
    course = school.course
    with watched(course) as graded:
        assert next(graded).student == "right"
        hand_in(course, "bob", ANSWERS["right"])
        notebook = course.folder("submitted", "bob", "a1", "n1.ipynb")
        whole = notebook.read_bytes()
        notebook.write_bytes(whole[: len(whole) // 2])
        school.submit("carl", ANSWERS["right"])
        (inbound,) = school.inbound.glob("carl+*")
        secret = (inbound / "submission_secret.txt").read_bytes()
        slow = inbound.with_name(inbound.name.replace("carl+", "dora+"))
        shutil.copytree(inbound, slow, ignore=shutil.ignore_patterns("submission_secret.txt"))
        assert next(graded).student == "carl"
        notebook.write_bytes(whole)
        done = next(graded)
        assert (done.student, done.verdicts[0].status, done.verdicts[0].points) == ("bob", Status.GRADED, 2.0)
        (slow / "submission_secret.txt").write_bytes(secret)
        assert next(graded).student == "dora"


def test_what_never_gets_whole_is_graded_in_the_end(course, monkeypatch):
    monkeypatch.setattr(watch, "_PATIENCE_SECONDS", 0.5)
    notebook = course.folder("submitted", "right", "a1", "n1.ipynb")
    notebook.write_bytes(notebook.read_bytes()[:-20])
    for student in set(ANSWERS) - {"right"}:
        shutil.rmtree(course.folder("submitted", student))
    with watched(course) as graded:
        done = next(graded)
        assert (done.student, done.verdicts[0].status) == ("right", Status.UNREADABLE)


def test_a_student_is_graded_once_at_a_time(course):
    assignment, stop = Assignment.load(course.root, "a1"), threading.Event()
    arrivals = Watch(course, assignment, None, stop, lambda text: None)
    with contextlib.closing(arrivals):

        def taken(count: int) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            while len(found) < count:
                more = arrivals.more()
                while (handed := arrivals.take()) is not None:
                    found[handed.student] = handed.notebooks[0].data
                if len(found) < count:
                    more.result(timeout=_DEADLINE)
            return found

        assert set(taken(len(ANSWERS))) == set(ANSWERS)
        for student in ("square", "right"):
            hand_in(course, student, "def double(X):\n    return X")
        arrivals.finished("right")
        assert set(taken(1)) == {"right"}, "square is still being graded"
        arrivals.finished("square")
        assert "return X" in taken(1)["square"].decode()
    assert arrivals.more() is None
    assert arrivals.take() is None


def test_the_command_ends_on_a_signal_and_goes_on_later(school):
    command = [sys.executable, "-m", "autograder.cli", "grade", "a1", "--watch", "-C", str(school.course.root), "-j1"]
    env = os.environ | {"AUTOGRADER_LANGUAGE": "en", "JUPYTER_CONFIG_DIR": str(school.exchange)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as run:
        line = run.stdout.readline()
        assert re.fullmatch(r"\d\d:\d\d:\d\d right: 2 / 2\n", line)
        assert end(run, signal.SIGTERM) == []
        assert (run.returncode, run.stdout.read()) == (0, "")
    page = school.course.folder("feedback", "right", "a1", "n1.html")
    page.unlink()  # as if it had been killed before
    with watched(school.course) as graded:
        school.submit("ada", ANSWERS["right"])
        assert next(graded).student == "ada", "right is graded already"
        assert page.is_file()


@pytest.mark.slow
def test_how_long_it_takes(school, capsys):
    """Prints the seconds from the end of ``nbgrader submit`` to the page that the student can fetch, warm; asserts nothing on them."""
    took = []
    with watched(school.course) as graded:
        next(graded)
        for number in range(12):
            student, ended = f"s{number:02}", []

            def arrive(student=student, ended=ended):
                school.submit(student, ANSWERS["right"])
                ended.append(time.monotonic())

            arrival = threading.Thread(target=arrive)
            arrival.start()
            assert next(graded).student == student
            now = time.monotonic()
            arrival.join()
            took.append(now - ended[0])
            assert len(school.fetched(student)) == 1
    with capsys.disabled():
        print(f"\nfeedback after arrival: median {statistics.median(took):.2f} s, longest {max(took):.2f} s")
