"""A sample class, made from a course's own exercises and known mistakes: right, wrong, broken and hostile submissions with known scores."""

from __future__ import annotations

import copy
import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course import Course
from autograder.exercises import CourseFault, Exercise, Solution
from autograder.exercises.source import answer
from autograder.gradebook.book import Book
from autograder.grading.assignment import Assignment
from autograder.grading.pages import write_pages, write_report
from autograder.grading.release import release
from autograder.grading.run import Done, grade_class, local_pool
from autograder.judge.verdict import ExerciseVerdict
from autograder.notebooks import defined_names, fill, grade_id, is_solution
from autograder.text import Text

_COPIED = ("source", "solutions", "tests")
_SUBMITTED = "2027-03-10 09:00:00 UTC"
_SHORT: dict[str, Any] = {
    "call_seconds": 2.0,
    "memory_bytes": 1 << 30,
}  # loops and memory bombs of the sample class end soon

Answers = dict[str, str]
Expected = dict[str, str]  # exercise → "full", "none", or the name of the mistake to be found
Spoil = Callable[[NotebookNode], bytes]


@dataclass(frozen=True)
class Sample:
    """A student of the sample class: the answers, what is done to each notebook's file, and what must come of it."""

    student: str
    answers: Answers
    expected: Expected
    spoil: Spoil | None = None


@dataclass
class DemoReport:
    """How the sample class came out; ``surprises`` lists every score that is not as designed."""

    done: list[Done]
    grading_seconds: float
    pages: list[str] = field(default_factory=list)
    report: str = ""
    surprises: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        points = {each.student: sum(v.points for v in each.verdicts) for each in self.done}
        return {
            "students": points,
            "grading_seconds": round(self.grading_seconds, 2),
            "pages": self.pages,
            "report": self.report,
            "surprises": self.surprises,
        }


def run_demo(root: Path, into: Path, jobs: int) -> DemoReport:
    """Copy the course in ``root`` to ``into``, release its first assignment, and submit, grade and report a sample class there.

    Raises CourseFault when ``into`` exists and is no earlier demo.
    """
    _make_scratch(root, into)
    course = Course.load(into)
    course = course.model_copy(update={"limits": dataclasses.replace(course.limits, **_SHORT)})
    name = course.assignments[0].id
    release(course, name)
    assignment = Assignment.load(course.root, name)
    samples = list(sample_class(assignment))
    for sample in samples:
        submit(course, assignment, sample)
    start = time.monotonic()
    done = sorted(grade_class(course, assignment, local_pool(jobs), workers=jobs), key=lambda each: each.student)
    report = DemoReport(done, time.monotonic() - start)
    with Book(course) as book:
        report.pages = [str(path) for path in write_pages(course, name, book)]
        report.report = str(write_report(course, name, book))
    by_student = {each.student: each for each in done}
    for sample in samples:
        report.surprises += _surprises(sample, by_student.get(sample.student))
    return report


