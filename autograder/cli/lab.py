"""Commands that open nbgrader's own doors: JupyterLab for this course, and its exchange with the students."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.cli.console import (
    FAILED,
    HERE,
    AssignmentName,
    CourseFolder,
    Json,
    complain,
    errors_in_words,
    print_json,
    say,
)
from autograder.text import Text

if TYPE_CHECKING:
    from autograder.course import Course

_PANELS = ("formgrader", "assignment_list", "course_list", "validate_assignment")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(lab)
    app.command()(publish)


def lab(context: typer.Context, course: CourseFolder = HERE) -> None:
    """Start JupyterLab in the course's folder with nbgrader's panels; further options go to `jupyter lab`."""
    with errors_in_words():
        from autograder.course import Course
        from autograder.gradebook.book import programs_on_path

        root = Course.load(course).root
    programs_on_path()
    if not (root / "nbgrader_config.py").is_file():
        complain(
            Text(
                zh=f"{root} 里没有 nbgrader_config.py，按钮就不会用这里的沙箱和评分。请从本项目复制一份。",
                en=f"{root} has no nbgrader_config.py, without which the buttons do not use our sandbox and judge. Copy this project's.",
            )
        )
        raise typer.Exit(FAILED)
    panels = [f"--ServerApp.jpserver_extensions=nbgrader.server_extensions.{panel}=True" for panel in _PANELS]
    os.chdir(root)  # nbgrader reads nbgrader_config.py where it is started
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *panels, *context.args])


def publish(
    assignment: AssignmentName,
    course: CourseFolder = HERE,
    feedback: Annotated[bool, typer.Option("--feedback", help="Publish the pages in feedback/ instead.")] = False,
    as_json: Json = False,
) -> None:
    """Put release/ into nbgrader's exchange, where students fetch it, if `autograder check` finds nothing wrong."""
    with errors_in_words():
        from autograder.course import Course

        loaded = Course.load(course)
        loaded.assignment(assignment)
        if feedback:
            _feedback(loaded, assignment, as_json)
        else:
            _release(loaded, assignment, as_json)


def _release(course: Course, assignment: str, as_json: bool) -> None:
    from autograder.cli.progress import counted
    from autograder.grading.check import check
    from autograder.grading.publish import publish_release

    with counted(Text(zh="检查", en="checking"), None, quiet=as_json) as step:
        found = check(course, assignment, progress=step)
    if not found.ok:
        for problem in found.problems:
            complain(problem)
        complain(Text(zh=f"{assignment} 没有发布。", en=f"{assignment} was not published."))
        raise typer.Exit(FAILED)
    files = publish_release(course, assignment)
    if as_json:
        print_json({"published": files})
    for name in () if as_json else files:
        say(name)


def _feedback(course: Course, assignment: str, as_json: bool) -> None:
    from autograder.grading.publish import publish_feedback

    reached, left = publish_feedback(course, assignment)
    if as_json:
        print_json({"published": reached, "left": left})
        return
    for student in left:
        say(
            Text(
                zh=f"- {student}：不是经交换目录上交的，请另外把页面交给这位学生",
                en=f"- {student}: did not hand in over the exchange; give them their pages yourself",
            )
        )
    say(
        Text(
            zh=f"发布了 {len(reached)} 人的反馈，{len(left)} 人没有发布。",
            en=f"Feedback published: {len(reached)} students; not published: {len(left)}.",
        )
    )
