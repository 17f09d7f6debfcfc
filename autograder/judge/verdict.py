"""The verdict: one JSON document per submitted notebook, from which gradebook, feedback page and class report are drawn.

The format is versioned and published as JSON Schema (``autograder schema verdict``). A field is never given another meaning; a change that
readers would notice raises ``VERSION``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from autograder.judge.faults import Fault
from autograder.text import Text

VERSION: Literal[1] = 1


class Outcome(StrEnum):
    """What became of one hidden test."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"  # a prerequisite failed, or the answer is missing; earns nothing
    COURSE_FAULT = "course fault"  # does not count
    MACHINE_FAULT = "machine fault"  # does not count; to be graded again


class Status(StrEnum):
    """What became of the whole notebook."""

    GRADED = "graded"
    UNREADABLE = "unreadable"  # no notebook, another assignment's, too large
    MISSING = "missing"  # nothing was submitted
    SET_ASIDE = "set aside"  # it ended the grader's own process twice; a person must look
    MACHINE_FAULT = "machine fault"  # to be graded again


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class Words(_Model):
    """A text in both languages."""

    zh: str
    en: str

    @classmethod
    def of(cls, text: Text) -> Words:
        """From the engine's own type."""
        return cls(zh=text.zh, en=text.en)

    @property
    def text(self) -> Text:
        """As the engine's own type."""
        return Text(zh=self.zh, en=self.en)


class TestVerdict(_Model):
    """One hidden test: what it is about, what became of it, and what went wrong in words."""

    name: str
    about: Words
    outcome: Outcome
    weight: float
    message: Words | None = None
    fault: Fault | None = None


class Value(_Model):
    """A value small enough to show: ``text`` as a person reads it; ``matrix`` where it is one, for a heat map."""

    text: str
    matrix: list[list[float]] | None = None


class Example(_Model):
    """The smallest call seen that shows the failure."""

    call: str
    inputs: list[Value]
    got: Value | None = None
    want: Value | None = None


class Diagnosis(_Model):
    """The mistake behind a failure: a named one, or (``name`` is None) the first property that does not hold."""

    name: str | None
    hint: Words


class LeakFinding(_Model):
    """What the mask-leak detector found: ``matrix[t][j]`` is how far row t moved when position j changed."""

    verdict: str
    text: Words
    matrix: list[list[float]] | None = None


class ExerciseVerdict(_Model):
    """One exercise: points, tests, and the mistake behind the failures."""

    name: str
    points: float
    max_points: float
    untouched: bool = False
    tests: list[TestVerdict]
    diagnosis: Diagnosis | None = None
    example: Example | None = None
    leak: LeakFinding | None = None
    signature: str | None = None  # equal for answers that fail alike; lets unlisted mistakes be counted

    @property
    def full(self) -> bool:
        """Whether it earned all its points."""
        return self.points >= self.max_points


class CellVerdict(_Model):
    """A grade cell without hidden tests, scored by its outputs as nbgrader does; ``points`` None waits for a person."""

    grade_id: str
    points: float | None
    max_points: float
    manual: bool = False


class CellProblem(_Model):
    """A cell that did not run to its end, in words for the student."""

    cell: int
    text: Words


class Verdict(_Model):
    """Everything there is to say about one submitted notebook."""

    model_config = ConfigDict(extra="forbid", title="Verdict on one submitted notebook", ser_json_inf_nan="strings")

    version: Literal[1] = VERSION
    assignment: str
    notebook: str
    student: str
    status: Status
    message: Words | None = None
    exercises: list[ExerciseVerdict] = []
    cells: list[CellVerdict] = []
    repairs: list[Words] = []
    problems: list[CellProblem] = []
    limits_hit: list[Words] = []
    course_faults: list[str] = []
    sandbox: str = "none"
    seed: int = 0
    fingerprint: str = ""
    seconds: Annotated[float, Field(ge=0)] = 0.0

    @property
    def points(self) -> float:
        """Points earned without the ones a person has yet to give."""
        return sum(e.points for e in self.exercises) + sum(c.points or 0.0 for c in self.cells)

    @property
    def max_points(self) -> float:
        """Points that can be earned, the manually graded included."""
        return sum(e.max_points for e in self.exercises) + sum(c.max_points for c in self.cells)


def schema() -> dict[str, Any]:
    """The JSON Schema of a verdict."""
    return Verdict.model_json_schema()
