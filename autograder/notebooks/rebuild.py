"""A submission put back on the release's structure, so that grading meets the cells it expects whatever a student did.

The release gives every cell it has, in its order, with its metadata. The submission gives the answers, and the
student's own cells, which stay where they were relative to their neighbours. To which stub an answer belongs is told by
``grade_id``, else by the function or class that the stub defines, else by its place. No stub is left to run after an
answer written elsewhere, and so to overwrite it.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from nbformat import NotebookNode

from autograder.exercises import CourseFault
from autograder.notebooks import words
from autograder.notebooks.cells import (
    Names,
    asked_names,
    fingerprint,
    grade_id,
    is_solution,
    names,
    new_cell,
    new_notebook,
    without_definitions,
)
from autograder.notebooks.read import plain
from autograder.notebooks.words import Mended, Repair

How = Literal["grade_id", "name", "place", "elsewhere"]


@dataclass(frozen=True)
class Rebuilt:
    """The rebuilt notebook, and what it took.

    ``matched`` says, by the answer cell's ``grade_id``, how each answer was recognised; ``untouched`` holds the other
    answer cells: those still as handed out, emptied, or deleted.
    """

    notebook: NotebookNode
    repairs: tuple[Repair, ...]
    matched: dict[str, How]
    untouched: frozenset[str]


def rebuild(submission: NotebookNode, release: NotebookNode) -> Rebuilt:
    """Rebuild a submission on its release, as a valid notebook of nbformat 4.5 without outputs.

    Never raises for what is in the submission. Raises CourseFault when the release uses a ``grade_id`` twice.
    """
    return _Rebuilding(submission, release).run()


@dataclass(eq=False)
class _Cell:
    """A submitted cell; ``own`` until it is recognised as a cell of the release, or dropped as a copy of one."""

    index: int
    kind: str
    source: str
    identity: str | None
    attachments: dict[str, Any] = field(default_factory=dict)
    own: bool = True

    @cached_property
    def names(self) -> Names:
        return names(self.source)

    @property
    def blank(self) -> bool:
        return not self.source.strip()

    def same_as(self, given: NotebookNode) -> bool:
        return fingerprint(self.source, given.cell_type) == fingerprint(given.source, given.cell_type)

    def rank(self, wanted: frozenset[str]) -> tuple[bool, bool, bool, int]:
        """Of several answers the highest counts: one that defines the name asked for, runs, is finished, came last."""
        return bool(self.names.bound & wanted), self.names.parses, "NotImplementedError" not in self.source, self.index


@dataclass
class _Answer:
    """What goes into an answer cell."""

    source: str
    how: How
    attachments: dict[str, Any] = field(default_factory=dict)
    outdone: list[_Cell] = field(
        default_factory=list
    )  # other attempts that define the same name: they must run before it


class _Rebuilding:
    """One rebuilding, step by step. Positions count the release's cells, indices the submission's."""

    def __init__(self, submission: NotebookNode, release: NotebookNode) -> None:
        self.release = release
        self.given: list[NotebookNode] = release.cells
        ids = Counter(filter(None, map(grade_id, self.given)))
        if twice := sorted(name for name, count in ids.items() if count > 1):
            raise CourseFault(f"the release has more than one cell with grade_id {', '.join(map(repr, twice))}")
        self.answers_at = [position for position, cell in enumerate(self.given) if is_solution(cell)]
        self.wanted = {position: asked_names(self.given[position]) for position in self.answers_at}
        self.answers: dict[int, _Answer] = {}
        self.anchors: dict[int, int] = {}  # position -> index of the submitted cell that stands for it
        self.repairs: list[Repair] = []
        known = plain(submission)
        self.cells = [
            _Cell(i, c.cell_type, c.source, grade_id(c) if grade_id(c) in ids else None, c.get("attachments", {}))
            for i, c in enumerate(known.cells)
        ]
        self.stripped = bool(ids) and not any(cell.identity for cell in self.cells)
        found, expected = (n.metadata.get("language_info", {}).get("name") for n in (known, plain(release)))
        if found and expected and found != expected:
            self.tell(words.OTHER_LANGUAGE, found=found[:40], expected=expected)

    def run(self) -> Rebuilt:
        self.join_split_code()
        self.place_given_cells()
        self.answer_by_id()
        self.drop_stub_copies()
        in_place = [self.anchors[p] for p in sorted(self.anchors) if grade_id(self.given[p])]
        if in_place != sorted(in_place):
            self.tell(words.REORDERED)
        self.answer_by_name()
        self.answer_by_place()
        self.empty_stubs_answered_elsewhere()
        if self.stripped and (self.anchors or self.answers):
            self.tell(words.STRIPPED)
        notebook = self.lay_out()
        ids = {position: grade_id(self.given[position]) or "" for position in self.answers_at}
        return Rebuilt(
            notebook=notebook,
            repairs=tuple(self.repairs),
            matched={ids[position]: answer.how for position, answer in sorted(self.answers.items())},
            untouched=frozenset(ids[position] for position in self.answers_at if position not in self.answers),
        )

    def join_split_code(self) -> None:
        """Join neighbours that were one cell: apart one of them is no Python, together they are."""
        answer_ids = {grade_id(self.given[position]) for position in self.answers_at} | {None}
        kept: list[_Cell] = []
        for cell in self.cells:
            before = kept[-1] if kept else cell
            if (
                before is not cell
                and before.kind == cell.kind == "code"
                and not (before.names.parses and cell.names.parses)
                and {before.identity, cell.identity} <= answer_ids
                and len({before.identity, cell.identity} - {None}) < 2
                and not before.blank
                and not cell.blank
                and names(joined := f"{before.source.rstrip()}\n{cell.source}").parses
            ):
                kept[-1] = _Cell(before.index, "code", joined, before.identity or cell.identity)
                self.tell(words.JOINED)
            else:
                kept.append(cell)
        self.cells = kept

    def place_given_cells(self) -> None:
        """Find the cells that are not for answers. A changed copy stays beside the restored cell as one of the student's."""
        for position, given in enumerate(self.given):
            if position in self.wanted:
                continue
            name = grade_id(given)
            copies = [cell for cell in self.cells if name and cell.identity == name]
            if not copies:
                same = (
                    c
                    for c in self.cells
                    if c.own and c.identity is None and c.kind == given.cell_type and c.same_as(given)
                )
                copies = [cell for cell in same][:1]
            exact = [cell for cell in copies if cell.same_as(given)]
            for cell in copies:
                cell.own = cell not in exact
            if copies:
                self.anchors[position] = (exact or copies)[-1].index
            if not name:
                continue
            if len(copies) > 1:
                self.tell(words.DUPLICATE_LOCKED, position)
            if not copies or all(cell.blank for cell in copies):
                self.tell(words.MISSING_LOCKED, position)
            elif not exact:
                self.tell(words.RESTORED_LOCKED, position)
            elif exact[-1].kind != given.cell_type:
                self.tell(words.RETYPED, position, found=exact[-1].kind, expected=given.cell_type)

    def answer_by_id(self) -> None:
        for position in self.answers_at:
            stub = self.given[position]
            copies = [cell for cell in self.cells if cell.identity == grade_id(stub)]
            written = [cell for cell in copies if not cell.blank and not cell.same_as(stub)]
            for cell in copies:
                cell.own = cell in written
            if copies:
                self.anchors[position] = copies[-1].index
            if len(copies) > 1:
                self.tell(words.DUPLICATE_ANSWER, position)
            if written:
                self.answer(position, written, "grade_id")

    def drop_stub_copies(self) -> None:
        """A stub that has lost its ``grade_id`` must not run after an answer; an unmistakable one marks its place."""
        for cell in [cell for cell in self.cells if cell.own and cell.identity is None and not cell.blank]:
            stubs = [p for p in self.answers_at if cell.kind == self.given[p].cell_type and cell.same_as(self.given[p])]
            cell.own = not stubs
            if len(stubs) == 1 and stubs[0] not in self.answers:
                self.anchors.setdefault(stubs[0], cell.index)

    def answer_by_name(self) -> None:
        for position in self.unanswered():
            wanted = self.wanted[position]
            found = [cell for cell in self.cells if cell.own and cell.kind == "code" and cell.names.bound & wanted]
            if found:
                self.answer(position, found, "name")

    def answer_by_place(self) -> None:
        """Take what stands between the nearest recognised neighbours, where only one answer is missing there."""
        for position in self.unanswered() if self.anchors else ():
            kind = self.given[position].cell_type
            lower = max((p for p in self.anchors if p < position), default=-1)
            upper = min((p for p in self.anchors if p > position), default=len(self.given))
            if any(lower < p < upper and p != position and self.given[p].cell_type == kind for p in self.unanswered()):
                continue
            start = self.anchors.get(lower, -1)
            end = self.anchors.get(upper, self.cells[-1].index + 1 if self.cells else 0)
            own = [cell for cell in self.cells if cell.own and start <= cell.index < end and not cell.blank]
            if kind == "markdown":  # written under the stub, or into the question itself
                found = [cell for cell in own if cell.kind != "code"]
            elif position in self.anchors:  # the stub is there, so a cell without its name is something else
                continue
            else:
                known = frozenset[str]().union(*self.wanted.values())
                found = [
                    cell for cell in own if cell.kind == "code" and cell.index > start and not cell.names.bound & known
                ]
                found = found or [
                    cell for cell in own if cell.kind != "code" and cell.names.defined & self.wanted[position]
                ]
            if not found and position not in self.anchors:
                found = [cell for cell in own if cell.index > start and cell.kind == "code" and not cell.names.parses]
            if found and (kind == "markdown" or len(found) == 1):
                self.answer(position, found, "place")

    def answer(self, position: int, found: list[_Cell], how: How) -> None:
        """Fill an answer cell: the best code of those found, or all the words."""
        stub, wanted = self.given[position], self.wanted[position]
        chosen = max(found, key=lambda cell: cell.rank(wanted))
        if stub.cell_type == "code":
            source = chosen.source
            if how == "name" and position in self.anchors:  # what else the stub brings along is still needed
                source = f"{without_definitions(stub.source, chosen.names.bound)}\n\n{source}".lstrip("\n")
            outdone = [
                c
                for c in found
                if c is not chosen and c.names.bound & wanted and (how != "name" or c.index > chosen.index)
            ]
            answer = _Answer(source, how, outdone=outdone)
        else:
            answer = _Answer("\n\n".join(dict.fromkeys(cell.source for cell in found)), how, outdone=[])
            for cell in found:
                cell.own = False
                answer.attachments.update(cell.attachments)
        for cell in [chosen, *answer.outdone]:
            cell.own = False
        self.answers[position] = answer
        self.anchors[position] = chosen.index
        if chosen.kind != stub.cell_type:
            self.tell(words.RETYPED, position, found=chosen.kind, expected=stub.cell_type)
        if how != "grade_id" and not self.stripped:
            self.tell(words.BY_NAME if how == "name" else words.BY_PLACE, position)

    def empty_stubs_answered_elsewhere(self) -> None:
        """Two answers in one cell: it is the first one's, and the second's stub must not overwrite its definition."""
        written = frozenset[str]().union(*(names(a.source).bound for p, a in self.answers.items() if self.wanted[p]))
        for position in self.unanswered():
            if found := self.wanted[position] & written:
                self.answers[position] = _Answer(without_definitions(self.given[position].source, found), "elsewhere")
                self.tell(words.ANSWERED_ELSEWHERE, position)

    def lay_out(self) -> NotebookNode:
        """The release's cells in order, the student's own before the next recognised cell that followed them."""
        stands_for = sorted((index, position) for position, index in self.anchors.items())
        own_before: dict[int, list[_Cell]] = {}
        for cell in self.cells:
            if cell.own and not cell.blank:
                following = bisect_left(stands_for, (cell.index, -1))
                position = stands_for[following][1] if following < len(stands_for) else len(self.given)
                own_before.setdefault(position, []).append(cell)
        taken = {cell.get("id") for cell in self.given}
        fresh = (name for number in range(1, 10**9) if (name := f"own-{number}") not in taken)
        cells: list[NotebookNode] = []
        for position, given in enumerate(self.given):
            answer = self.answers.get(position)
            outdone = answer.outdone if answer else []
            cells += [_own_cell(cell, next(fresh)) for cell in own_before.get(position, []) + outdone]
            cells.append(_given_cell(given, answer, next(fresh) if not given.get("id") else given["id"]))
        cells += [_own_cell(cell, next(fresh)) for cell in own_before.get(len(self.given), [])]
        self.tell_what_is_missing()
        return new_notebook(cells, copy.deepcopy(self.release.metadata))

    def tell_what_is_missing(self) -> None:
        own = [cell for cell in self.cells if cell.own and cell.kind == "code"]
        for position in self.answers_at:
            if position in self.answers:
                if any(cell.names.defined & self.wanted[position] for cell in own):
                    self.tell(words.TWO_DEFINITIONS, position)
            elif not any(c.index == self.anchors.get(position) and not c.blank for c in self.cells):
                self.tell(words.MISSING_ANSWER, position)

    def unanswered(self) -> list[int]:
        return [position for position in self.answers_at if position not in self.answers]

    def tell(self, mended: Mended, position: int | None = None, **values: object) -> None:
        """Record a repair; ``name`` in its words is the function asked for, else the cell's ``grade_id``."""
        if position is None:
            repair = mended.repair(None, **values)
            if repair not in self.repairs:
                self.repairs.append(repair)
            return
        identity = grade_id(self.given[position])
        asked = sorted(self.wanted.get(position, ()))
        self.repairs.append(mended.repair(identity, name=", ".join(asked) or identity, **values))


def _own_cell(cell: _Cell, cell_id: str) -> NotebookNode:
    return new_cell(cell.kind, cell.source, cell_id, attachments=cell.attachments)


def _given_cell(given: NotebookNode, answer: _Answer | None, cell_id: str) -> NotebookNode:
    source = given.source if answer is None else answer.source
    attachments = given.get("attachments", {}) | (answer.attachments if answer else {})
    return new_cell(given.cell_type, source, cell_id, copy.deepcopy(given.metadata), attachments)
