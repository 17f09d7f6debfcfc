"""How much of the gradebook waits for a person."""

from __future__ import annotations

from urllib.parse import quote

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from autograder.course import Course, CourseError
from autograder.text import Text

_WAITING = """
    SELECT assignment.name, COUNT(DISTINCT submitted_assignment.id)
    FROM grade
    JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id
    JOIN submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id
    JOIN assignment ON submitted_assignment.assignment_id = assignment.id
    WHERE grade.needs_manual_grade
    GROUP BY assignment.name
"""


def waiting(course: Course) -> dict[str, int]:
    """By assignment, how many students have a part that a person has yet to grade.

    One query without nbgrader's models, whose import takes longer than the question. Raises CourseError where no gradebook can be read.
    """
    url = make_url(course.db_url)
    if url.get_backend_name() == "sqlite":  # read-only: asking must not make an empty gradebook
        url = url.set(database=f"file:{quote(url.database or '')}", query={"mode": "ro", "uri": "true"})
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return {name: count for name, count in connection.execute(text(_WAITING))}
    except SQLAlchemyError as error:
        said = str(error).splitlines()[0]
        raise CourseError.of(
            course.path,
            Text(zh=f"读不了成绩册：{said}", en=f"the gradebook cannot be read: {said}"),
            key="database",
        ) from None
    finally:
        engine.dispose()
