"""What students handed in: which file is which notebook of the assignment, and when it came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.course import Course
from autograder.grading.assignment import Assignment
from autograder.notebooks import Submission, identify, read_submission
from autograder.notebooks.read import MAX_BYTES


@dataclass(frozen=True)
class Notebook:
    """One notebook of a submission: its bytes (None: not handed in) and the name of the file, when it has another name."""

    name: str
    data: bytes | None
    file: str | None = None


@dataclass(frozen=True)
class Handed:
    """One student's submission of an assignment."""

    student: str
    folder: Path
    submitted: datetime | None
    notebooks: tuple[Notebook, ...]


def students(course: Course, assignment: str) -> list[str]:
    """The students who have handed something in, sorted."""
    return sorted(p.parent.name for p in course.folder("submitted").glob(f"*/{assignment}") if p.is_dir())


def handed_in(course: Course, assignment: Assignment, student: str) -> Handed:
    """One student's submission. A file under a name that no notebook has is matched by what is in it."""
    folder = course.folder("submitted", student, assignment.name)
    files = {path.stem: path for path in sorted(folder.glob("*.ipynb")) if path.is_file()}
    found = {name: Notebook(name, read_capped(files[name])) for name in assignment.notebooks if name in files}
    for stem, path in files.items():
        if stem not in assignment.notebooks and len(found) < len(assignment.notebooks):
            data = read_capped(path)
            known = _identified(data, assignment)
            if known is not None and known not in found:
                found[known] = Notebook(known, data, path.name)
    every = tuple(found.get(name, Notebook(name, None)) for name in assignment.notebooks)
    return Handed(student, folder, _timestamp(folder), every)


def read_capped(path: Path) -> bytes:
    """A notebook's bytes, or as many as show that it is too large."""
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _identified(data: bytes, assignment: Assignment) -> str | None:
    read = read_submission(data)
    return identify(read.notebook, assignment.notebooks) if isinstance(read, Submission) else None


def _timestamp(folder: Path) -> datetime | None:
    try:
        return parse_utc((folder / "timestamp.txt").read_text(encoding="utf-8").strip()).replace(tzinfo=UTC)
    except (OSError, ValueError):
        return None
