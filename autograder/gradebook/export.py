"""Scores for spreadsheets and Gradescope."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from autograder.course import Course
from autograder.gradebook.scores import Row
from autograder.gradebook.totals import Total
from autograder.judge.verdict import Outcome, Status, Verdict
from autograder.text import Language

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "needs_manual_grade",
)


def plain(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def scores_csv(course: Course, rows: Sequence[Row]) -> str:
    """A line per student: nbgrader's columns, and one per grade cell (``notebook/grade_id``); times in the course's zone.

    Write it as ``utf-8-sig`` for Excel. Who handed nothing in has an empty timestamp and zero points.
    """
    cells = list(dict.fromkeys((cell.notebook, cell.grade_id) for row in rows for cell in row.cells))
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_MINIMAL, lineterminator="\r\n")
    writer.writerow([*COLUMNS, *(plain("/".join(cell)) for cell in cells)])
    for row in rows:
        due = course.due(row.student, row.assignment)
        earned = {(cell.notebook, cell.grade_id): cell.points for cell in row.cells}
        writer.writerow(
            [
                row.assignment,
                *(moment.astimezone(course.zone).isoformat() if moment else "" for moment in (due, row.submitted)),
                *map(plain, (row.student, row.last_name, row.first_name, row.email)),
                *map(_points, (row.raw, row.penalty, row.points, row.max_points)),
                "yes" if row.needs_manual else "",
                *(_points(earned[cell]) if cell in earned else "" for cell in cells),
            ]
        )
    return out.getvalue()


def totals_csv(totals: Iterable[Total]) -> str:
    """A line per student and group; ``dropped`` names the assignments that were left out. Write it as ``utf-8-sig`` for Excel."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_MINIMAL, lineterminator="\r\n")
    writer.writerow(["student_id", "group", "score", "max_score", "dropped", "needs_manual_grade"])
    for each in totals:
        points = map(_points, (each.points, each.max_points))
        waits = "yes" if each.needs_manual else ""
        writer.writerow([plain(each.student), each.group, *points, " ".join(each.dropped), waits])
    return out.getvalue()


def _points(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def gradescope(verdicts: Iterable[Verdict], language: Language = "en", show_tests: bool = True) -> dict[str, Any]:
    """Gradescope's ``results.json`` from the verdicts on one submission's notebooks, as plain JSON values.

    One entry per exercise, its hidden tests in words inside; ``show_tests`` False leaves their names to after the due
    date. Format: gradescope-autograders.readthedocs.io/en/latest/specs. A part that a person grades is left out.
    """
    tests: list[dict[str, Any]] = []
    notes: list[str] = []
    seconds = 0.0
    for verdict in verdicts:
        seconds += verdict.seconds
        notes += [] if verdict.message is None else [f"{verdict.notebook}: {verdict.message.text.lang(language)}"]
        notes += [words.text.lang(language) for words in (*verdict.repairs, *verdict.limits_hit)]
        if verdict.status is Status.MACHINE_FAULT:
            notes.append(f"{verdict.notebook}: to be graded again")
        for exercise in verdict.exercises:
            lines = [] if exercise.diagnosis is None else [exercise.diagnosis.hint.text.lang(language)]
            for test in exercise.tests:
                line = f"[{test.outcome.value}] {test.about.text.lang(language)}"
                if test.message is not None and test.outcome is Outcome.FAILED:
                    line += f": {test.message.text.lang(language)}"
                lines += [line] if show_tests else []
            tests.append(
                {
                    "name": exercise.name,
                    "number": str(len(tests) + 1),
                    "score": exercise.points,
                    "max_score": exercise.max_points,
                    "status": "passed" if exercise.full else "failed",
                    "output": "\n".join(lines),
                    "output_format": "text",
                    "visibility": "visible",
                }
            )
        for cell in verdict.cells:
            if cell.points is not None:
                tests.append(
                    {
                        "name": cell.grade_id,
                        "number": str(len(tests) + 1),
                        "score": cell.points,
                        "max_score": cell.max_points,
                        "status": "passed" if cell.points >= cell.max_points else "failed",
                        "visibility": "visible",
                    }
                )
    return {
        "score": sum(test["score"] for test in tests),
        "execution_time": seconds,
        "output": "\n".join(notes),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }
