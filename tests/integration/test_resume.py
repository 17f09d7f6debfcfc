"""A class run that is killed, and workers that are lost: nothing is lost, nothing is graded twice, nobody pays for another."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import nbformat
import psutil
import pytest
from watchfiles import watch

from autograder.course import Course
from autograder.gradebook.book import Book
from autograder.grading.assignment import Assignment
from autograder.grading.release import release
from autograder.grading.run import grade_class, local_pool
from autograder.grading.worker import Setup, grade_submission
from autograder.judge.verdict import Status
from autograder.notebooks import is_solution

COURSE = """\
version: 1
id: tiny
title: {zh: 小课程, en: A tiny course}
timezone: Asia/Shanghai
limits: {cell_seconds: 2s, call_seconds: 2s, memory_bytes: 1GiB}
groups: [{id: work}]
assignments: [{id: a1, title: {zh: 一, en: One}, group: work}]
"""
SOLUTION = '''\
"""One exercise."""

from autograder.exercises import alternative, exercise, mistake


@exercise
def double(X):
    return 2 * X


@alternative(of=double)
def added(X):
    return X + X


@mistake(of=double, zh="这是平方。", en="This is the square.")
def squared(X):
    return X * X
'''
HIDDEN = '''\
import pytest

from autograder.judge import expect


@pytest.mark.exercise("double")
def test_twice(student, draw):
    """结果是输入的两倍。

    The result is twice the input.
    """
    X = draw(3)
    expect.close(student.double(X), 2 * X)
'''
ANSWERS = {
    "right": "def double(X):\n    return X + X",
    "square": "def double(X):\n    return X * X",
    "exits": "import os\nos._exit(3)",
    "hangs": "def double(X):\n    while True:\n        pass",
    "raises": "def double(X):\n    raise KeyError(X)",
    "untouched": None,
}


def _notebook() -> nbformat.NotebookNode:
    def meta(grade_id, **flags):
        roles = {"grade": False, "solution": False, "locked": False, "task": False} | flags
        return {"nbgrader": {"grade_id": grade_id, "schema_version": 3} | roles}

    v4 = nbformat.v4
    stub = "def double(X):\n    ### BEGIN SOLUTION\n    return 2 * X\n    ### END SOLUTION"
    return v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        cells=[
            v4.new_code_cell(stub, metadata=meta("double_answer", solution=True)),
            v4.new_code_cell("double(2)", metadata=meta("double", grade=True, locked=True, points=2)),
        ],
    )


@pytest.fixture(scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tiny")
    for name in ("source/a1", "solutions/a1", "tests/hidden/a1"):
        (root / name).mkdir(parents=True)
    (root / "course.yaml").write_text(COURSE, encoding="utf-8")
    (root / "solutions/a1/double.py").write_text(SOLUTION, encoding="utf-8")
    (root / "tests/hidden/a1/test_double.py").write_text(HIDDEN, encoding="utf-8")
    nbformat.write(_notebook(), root / "source/a1/n1.ipynb")
    course = Course.load(root)
    release(course, "a1")
    released = Assignment.load(root, "a1").notebooks["n1"]
    for student, answer in ANSWERS.items():
        folder = root / "submitted" / student / "a1"
        folder.mkdir(parents=True)
        for cell in (notebook := nbformat.from_dict(released)).cells:
            if is_solution(cell) and answer is not None:
                cell.source = answer
        nbformat.write(notebook, folder / "n1.ipynb")
        released = Assignment.load(root, "a1").notebooks["n1"]
    return root


@pytest.fixture
def course(_template: Path, tmp_path: Path) -> Course:
    return Course.load(Path(shutil.copytree(_template, tmp_path / "course")))


@pytest.fixture(scope="module")
def undisturbed(_template: Path, tmp_path_factory: pytest.TempPathFactory):
    """The gradebook and the verdicts of a run in which nothing happened."""
    course = Course.load(Path(shutil.copytree(_template, tmp_path_factory.mktemp("undisturbed") / "course")))
    list(_grade(course, local_pool(2)))
    return _gradebook(course), _statuses(course)


def _grade(course: Course, make_pool, workers: int = 2):
    return grade_class(course, Assignment.load(course.root, "a1"), make_pool, workers=workers)


def _gradebook(course: Course):
    with Book(course) as book:
        return {row.student: (row.penalty, row.cells) for row in book.rows("a1") if row.has_submission}


def _statuses(course: Course):
    from autograder.grading.verdicts import verdicts

    return [(v.student, v.notebook, v.status, v.points) for v in verdicts(course, "a1")]


def test_the_undisturbed_class_is_as_designed(undisturbed):
    cells = {student: (cell.auto, cell.needs_manual) for student, (_, (cell,)) in undisturbed[0].items()}
    assert cells == {student: (2.0 if student == "right" else 0.0, False) for student in ANSWERS}


@pytest.mark.parametrize("students_before", [1, 3])
def test_a_killed_run_goes_on_where_it_was(course, undisturbed, students_before):
    command = [sys.executable, "-m", "autograder.cli", "grade", "a1", "--course", str(course.root), "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
        for _ in watch(course.root, step=10, debounce=10, rust_timeout=120_000, yield_on_timeout=True):
            if run.poll() is not None or len(list(course.root.glob("verdicts/*/a1/n1.json"))) >= students_before:
                break
        kin = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(signal.SIGKILL)
    before = {p: p.stat().st_mtime_ns for p in course.root.glob("verdicts/*/a1/n1.json")}
    assert students_before <= len(before) < len(ANSWERS), "killed midway"
    _, left = psutil.wait_procs(kin, timeout=20)
    assert left == [], "its workers and their kernels end with it"
    done = list(_grade(course, local_pool(2)))
    assert {each.student for each in done if not each.fresh} == {path.parts[-3] for path in before}
    assert sorted(each.student for each in done) == sorted(ANSWERS)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (_gradebook(course), _statuses(course)) == undisturbed


def test_killed_between_gradebook_and_verdict(course, undisturbed, monkeypatch):
    """The gradebook has the scores, the verdicts are not there yet: graded once more, into the same rows."""

    def killed(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("autograder.grading.run.write_verdict", killed)
        with pytest.raises(KeyboardInterrupt):
            list(_grade(course, local_pool(1), workers=1))
    assert len(_gradebook(course)) == 1
    assert _statuses(course) == []
    assert [each.fresh for each in _grade(course, local_pool(2))] == [True] * len(ANSWERS)
    assert (_gradebook(course), _statuses(course)) == undisturbed


def counting(setup: Setup, student: str, notebooks):
    """What a worker does, each call noted; it ends its process for every student with a file ``lose/<student>``, once for each line there."""
    with (Path(setup.root) / "calls").open("a") as calls:
        calls.write(f"{student}\n")
    lose = Path(setup.root) / "lose" / student
    if lose.exists() and (left := lose.read_text().splitlines()):
        lose.write_text("\n".join(left[1:]))
        os._exit(9)
    return grade_submission(setup, student, notebooks)


def _calls(course: Course) -> Counter[str]:
    return Counter((course.root / "calls").read_text().split())


@pytest.fixture
def counted(course, monkeypatch):
    monkeypatch.setattr("autograder.grading.run.grade_submission", counting)
    (course.root / "lose").mkdir()
    return course


def test_what_fails_for_a_student_is_not_tried_again(counted, undisturbed):
    list(_grade(counted, local_pool(2)))
    assert _calls(counted) == Counter(ANSWERS.keys())
    assert (_gradebook(counted), _statuses(counted)) == undisturbed


def test_a_lost_worker_costs_nobody_anything(counted, undisturbed):
    (counted.root / "lose" / "right").write_text("once")
    list(_grade(counted, local_pool(2)))
    assert (_gradebook(counted), _statuses(counted)) == undisturbed
    assert _calls(counted)["right"] == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_who_ends_every_worker_is_set_aside_and_nobody_else(counted, undisturbed, jobs):
    (counted.root / "lose" / "square").write_text("again\n" * 9)
    done = {each.student: each.verdicts for each in _grade(counted, local_pool(jobs), workers=jobs)}
    (verdict,) = done.pop("square")
    assert verdict.status is Status.SET_ASIDE
    assert "No points were taken" in verdict.message.en
    assert {v.status for verdicts in done.values() for v in verdicts} == {Status.GRADED}
    rows = _gradebook(counted)
    (cell,) = rows.pop("square")[1]
    assert (cell.auto, cell.needs_manual) == (None, True)
    assert rows == {student: row for student, row in undisturbed[0].items() if student != "square"}


def test_a_pool_that_breaks_while_the_writer_writes(counted, undisturbed, monkeypatch):
    """The next submission meets a pool that is broken already."""

    class Breaking(ProcessPoolExecutor):
        def submit(self, *call):
            if len(submitted) == 3:
                for process in self._processes.values():
                    process.kill()
                for process in list(self._processes.values()):
                    process.join()
                submitted.append(call)
                raise BrokenProcessPool("a process was lost")
            submitted.append(call)
            return super().submit(*call)

    submitted: list[object] = []
    list(_grade(counted, lambda: Breaking(1, mp_context=multiprocessing.get_context("spawn")), workers=1))
    assert (_gradebook(counted), _statuses(counted)) == undisturbed
