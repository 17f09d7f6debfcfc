"""Commands around what a person gives: regrade keeps it, status, totals and the class report count it."""

from __future__ import annotations

import csv
import io
import json
import shutil

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course import Course
from autograder.gradebook.book import Book


def run(course, *arguments, code=0):
    result = CliRunner().invoke(app, [*arguments, "--course", str(course.root)], env={"AUTOGRADER_LANGUAGE": "en"})
    assert result.exit_code == code, result.output
    return result.output


def give(course, student, points, comment):
    """What formgrader writes when a person grades."""
    with Book(course) as book:
        book.gradebook.find_grade("double", "n1", "a1", student).manual_score = points
        book.gradebook.find_grade("double", "n1", "a1", student).needs_manual_grade = False
        book.gradebook.find_comment("double_answer", "n1", "a1", student).manual_comment = comment
        book.db.commit()


def cell(course, student):
    with Book(course) as book:
        (found,) = book.row("a1", student).cells
        return found.auto, found.manual, found.needs_manual, book.comments("a1", student)


@pytest.fixture(scope="module")
def _graded(_template, tmp_path_factory):
    course = Course.load(shutil.copytree(_template, tmp_path_factory.mktemp("graded") / "course"))
    run(course, "grade", "a1", "--student", "right", "--student", "square")
    return course.root


@pytest.fixture
def graded(_graded, tmp_path):
    """The tiny course with two students graded."""
    return Course.load(shutil.copytree(_graded, tmp_path / "course"))


def test_regrade_grades_what_was_graded_and_keeps_what_a_person_gave(graded):
    give(graded, "square", 1.5, "Half right.")
    said = json.loads(run(graded, "regrade", "a1", "--json"))
    assert (said["graded"], [each["student"] for each in said["students"]]) == (2, ["right", "square"])
    assert cell(graded, "square") == (0, 1.5, True, {("n1", "double_answer"): "Half right."})  # True: look once more


def test_regrade_of_one_student(graded):
    said = json.loads(run(graded, "regrade", "a1", "--student", "right", "--json"))
    assert [each["student"] for each in said["students"]] == ["right"]


def test_regrade_where_nothing_was_graded_says_so(course):
    assert "Nothing was graded yet." in run(course, "regrade", "a1", code=1)


def test_status_counts_who_waits_for_a_person(graded):
    assert json.loads(run(graded, "status", "--json"))["a1"]["waiting"] == 0
    give(graded, "square", 1, "")
    run(graded, "regrade", "a1")
    assert "2 graded, 1 wait for a person, 0 with feedback" in run(graded, "status")


def test_status_says_that_the_gradebook_is_gone(graded):
    (graded.root / "gradebook.db").unlink()
    assert "the gradebook cannot be read" in run(graded, "status", code=1)
    assert not (graded.root / "gradebook.db").exists()


def test_totals_have_a_line_per_student_and_group(graded):
    give(graded, "square", 0.5, "")
    rows = list(csv.DictReader(io.StringIO(run(graded, "totals"))))
    found = {row["student_id"]: (row["group"], row["score"], row["max_score"], row["dropped"]) for row in rows}
    assert found == {"right": ("work", "2", "2", ""), "square": ("work", "0.5", "2", "")}


def test_totals_leave_out_what_nobody_has_been_graded_in(course):
    assert run(course, "totals").splitlines() == ["student_id,group,score,max_score,dropped,needs_manual_grade"]


def test_class_report_counts_points_given_by_hand(graded):
    run(graded, "report", "a1")
    page = graded.folder("report", "a1.html")
    assert "50%" in page.read_text()
    assert "75%" not in page.read_text()
    give(graded, "square", 1, "")
    run(graded, "report", "a1")
    assert "75%" in page.read_text()
