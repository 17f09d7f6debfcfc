"""The pages of an assignment, from verdicts and gradebook: feedback into ``feedback/``, where nbgrader releases it from; the class report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from autograder.course import Course
from autograder.feedback.page import Late, Manual, Show, page
from autograder.feedback.report import report
from autograder.feedback.write import write_feedback
from autograder.gradebook.book import Book
from autograder.gradebook.roster import Roster
from autograder.gradebook.scores import Row
from autograder.grading.verdicts import read_verdict, verdicts
from autograder.judge.verdict import Verdict


def write_pages(course: Course, assignment: str, book: Book, students: Iterable[str] | None = None) -> Iterator[Path]:
    """Write the pages of all graded notebooks of an assignment, or of some students, and yield their paths."""
    chosen = list(students) if students is not None else graded_students(course, assignment)
    rows = {row.student: row for row in book.rows(assignment, chosen)}
    for student in chosen:
        for path in sorted(course.folder("verdicts", student, assignment).glob("*.json")):
            verdict = read_verdict(path)
            if verdict is not None:
                html = render_page(course, verdict, rows.get(student), book.comments(assignment, student))
                yield write_feedback(
                    html,
                    folder=course.folder("feedback", student, assignment),
                    notebook=verdict.notebook,
                    submission=course.folder("autograded", student, assignment),
                )


def graded_students(course: Course, assignment: str) -> list[str]:
    """The students who have a verdict on the assignment, sorted."""
    return sorted(p.parent.name for p in course.folder("verdicts").glob(f"*/{assignment}") if p.is_dir())


def render_page(course: Course, verdict: Verdict, row: Row | None, comments: dict[tuple[str, str], str]) -> str:
    """One page, with what a person gave and wrote in formgrader."""
    known = course.assignment(verdict.assignment)
    now, due = datetime.now(UTC), course.due(verdict.student, verdict.assignment)
    show = Show(
        hints=known.show.visible("hints", now, due),
        examples=known.show.visible("examples", now, due),
        tests=known.show.visible("tests", now, due),
    )
    late = None
    if row is not None and row.submitted is not None:
        by = course.lateness(verdict.student, verdict.assignment, row.submitted)
        late = Late(by, row.penalty) if by else None
    return page(
        verdict,
        student_name=f"{row.last_name or ''} {row.first_name or ''}".strip() if row is not None else "",
        course=course.title.text,
        title=known.title.text,
        manual=_manual(verdict, row, comments),
        late=late,
        show=show,
        language=course.language,
    )


def write_report(course: Course, assignment: str, book: Book, out: Path | None = None) -> Path:
    """Write the class report, to ``report/<assignment>.html`` unless told otherwise, and return where it is."""
    known = course.assignment(assignment)
    rows = {row.student: row for row in book.rows(assignment)}
    late = {student: course.lateness(student, assignment, row.submitted) for student, row in rows.items()}
    found = list(verdicts(course, assignment))
    html = report(
        found,
        course=course.title.text,
        title=known.title.text,
        roster=list(Roster.of(course).people) if course.roster else (),
        late={student: by for student, by in late.items() if by > timedelta(0)},
        manual={(v.student, v.notebook): _manual(v, rows.get(v.student), {}) for v in found},
        language=course.language,
    )
    target = out or course.folder("report", f"{assignment}.html")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(html, encoding="utf-8")
    return target


def _manual(verdict: Verdict, row: Row | None, comments: dict[tuple[str, str], str]) -> list[Manual]:
    cells = [cell for cell in row.cells if cell.notebook == verdict.notebook] if row is not None else []
    found = []
    for cell in cells:
        said = next(
            (
                text
                for name in (cell.grade_id, f"{cell.grade_id}_answer")
                if (text := comments.get((verdict.notebook, name)))
            ),
            "",
        )
        if cell.manual is not None or cell.extra or said:
            found.append(Manual(cell.grade_id, cell.manual, cell.extra, said))
    return found
