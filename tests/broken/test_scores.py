"""Each unlucky notebook, through the whole grader: it gets the score that a fair human would give."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.exercises import Exercise, Solution
from autograder.exercises.source import answer
from autograder.grading.assignment import Assignment
from autograder.grading.grade import Grader
from autograder.judge.session import Judge
from autograder.judge.verdict import Status
from autograder.notebooks import grade_id, is_solution
from autograder.sandbox import Limits, WarmParent
from tests.broken.builders import CASES
from tests.broken.sheet import Case

ROOT = Path(__file__).parents[2]
NOTEBOOK = "1_averaging"
# This one needs a locked cell before the first answer, which the notebook does not have.
ELSEWHERE = {"import_added_to_a_locked_cell"}
# All of them take more than a minute; by default those that only a kernel can tell, and a sample of the others.
DEFAULT = [case for i, case in enumerate(CASES) if (case.kernel or i % 8 == 0) and case.name not in ELSEWHERE]
REST = [case for case in CASES if case not in DEFAULT and case.name not in ELSEWHERE]


@pytest.fixture(scope="module")
def grader():
    assignment = Assignment.load(ROOT, "ch18")
    with Judge(assignment.tests, assignment.exercises) as judge, WarmParent(("autograder.judge.agent",)) as warm:
        yield Grader(assignment, judge, Limits(call_seconds=3, cell_seconds=10), warm)


def plain(exercise: Exercise) -> Solution:
    """A right answer that is one function: some cases take a single definition out of its cell."""
    solutions = (exercise.reference, *exercise.alternatives.values())
    return next(s for s in solutions if answer(s, exercise.name).count("\ndef ") == 1)


def grade(grader: Grader, case: Case) -> None:
    release = grader.assignment.notebooks[NOTEBOOK]
    answers = {e.name: answer(plain(e), e.name) for _, e in grader.assignment.exercise_cells(NOTEBOOK)}
    written = {
        str(grade_id(c)): "a written answer" for c in release.cells if is_solution(c) and c.cell_type == "markdown"
    }
    answers |= written
    graded = grader.grade(case.build(release, answers), student="s", notebook=NOTEBOOK, seed=1)
    if case.unreadable:
        assert graded.verdict.status is Status.UNREADABLE
        assert graded.verdict.message is not None
        assert graded.verdict.points == 0
        return
    fair = set(case.fair(release, answers))
    assert graded.verdict.status is Status.GRADED
    assert {e.name for e in graded.verdict.exercises if e.full} == fair - set(written)
    assert {c.grade_id for c in graded.verdict.cells if c.points is None} == fair & set(written)


@pytest.mark.parametrize("case", DEFAULT, ids=lambda case: case.name)
def test_score(grader, case):
    grade(grader, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", REST, ids=lambda case: case.name)
def test_score_of_the_rest(grader, case):
    grade(grader, case)
