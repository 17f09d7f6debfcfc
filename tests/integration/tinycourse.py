"""A course of one exercise whose class grades in seconds: what breaks is the pool, the cluster or the run, not the course."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import nbformat

from autograder.course import Course
from autograder.gradebook.book import Book
from autograder.grading.assignment import Assignment
from autograder.grading.release import release
from autograder.grading.run import grade_class
from autograder.grading.verdicts import verdicts
from autograder.grading.worker import Setup, grade_submission
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


def _source() -> nbformat.NotebookNode:
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


def make_course(root: Path) -> Course:
    """The course in ``root``, released, with a submission of each of ANSWERS."""
    for name in ("source/a1", "solutions/a1", "tests/hidden/a1"):
        (root / name).mkdir(parents=True)
    (root / "course.yaml").write_text(COURSE, encoding="utf-8")
    (root / "solutions/a1/double.py").write_text(SOLUTION, encoding="utf-8")
    (root / "tests/hidden/a1/test_double.py").write_text(HIDDEN, encoding="utf-8")
    nbformat.write(_source(), root / "source/a1/n1.ipynb")
    course = Course.load(root)
    release(course, "a1")
    for student, answer in ANSWERS.items():
        hand_in(course, student, answer)
    return course


def answered(course: Course, answer: str | None) -> str:
    """The released notebook with an answer in it, as a file's text; None leaves the stub."""
    notebook = nbformat.read(course.folder("release", "a1", "n1.ipynb"), as_version=4)
    for cell in notebook.cells:
        if is_solution(cell) and answer is not None:
            cell.source = answer
    return nbformat.writes(notebook)


def hand_in(course: Course, student: str, answer: str | None) -> None:
    """Put a submission into submitted/."""
    folder = course.folder("submitted", student, "a1")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "n1.ipynb").write_text(answered(course, answer), encoding="utf-8")


def grade(course: Course, make_pool, workers: int = 2):
    """Grade the class."""
    return grade_class(course, Assignment.load(course.root, "a1"), make_pool, workers=workers)


def gradebook(course: Course):
    """Each student's penalty and cells, as the gradebook has them."""
    with Book(course) as book:
        return {row.student: (row.penalty, row.cells) for row in book.rows("a1") if row.has_submission}


def statuses(course: Course):
    """What the verdicts say."""
    return [(v.student, v.notebook, v.status, v.points) for v in verdicts(course, "a1")]


def counting(setup: Setup, student: str, notebooks):
    """What a worker does, each call noted; it ends its process for every student with a file ``lose/<student>``, once for each line there."""
    with (Path(setup.root) / "calls").open("a") as calls:
        calls.write(f"{student}\n")
    lose = Path(setup.root) / "lose" / student
    if lose.exists() and (left := lose.read_text().splitlines()):
        lose.write_text("\n".join(left[1:]))
        os._exit(9)
    return grade_submission(setup, student, notebooks)


def calls(course: Course) -> Counter[str]:
    """How often ``counting`` was called for each student."""
    return Counter((course.root / "calls").read_text().split())
