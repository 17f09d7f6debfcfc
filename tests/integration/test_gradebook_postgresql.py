"""The gradebook in PostgreSQL: a real server, started for this test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.course import Course
from autograder.gradebook.book import Book
from autograder.gradebook.scores import NotebookScores, Score
from autograder.gradebook.traits import configure
from tests.postgresql import postgresql

DUE = datetime(2026, 3, 9, 15, 59, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture
def course(server: str, unreleased: Path) -> Course:
    """The tiny course, released by nbgrader into PostgreSQL."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    path = unreleased / "course.yaml"
    path.write_text(path.read_text(encoding="utf-8") + f'database: "{server}"\n', encoding="utf-8")
    (unreleased / "release").rename(unreleased / "source")
    config = Config()
    course = configure(config, unreleased)
    outcome = NbGraderAPI(config=config).generate_assignment("a1")
    assert outcome["success"], outcome.get("log")
    return course


def test_records_and_reads(course: Course) -> None:
    assert course.db_url.startswith("postgresql+psycopg://grader@/postgres?host=")
    scores = {"n1_test1": Score(1.5), "n1_test2": Score(1.0), "n1_text": Score(None)}
    late = datetime(2026, 3, 9, 17, 0, tzinfo=UTC)
    with Book(course) as book:
        book.record("学生 'x' \"y\"", "a1", late, {"n1": NotebookScores(scores, frozenset({"n1_text"})), "n2": None})
    with Book(course) as book:
        row = book.row("a1", "学生 'x' \"y\"")
        assert (row.raw, row.penalty, row.submitted) == (2.5, pytest.approx(0.5), late)
        grade = book.gradebook.find_grade("n1_text", "n1", "a1", row.student)
        grade.manual_score = 3
        comment = book.gradebook.find_comment("n1_text", "n1", "a1", row.student)
        assert comment.auto_comment == "No response."
        comment.manual_comment = "好"
        book.db.commit()
        book.record(row.student, "a1", late, {"n1": NotebookScores(scores)})
        assert book.row("a1", row.student).raw == 5.5
        assert book.comments("a1", row.student) == {("n1", "n1_text"): "好"}

    # Several graders may write at once: each of four threads its own students, and one student all of them.
    failures: list[BaseException] = []

    def grader(number: int) -> None:
        try:
            with Book(course) as book:
                for i in range(5):
                    book.record(f"s{number}-{i}", "a1", DUE, {"n1": NotebookScores({"n1_test1": Score(i / 4)})})
                book.record("s-shared", "a1", DUE, {"n1": NotebookScores({"n1_test1": Score(2)})})
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=grader, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Book(course) as book:
        points = {row.student: row.points for row in book.rows("a1") if row.student.startswith("s")}
    assert points == {f"s{n}-{i}": i / 4 for n in range(4) for i in range(5)} | {"s-shared": 2}
