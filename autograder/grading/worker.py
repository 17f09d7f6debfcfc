"""What a grading process does: it keeps a judge and a warm parent, and grades one submission after another.

The same function serves a local pool of processes and Dask workers; arguments and results are plain values.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nbformat

from autograder.grading.assignment import Assignment
from autograder.grading.grade import Grader
from autograder.grading.submissions import Notebook
from autograder.judge.session import Judge
from autograder.judge.verdict import Verdict, Words
from autograder.sandbox import Limits, WarmParent
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
    """One graded notebook as text: the verdict's JSON, the notebook's, and the answers left as released."""

    verdict: str
    notebook: str
    untouched: frozenset[str]

    def read(self) -> Verdict:
        """The verdict."""
        return Verdict.model_validate_json(self.verdict)


def grade_submission(setup: Setup, student: str, notebooks: tuple[tuple[Notebook, int], ...]) -> tuple[Result, ...]:
    """Grade a student's notebooks, each with its seed. Raises SandboxUnavailable and CourseFault; student failures are results."""
    grader = _grader(setup)
    return tuple(_graded(grader, student, notebook, seed) for notebook, seed in notebooks)


def end_with_parent() -> None:
    """End this process when the one that started it is killed (prctl(2), PR_SET_PDEATHSIG); by itself it would wait for work for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:  # it was killed before
            os._exit(1)


def _graded(grader: Grader, student: str, notebook: Notebook, seed: int) -> Result:
    graded = grader.grade(notebook.data, student=student, notebook=notebook.name, seed=seed)
    if notebook.file is not None:
        graded.verdict.repairs.insert(0, Words.of(_RENAMED.format(file=notebook.file, name=f"{notebook.name}.ipynb")))
    return Result(graded.verdict.model_dump_json(), nbformat.writes(graded.notebook), graded.untouched)


_RENAMED = Text(zh="文件 {file} 按 {name} 评分。", en="The file {file} was graded as {name}.")


@lru_cache(maxsize=1)
def _grader(setup: Setup) -> Grader:
    assignment = Assignment.load(Path(setup.root), setup.assignment)
    warm = WarmParent(preload=("autograder.judge.agent",))
    judge = Judge(assignment.tests, assignment.exercises)
    atexit.register(warm.close)
    return Grader(assignment, judge, setup.limits, warm, setup.allow_unsandboxed)
