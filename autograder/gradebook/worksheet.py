"""Moodle's grading worksheet: who a participant number is, and when they handed in. Its headers come in any language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from dateutil import parser  # type: ignore[import-untyped]

from autograder.course import CourseError
from autograder.gradebook.table import Table
from autograder.text import Text

_CHINESE = re.compile(r"(\d{4})\s*年\s*(\d+)\s*月\s*(\d+)\s*日.*?(上午|下午)?\s*(\d+):(\d\d)")


@dataclass(frozen=True)
class Participant:
    """One row: the full name, ids and addresses, and the time of submission in UTC (None: nothing handed in)."""

    number: str
    name: str
    keys: tuple[str, ...]
    submitted: datetime | None


def participant_number(cell: str) -> str:
    """The number in ``Participant 1327627`` (in whatever language); empty when there is none."""
    found = re.fullmatch(r"\D*?(\d+)", cell.strip())
    return found[1] if found else ""


def read_participants(path: Path, zone: ZoneInfo) -> dict[str, Participant]:
    """The rows of a worksheet by participant number; times are read in ``zone``, where the instructor exported it.

    Columns: Identifier, Full name, [ID number], Email address, Status, … , the first that holds dates being
    "Last modified (submission)". Raises CourseError when the file is no worksheet.
    """
    table = Table(path)
    rows = [[cell.value.strip() for cell in row] for row in table.rows[1:] if len(row) >= len(table.header)]
    if not rows or not all(participant_number(row[0]) for row in rows):
        raise CourseError.of(
            path,
            Text(
                zh="不是 Moodle 的评分工作表：第一列应形如“Participant 123”",
                en="is no grading worksheet of Moodle: expected a first column like 'Participant 123'",
            ),
        )
    dated = [[moodle_time(cell, zone) for cell in row] for row in rows]
    column = next((i for i in range(4, len(table.header)) if any(row[i] for row in dated)), None)
    has_number = len(table.header) > 3 and not any("@" in row[2] for row in rows) and any("@" in row[3] for row in rows)
    keys = slice(2, 4 if has_number else 3)
    return {
        participant_number(row[0]): Participant(
            participant_number(row[0]), row[1], tuple(filter(None, row[keys])), times[column] if column else None
        )
        for row, times in zip(rows, dated, strict=True)
    }


def moodle_time(text: str, zone: ZoneInfo) -> datetime | None:
    """``Monday, 9 March 2026, 11:58 PM`` or ``2026年03月9日 星期一 23:58`` in UTC; None for anything else."""
    if not re.search(r"\d{4}.*\d:\d\d", text):
        return None
    if found := _CHINESE.search(text):
        year, month, day, half, hour, minute = found.groups()
        hours = int(hour) % 12 + 12 * (half == "下午") if half else int(hour)
        try:
            return datetime(int(year), int(month), int(day), hours, int(minute), tzinfo=zone).astimezone(UTC)
        except ValueError:
            return None
    try:
        moment: datetime = parser.parse(text)
    except (ValueError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
