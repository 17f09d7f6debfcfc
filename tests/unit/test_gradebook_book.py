"""Our writer and nbgrader's autograde must leave equal gradebooks; scores given by hand survive."""

from __future__ import annotations

import os
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from autograder.course import Course, CourseError
from autograder.gradebook.book import Book
from autograder.gradebook.scores import NotebookScores, Score
from autograder.gradebook.traits import configure

DUE = datetime(2026, 3, 9, 15, 59, tzinfo=UTC)


def dump(db_url: str) -> dict[str, list[tuple]]:
    """Everything a person could see in a gradebook, without the random row ids."""
    with Gradebook(db_url) as book:
        return {
            "assignments": [(a.name, a.duedate) for a in book.assignments],
            "students": sorted(s.id for s in book.students),
            "submissions": sorted(
                (s.student.id, s.timestamp, s.score, s.needs_manual_grade, s.late_submission_penalty)
                for s in book.assignment_submissions("a1")
            ),
            "notebooks": sorted(
                (s.student.id, n.name, n.late_submission_penalty)
                for s in book.assignment_submissions("a1")
                for n in s.notebooks
            ),
            "grades": sorted(
                (s.student.id, n.name, g.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade)
                for s in book.assignment_submissions("a1")
                for n in s.notebooks
                for g in n.grades
            ),
            "comments": sorted(
                (s.student.id, n.name, c.name, c.auto_comment, c.manual_comment)
                for s in book.assignment_submissions("a1")
                for n in s.notebooks
                for c in n.comments
            ),
        }


def submit(
    root: Path, student: str, when: datetime, answers: dict[str, str], notebooks: tuple[str, ...] = ("n1", "n2")
):
    folder = root / "submitted" / student / "a1"
    folder.mkdir(parents=True)
    for name in notebooks:
        nb = nbformat.read(root / "release" / "a1" / f"{name}.ipynb", 4)
        for cell in nb.cells:
            cell.source = answers.get(cell.metadata.nbgrader.grade_id, cell.source)
        nbformat.write(nb, folder / f"{name}.ipynb")
    (folder / "timestamp.txt").write_text(when.strftime("%Y-%m-%d %H:%M:%S UTC"))


