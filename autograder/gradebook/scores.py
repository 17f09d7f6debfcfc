"""What the gradebook takes and gives: scores of a notebook, a row per student."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from nbformat import NotebookNode
from nbgrader import utils


@dataclass(frozen=True)
class Score:
    """What one grade cell earns; ``points`` None waits for a person, as does whatever has ``needs_manual``."""

    points: float | None
    needs_manual: bool = False


@dataclass(frozen=True)
class NotebookScores:
    """One graded notebook: the score of each grade cell by ``grade_id``, and the answers left as released."""

    scores: Mapping[str, Score]
    untouched: frozenset[str] = frozenset()

    @classmethod
    def of(cls, notebook: NotebookNode) -> Self:
        """Read an executed notebook exactly as nbgrader's SaveAutoGrades reads it, from its outputs and checksums."""
        cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
        return cls(
            {c.metadata.nbgrader.grade_id: Score(utils.determine_grade(c)[0]) for c in cells if utils.is_grade(c)},
            frozenset(
                c.metadata.nbgrader.grade_id
                for c in cells
                if utils.is_solution(c) and c.metadata.nbgrader.get("checksum") == utils.compute_checksum(c)
            ),
        )


@dataclass(frozen=True)
class CellScore:
    """A grade cell in the gradebook: what was earned automatically, by hand, and the comment written by hand."""

    notebook: str
    grade_id: str
    max_points: float
    auto: float | None
    manual: float | None
    extra: float
    needs_manual: bool

    @property
    def points(self) -> float:
        """The points that count: by hand before automatic, extra credit on top (nbgrader's rule)."""
        given = self.manual if self.manual is not None else self.auto
        return 0.0 if given is None else given + self.extra


@dataclass(frozen=True)
class Row:
    """A student's assignment in the gradebook. ``submitted`` is None when nothing came or no time is known."""

    assignment: str
    student: str
    first_name: str
    last_name: str
    email: str
    lms_user_id: str
    has_submission: bool
    submitted: datetime | None
    penalty: float
    max_points: float
    cells: tuple[CellScore, ...] = ()

    @property
    def raw(self) -> float:
        """Points before the late penalty."""
        return sum(cell.points for cell in self.cells)

    @property
    def points(self) -> float:
        """Points that count."""
        return max(0.0, self.raw - self.penalty)

    @property
    def needs_manual(self) -> bool:
        """Whether a person has yet to grade a part."""
        return any(cell.needs_manual for cell in self.cells)


@dataclass
class Settled:
    """What bringing the gradebook in line with course.yaml changed."""

    dates: list[str] = field(default_factory=list)
    penalties: list[str] = field(default_factory=list)
