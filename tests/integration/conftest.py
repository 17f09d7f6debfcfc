"""The tiny course, for whoever disturbs a run of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.course import Course
from autograder.grading.run import local_pool
from tests.integration import tinycourse


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tinycourse.make_course(tmp_path_factory.mktemp("tiny")).root


@pytest.fixture
def course(_template: Path, tmp_path: Path) -> Course:
    """The tiny course with its class, not graded yet."""
    return Course.load(Path(shutil.copytree(_template, tmp_path / "course")))


@pytest.fixture(scope="session")
def undisturbed(_template: Path, tmp_path_factory: pytest.TempPathFactory):
    """The gradebook and the verdicts of a run in which nothing happened."""
    course = Course.load(Path(shutil.copytree(_template, tmp_path_factory.mktemp("undisturbed") / "course")))
    list(tinycourse.grade(course, local_pool(2)))
    return tinycourse.gradebook(course), tinycourse.statuses(course)


@pytest.fixture
def counted(course, monkeypatch):
    """The tiny course with its workers' calls counted, and a folder ``lose`` (see ``tinycourse.counting``)."""
    monkeypatch.setattr("autograder.grading.run.grade_submission", tinycourse.counting)
    (course.root / "lose").mkdir()
    return course
