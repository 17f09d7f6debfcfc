"""Commands about the course's content: release, solutions, check, schema."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from autograder.cli.console import (
    DONE,
    FAILED,
    HERE,
    AssignmentName,
    CourseFolder,
    Json,
    errors_in_words,
    print_json,
    say,
)
from autograder.text import Text


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(release)
    app.command()(solutions)
    app.command()(check)
    app.command()(schema)


def release(assignment: AssignmentName, course: CourseFolder = HERE, as_json: Json = False) -> None:
    """Make the students' notebooks in release/ from source/, and enter their cells into the gradebook."""
    with errors_in_words():
        from autograder.course import Course
        from autograder.grading.release import release as make

        made = [str(path) for path in make(Course.load(course), assignment)]
    _report(made, as_json)


def solutions(assignment: AssignmentName, course: CourseFolder = HERE, as_json: Json = False) -> None:
    """Make notebooks with the reference solutions in solution/, to be published after the deadline."""
    with errors_in_words():
        from autograder.course import Course
        from autograder.grading.release import publish_solutions

        made = [str(path) for path in publish_solutions(Course.load(course), assignment)]
    _report(made, as_json)


def _report(made: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"made": made})
    for path in () if as_json else made:
        say(path)


def check(
    assignment: Annotated[str, typer.Argument(help="One assignment; all of them unless given.")] = "",
    course: CourseFolder = HERE,
    seeds: Annotated[int, typer.Option(min=1, help="How many sets of hidden inputs to try.")] = 1,
    as_json: Json = False,
) -> None:
    """Prove the course consistent: references and alternatives earn everything, each mistake loses points and is named as itself."""
    with errors_in_words():
        from autograder.cli.progress import counted
        from autograder.course import Course
        from autograder.grading.check import check as prove

        loaded = Course.load(course)
        names = [assignment] if assignment else [each.id for each in loaded.assignments]
        found = []
        for name in names:
            loaded.assignment(name)
            with counted(Text(zh="检查", en="checking"), None, quiet=as_json) as step:
                found.append(prove(loaded, name, seeds, step))
    if as_json:
        documents = [each.as_dict() for each in found]
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for each in found:
            for problem in each.problems:
                say(problem)
            say(
                Text(
                    zh=f"{each.assignment}：{each.exercises} 道练习，{each.mistakes} 个错误，{each.alternatives} 个其他正确写法；"
                    f"漏网 {each.survived}，未认出 {each.undiagnosed}，误伤 {each.false_alarms}；问题 {len(each.problems)} 个。",
                    en=f"{each.assignment}: {each.exercises} exercises, {each.mistakes} mistakes, {each.alternatives} alternatives; "
                    f"survived {each.survived}, undiagnosed {each.undiagnosed}, false alarms {each.false_alarms}; "
                    f"{len(each.problems)} problems.",
                )
            )
        for assignment_id, what, when in loaded.calendar():
            say(f"  {loaded.local(when)}  {assignment_id}  {what}")
    raise typer.Exit(DONE if all(each.ok for each in found) else FAILED)


def schema(what: Annotated[Literal["course", "verdict"], typer.Argument()]) -> None:
    """Print the JSON Schema of course.yaml or of a verdict."""
    if what == "course":
        from autograder.course import json_schema

        print_json(json_schema())
    else:
        from autograder.judge.verdict import schema as verdict_schema

        print_json(verdict_schema())
