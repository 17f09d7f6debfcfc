"""Who is in the course, and which of them an LMS means: matched, ambiguous or unknown, never guessed."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.course import Course, CourseError, Problem
from autograder.text import Text

_FIELDS = ("id", "first_name", "last_name", "email", "lms_user_id")


@dataclass(frozen=True)
class Person:
    """A student; ``id`` names the folder under submitted/. ``further`` are other columns of the roster, such as logins."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""
    further: tuple[str, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """Ids, logins and addresses that may stand for this person in a file of an LMS.

        Not ``lms_user_id``: a platform's own number may be another student's number.
        """
        email = self.email.casefold()
        known = {self.id, email, email.partition("@")[0], *self.further}
        return frozenset(key.casefold() for key in known if key)

    @property
    def names(self) -> frozenset[str]:
        """The full name in the orders in which platforms write it, reduced to letters."""
        first, last = self.first_name, self.last_name
        return frozenset({plain_name(first + last), plain_name(last + first)} - {""})


@dataclass(frozen=True)
class Match:
    """Who is meant: one person, or none with the reason in words (``ambiguous`` when there were several)."""

    person: Person | None
    reason: Text = field(default_factory=lambda: Text("", ""))
    ambiguous: bool = False


class Roster:
    """The students of a course."""

    def __init__(self, people: Iterable[Person] = ()) -> None:
        self.people = {person.id: person for person in people}

    def __bool__(self) -> bool:
        return bool(self.people)

    @classmethod
    def of(cls, course: Course) -> Roster:
        """The course's roster; empty when course.yaml names none. Raises CourseError when it cannot be read."""
        return cls.load(course.root / course.roster) if course.roster else cls()

    @classmethod
    def load(cls, path: Path) -> Roster:
        """Read a CSV with the columns id (needed), first_name, last_name, email, lms_user_id and any others.

        Ids stay text. Raises CourseError for a file that cannot be read, has no id column, an empty or a doubled id.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise CourseError.of(
                path, Text(zh=f"无法按 UTF-8 读取：{error}", en=f"cannot be read as UTF-8: {error}")
            ) from None
        lines = csv.DictReader(io.StringIO(text))
        if "id" not in (lines.fieldnames or ()):
            have = ", ".join(lines.fieldnames or ()) or "-"
            words = Text(
                zh=f"第一行应有 id 一列，得到的是：{have}", en=f"expected a column id in the first line, got: {have}"
            )
            raise CourseError.of(path, words, line=1, column=1)
        people, problems = {}, []
        for line in lines:
            cells = {key: (value or "").strip() for key, value in line.items() if isinstance(key, str)}
            name = cells["id"]
            if not any(cells.values()):
                continue
            if fault := folder_fault(name):
                problems.append(Problem(path, lines.line_num, 1, "id", fault))
            elif name in people:
                problems.append(
                    Problem(path, lines.line_num, 1, "id", Text(zh=f"{name} 写了两次", en=f"{name} is there twice"))
                )
            further = tuple(value for key, value in cells.items() if key not in _FIELDS and value)
            people[name] = Person(**{key: cells.get(key, "") for key in _FIELDS}, further=further)
        if problems:
            raise CourseError(problems)
        return cls(people.values())

    def find(self, keys: Iterable[str], name: str = "", lms_user_id: str = "") -> Match:
        """Who has this ``lms_user_id``; else one of ``keys`` (ids, logins, addresses); else this ``name``."""
        given = [key.strip() for key in keys if key.strip()]
        wanted = {key.casefold() for key in given}
        everybody = self.people.values()
        found = [person for person in everybody if lms_user_id and person.lms_user_id == lms_user_id]
        found = found or [person for person in everybody if person.keys & wanted]
        found = found or [person for person in everybody if plain_name(name) in person.names]
        if len(found) == 1:
            return Match(found[0])
        shown = ", ".join(filter(None, (name, *given, lms_user_id)))
        if found:
            who = ", ".join(sorted(person.id for person in found))
            return Match(None, Text(zh=f"{shown} 可能是：{who}", en=f"{shown} may be any of: {who}"), ambiguous=True)
        return Match(None, Text(zh=f"名册里没有 {shown}", en=f"{shown} is not in the roster"))


def plain_name(name: str) -> str:
    """A name as letters alone, in lower case: the form that platforms' file names keep of it."""
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", name).casefold())


def folder_fault(student: str) -> Text | None:
    """Why an id cannot be the name of a folder that nbgrader finds again; None when it can."""
    if not student:
        return Text(zh="学号是空的", en="the id is empty")
    if student.startswith(".") or len(student.encode()) > 128:
        return Text(
            zh=f"{student!r} 不能作文件夹名：以点开头，或长于 128 字节",
            en=f"{student!r} cannot be a folder's name: it starts with a dot or is longer than 128 bytes",
        )
    bad = sorted({char for char in student if char in "/\\*?[]{}" or not char.isprintable()})
    if bad:
        return Text(
            zh=f"{student!r} 含有不能用在文件夹名里的字符 {''.join(bad)!r}",
            en=f"{student!r} holds characters that a folder's name must not have: {''.join(bad)!r}",
        )
    return None
