"""The chapter as two courses with the same submissions: one for this package, one for stock nbgrader."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from autograder.course import Course
from autograder.exercises import Exercise, Solution
from autograder.exercises.source import answer
from autograder.grading.assignment import Assignment
from autograder.grading.demo import Sample, submit
from autograder.grading.release import release
from autograder.notebooks import grade_id, is_grade, is_solution, points

ROOT = Path(__file__).parents[2]
CHAPTER = "ch18"
_RIGHT, _WRONG = 0.75, 0.2  # of the answers; the others are left as handed out


def make_course(folder: Path, students: int) -> Course:
    """A copy of the course, released, with submissions of ``students`` students: mostly right, some mistakes, some stubs."""
    for name in ("source", "solutions", "tests/hidden"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("course.yaml", "nbgrader_config.py"):
        shutil.copy(ROOT / name, folder)
    course = Course.load(folder)
    release(course, CHAPTER)
    assignment = Assignment.load(folder, CHAPTER)
    for number in range(students):
        submit(course, assignment, Sample(f"s{number:03}", dict(_answers(assignment, number)), {}))
    return course


def _answers(assignment: Assignment, number: int) -> Iterator[tuple[str, str]]:
    chosen = random.Random(number)
    for notebook in assignment.notebooks:
        for _, exercise in assignment.exercise_cells(notebook):
            luck = chosen.random()
            if luck < _RIGHT + _WRONG:
                yield exercise.name, answer(_pick(exercise, chosen, right=luck < _RIGHT), exercise.name)


def _pick(exercise: Exercise, chosen: random.Random, *, right: bool) -> Solution:
    if right:
        return chosen.choice([exercise.reference, *exercise.alternatives.values()])
    return chosen.choice([mistake.solution for mistake in exercise.mistakes.values()])


def make_stock(course: Course, folder: Path, students: int) -> None:
    """The released notebooks as an nbgrader author writes them: each grade cell runs the same checks in the student's kernel."""
    source = folder / "source" / CHAPTER
    shutil.copytree(course.folder("release", CHAPTER), source)
    for path in source.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if is_grade(cell) and not is_solution(cell):
                cell.source += _HIDDEN.format(points=points(cell), name=grade_id(cell))
        nbformat.write(notebook, path)
    (folder / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.CourseDirectory.root = {str(folder)!r}\nc.CourseDirectory.course_id = 'stock'\n"
        # by default a cell gets 30 s, and a slow machine would stop honest ones
        "c.ExecutePreprocessor.timeout = 300\n"
    )
    config = Config()
    config.CourseDirectory.root = str(folder)
    made = NbGraderAPI(config=config).generate_assignment(CHAPTER)
    if not made["success"]:
        raise RuntimeError(made.get("error") or made.get("log"))
    for number in range(students):
        shutil.copytree(
            course.folder("submitted", f"s{number:03}", CHAPTER), folder / "submitted" / f"s{number:03}" / CHAPTER
        )


_HIDDEN = """
### BEGIN HIDDEN TESTS
from tests.bench.checks import share
round({points} * share("{name}", globals()), 2)
### END HIDDEN TESTS"""
