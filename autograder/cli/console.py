"""What every command shares: the course, the language, errors in words, plain output when nobody watches."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autograder.text import Language, Text

if TYPE_CHECKING:
    from autograder.course import Course
    from autograder.grading.assignment import Assignment

DONE, FAILED, WRONG_USE = 0, 1, 2

AssignmentName = Annotated[str, typer.Argument(metavar="ASSIGNMENT", help="The assignment's id in course.yaml.")]
CourseFolder = Annotated[Path, typer.Option("--course", "-C", help="The folder of course.yaml.", show_default="here")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only, for other programs.")]
HERE = Path()


def language() -> Language:
    """The terminal's language: AUTOGRADER_LANGUAGE, else the locale; English unless it is Chinese."""
    chosen = os.environ.get("AUTOGRADER_LANGUAGE") or os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    return "zh" if chosen.startswith("zh") else "en"


def say(text: Text | str) -> None:
    """Print a line for a person."""
    print(text.lang(language()) if isinstance(text, Text) else text)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, ensure_ascii=False, indent=1))


def complain(text: Text | str) -> None:
    """Print a line about something that failed, to stderr."""
    print(text.lang(language()) if isinstance(text, Text) else text, file=sys.stderr)


@contextlib.contextmanager
def errors_in_words() -> Iterator[None]:
    """Turn what is the course's or the machine's fault into words and exit code 1; a traceback is for our own faults only."""
    try:
        yield
    except Exception as error:
        if not _explained(error):
            raise
        raise typer.Exit(FAILED) from None


def _explained(error: Exception) -> bool:
    """Print the words for a fault of the course or the machine; False for any other error."""
    from autograder.course import CourseError  # here: what fails is rare, and importing these is slow
    from autograder.exercises import CourseFault
    from autograder.sandbox import SandboxUnavailable

    if isinstance(error, CourseError):
        for problem in error.problems:
            complain(problem.lang(language()))
    elif isinstance(error, CourseFault):
        complain(Text(zh=f"课程内容有误：{error.text.zh}", en=f"The course is at fault: {error.text.en}"))
    elif isinstance(error, SandboxUnavailable):
        complain(error.text)
        complain(_UNSANDBOXED)
    return isinstance(error, (CourseError, CourseFault, SandboxUnavailable))


_UNSANDBOXED = Text(
    zh="没有隔离就不运行学生的代码。`autograder doctor` 说明缺什么；--no-sandbox 仍可运行，但每份成绩都会注明未隔离。",
    en="Students' code is not run without isolation. `autograder doctor` says what is missing; "
    "--no-sandbox runs it all the same and marks every verdict NOT SANDBOXED.",
)


def load(folder: Path, assignment: str) -> tuple[Course, Assignment]:
    """The course in a folder and one of its assignments."""
    from autograder.course import Course
    from autograder.grading.assignment import Assignment

    course = Course.load(folder)
    course.assignment(assignment)
    return course, Assignment.load(course.root, assignment)
