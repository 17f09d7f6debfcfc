"""A submission put back on the release's structure, so that grading meets the cells it expects whatever a student did.

The release gives every cell it has, in its order, with its metadata. The submission gives the answers, and the
student's own cells, which stay where they were relative to their neighbours. To which stub an answer belongs is told by
``grade_id``, else by the function or class that the stub defines, else by its place. No stub is left to run after an
answer written elsewhere, and so to overwrite it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from nbformat import NotebookNode

from autograder.exercises import CourseFault
from autograder.notebooks import words
from autograder.notebooks.cells import (
    asked_names,
    grade_id,
    is_solution,
    names,
    new_cell,
    new_notebook,
    without_definitions,
)
from autograder.notebooks.read import plain
from autograder.notebooks.submitted import Cell, cells_of, join_split_code
from autograder.notebooks.words import Mended, Repair
from autograder.text import Text

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


@dataclass
class _Answer:
    """What goes into an answer cell."""

    source: str
    how: How
    attachments: dict[str, Any] = field(default_factory=dict)
    outdone: list[Cell] = field(default_factory=list)  # weaker attempts at the same name, which must run before it


class _Rebuilding:
    """One rebuilding, step by step. Positions count the release's cells, indices the submission's."""

    def __init__(self, submission: NotebookNode, release: NotebookNode) -> None:
        self.release = release
        self.given: list[NotebookNode] = release.cells
        ids = Counter(filter(None, map(grade_id, self.given)))
        if twice := sorted(name for name, times in ids.items() if times > 1):
            names = ", ".join(map(repr, twice))
            raise CourseFault(
                Text(
                    zh=f"发布版里不止一个单元的 grade_id 是 {names}",
                    en=f"the release has more than one cell with grade_id {names}",
                )
            )
        self.wanted = {p: asked_names(cell) for p, cell in enumerate(self.given) if is_solution(cell)}
        self.answers: dict[int, _Answer] = {}
        self.anchors: dict[int, int] = {}  # position -> index of the submitted cell that stands for it
        self.repairs: list[Repair] = []
        notebook = plain(submission)
        whole = cells_of(notebook, ids)
        self.cells = join_split_code(whole, frozenset(grade_id(self.given[p]) for p in self.wanted))
        self.length = len(whole)
        self.stripped = bool(ids) and not any(cell.identity for cell in self.cells)
        if len(self.cells) < self.length:
            self.tell(words.JOINED)
        found, expected = (n.metadata.get("language_info", {}).get("name") for n in (notebook, plain(release)))
        if found and expected and found != expected:
            self.tell(words.OTHER_LANGUAGE, found=found[:40], expected=expected)

    def run(self) -> Rebuilt:
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
        self.tell_what_is_missing_or_double()
        ids = {position: grade_id(self.given[position]) or "" for position in self.wanted}
        return Rebuilt(
            notebook=new_notebook(self.lay_out(), self.release.metadata),
            repairs=tuple(self.repairs),
            matched={ids[position]: answer.how for position, answer in sorted(self.answers.items())},
            untouched=frozenset(ids[position] for position in self.unanswered()),
        )

    def place_given_cells(self) -> None:
        """Find the cells that are not for answers. A changed copy stays before the restored cell, as the student's."""
        for position, given in enumerate(self.given):
            if position in self.wanted:
                continue
            name = grade_id(given)
            copies = [cell for cell in self.cells if name and cell.identity == name]
            if not copies:
                nameless = (cell for cell in self.own(given.cell_type) if cell.identity is None)
                copies = [cell for cell in nameless if cell.same_as(given)][:1]
            exact = [cell for cell in copies if cell.same_as(given)]
            for cell in exact:
                cell.own = False
            if copies:
                self.anchors[position] = (exact or copies)[-1].index
            if not name:
                continue
            if len(copies) > 1:
                self.tell(words.DUPLICATE_LOCKED, position)
            if all(cell.blank for cell in copies):
                self.tell(words.MISSING_LOCKED, position)
            elif not exact:
                self.tell(words.RESTORED_LOCKED, position)
            elif exact[-1].kind != given.cell_type:
                self.tell(words.RETYPED, position, found=exact[-1].kind, expected=given.cell_type)

    def answer_by_id(self) -> None:
        known = frozenset[str]().union(*self.wanted.values())
        for position, wanted in self.wanted.items():
            stub = self.given[position]
            copies = [cell for cell in self.cells if cell.identity == grade_id(stub)]
            for cell in copies:
                if wanted and not cell.names.bound & wanted and cell.names.bound & known:
                    cell.identity = None  # another exercise's answer: its name is the better witness
            copies = [cell for cell in copies if cell.identity]
            written = [cell for cell in copies if not cell.blank and not cell.same_as(stub)]
            for cell in copies:
                cell.own = cell in written
                self.anchors[position] = cell.index
            if len(copies) > 1:
                self.tell(words.DUPLICATE_ANSWER, position)
            if written:
                self.answer(position, written, "grade_id")

    def drop_stub_copies(self) -> None:
        """A stub that has lost its ``grade_id`` must not run after an answer; an unmistakable one marks its place."""
        for cell in self.own():
            given = [p for p in self.wanted if self.given[p].cell_type == cell.kind and cell.same_as(self.given[p])]
            if cell.identity is None and given:
                cell.own = False
                if len(given) == 1:
                    self.anchors.setdefault(given[0], cell.index)

    def answer_by_name(self) -> None:
        for position in self.unanswered():
            wanted = self.wanted[position]
            # code that defines an answered name too must stay before that answer, and so where it is
            taken = frozenset[str]().union(*(self.wanted[p] for p in self.answers)) - wanted
            bound = [(cell, cell.names.bound) for cell in self.own("code")]
            if found := [cell for cell, its in bound if its & wanted and not its & taken]:
                self.answer(position, found, "name")

    def answer_by_place(self) -> None:
        """Take what stands between the nearest recognised neighbours, where only one answer is missing there."""
        known = frozenset[str]().union(*self.wanted.values())
        for position in self.unanswered() if self.anchors else ():
            kind, there = self.given[position].cell_type, position in self.anchors
            lower = max((p for p in self.anchors if p < position), default=-1)
            upper = min((p for p in self.anchors if p > position), default=len(self.given))
            rivals = [p for p in self.unanswered() if lower < p < upper and self.given[p].cell_type == kind]
            if len(rivals) > 1:
                continue
            start, end = self.anchors.get(lower, -1), self.anchors.get(upper, self.length)
            own = [cell for cell in self.own() if start <= cell.index < end]  # start: words typed into the question
            code = [cell for cell in own if cell.kind == "code" and cell.index > start and not there]
            text = [cell for cell in own if cell.kind != "code"]
            if kind == "markdown":
                found = text or [cell for cell in code if not cell.names.parses]
            else:
                retyped = [cell for cell in text if cell.names.defined & self.wanted[position]]
                found = [cell for cell in code if not cell.names.bound & known] or retyped
            if len(found) == 1 or (found and kind == "markdown"):
                self.answer(position, found, "place")

    def answer(self, position: int, found: list[Cell], how: How) -> None:
        """Fill an answer cell: with the best code of those found, or with all the words."""
        stub, wanted = self.given[position], self.wanted[position]
        chosen = max(found, key=lambda cell: cell.rank(wanted))
        if stub.cell_type == "code":
            answer = _Answer(chosen.source, how)
            if how == "name" and position in self.anchors:  # what else the stub brings along is still needed
                rest = without_definitions(stub.source, chosen.names.bound)
                answer.source = f"{rest}\n\n{chosen.source}".lstrip("\n")
            answer.outdone = [cell for cell in found if cell is not chosen and cell.names.bound & wanted]
            used = [chosen, *answer.outdone]
        else:
            answer = _Answer("\n\n".join(dict.fromkeys(cell.source for cell in found)), how)
            for cell in found:
                answer.attachments |= cell.attachments
            used = found
        for cell in used:
            cell.own = False
        self.answers[position] = answer
        self.anchors[position] = chosen.index
        if chosen.kind != stub.cell_type:
            self.tell(words.RETYPED, position, found=chosen.kind, expected=stub.cell_type)
        if how != "grade_id" and not self.stripped:
            self.tell(words.BY_NAME if how == "name" else words.BY_PLACE, position)

    def empty_stubs_answered_elsewhere(self) -> None:
        """An answer that shares a cell with another stays there, and its stub must not overwrite it."""
        written = frozenset[str]().union(*(cell.names.bound for cell in self.own("code")))
        for position, answer in self.answers.items():
            codes = [answer.source, *(cell.source for cell in answer.outdone)] if self.wanted[position] else []
            written |= frozenset[str]().union(*(names(code).bound for code in codes)) - self.wanted[position]
        for position in self.unanswered():
            if found := self.wanted[position] & written:
                self.answers[position] = _Answer(without_definitions(self.given[position].source, found), "elsewhere")
                self.tell(words.ANSWERED_ELSEWHERE, position)

    def tell_what_is_missing_or_double(self) -> None:
        standing = {cell.index for cell in self.cells if not cell.blank}
        for position, wanted in self.wanted.items():
            if position not in self.answers:
                if self.anchors.get(position) not in standing:
                    self.tell(words.MISSING_ANSWER, position)
            elif self.answers[position].how != "elsewhere" and any(c.names.defined & wanted for c in self.own("code")):
                self.tell(words.TWO_DEFINITIONS, position)

    def lay_out(self) -> list[NotebookNode]:
        """The release's cells in order, the student's own before the next recognised cell that followed them."""
        stands_for = sorted((index, position) for position, index in self.anchors.items())
        own_before: dict[int, list[Cell]] = {}
        for cell in self.own():
            following = bisect_left(stands_for, (cell.index, -1))
            position = stands_for[following][1] if following < len(stands_for) else len(self.given)
            own_before.setdefault(position, []).append(cell)
        taken = {cell.get("id") for cell in self.given}
        fresh = filter(lambda cell_id: cell_id not in taken, (f"own-{number}" for number in count(1)))
        cells: list[NotebookNode] = []
        for position, given in enumerate([*self.given, None]):
            answer = self.answers.get(position)
            for cell in own_before.get(position, []) + (answer.outdone if answer else []):
                cells.append(new_cell(cell.kind, cell.source, next(fresh), attachments=cell.attachments))
            if given is not None:
                cells.append(_filled(given, answer, given.get("id") or next(fresh)))
        return cells

    def own(self, kind: str | None = None) -> list[Cell]:
        """The cells, of one kind, that have not been recognised as the release's."""
        return [cell for cell in self.cells if cell.own and not cell.blank and kind in (None, cell.kind)]

    def unanswered(self) -> list[int]:
        return [position for position in self.wanted if position not in self.answers]

    def tell(self, mended: Mended, position: int | None = None, **values: object) -> None:
        """Record a repair; ``name`` in its words is the function asked for, else the cell's ``grade_id``."""
        identity = None if position is None else grade_id(self.given[position])
        asked = frozenset[str]() if position is None else self.wanted.get(position, frozenset())
        self.repairs.append(mended.repair(identity, name=", ".join(sorted(asked)) or identity, **values))


def _filled(given: NotebookNode, answer: _Answer | None, cell_id: str) -> NotebookNode:
    """A cell of the release with an answer in it, if there is one."""
    source = given.source if answer is None else answer.source
    attachments = given.get("attachments", {}) | (answer.attachments if answer else {})
    return new_cell(given.cell_type, source, cell_id, given.metadata, attachments)
