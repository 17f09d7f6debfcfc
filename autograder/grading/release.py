"""From source to release and to the published solutions, by nbgrader's own converters with two small steps of ours."""

from __future__ import annotations

import tempfile
import textwrap
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.apps import NbGraderAPI
from nbgrader.converters import BaseConverter, GenerateSolution
from nbgrader.preprocessors.base import NbGraderPreprocessor
from traitlets import Unicode
from traitlets.config import Config

from autograder.course import Course
from autograder.desk.wheel import build_student_wheel, first_cell, wheel_name
from autograder.exercises import CourseFault, Exercise, load
from autograder.exercises.source import body, helpers
from autograder.gradebook.book import Book
from autograder.gradebook.roster import Roster
from autograder.grading.traits import configure
from autograder.notebooks import grade_id, is_solution
from autograder.text import LANGUAGES, Text

_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"


class PickLanguage(NbGraderPreprocessor):
    """Drops the cells tagged with another language than the release's."""

    language = Unicode("zh", help="zh or en: the language of the release").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Keep untagged cells and those of the release's language; drop the outputs an author's run left."""
        unwanted = {f"lang-{language}" for language in LANGUAGES if language != self.language}
        nb.cells = [cell for cell in nb.cells if not unwanted & set(cell.metadata.get("tags", []))]
        return nb, resources


class ShipTools(NbGraderPreprocessor):
    """Puts the students' tools beside the notebook as a wheel, and lets the first code cell import them from there."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Put the import path before the first code cell's own lines, and the wheel among the files that nbgrader writes."""
        beside = resources.get("metadata", {}).get("path")
        if beside:
            hints = Path(beside) / "hints.json"
            with tempfile.TemporaryDirectory() as folder:
                wheel = build_student_wheel(Path(folder), hints if hints.is_file() else None)
                resources.setdefault("outputs", {})[wheel.name] = wheel.read_bytes()
        first = next((cell for cell in nb.cells if cell.cell_type == "code"), None)
        if first is not None and "from autograder import" in first.source:
            first.source = f"{first_cell(wheel_name())}\n\n{first.source}"
        return nb, resources


def prepared(source: NotebookNode, language: str) -> NotebookNode:
    """A source notebook as the release's first two steps leave it."""
    steps = (PickLanguage(language=language), ShipTools())  # type: ignore[no-untyped-call]
    for step in steps:
        source, _ = step.preprocess(source, {})
    return source


class FillReference(NbGraderPreprocessor):
    """Writes each exercise's reference solution between the markers of its answer cell."""

    solutions = Unicode("", help="the folder of the solutions files").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Fill every answer cell whose exercise has a reference."""
        exercises = load(Path(self.solutions))
        for cell in nb.cells:
            name = str(grade_id(cell) or "").removesuffix("_answer")
            if cell.cell_type == "code" and is_solution(cell) and name in exercises:
                cell.source = with_reference(cell.source, exercises[name])
        return nb, resources


def with_reference(stub: str, exercise: Exercise) -> str:
    """The stub with the reference's body in place of its solution region, and before it the helpers that the body uses.

    Raises CourseFault when the stub has no solution region.
    """
    if _BEGIN not in stub or _END not in stub:
        raise CourseFault(
            Text(
                zh=f"{exercise.name} 的答题单元里没有“{_BEGIN}”到“{_END}”的一段",
                en=f"the answer cell of {exercise.name} has no '{_BEGIN}' … '{_END}' region",
            )
        )
    before, _, rest = stub.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    indent = before.rpartition("\n")[2]
    filled = textwrap.indent(body(exercise.reference).strip("\n"), indent)
    return "\n\n\n".join([*helpers(exercise.reference), f"{before.removesuffix(indent)}{filled}{after}"])


def release(course: Course, assignment: str) -> list[Path]:
    """Make ``release/<assignment>`` with ``nbgrader generate_assignment``, and enter its cells into the gradebook.

    Raises CourseFault with nbgrader's own words when it fails.
    """
    _run(course, assignment, "generate_assignment")
    with Book(course) as book:
        book.settle(assignment)  # due dates: without them `nbgrader autograde` takes no late penalty
        book.enroll(Roster.of(course).people.values())
    return sorted(course.folder("release", assignment).glob("*.ipynb"))


def publish_solutions(course: Course, assignment: str) -> list[Path]:
    """Make ``solution/<assignment>`` with ``nbgrader generate_solution``, the references filled in."""
    _run(course, assignment, "generate_solution")
    return sorted(course.folder("solution", assignment).glob("*.ipynb"))


NO_NOTEBOOK = Text(
    zh="source/{assignment} 里还没有笔记本：请建一个，例如 1_….ipynb",
    en="source/{assignment} holds no notebook yet: make one, such as 1_….ipynb",
)


def _run(course: Course, assignment: str, verb: str) -> None:
    if not any(course.folder("source", assignment).glob("*.ipynb")):
        raise CourseFault(NO_NOTEBOOK.format(assignment=assignment))
    config = Config()
    configure(config, course.root)
    config.FillReference.solutions = str(course.folder("solutions", assignment))
    api = NbGraderAPI(config=config)
    if verb == "generate_solution":
        result = _convert(api, assignment, GenerateSolution)
    else:
        result = getattr(api, verb)(assignment, force=True)
    if not result["success"]:
        said = result.get("error") or result.get("log")
        raise CourseFault(
            Text(
                zh=f"nbgrader {verb} {assignment} 没有成功：\n{said}",
                en=f"nbgrader {verb} {assignment} failed:\n{said}",
            )
        )


def _convert(api: NbGraderAPI, assignment: str, converter: type[BaseConverter]) -> dict[str, Any]:
    from nbgrader.utils import capture_log, temp_attrs

    with temp_attrs(api.coursedir, assignment_id=assignment):
        app = converter(coursedir=api.coursedir, parent=api)  # type: ignore[arg-type]
        app.force = True
        return dict(capture_log(app))
