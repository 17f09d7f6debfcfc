"""Groups of assignments added up for each student, the worst left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.course import Course, Group
from autograder.gradebook.scores import Row


@dataclass(frozen=True)
class Total:
    """A student's points in one group, the assignments that were left out, and whether a person has yet to grade a part of any."""

    student: str
    group: str
    points: float
    max_points: float
    dropped: tuple[str, ...]
    needs_manual: bool


def totals(course: Course, rows: Mapping[str, Iterable[Row]]) -> list[Total]:
    """Totals per group and student, from the rows of each assignment by its id. Nothing handed in counts zero.

    What is dropped is what lets the student's percentage of the group be highest, as Canvas does it; with assignments
    of different size that need not be the one with the lowest percentage.
    """
    by_student: dict[str, dict[str, Row]] = {}
    for assignment, each in rows.items():
        for row in each:
            by_student.setdefault(row.student, {})[assignment] = row
    found = []
    for student in sorted(by_student):
        for group in course.groups:
            members = [a.id for a in course.assignments if a.group == group.id and a.id in rows]
            mine = {a: by_student[student][a] for a in members if a in by_student[student]}
            kept = _kept(group, mine)
            found.append(
                Total(
                    student,
                    group.id,
                    sum(mine[a].points for a in kept),
                    sum(mine[a].max_points for a in kept),
                    tuple(a for a in mine if a not in kept),
                    any(row.needs_manual for row in mine.values()),
                )
            )
    return found


def _kept(group: Group, rows: Mapping[str, Row]) -> list[str]:
    """Which assignments count: the choice with the highest ratio of points to maximum, found by Dinkelbach's iteration."""
    free = [a for a in rows if a not in group.never_drop]
    fixed = [a for a in rows if a in group.never_drop]
    count = max(len(free) - group.drop_lowest, 0 if fixed else 1)
    kept, ratio = [*fixed, *free[:count]], -1.0
    while True:
        most = sum(rows[a].max_points for a in kept)
        new = sum(rows[a].points for a in kept) / most if most else 0.0
        if new <= ratio:
            return [a for a in rows if a in kept]
        ratio = new
        gain = {a: rows[a].points - ratio * rows[a].max_points for a in free}
        best = sorted(free, key=lambda a: gain[a], reverse=True)[:count]
        kept = [*fixed, *best]
