"""Hidden inputs: the same for a regrade, others for another submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.grading.assignment import Assignment
from autograder.grading.grade import Grader
from autograder.judge.session import Judge
from autograder.sandbox import Limits

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def seed_of():
    assignment = Assignment.load(ROOT, "ch18")
    with Judge(assignment.tests, assignment.exercises) as judge:
        grader = Grader(assignment, judge, Limits())
        yield lambda data, seed: grader.grade(data, student="s", notebook="1_averaging", seed=seed).verdict.seed


def test_a_regrade_sees_the_same_inputs(seed_of):
    assert seed_of(b"one", 1) == seed_of(b"one", 1)


def test_a_changed_submission_sees_others(seed_of):
    assert len({seed_of(data, seed) for data in (b"one", b"one ", None) for seed in (1, 2)}) == 6
