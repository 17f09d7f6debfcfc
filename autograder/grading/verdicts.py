"""Verdicts on disk: ``verdicts/<student>/<assignment>/<notebook>.json``, each written in one step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from autograder.course import Course
from autograder.judge.verdict import Verdict


def verdict_path(course: Course, student: str, assignment: str, notebook: str) -> Path:
    """Where the verdict on one notebook lies."""
    return course.folder("verdicts", student, assignment) / f"{notebook}.json"


def write_verdict(course: Course, verdict: Verdict) -> Path:
    """Write a verdict, replacing an older one in one step, and return its path."""
    path = verdict_path(course, verdict.student, verdict.assignment, verdict.notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, verdict.model_dump_json(indent=1).encode())
    return path


def read_verdict(path: Path) -> Verdict | None:
    """The verdict in a file; None when there is none that this version can read."""
    try:
        return Verdict.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def verdicts(course: Course, assignment: str) -> Iterator[Verdict]:
    """All verdicts on an assignment, by student and notebook."""
    for path in sorted(course.folder("verdicts").glob(f"*/{assignment}/*.json")):
        found = read_verdict(path)
        if found is not None:
            yield found


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a run that is killed, never meets half of it."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(data)
    os.replace(partial, path)
