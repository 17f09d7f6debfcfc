"""``nbgrader autograde`` and ``autograder grade`` fill equal gradebooks: one class, graded by both."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from autograder.course import Course
from autograder.gradebook.book import Book
from autograder.grading.assignment import Assignment
from autograder.grading.demo import sample_class, submit
from autograder.grading.release import release
from autograder.grading.run import grade_class, local_pool
from autograder.grading.traits import configure

ROOT = Path(__file__).parents[2]
pages: dict[str, str] = {}
CHOSEN = ("01_reference", "04", "09", "10", "11", "14", "15", "16", "17")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The gradebook's rows as each of the two made them, for notebook 1 alone."""
    made = {}
    for way in ("autograder", "nbgrader"):
        folder = tmp_path_factory.mktemp(way)
        ignore = shutil.ignore_patterns("[234]_*", "__pycache__", "qkv*", "position*", "prove*", "test_[qp]*")
        for name in ("source", "solutions", "tests/hidden"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        for name in ("course.yaml", "nbgrader_config.py"):
            shutil.copy(ROOT / name, folder)
        shutil.copy(ROOT / ".course-secret", folder) if (ROOT / ".course-secret").exists() else None
        course = Course.load(folder)
        release(course, "ch18")
        assignment = Assignment.load(folder, "ch18")
        for sample in sample_class(assignment):
            if sample.student.startswith(CHOSEN):
                submit(course, assignment, sample)
                stamp = course.folder("submitted", sample.student, "ch18", "timestamp.txt")
                if sample.student.startswith("04"):  # one is late
                    stamp.write_text("2027-03-16 09:00:00 UTC", encoding="utf-8")
        if way == "autograder":
            list(grade_class(course, assignment, local_pool(1), workers=1))
        else:
            config = Config()
            configure(config, folder)
            result = NbGraderAPI(config=config).autograde("ch18", "*")
            assert result["success"], result.get("error") or result.get("log")
            result = NbGraderAPI(config=config).generate_feedback("ch18", "04_one_mistake")
            assert result["success"], result.get("error") or result.get("log")
            pages.update({p.name: p.read_text() for p in folder.glob("feedback/04_one_mistake/ch18/*.html")})
        with Book(course) as book:
            made[way] = {row.student: row for row in book.rows("ch18")}
    return made


def test_every_grade_is_equal(rows):
    ours, theirs = rows["autograder"], rows["nbgrader"]
    assert len(ours) == len(CHOSEN)
    assert set(ours) == set(theirs)
    for student, row in ours.items():
        other = {(c.notebook, c.grade_id): (c.auto, c.max_points, c.needs_manual) for c in theirs[student].cells}
        assert {(c.notebook, c.grade_id): (c.auto, c.max_points, c.needs_manual) for c in row.cells} == other, student


def test_penalties_and_times_are_equal(rows):
    late = {student: (row.penalty, row.submitted) for student, row in rows["autograder"].items()}
    assert late == {student: (row.penalty, row.submitted) for student, row in rows["nbgrader"].items()}
    assert late["04_one_mistake"][0] > 0


def test_nbgraders_own_feedback_command_writes_our_page(rows):
    (page,) = pages.values()
    assert "prefix_mean_loop" in page
    assert "迟交" in page
    assert len(page) < 120_000, "nbgrader's own page is larger, with a style sheet for every kind of cell"
