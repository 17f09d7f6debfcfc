"""Grade one submitted notebook: bytes in, a verdict and the graded notebook out. No files, no gradebook.

Whatever a student's code does (crash, hang, fill the memory) is a result. What raises is the course's fault (CourseFault) or the machine's
(SandboxUnavailable).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode

from autograder.feedback.card import card
from autograder.grading.assignment import Assignment, empty
from autograder.grading.kernel import StudentKernel
from autograder.grading.outputs import points_from_outputs, settle_outputs
from autograder.grading.scoring import exercise_verdict, needs_signature, signature_of
from autograder.judge.draw import derive
from autograder.judge.faults import Fault
from autograder.judge.session import Judge, Run
from autograder.judge.verdict import (
    CellProblem,
    CellVerdict,
    ExerciseVerdict,
    Outcome,
    Status,
    Verdict,
    Words,
)
from autograder.notebooks import Unreadable, grade_id, identify, is_grade, is_solution, points, read_submission, rebuild
from autograder.sandbox import Limits, WarmParent
from autograder.text import Text


@dataclass(frozen=True)
class Graded:
    """A verdict, and the notebook as it was rebuilt and run, with a card and the points as outputs of its grade cells."""

    verdict: Verdict
    notebook: NotebookNode
    untouched: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Grader:
    """Everything that stays the same from one submission to the next."""

    assignment: Assignment
    judge: Judge
    limits: Limits
    warm: WarmParent | None = None
    allow_unsandboxed: bool = False

    def grade(self, data: bytes | None, *, student: str, notebook: str, seed: int) -> Graded:
        """Grade the bytes of one notebook; None stands for a notebook that was not handed in.

        Hidden inputs are drawn from ``seed`` and the bytes: a regrade sees the same ones, a changed submission others, so that
        nothing can be learned from one attempt that would be of use in the next.

        Raises SandboxUnavailable when the machine offers no isolation and ``allow_unsandboxed`` is not set.
        """
        start = time.monotonic()
        release = self.assignment.notebooks[notebook]
        verdict = Verdict(
            assignment=self.assignment.name,
            notebook=notebook,
            student=student,
            status=Status.MISSING,
            seed=derive(seed, hashlib.sha256(data or b"").hexdigest()),
            fingerprint=self.assignment.key(data, self.limits, seed),
        )
        if data is None:
            verdict.message = Words.of(_MISSING)
            return self._nothing(verdict, release)
        read = read_submission(data)
        if isinstance(read, Unreadable):
            verdict.status, verdict.message = Status.UNREADABLE, Words.of(read.reason)
            return self._nothing(verdict, release)
        known = identify(read.notebook, self.assignment.notebooks)
        if known is not None and known != notebook:
            verdict.status = Status.UNREADABLE
            verdict.message = Words.of(_ANOTHER.format(known=known, notebook=notebook))
            return self._nothing(verdict, release)
        rebuilt = rebuild(read.notebook, release)
        verdict.status = Status.GRADED
        verdict.repairs = [Words.of(repair.text) for repair in (*read.repairs, *rebuilt.repairs)]
        self.run(rebuilt.notebook, verdict)
        for exercise in verdict.exercises:  # the stub of a class does not even define its name
            exercise.untouched |= f"{exercise.name}_answer" in rebuilt.untouched and exercise.points == 0
        verdict.seconds = round(time.monotonic() - start, 3)
        return Graded(verdict, rebuilt.notebook, rebuilt.untouched)

    def run(self, notebook: NotebookNode, verdict: Verdict, files: Mapping[str, bytes] | None = None) -> None:
        """Run a rebuilt notebook, score its grade cells into ``verdict``, and write the scores into its outputs."""
        kernel = StudentKernel(
            notebook,
            self.limits,
            warm=self.warm,
            files=self.assignment.files if files is None else files,
            allow_unsandboxed=self.allow_unsandboxed,
        )
        with kernel:
            verdict.sandbox = kernel.tier
            for index, cell in enumerate(notebook.cells):
                if cell.cell_type == "code" and cell.source.strip():
                    kernel.run_cell(index)
                if self._has_hidden_tests(cell):
                    verdict.exercises.append(self._judge(cell, kernel, verdict))
                elif is_grade(cell):
                    verdict.cells.append(_cell_verdict(cell))
            later = {e.name for e in verdict.exercises if e.tests and e.tests[0].fault is Fault.MISSING}
            for cell in notebook.cells:  # an answer that stands below its grade cell counts too
                if self._has_hidden_tests(cell) and grade_id(cell) in later:
                    found = self._judge(cell, kernel, verdict)
                    verdict.exercises = [found if e.name == found.name else e for e in verdict.exercises]
        given = {cell.id for cell in self.assignment.notebooks[verdict.notebook].cells if not is_solution(cell)}
        verdict.problems = [
            CellProblem(cell=i, text=Words.of(text))
            for i, text in sorted(kernel.problems.items())
            if notebook.cells[i].id not in given  # a cell that was handed out fails with the answers it uses
        ]
        verdict.limits_hit = [Words.of(text) for text in dict.fromkeys(kernel.limits_hit)]
        for cell in notebook.cells:
            for exercise in verdict.exercises:
                if is_grade(cell) and grade_id(cell) == exercise.name:
                    _write_card(cell, exercise)

    def _has_hidden_tests(self, cell: NotebookNode) -> bool:
        return is_grade(cell) and not is_solution(cell) and grade_id(cell) in self.assignment.exercises

    def _judge(self, cell: NotebookNode, kernel: StudentKernel, verdict: Verdict) -> ExerciseVerdict:
        exercise = self.assignment.exercises[str(grade_id(cell))]
        runs: list[Run] = list(self.judge.run(exercise.name, kernel.connection, verdict.seed))
        found = exercise_verdict(self.judge, exercise, runs, points(cell), verdict.seed)
        if needs_signature(found, runs):
            found.signature = signature_of(self.judge, exercise, kernel.connection)
        verdict.course_faults += [run.problem for run in runs if run.problem is not None]
        if any(run.outcome is Outcome.MACHINE_FAULT for run in runs):
            verdict.status = Status.MACHINE_FAULT
        return found

    def _nothing(self, verdict: Verdict, release: NotebookNode) -> Graded:
        """A verdict of zero points on a notebook that could not be run."""
        notebook = empty(release)
        for cell in notebook.cells:
            if not is_grade(cell):
                continue
            if self._has_hidden_tests(cell):
                exercise = self._unchecked(str(grade_id(cell)), points(cell))
                verdict.exercises.append(exercise)
                _write_card(cell, exercise)
            else:
                verdict.cells.append(CellVerdict(grade_id=str(grade_id(cell)), points=0.0, max_points=points(cell)))
        untouched = frozenset(str(grade_id(cell)) for cell in notebook.cells if is_solution(cell))
        return Graded(verdict, notebook, untouched)

    def _unchecked(self, name: str, most: float) -> ExerciseVerdict:
        runs = [Run(test, Outcome.NOT_CHECKED) for test in self.judge.tests.get(name, [])]
        exercise = exercise_verdict(self.judge, self.assignment.exercises[name], runs, most, 0)
        exercise.points, exercise.untouched = 0.0, True
        return exercise


_MISSING = Text(zh="没有收到这个笔记本。", en="This notebook was not handed in.")
_ANOTHER = Text(
    zh="这是 {known} 的笔记本，不是 {notebook} 的：请把正确的文件交上来。",
    en="This is the notebook {known}, not {notebook}: please hand in the right file.",
)


def _cell_verdict(cell: NotebookNode) -> CellVerdict:
    earned = points_from_outputs(cell)
    settle_outputs(cell, earned)
    return CellVerdict(grade_id=str(grade_id(cell)), points=earned, max_points=points(cell), manual=is_solution(cell))


def _write_card(cell: NotebookNode, verdict: ExerciseVerdict) -> None:
    """The card for people and the points for nbgrader, which reads them from the first ``execute_result``."""
    cell.execution_count = None
    cell.outputs = [
        nbformat.v4.new_output("display_data", card(verdict)),
        nbformat.v4.new_output("execute_result", {"text/plain": repr(float(verdict.points))}),
    ]


def total(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    """Points earned and points that can be earned, over several notebooks."""
    return sum(v.points for v in verdicts), sum(v.max_points for v in verdicts)
