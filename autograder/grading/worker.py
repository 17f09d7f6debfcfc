"""What a grading process does: it keeps a judge and a warm parent, and grades one submission after another.

The same function serves a local pool of processes and Dask workers; arguments and results are plain values.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.course import CourseError
from autograder.exercises import CourseFault
from autograder.grading.assignment import Assignment
from autograder.grading.grade import Grader
from autograder.grading.kernel import warm_parent
from autograder.grading.submissions import Notebook
from autograder.judge.session import Judge
from autograder.judge.verdict import Status, Verdict, Words
from autograder.sandbox import Limits, SandboxUnavailable
from autograder.text import Text

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Setup:
    """What a worker must load before it can grade; equal setups share a judge. ``root`` must be readable on the worker's machine."""

    root: str
    assignment: str
    fingerprint: str
    limits: Limits
    allow_unsandboxed: bool = False


@dataclass(frozen=True)
class Result:
    """One notebook as text: the verdict's JSON, and the graded notebook's (None: it was not graded, and a person has to look)."""

    verdict: str
    notebook: str | None

    def read(self) -> Verdict:
        """The verdict."""
        return Verdict.model_validate_json(self.verdict)


class ClusterError(RuntimeError):
    """The cluster cannot do the work: the machines' fault, never a student's. ``text`` says what is wrong."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text.en


class WorkerLost(Exception):
    """The worker of this very submission was lost while it graded it; the pool goes on without."""


def grade_submission(setup: Setup, student: str, notebooks: tuple[tuple[Notebook, int], ...]) -> tuple[Result, ...]:
    """Grade a student's notebooks, each with its seed. Raises SandboxUnavailable and CourseFault; student failures are results."""
    grader = load_grader(setup)
    return tuple(_graded(grader, student, notebook, seed) for notebook, seed in notebooks)


def warm_up(setup: Setup) -> None:
    """Load what the first submission would wait for."""
    grader = load_grader(setup)
    if grader.warm is not None:
        grader.warm.wait_until_ready()


def end_with_parent() -> None:
    """End this process when the one that started it is killed (prctl(2), PR_SET_PDEATHSIG); by itself it would wait for work for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:  # it was killed before
            os._exit(1)


def not_graded(
    assignment: Assignment, limits: Limits, student: str, notebook: Notebook, seed: int, status: Status, why: Text
) -> Result:
    """A verdict without scores, on a notebook that could not be graded through nobody's fault."""
    verdict = Verdict(
        assignment=assignment.name,
        notebook=notebook.name,
        student=student,
        status=status,
        message=Words.of(why),
        seed=seed,
        fingerprint=assignment.key(notebook.data, limits, seed),
    )
    return Result(verdict.model_dump_json(), None)


def _graded(grader: Grader, student: str, notebook: Notebook, seed: int) -> Result:
    try:
        graded = grader.grade(notebook.data, student=student, notebook=notebook.name, seed=seed)
    except (SandboxUnavailable, CourseFault, CourseError):  # whoever comes next would meet the same
        raise
    except Exception as error:
        print(f"{student}: {notebook.name}: {traceback.format_exc()}", file=sys.stderr, flush=True)
        why = _FAILED.format(error=type(error).__name__)  # what it says further may be out of a hidden test
        return not_graded(grader.assignment, grader.limits, student, notebook, seed, Status.MACHINE_FAULT, why)
    if notebook.file is not None:
        graded.verdict.repairs.insert(0, Words.of(_RENAMED.format(file=notebook.file, name=f"{notebook.name}.ipynb")))
    return Result(graded.verdict.model_dump_json(), nbformat.writes(graded.notebook))


_FAILED = Text(
    zh="评这份笔记本时评分程序自己出错了（{error}）。没有因此扣分；下次运行会重新评。",
    en="The grader itself failed on this notebook ({error}). No points were taken; the next run grades it again.",
)
_RENAMED = Text(zh="文件 {file} 按 {name} 评分。", en="The file {file} was graded as {name}.")


_loaded: dict[Setup, Grader] = {}


def load_grader(setup: Setup) -> Grader:
    """The grader of this process, with its judge and its warm parent: one at a time, kept for as long as the setup is the same."""
    if setup not in _loaded:
        for old in _loaded.values():
            old.judge.close()
        _end_warm_parents()
        assignment = Assignment.load(Path(setup.root), setup.assignment)
        warm = warm_parent()
        judge = Judge(assignment.tests, assignment.exercises)
        _loaded[setup] = Grader(assignment, judge, setup.limits, warm, setup.allow_unsandboxed)
    return _loaded[setup]


@atexit.register
def _end_warm_parents() -> None:
    while _loaded:
        _, grader = _loaded.popitem()
        if grader.warm is not None:
            grader.warm.close()