@pytest.fixture
def both(released: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two equal courses with submissions in time, in grace, late, much late, extended, unanswered, incomplete."""
    right = {"n1_answer": "x = 1", "n2_answer": "x = 1", "n1_text": "because"}
    with Book(Course.load(released)) as book:
        book.settle("a1")
    submit(released, "ann", DUE - timedelta(hours=1), right)
    submit(released, "bo b'\"", DUE + timedelta(minutes=5), right)
    submit(released, "cy", DUE + timedelta(hours=2), {"n1_answer": "x = 2", "n2_answer": "x = 1"})
    submit(released, "0123", DUE + timedelta(days=2), right)
    submit(released, "0124", DUE + timedelta(days=2), right)
    submit(released, "empty", DUE + timedelta(days=9), {})
    submit(released, "half", DUE + timedelta(hours=5), right, ("n1",))
    return released, Path(shutil.copytree(released, tmp_path / "ours"))


def autograde(root: Path) -> None:
    config = Config()
    configure(config, root)
    config.Autograde.force = True
    api = NbGraderAPI(config=config)
    for folder in sorted((root / "submitted").iterdir()):
        outcome = api.autograde("a1", folder.name)
        assert outcome["success"], outcome.get("log")


def record(root: Path, autograded: Path) -> None:
    with Book(Course.load(root)) as book:
        for folder in sorted((root / "submitted").iterdir()):
            stamp = (folder / "a1" / "timestamp.txt").read_text().removesuffix(" UTC")
            when = datetime.fromisoformat(stamp).replace(tzinfo=UTC)
            graded = {
                name: NotebookScores.of(nbformat.read(path, 4)) if path.exists() else None
                for name in book.notebooks("a1")
                for path in [autograded / "autograded" / folder.name / "a1" / f"{name}.ipynb"]
            }
            book.record(folder.name, "a1", when, graded)


def test_equal_to_nbgrader_autograde_also_after_grading_by_hand(both: tuple[Path, Path]) -> None:
    theirs, ours = both
    autograde(theirs)
    record(ours, theirs)
    want = dump(Course.load(theirs).db_url)
    assert dump(Course.load(ours).db_url) == want
    lost = {(student, name): penalty for student, name, penalty in want["notebooks"]}
    assert lost["ann", "n1"] is None
    assert lost["bo b'\"", "n1"] is None  # within grace
    assert lost["cy", "n1"] == pytest.approx(0.2 * 1.5)
    assert lost["0123", "n1"] is None  # extended
    assert lost["0124", "n1"] == pytest.approx(0.5 * 2.5)
    assert lost["half", "n1"] == pytest.approx(0.2 * 2.5)
    assert ("empty", "n1", "n1_answer", "No response.", None) in want["comments"]
    assert ("ann", "n1", "n1_answer", None, None) in want["comments"]

    for root in both:
        with Gradebook(Course.load(root).db_url) as book:
            book.find_grade("n1_text", "n1", "a1", "0124").manual_score = 3
            book.find_grade("n1_test1", "n1", "a1", "cy").extra_credit = 0.5
            book.find_comment("n1_text", "n1", "a1", "ann").manual_comment = "well said"
            book.db.commit()
    autograde(theirs)
    record(ours, theirs)
    again = dump(Course.load(theirs).db_url)
    assert dump(Course.load(ours).db_url) == again
    assert ("0124", "n1", "n1_text", None, 3.0, None, True) in again["grades"]
    assert ("0124", "n1", pytest.approx(0.5 * 5.5)) in again["notebooks"]


def test_reads_what_was_written(released: Path) -> None:
    course = Course.load(released)
    with Book(course) as book:
        scores = {"n1_test1": Score(1.5), "n1_test2": Score(1.0), "n1_text": Score(None)}
        book.record("学生 一", "a1", DUE + timedelta(hours=1), {"n1": NotebookScores(scores), "n2": None})
        row = book.row("a1", "学生 一")
        assert (row.raw, row.penalty, row.points, row.max_points) == pytest.approx((2.5, 0.5, 2.0, 12.0))
        assert row.submitted == DUE + timedelta(hours=1)
        assert row.needs_manual
        assert [c.grade_id for c in row.cells[:3]] == ["n1_test1", "n1_test2", "n1_text"]
        assert book.comments("a1", "学生 一") == {}
    with Gradebook(course.db_url) as gradebook:
        gradebook.find_grade("n1_text", "n1", "a1", "学生 一").manual_score = 3
        gradebook.find_grade("n1_text", "n1", "a1", "学生 一").needs_manual_grade = False
        gradebook.find_comment("n1_text", "n1", "a1", "学生 一").manual_comment = "好"
        gradebook.db.commit()
    with Book(course) as book:
        assert book.settle("a1").penalties == ["学生 一"]  # the points given by hand are late too
        row = book.row("a1", "学生 一")
        assert (row.raw, row.points, row.needs_manual) == (5.5, pytest.approx(4.4), False)
        assert book.comments("a1", "学生 一") == {("n1", "n1_text"): "好"}
        assert book.settle("a1").penalties == []
        absent = book.row("a1", "nobody")
        assert (absent.has_submission, absent.points, absent.max_points) == (False, 0.0, 12.0)


def test_a_submission_is_written_whole_or_not_at_all(released: Path) -> None:
    course = Course.load(released)
    with Book(course) as book:
        with pytest.raises(CourseError, match="n2/nowhere is not in the gradebook; run autograder release first"):
            book.record(
                "ann",
                "a1",
                DUE,
                {"n1": NotebookScores({"n1_test1": Score(2)}), "n2": NotebookScores({"nowhere": Score(1)})},
            )
        assert book.rows("a1") == []
        with pytest.raises(CourseError, match="a1/n3 is not in the gradebook"):
            book.record("ann", "a1", DUE, {"n3": None})
        book.record("ann", "a1", DUE, {"n1": NotebookScores({"n1_test1": Score(2)})})
        assert book.row("a1", "ann").points == 2


def test_one_commit_per_submission(released: Path) -> None:
    from sqlalchemy import event

    with Book(Course.load(released)) as book:
        commits = []
        event.listen(book.gradebook.engine, "commit", commits.append)
        book.record("new", "a1", DUE, {"n1": NotebookScores({"n1_test1": Score(2)}), "n2": None})
        assert len(commits) == 1


def test_waits_a_minute_for_formgrader_to_finish_writing(released: Path) -> None:
    from sqlalchemy import text

    with Book(Course.load(released)) as book:
        assert book.db.execute(text("PRAGMA busy_timeout")).scalar_one() == 60_000


def test_never_released(tmp_path: Path) -> None:
    from_template = (Path(__file__).parents[2] / "course.yaml").read_text(encoding="utf-8")
    (tmp_path / "course.yaml").write_text(from_template, encoding="utf-8")
    with (
        Book(Course.load(tmp_path)) as book,
        pytest.raises(CourseError, match="ch18 is not in the gradebook; run autog"),
    ):
        book.notebooks("ch18")


def test_opens_a_new_gradebook_when_the_environment_is_not_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_template = (Path(__file__).parents[2] / "course.yaml").read_text(encoding="utf-8")
    (tmp_path / "course.yaml").write_text(from_template, encoding="utf-8")
    monkeypatch.setenv("PATH", os.defpath)
    Book(Course.load(tmp_path)).close()
    with sqlite3.connect(tmp_path / "gradebook.db") as db:
        assert db.execute("select count(*) from alembic_version").fetchone() == (1,)
