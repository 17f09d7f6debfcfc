"""The tiny course on a Dask cluster on loopback: the same gradebook, whatever becomes of the workers."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys

import pytest
from distributed import LocalCluster

from autograder.grading import cluster
from autograder.grading.assignment import Assignment
from autograder.grading.cluster import ClusterError, ClusterPool
from autograder.grading.worker import Setup
from autograder.judge.verdict import Status
from tests.integration.tinycourse import ANSWERS, calls, grade, gradebook, statuses

pytestmark = pytest.mark.slow  # each starts pools of grading processes: make test-runs


@pytest.fixture(scope="module")
def dask():
    """Two workers of one thread, each a process that its nanny starts anew when it is lost."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as made:
        yield made


def test_a_worker_killed_midway_changes_nothing(counted, undisturbed, dask):
    done = []
    for each in grade(counted, lambda: ClusterPool(dask.scheduler_address)):
        done.append(each.student)
        if len(done) == 1:
            os.kill(dask.workers[0].pid, signal.SIGKILL)
    assert sorted(done) == sorted(ANSWERS)
    assert (gradebook(counted), statuses(counted)) == undisturbed


def test_what_fails_for_a_student_is_not_tried_again(counted, undisturbed, dask):
    list(grade(counted, lambda: ClusterPool(dask.scheduler_address)))
    assert (gradebook(counted), statuses(counted)) == undisturbed
    assert set(calls(counted).values()) == {1}


def test_who_ends_every_worker_is_set_aside_and_nobody_else(counted, undisturbed, dask):
    (counted.root / "lose" / "square").write_text("again\n" * 9)
    done = {each.student: each.verdicts for each in grade(counted, lambda: ClusterPool(dask.scheduler_address))}
    (verdict,) = done.pop("square")
    assert verdict.status is Status.SET_ASIDE
    assert done.keys() == ANSWERS.keys() - {"square"}
    assert {v.status for verdicts in done.values() for v in verdicts} == {Status.GRADED}
    assert calls(counted)["square"] == 2
    rows = gradebook(counted)
    assert rows.pop("square")[1][0].needs_manual
    assert rows == {student: row for student, row in undisturbed[0].items() if student != "square"}


def test_a_worker_that_sees_another_course_says_so(course, dask):
    assignment = Assignment.load(course.root, "a1")
    setup = Setup(str(course.root), "a1", assignment.fingerprint, course.limits)
    for wrong, words in (
        (dataclasses.replace(setup, root="/nowhere/course"), "does not see the course folder /nowhere/course"),
        (dataclasses.replace(setup, fingerprint="another"), "another release or other hidden tests"),
    ):
        with ClusterPool(dask.scheduler_address) as pool, pytest.raises(ClusterError, match=words):
            pool.submit(print, wrong).result(60)


def test_an_address_where_nobody_answers(monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.3)
    with pytest.raises(ClusterError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        ClusterPool("tcp://127.0.0.1:9")
    with pytest.raises(ClusterError, match=r"No Dask scheduler answers at no address"):
        ClusterPool("no address")


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'attention-autograder\[cluster\]'"):
        ClusterPool("tcp://127.0.0.1:9")
