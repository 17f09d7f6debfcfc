"""What the name of a file that came from an LMS says: whose it is, which attempt, what the student called it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from nbgrader.utils import parse_utc


@dataclass(frozen=True)
class Named:
    """One submitted file. ``student`` is an id, as nbgrader and plain folders state it; an LMS states the ``name``.

    ``participant`` is Moodle's number within one assignment, ``lms_user_id`` Canvas' number of a person.
    ``attempt`` names the submission where there may be several, ``upload`` orders the files of one;
    ``late`` is the platform's own mark.
    """

    file: str
    student: str = ""
    name: str = ""
    participant: str = ""
    lms_user_id: str = ""
    attempt: str = ""
    upload: int = 0
    submitted: datetime | None = None
    late: bool = False


# Moodle: "{Full name}_{participant}_assignsubmission_file_/{path}", or flat "…_assignsubmission_file_{path}"
# (mod/assign/classes/downloader.php; older versions end the folder with "_", newer do not).
_MOODLE = re.compile(r"(?:.*/)?(?P<name>[^/]+)_(?P<id>\d+)_assignsubmission_file(?:_?/|_)(?P<file>.+)")
_MOODLE_OTHER = re.compile(r"(?:.*/)?[^/]+_\d+_assignsubmission_(?!file)\w+")

# Canvas: "{sortable name, word characters, lower case}[_LATE]_{user}_{attachment}_{file}" (lib/content_zipper.rb).
_CANVAS = re.compile(r"(?P<name>\w+?)(?P<late>_LATE)?_(?P<user>\d+)_(?P<attachment>\d{1,18})_(?P<file>.+)", re.DOTALL)
_ANONYMOUS = re.compile(r"(?:LATE_)?anon_[^_]+_\d+_(?P<file>.+)", re.DOTALL)


def parse(path: str, assignment: str) -> Named | None:
    """Read the path of a file inside a folder or zip; None for one that belongs to no submission of ``assignment``.

    Known are nbgrader's exchange (``{student}+{assignment}+{time}[+{random}]/{file}``), Moodle, Canvas, and plain folders
    ``{student}/{assignment}/{file}`` or ``{student}/{file}``.
    """
    if found := _MOODLE.fullmatch(path):
        return Named(found["file"].rpartition("/")[2], participant=found["id"], name=found["name"].replace("_", " "))
    if _MOODLE_OTHER.match(path):
        return None
    folders, _, file = path.rpartition("/")
    if found := _ANONYMOUS.fullmatch(file):
        return Named(found["file"], name="anon")
    if found := _CANVAS.fullmatch(file):
        return Named(
            found["file"],
            name=found["name"],
            lms_user_id=found["user"],
            upload=int(found["attachment"]),
            late=bool(found["late"]),
        )
    if not folders:
        return None
    for folder in reversed(folders.split("/")):
        if exchanged := _exchange(folder):
            student, which, submitted = exchanged
            return Named(file, student=student, attempt=folder, submitted=submitted) if which == assignment else None
    parts = folders.split("/")
    if len(parts) > 1 and parts[1] != assignment:
        return None
    return Named(file, student=parts[0])


def _exchange(folder: str) -> tuple[str, str, datetime] | None:
    """``student+assignment+time`` with or without ``+random``; a student's id may hold a + itself."""
    parts = folder.split("+")
    for at in (len(parts) - 1, len(parts) - 2):
        if at >= 2 and (moment := timestamp(parts[at])):
            return "+".join(parts[: at - 1]), parts[at - 1], moment
    return None


def timestamp(text: str) -> datetime | None:
    """A time as nbgrader writes it (``2015-02-02 14:58:23.948203 America/Los_Angeles``), in UTC; None if it is none."""
    if not re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", text.strip()):
        return None
    try:
        naive: datetime = parse_utc(text.strip())
    except (ValueError, OverflowError):
        return None
    return naive.replace(tzinfo=UTC)
