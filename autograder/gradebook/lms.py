"""Grades into a file that staff exported from Canvas, Moodle or Blackboard: one column is filled, nothing else changes.

Filling an export, rather than writing a file of our own, avoids what makes imports go wrong: a column without the platform's
number creates a second assignment, Moodle's headers come in the user's language, a row too many is another student.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from autograder.course import Course, CourseError
from autograder.gradebook.roster import Person, Roster
from autograder.gradebook.scores import Row
from autograder.gradebook.table import Table
from autograder.gradebook.worksheet import participant_number
from autograder.text import Text

Kind = Literal["ambiguous", "unmatched", "missing", "ungraded", "locked"]


@dataclass(frozen=True)
class Set:
    """A cell of the column: whose it is, what was there, what is there now."""

    student: str
    before: str
    after: str


@dataclass(frozen=True)
class Unset:
    """A row of the file that keeps what it has, and why."""

    who: str
    kind: Kind
    text: Text


@dataclass
class Filled:
    """A filled file (``data``; nothing is written to disk) and what became of each row.

    ``absent`` are students with a score who have no row in the file.
    """

    platform: str
    column: str
    data: bytes = b""
    matched: list[Set] = field(default_factory=list)
    left: list[Unset] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Layout:
    platform: str
    column: int
    max_points: float | None
    comma: bool  # decimal comma
    first: int  # the first row of a student
    lms_id: int | None
    keys: tuple[int, ...]
    name: tuple[int, ...]


def fill(course: Course, assignment: str, rows: Iterable[Row], path: Path, column: str | None = None) -> Filled:
    """Fill the assignment's column of an exported gradebook with the scores of ``rows``.

    The column is found by the assignment's title or id, or named by ``column`` (its header or the platform's number).
    Rows of unknown or doubtful people, of students who handed nothing in or wait for grading by hand, and locked or
    excused ones stay as they are and are listed. Raises CourseError when the file is of no known platform, the column
    is not found or not alone, or its maximum is not the assignment's.
    """
    scores = {row.student: row for row in rows}
    table = Table(path)
    titles = (assignment, course.assignment(assignment).title.zh, course.assignment(assignment).title.en)
    layout = _layout(table, [title.casefold() for title in titles], column)
    most = next((row.max_points for row in scores.values()), None)
    if layout.max_points is not None and most is not None and abs(layout.max_points - most) > 0.005:
        raise CourseError.of(
            path,
            Text(
                zh=f"这一列满分为 {layout.max_points:g}，作业满分为 {most:g}；请先在平台上改成一致，再重新导出",
                en=f"the column counts to {layout.max_points:g}, the assignment to {most:g}; "
                "make them equal on the platform and export again",
            ),
            key=table.header[layout.column],
        )
    people = Roster.of(course).people
    people |= {name: _person(row) for name, row in scores.items() if name not in people}
    roster = Roster(people.values())
    done = Filled(layout.platform, table.header[layout.column])
    whose: dict[int, str] = {}
    for number in range(layout.first, len(table.rows)):
        if len(table.rows[number]) <= layout.column:
            continue  # an empty line
        match = roster.find(
            (_value(table, number, key) for key in layout.keys),
            "".join(_value(table, number, part) for part in layout.name),
            _value(table, number, layout.lms_id),
        )
        if match.person:
            whose[number] = match.person.id
        else:
            kind: Kind = "ambiguous" if match.ambiguous else "unmatched"
            done.left.append(Unset(_who(table, number, layout), kind, match.reason))
    twice = Counter(whose.values())
    values: dict[tuple[int, int], str] = {}
    for number, student in whose.items():
        before = _value(table, number, layout.column)
        if kept := _kept(scores.get(student), before, twice[student] > 1, _locked(table, number, layout)):
            done.left.append(Unset(student, *kept))
            continue
        after = _number(scores[student].points, layout.comma)
        done.matched.append(Set(student, before, after))
        if _parsed(before) != _parsed(after):  # 8 and 8,00 are the same: not touched
            values[number, layout.column] = after
    done.absent = sorted(s for s, row in scores.items() if row.has_submission and s not in twice)
    done.data = table.with_cells(values)
    return done


def _kept(row: Row | None, before: str, twice: bool, locked: bool) -> tuple[Kind, Text] | None:
    """Why a row is not filled; None when it is."""
    if twice:
        return "ambiguous", Text(zh="文件里有几行是同一个学生", en="several rows of the file are this student")
    if locked:
        return "locked", Text(zh="平台不允许改这个成绩", en="the platform does not let this grade be changed")
    if before.upper() in ("EX", "N/A"):
        return "locked", Text(zh=f"平台标为 {before}", en=f"the platform has {before} there")
    if row is None or not row.has_submission:
        return "missing", Text(zh="没有提交", en="nothing was handed in")
    if row.needs_manual:
        return "ungraded", Text(zh="还有部分等待人工评分", en="a part still waits for grading by hand")
    return None


def _person(row: Row) -> Person:
    return Person(row.student, row.first_name, row.last_name, row.email, row.lms_user_id)


def _value(table: Table, row: int, column: int | None) -> str:
    cells = table.rows[row]
    return cells[column].value.strip() if column is not None and column < len(cells) else ""


def _who(table: Table, number: int, layout: _Layout) -> str:
    shown = [_value(table, number, column) for column in (*layout.name, *layout.keys, layout.lms_id)]
    return ", ".join(filter(None, shown)) or f"row {number + 1}"


def _parsed(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _number(points: float, comma: bool) -> str:
    text = f"{points:.2f}".rstrip("0").rstrip(".")
    return text.replace(".", ",") if comma else text


_BLACKBOARD = re.compile(r"(?P<title>.+?)\s*\[[^\]]*?(?P<points>[\d.,]+)[^\]]*\]\s*\|\s*(?P<id>\d+)")
_CANVAS = re.compile(r"(?P<title>.+?)\s*\((?P<id>\d+)\)")
_MOODLE_GRADE = ("Grade", "成绩", "成績", "分数")


def _layout(table: Table, titles: list[str], column: str | None) -> _Layout:
    header = table.header
    where = {name: i for i, name in reversed(list(enumerate(header)))}
    if "Section" in where and "ID" in where and header[0] in ("Student", "LastName", "Last Name"):
        return _canvas(table, where, titles, column)
    if "Username" in where:
        return _blackboard(table, where, titles, column)
    data = [row for row in table.rows[1:] if len(row) > 1]
    if data and all(participant_number(row[0].value) for row in data):
        return _moodle(table, column)
    raise CourseError.of(
        table.path,
        Text(
            zh="认不出这个文件：应为从 Canvas、Moodle（评分工作表）或 Blackboard 导出的成绩表",
            en="is not recognised: expected a gradebook exported from Canvas, Moodle (grading worksheet) or Blackboard",
        ),
        line=1,
        column=1,
    )


def _find(table: Table, form: re.Pattern[str], titles: list[str], column: str | None) -> int:
    """The one column that has the platform's number and the assignment's title, or is the one asked for."""
    there = {i: found for i, name in enumerate(table.header) if (found := form.fullmatch(name))}
    if column is not None:
        fits = [i for i, found in there.items() if column in (table.header[i], found["id"], found["title"])]
    else:
        fits = [i for i, found in there.items() if found["title"].casefold() in titles]
    if len(fits) == 1:
        return fits[0]
    names = ", ".join(repr(table.header[i]) for i in (fits or there)) or "-"
    words = (
        Text(zh=f"有几列都符合，请用 column 指定一列：{names}", en=f"several columns fit; name one of them: {names}")
        if fits
        else Text(
            zh=f"找不到本作业的列；请指定一列：{names}", en=f"no column is this assignment's; name one of: {names}"
        )
    )
    raise CourseError.of(table.path, words, line=1, column=1)


def _columns(where: dict[str, int], *names: str) -> tuple[int, ...]:
    return tuple(where[name] for name in names if name in where)


def _canvas(table: Table, where: dict[str, int], titles: list[str], column: str | None) -> _Layout:
    at = _find(table, _CANVAS, titles, column)
    # Between the header and the students: a row on posting, perhaps, and the row of the points possible.
    first = next((i for i, row in enumerate(table.rows) if i and _value(table, i, where["ID"])), len(table.rows))
    possible = [cell for i in range(1, first) if _parsed(cell := _value(table, i, at)) is not None]
    return _Layout(
        "Canvas",
        at,
        _parsed(possible[-1]) if possible else None,
        comma=any("," in _value(table, i, at) for i in range(1, len(table.rows))),
        first=first,
        lms_id=where["ID"],
        keys=_columns(where, "SIS User ID", "SIS Login ID", "Integration ID"),
        name=_columns(where, "Student") or _columns(where, "LastName", "Last Name", "FirstName", "First Name"),
    )


def _blackboard(table: Table, where: dict[str, int], titles: list[str], column: str | None) -> _Layout:
    at = _find(table, _BLACKBOARD, titles, column)
    found = _BLACKBOARD.fullmatch(table.header[at])
    return _Layout(
        "Blackboard",
        at,
        _parsed(found["points"]) if found else None,
        comma=any("," in _value(table, i, at) for i in range(1, len(table.rows))),
        first=1,
        lms_id=None,
        keys=_columns(where, "Username", "Student ID"),
        name=_columns(where, "Last Name", "First Name"),
    )


def _moodle(table: Table, column: str | None) -> _Layout:
    wanted = (column,) if column else _MOODLE_GRADE
    fits = [i for i, name in enumerate(table.header) if name in wanted]
    if len(fits) != 1:
        names = ", ".join(map(repr, table.header))
        words = Text(zh=f"请指定成绩一列：{names}", en=f"name the column that holds the grade: {names}")
        raise CourseError.of(table.path, words, line=1, column=1)
    at = fits[0]  # the maximum stands to the right of the grade (mod/assign/feedback/offline)
    most = {_value(table, i, at + 1) for i in range(1, len(table.rows)) if len(table.rows[i]) > at + 1}
    text = most.pop() if len(most) == 1 else ""
    # Identifier, Full name, [ID number], Email address, Status …: whichever of the middle ones there are
    return _Layout("Moodle", at, _parsed(text), "," in text, first=1, lms_id=None, keys=(2, 3), name=(1,))


def _locked(table: Table, number: int, layout: _Layout) -> bool:
    """Moodle's "Grade can be changed", to the right of the maximum, past a column for the workflow's state."""
    columns = range(layout.column + 2, layout.column + 4) if layout.platform == "Moodle" else ()
    return any(_value(table, number, column) in ("No", "否") for column in columns)
