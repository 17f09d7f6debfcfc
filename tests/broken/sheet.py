"""The paper a mishap is done to: a filled-in release, with the few operations that mishaps are made of."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from autograder.notebooks import fill, grade_id
from autograder.notebooks.cells import asked_names, is_solution

Cell = dict[str, Any]


class Sheet:
    """A release with right answers in it. ``names`` are the exercises in code, ``question`` the first one in words."""

    def __init__(self, release: NotebookNode, answers: Mapping[str, str]) -> None:
        self.release: dict[str, Any] = json.loads(json.dumps(release))
        self.answers = dict(answers)
        self.book: dict[str, Any] = json.loads(json.dumps(fill(release, answers)))
        asked = [(cell, asked_names(cell)) for cell in release.cells if is_solution(cell)]
        self.names = [name for _, wanted in asked for name in sorted(wanted) if name in answers]
        self.question = next(grade_id(cell) or "" for cell, wanted in asked if not wanted)
        self._answer_ids = {name: grade_id(cell) for cell, wanted in asked for name in wanted}

    @property
    def cells(self) -> list[Cell]:
        return self.book["cells"]

    def by_id(self, identity: str | None) -> Cell:
        return next(cell for cell in self.cells if grade_id(cell) == identity)

    def answer(self, number: int) -> Cell:
        """The answer cell of the exercise with this number, counted from 0."""
        return self.by_id(self._answer_ids[self.names[number]])

    def check(self, number: int) -> Cell:
        """Its grade cell."""
        return self.by_id(self.names[number])

    def written(self) -> Cell:
        """The cell of the written question."""
        return self.by_id(self.question)

    def at(self, cell: Cell) -> int:
        return next(index for index, other in enumerate(self.cells) if other is cell)

    def insert(self, *cells: Cell, before: Cell | None = None, after: Cell | None = None) -> None:
        place = self.at(before) if before else self.at(after) + 1 if after else len(self.cells)
        self.cells[place:place] = cells

    def remove(self, *cells: Cell) -> None:
        for cell in cells:
            del self.cells[self.at(cell)]

    def unanswer(self, number: int) -> Cell:
        """Make an answer cell the stub it was, and return it."""
        cell = self.answer(number)
        stub = next(given for given in self.release["cells"] if grade_id(given) == grade_id(cell))
        cell["source"] = stub["source"]
        return cell

    def strip(self) -> None:
        """Lose all cell metadata and ids, as Colab does."""
        for cell in self.cells:
            cell["metadata"] = {}
            cell.pop("id", None)

    def bytes(self, encoding: str = "utf-8") -> bytes:
        return json.dumps(self.book, ensure_ascii=False, indent=1).encode(encoding)


def code(source: str) -> Cell:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}


def words(source: str) -> Cell:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def copied(cell: Cell, source: str | None = None) -> Cell:
    again = copy.deepcopy(cell)
    return again if source is None else again | {"source": source}


@dataclass(frozen=True)
class Case:
    """One unlucky notebook and what a fair human would make of it."""

    name: str
    story: str
    mishap: Callable[[Sheet], bytes | None]
    lost: tuple[int | str, ...] = ()  # exercises that earn nothing, by number; "question"; or "all"
    told: tuple[str, ...] = ()  # words that the student reads about it; none: nothing was mended
    unreadable: bool = False
    kernel: bool = False  # only a Jupyter kernel can run it as meant

    def build(self, release: NotebookNode, answers: Mapping[str, str]) -> bytes:
        """The file handed in, from a release and right answers by exercise name."""
        sheet = Sheet(release, answers)
        return self.mishap(sheet) or sheet.bytes()

    def fair(self, release: NotebookNode, answers: Mapping[str, str]) -> dict[str, str]:
        """The answers that count, by exercise name (the written question: those that a human gets to read)."""
        sheet = Sheet(release, answers)
        if "all" in self.lost:
            return {}
        gone = {sheet.question if n == "question" else sheet.names[int(n)] for n in self.lost}
        return {name: source for name, source in answers.items() if name not in gone}


@dataclass
class Table:
    """Collects cases: a decorated function is the mishap, its docstring the story."""

    cases: list[Case] = field(default_factory=list)

    def __call__(self, **expected: Any) -> Callable[[Callable[[Sheet], bytes | None]], Callable[[Sheet], bytes | None]]:
        def add(mishap: Callable[[Sheet], bytes | None]) -> Callable[[Sheet], bytes | None]:
            self.cases.append(Case(mishap.__name__, mishap.__doc__ or "", mishap, **expected))
            return mishap

        return add
