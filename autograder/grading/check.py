"""Prove a course consistent: references and alternatives earn everything, every named mistake loses points and is diagnosed as itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course import Course
from autograder.exercises import CourseFault, Exercise, Solution, load
from autograder.exercises.source import body
from autograder.grading import check_words as words
from autograder.grading.assignment import Assignment
from autograder.grading.release import NO_NOTEBOOK, prepared
from autograder.judge.diagnose import named_mistake
from autograder.judge.draw import derive
from autograder.judge.session import Judge, Run
from autograder.judge.verdict import Outcome
from autograder.notebooks import grade_id, is_grade, is_solution, points
from autograder.text import Text


@dataclass
class Consistency:
    """What ``check`` found. Counts are of (solution, seed) pairs; ``problems`` says what to do in words."""

    assignment: str
    seeds: int
    exercises: int = 0
    mistakes: int = 0
    alternatives: int = 0
    survived: int = 0  # mistakes that earned everything
    undiagnosed: int = 0  # mistakes that were not named, or named as another
    false_alarms: int = 0  # references and alternatives that lost points
    stubs_that_score: int = 0
    problems: list[Text] = field(default_factory=list)

    def tell(self, text: Text, **values: object) -> None:
        """Add a problem."""
        self.problems.append(text.format(**values))

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self) | {"ok": self.ok}


def check(
    course: Course, name: str, seeds: int = 1, progress: Callable[[str], None] = lambda exercise: None
) -> Consistency:
    """Check one assignment. Every problem is listed, with the file to change; nothing is raised for the course's content."""
    found = Consistency(name, seeds)
    for folder, pattern, text in (
        (("source", name), "*.ipynb", NO_NOTEBOOK),
        (("solutions", name), "*.py", words.NO_SOLUTIONS),
        (("tests", "hidden", name), "**/*.py", words.NO_TESTS),
    ):
        if not any(course.folder(*folder).glob(pattern)):
            found.tell(text, assignment=name)
    if found.problems:
        return found
    try:
        exercises = load(course.folder("solutions", name))
        judge = Judge(course.folder("tests", "hidden", name), exercises)
    except CourseFault as fault:
        found.problems.append(fault.text)
        return found
    with judge:
        _check_notebooks(course, name, exercises, judge, found)
        for exercise in exercises.values():
            progress(exercise.name)
            if exercise.name in judge.tests:
                for number in range(seeds):
                    _check_exercise(judge, exercise, number, found)
        _check_release(course, name, exercises, found)
    found.exercises = len(exercises)
    found.mistakes = sum(len(e.mistakes) for e in exercises.values())
    found.alternatives = sum(len(e.alternatives) for e in exercises.values())
    return found


def _check_exercise(judge: Judge, exercise: Exercise, number: int, found: Consistency) -> None:
    seed = derive(number, "check")
    right: list[tuple[Text | str, Solution]] = [(words.REFERENCE, exercise.reference), *exercise.alternatives.items()]
    for what, solution in right:
        runs = _runs(judge, exercise, solution, seed)
        failed = [run for run in runs if run.outcome is not Outcome.PASSED]
        if failed:
            found.false_alarms += 1
            test, said = failed[0].test.name, failed[0].problem or failed[0].text or ""
            found.tell(words.RIGHT_FAILS, exercise=exercise.name, solution=what, test=test, seed=number, said=said)
    for mistake in exercise.mistakes.values():
        runs = _runs(judge, exercise, mistake.solution, seed)
        if all(run.outcome is Outcome.PASSED for run in runs):
            found.survived += 1
            found.tell(words.SURVIVES, exercise=exercise.name, mistake=mistake.name)
            continue
        named = named_mistake(judge, exercise, runs, seed)
        if named is None or named.name != mistake.name:
            found.undiagnosed += 1
            text, other = (words.UNNAMED, "") if named is None else (words.TAKEN_FOR, named.name)
            found.tell(text, exercise=exercise.name, mistake=mistake.name, other=other, seed=number)
    if number == 0:
        stub = _runs(judge, exercise, _stub, seed)
        if passed := [run.test.name for run in stub if run.outcome is Outcome.PASSED]:
            found.stubs_that_score += 1
            found.tell(words.STUB_PASSES, exercise=exercise.name, tests=", ".join(passed))


