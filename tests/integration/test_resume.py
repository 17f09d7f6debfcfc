"""A class run that is killed, and workers that are lost: nothing is lost, nothing is graded twice, nobody pays for another."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from unittest import mock

import pytest
from watchfiles import watch

from autograder.grading.assignment import Assignment
from autograder.grading.grade import Grader
from autograder.grading.run import _Listed, _through_pool, local_pool
from autograder.grading.submissions import handed_in
from autograder.grading.worker import Setup, grade_submission
from autograder.judge.verdict import Status
from autograder.sandbox import SandboxUnavailable
from autograder.text import Text
from tests.integration.tinycourse import ANSWERS, calls, grade, gradebook, statuses
from tests.processes import end

pytestmark = pytest.mark.slow  # each starts pools of grading processes: make test-runs


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
        assert end(run, signal.SIGKILL) == [], "its workers and their kernels end with it"
    before = {p: p.stat().st_mtime_ns for p in course.root.glob("verdicts/*/a1/n1.json")}
    assert students_before <= len(before) < len(ANSWERS), "killed midway"
    done = list(grade(course, local_pool(2)))
    assert {each.student for each in done if not each.fresh} == {path.parts[-3] for path in before}
    assert sorted(each.student for each in done) == sorted(ANSWERS)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (gradebook(course), statuses(course)) == undisturbed


def test_killed_between_gradebook_and_verdict(course, undisturbed, monkeypatch):
    """The gradebook has the scores, the verdicts are not there yet: graded once more, into the same rows."""

    def killed(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("autograder.grading.run.write_verdict", killed)
        with pytest.raises(KeyboardInterrupt):
            list(grade(course, local_pool(1), workers=1))
    assert len(gradebook(course)) == 1
    assert statuses(course) == []
    assert [each.fresh for each in grade(course, local_pool(2))] == [True] * len(ANSWERS)
    assert (gradebook(course), statuses(course)) == undisturbed


def test_what_fails_for_a_student_is_not_tried_again(counted, undisturbed):
    list(grade(counted, local_pool(2)))
    assert calls(counted) == Counter(ANSWERS.keys())
    assert (gradebook(counted), statuses(counted)) == undisturbed


def test_a_lost_worker_costs_nobody_anything(counted, undisturbed):
    (counted.root / "lose" / "right").write_text("once")
    list(grade(counted, local_pool(2)))
    assert (gradebook(counted), statuses(counted)) == undisturbed
    assert calls(counted)["right"] == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_who_ends_every_worker_is_set_aside_and_nobody_else(counted, undisturbed, jobs):
    (counted.root / "lose" / "square").write_text("again\n" * 9)
    done = {each.student: each.verdicts for each in grade(counted, local_pool(jobs), workers=jobs)}
    (verdict,) = done.pop("square")
    assert verdict.status is Status.SET_ASIDE
    assert "No points were taken" in verdict.message.en
    assert {v.status for verdicts in done.values() for v in verdicts} == {Status.GRADED}
    rows = gradebook(counted)
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
    list(grade(counted, lambda: Breaking(1, mp_context=multiprocessing.get_context("spawn")), workers=1))
    assert (gradebook(counted), statuses(counted)) == undisturbed


def failing(setup: Setup, student: str, notebooks):
    """What a worker does, with a fault of the grader's own for one student."""
    with mock.patch.object(Grader, "grade", side_effect=ZeroDivisionError("a line of a hidden test")):
        if student == "square":
            return grade_submission(setup, student, notebooks)
    return grade_submission(setup, student, notebooks)


def test_the_graders_own_fault_costs_nobody_anything(course, undisturbed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("autograder.grading.run.grade_submission", failing)
        done = {each.student: each.verdicts for each in grade(course, local_pool(2))}
    (verdict,) = done.pop("square")
    assert (verdict.status, verdict.points) == (Status.MACHINE_FAULT, 0)
    assert "The grader itself failed on this notebook (ZeroDivisionError). No points were taken" in verdict.message.en
    assert "hidden" not in verdict.model_dump_json()
    assert {v.status for verdicts in done.values() for v in verdicts} == {Status.GRADED}
    rows = gradebook(course)
    (cell,) = rows.pop("square")[1]
    assert (cell.auto, cell.needs_manual) == (None, True)
    assert rows == {student: row for student, row in undisturbed[0].items() if student != "square"}
    assert [each.student for each in grade(course, local_pool(2)) if each.fresh] == ["square"], "graded again"
    assert (gradebook(course), statuses(course)) == undisturbed


def test_no_isolation_is_told_from_a_worker(course, monkeypatch):
    monkeypatch.setattr("autograder.grading.run.grade_submission", unsandboxed)
    with pytest.raises(SandboxUnavailable) as raised:
        list(grade(course, local_pool(1)))
    assert raised.value.text.zh == "没有"


def unsandboxed(*args: object):
    raise SandboxUnavailable(Text(zh="没有", en="none"))


class Held(Executor):
    """A pool whose work is done when somebody waits for it; the first of them breaks at the first wait."""

    broken = False

    def submit(self, function, /, setup, student, notebooks):
        future = Future()
        future.student = student
        return future

    @classmethod
    def wait(cls, futures, return_when):
        cls.waited.append([future.student for future in futures])
        for future in list(futures)[: None if not cls.broken else 1]:
            future.set_result(()) if cls.broken else future.set_exception(BrokenProcessPool("a process was lost"))
        cls.broken = True
        return wait(futures, return_when=return_when)


def test_suspects_are_graded_alone_the_last_one_too(course, monkeypatch):
    monkeypatch.setattr(Held, "waited", [], raising=False)
    monkeypatch.setattr(Held, "broken", False)
    monkeypatch.setattr("autograder.grading.run.wait", Held.wait)
    assignment = Assignment.load(course.root, "a1")
    setup = Setup(str(course.root), "a1", assignment.fingerprint, course.limits, False)
    listed = _Listed(handed_in(course, assignment, student) for student in sorted(ANSWERS))
    graded = [handed.student for handed, _ in _through_pool(course, setup, listed, Held, workers=1)]
    suspects, *later = Held.waited
    assert len(suspects) == 2
    assert sorted(later[:2]) == [[student] for student in sorted(suspects)], "nobody else is graded beside a suspect"
    assert sorted(graded) == sorted(ANSWERS)
