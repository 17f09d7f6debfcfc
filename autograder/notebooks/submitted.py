"""The cells a student handed in, as candidates for what the release asks for."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nbformat import NotebookNode

from autograder.notebooks.cells import Names, fingerprint, grade_id, names


@dataclass(eq=False)
class Cell:
    """A submitted cell; ``own`` until it is recognised as a cell of the release, or dropped as a copy of one."""

    index: int
    kind: str
    source: str
    identity: str | None  # the grade_id it claims, if the release has it
    attachments: dict[str, Any] = field(default_factory=dict)
    own: bool = True
    _fingerprints: dict[str, int | str] = field(default_factory=dict)

    @cached_property
    def names(self) -> Names:
        """The names that its code binds."""
        return names(self.source)

    @property
    def blank(self) -> bool:
        """Whether there is nothing in it."""
        return not self.source.strip()

    def same_as(self, given: NotebookNode) -> bool:
        """Whether it holds what the release's cell holds, whatever its type has become."""
        kind: str = given.cell_type
        if kind not in self._fingerprints:
            self._fingerprints[kind] = fingerprint(self.source, kind)
        return self._fingerprints[kind] == fingerprint(given.source, kind)

    def rank(self, wanted: frozenset[str]) -> tuple[bool, bool, bool, int]:
        """Of several answers the highest counts: one that defines the name asked for, runs, is finished, came last."""
        return bool(self.names.bound & wanted), self.names.parses, "NotImplementedError" not in self.source, self.index


def cells_of(submission: NotebookNode, identities: Container[str]) -> list[Cell]:
    """The cells of a plain notebook, in order; of the ids they claim only the release's are kept."""
    found = []
    for index, cell in enumerate(submission.cells):
        claimed = grade_id(cell)
        identity = claimed if claimed in identities else None
        found.append(Cell(index, cell.cell_type, cell.source, identity, cell.get("attachments", {})))
    return found


def join_split_code(cells: list[Cell], answer_ids: frozenset[str | None]) -> list[Cell]:
    """Join neighbours that were one answer: apart one of them is no Python, together they are."""
    kept: list[Cell] = []
    for cell in cells:
        joined = _joined(kept[-1], cell, answer_ids) if kept else None
        kept[-1:] = [joined] if joined else [*kept[-1:], cell]
    return kept


def _joined(first: Cell, second: Cell, answer_ids: frozenset[str | None]) -> Cell | None:
    claimed = {first.identity, second.identity}
    if (
        not (first.kind == second.kind == "code")
        or not claimed <= answer_ids | {None}
        or len(claimed - {None}) > 1
        or (first.names.parses and second.names.parses)
    ):
        return None
    source = f"{first.source.rstrip()}\n{second.source}"
    return Cell(first.index, "code", source, first.identity or second.identity) if names(source).parses else None