def _stub(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def _runs(judge: Judge, exercise: Exercise, solution: Solution, seed: int) -> list[Run]:
    return list(judge.run(exercise.name, lambda: judge.solution(exercise, solution), seed))


def _check_notebooks(
    course: Course, name: str, exercises: dict[str, Exercise], judge: Judge, found: Consistency
) -> None:
    """Each exercise must have an answer cell, a grade cell with points, a reference and hidden tests."""
    graded: set[str] = set()
    answered: set[str] = set()
    ids: Counter[str] = Counter()
    for path in sorted(course.folder("source", name).glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            identity = str(grade_id(cell) or "")
            ids.update([identity] if identity else [])
            if is_solution(cell) and cell.cell_type == "code":
                answered.add(identity.removesuffix("_answer"))
                if "### BEGIN SOLUTION" not in cell.source:
                    found.tell(words.NO_REGION, notebook=path.name, cell=identity)
            elif is_grade(cell) and cell.cell_type == "code":
                graded.add(identity)
                if not points(cell) > 0:
                    found.tell(words.NO_POINTS, notebook=path.name, cell=identity)
    for cell_id in sorted(each for each, times in ids.items() if times > 1):
        found.tell(words.TWICE, cell=cell_id, assignment=name)
    for each in sorted(answered - set(exercises)):
        found.tell(words.NO_REFERENCE, exercise=each, assignment=name)
    for each, exercise in exercises.items():
        if each not in answered:
            found.tell(words.NO_ANSWER_CELL, exercise=each, assignment=name)
        if each not in graded:
            found.tell(words.NO_GRADE_CELL, exercise=each, assignment=name)
        if not exercise.mistakes:
            found.tell(words.NO_MISTAKE, exercise=each)
        if not exercise.alternatives:
            found.tell(words.NO_ALTERNATIVE, exercise=each)
        if each not in judge.tests:
            found.tell(words.NO_TEST, exercise=each, folder=f"tests/hidden/{name}")


def _check_release(course: Course, name: str, exercises: dict[str, Exercise], found: Consistency) -> None:
    """The release must match its source, and hold no reference and no hidden test."""
    try:
        released = Assignment.load(course.root, name).notebooks
    except CourseFault as fault:
        found.problems.append(fault.text)
        return
    for path in sorted(course.folder("source", name).glob("*.ipynb")):
        source = prepared(nbformat.read(path, as_version=4), course.language)
        if path.stem not in released or not _matches(source.cells, released[path.stem].cells):
            found.tell(words.STALE, assignment=name, notebook=path.name)
    for path in course.folder("release", name).rglob("*"):
        if path.suffix not in (".ipynb", ".py", ".json"):
            continue
        text = "\n".join(_code(path))
        for exercise in exercises.values():
            lines = [line.strip() for line in body(exercise.reference).splitlines() if len(line.strip()) > 3]
            if len(lines) > 1 and all(line in text for line in lines):
                found.tell(words.HOLDS_REFERENCE, file=path.name, exercise=exercise.name)
        if "autograder.judge" in text or "pytest.mark.exercise" in text:
            found.tell(words.HOLDS_TEST, file=path.name)


def _code(path: Path) -> Iterable[str]:
    if path.suffix == ".ipynb":
        yield from (cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")
    else:
        yield path.read_text(encoding="utf-8")


def _matches(source: list[NotebookNode], released: list[NotebookNode]) -> bool:
    """Whether the released cells are the source's, answers aside."""
    return len(source) == len(released) and all(
        grade_id(s) == grade_id(r)
        and points(s) == points(r)
        and (is_solution(s) or s.source == r.source or "HIDDEN TESTS" in s.source)
        for s, r in zip(source, released, strict=True)
    )