def sample_class(assignment: Assignment) -> Iterator[Sample]:
    """At least 14 students, in order of their names."""
    exercises = [e for name in assignment.notebooks for _, e in assignment.exercise_cells(name)]
    right = {e.name: answer(e.reference, e.name) for e in exercises}
    full = dict.fromkeys(right, "full")
    spoilt = exercises[0].name
    yield Sample("01_reference", right, full)
    for number in (0, 1):
        others = {e.name: answer(_pick(e, number), e.name) for e in exercises}
        yield Sample(f"0{number + 2}_alternative", others, full)
    for number, exercise in enumerate(exercises[:: max(1, len(exercises) // 5)][:5]):
        mistake = list(exercise.mistakes.values())[number % len(exercise.mistakes)]
        wrong = right | {exercise.name: answer(mistake.solution, exercise.name)}
        yield Sample(f"0{number + 4}_one_mistake", wrong, full | {exercise.name: mistake.name})
    mistakes = {e.name: list(e.mistakes.values())[-1] for e in exercises}
    several = {e.name: answer(mistakes[e.name].solution, e.name) for e in exercises}
    yield Sample("09_mistakes_everywhere", several, {name: mistake.name for name, mistake in mistakes.items()})
    yield Sample("10_untouched", {}, dict.fromkeys(right, "none"))
    for student, code in _BROKEN_CODE.items():
        yield Sample(student, right | {spoilt: code.format(name=spoilt)}, full | {spoilt: "none"})
    yield Sample("15_cells_doubled_and_deleted", right, full, _double_and_delete)
    yield Sample("16_colab_without_metadata", right, full, _strip_metadata)
    yield Sample("17_broken_file", right, dict.fromkeys(right, "none"), _truncate)


_BROKEN_CODE = {
    "11_syntax_error": "def {name}(*args, **kwargs)\n    return None",
    "12_infinite_loop": "def {name}(*args, **kwargs):\n    while True:\n        pass",
    "13_memory_bomb": "hoard = []\nwhile True:\n    hoard.append(bytearray(1 << 27))",
    "14_os_exit": "import os\nos._exit(0)",
}


def _pick(exercise: Exercise, number: int) -> Solution:
    return list(exercise.alternatives.values())[number % len(exercise.alternatives)]


def _double_and_delete(notebook: NotebookNode) -> bytes:
    """The first answer cell copied below itself, the last cell that was handed out read-only removed."""
    spoiled = copy.deepcopy(notebook)
    answered = next(i for i, cell in enumerate(spoiled.cells) if is_solution(cell) and cell.cell_type == "code")
    double = copy.deepcopy(spoiled.cells[answered])
    double.id += "-2"  # JupyterLab gives a pasted cell an id of its own, and keeps nbgrader's
    spoiled.cells.insert(answered + 1, double)
    locked = [i for i, cell in enumerate(spoiled.cells) if cell.metadata.get("nbgrader", {}).get("locked")]
    del spoiled.cells[locked[-1]]
    return nbformat.writes(spoiled).encode()


def _strip_metadata(notebook: NotebookNode) -> bytes:
    """As a site that keeps none of nbgrader's metadata saves it."""
    document = json.loads(nbformat.writes(notebook))
    for cell in document["cells"]:
        cell["metadata"] = {"id": cell.get("id", "")}
        cell.pop("id", None)
    document.update(
        nbformat_minor=0,
        metadata={"colab": {"provenance": []}, "kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    return json.dumps(document).encode()


def _truncate(notebook: NotebookNode) -> bytes:
    data = nbformat.writes(notebook).encode()
    return data[: len(data) // 2]


def submit(course: Course, assignment: Assignment, sample: Sample) -> None:
    """Lay a sample's notebooks into ``submitted/``, as nbgrader's collect would."""
    folder = course.folder("submitted", sample.student, assignment.name)
    folder.mkdir(parents=True)
    for name, notebook in assignment.notebooks.items():
        here = {
            known: source
            for known, source in sample.answers.items()
            if any(is_solution(cell) and known in defined_names(cell.source) for cell in notebook.cells)
        }
        filled = fill(notebook, here)
        if sample.answers:
            for cell in filled.cells:
                if is_solution(cell) and cell.cell_type == "markdown":
                    cell.source = f"我的回答 / my answer ({grade_id(cell)})"
        data = sample.spoil(filled) if sample.spoil else nbformat.writes(filled).encode()
        (folder / f"{name}.ipynb").write_bytes(data)
    (folder / "timestamp.txt").write_text(_SUBMITTED, encoding="utf-8")


def _surprises(sample: Sample, done: Done | None) -> list[str]:
    if done is None:
        return [f"{sample.student}: no verdict"]
    verdicts = {e.name: e for verdict in done.verdicts for e in verdict.exercises}
    return [
        f"{sample.student}: {name}: expected {expected}, got {_outcome(verdicts.get(name))}"
        for name, expected in sample.expected.items()
        if not _as_expected(verdicts.get(name), expected)
    ]


def _as_expected(verdict: ExerciseVerdict | None, expected: str) -> bool:
    if verdict is None:
        return False
    if expected == "full":
        return verdict.full
    if expected == "none":
        return verdict.points == 0.0
    return not verdict.full and verdict.diagnosis is not None and verdict.diagnosis.name == expected


def _outcome(verdict: ExerciseVerdict | None) -> str:
    if verdict is None:
        return "nothing"
    named = verdict.diagnosis.name if verdict.diagnosis is not None else None
    return f"{verdict.points:g} of {verdict.max_points:g}, diagnosed as {named}"


def _make_scratch(root: Path, into: Path) -> None:
    """A copy of what a course consists of, marked so that only a demo is ever removed."""
    mark = into / ".demo"
    if into.exists() and any(into.iterdir()) and not mark.exists():
        text = Text(
            zh=f"{into} 已存在，而且不是以前的演示：请另选一个文件夹",
            en=f"{into} exists and is no earlier demo: choose another folder",
        )
        raise CourseFault(text)
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    mark.touch()
    for name in _COPIED:
        ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        source = root / name if name != "tests" else root / "tests" / "hidden"
        shutil.copytree(source, into / name if name != "tests" else into / "tests" / "hidden", ignore=ignore)
    shutil.copy(root / "course.yaml", into / "course.yaml")
    shutil.copy(root / "nbgrader_config.py", into / "nbgrader_config.py")
