"""The one change that a command makes to course.yaml: a later due date for a student, everything else left as it is."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from autograder.course import units
from autograder.course.model import Course
from autograder.course.problems import CourseError, Wrong
from autograder.text import Text


@dataclass(frozen=True)
class Extension:
    """A due date that was moved, in UTC."""

    student: str
    assignment: str
    before: datetime
    after: datetime


def extend(course: Course, student: str, assignment: str, by: str | timedelta, reason: str = "") -> Extension:
    """Move a student's due date by ``+2d`` from the date that holds for them now, as a new entry under overrides.

    Entries are only ever added, so that course.yaml tells who was given what and why. The gradebook follows with
    ``Book.settle``. Raises CourseError when there is no such assignment or due date, or the duration cannot be read;
    course.yaml is then as it was.
    """
    course.assignment(assignment)
    before = course.due(student, assignment)
    if before is None:
        raise CourseError.of(
            course.path, Text(zh=f"{assignment} 没有截止时间，无需延期", en=f"{assignment} has no due date to extend")
        )
    try:
        after = before + units.duration(by.strip().removeprefix("+") if isinstance(by, str) else by)
    except Wrong as wrong:
        raise CourseError.of(course.path, wrong.text, key="extend") from None
    entry = f"{{students: [{_quoted(student)}], assignment: {assignment}, due: {_local(after, course.zone)}"
    entry += f", reason: {_quoted(reason)}}}" if reason else "}"
    with course.path.open(encoding="utf-8-sig", newline="") as file:
        text = file.read()
    _replace(course.path, _with_override(text, entry))
    return Extension(student, assignment, before, after)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a YAML string


def _local(moment: datetime, zone: ZoneInfo) -> str:
    """A date as course.yaml writes it: in the course's zone, with an offset only where the clock repeats it."""
    there = moment.astimezone(zone)
    text = there.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")
    try:
        units.date(text, zone)
    except Wrong:
        return text + units.offset(there)
    return text


def _with_override(text: str, entry: str) -> str:
    """The text of course.yaml with one more item under ``overrides``, written where and how its list is written."""
    newline = "\r\n" if "\r\n" in text else "\n"
    root = YAML(typ="safe", pure=True).compose(text)
    assert isinstance(root, MappingNode)  # it was loaded as a course before
    key, node = next(((key, value) for key, value in root.value if key.value == "overrides"), (None, None))
    if key is None or node is None:
        return f"{text.rstrip()}{newline}{newline}overrides:{newline}  - {entry}{newline}"
    if not isinstance(node, SequenceNode) or not node.value:  # ``overrides:`` or ``overrides: []``
        start = text.index(":", key.end_mark.index) + 1
        end = start if isinstance(node, ScalarNode) and not node.value else node.end_mark.index
        return f"{text[:start].rstrip()}{newline}  - {entry}{text[end:]}"
    if node.flow_style:
        end = node.end_mark.index - 1
        return f"{text[:end].rstrip().rstrip(',')}, {entry}{text[end:]}"
    last = max(leaf.end_mark.index for leaf in _leaves(node))
    end = last + len(text[last:].partition(newline)[0])  # behind a comment on that line
    return f"{text[:end]}{newline}{' ' * node.start_mark.column}- {entry}{text[end:]}"


def _leaves(node: Node) -> Iterator[Node]:
    """Scalars and flow collections: the nodes whose end is where they end on the page."""
    if not isinstance(node, CollectionNode) or node.flow_style:
        yield node
        return
    for part in node.value:
        for child in part if isinstance(part, tuple) else (part,):
            yield from _leaves(child)


def _replace(path: Path, text: str) -> None:
    """Written beside and moved into place only when it reads back as a valid course."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".course", suffix=".yaml")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, path.stat().st_mode & 0o777)
        Course.load(name)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
