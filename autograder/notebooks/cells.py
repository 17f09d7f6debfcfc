"""What a notebook cell is to nbgrader, which names a cell's code defines, and writing answers into a release.

Conventions of a course: a grade cell's ``grade_id`` is the exercise's name (``masked_softmax``), the answer cell before
it is called ``masked_softmax_answer``, and a question answered in words is one markdown cell, both solution and grade.
"""

from __future__ import annotations

import ast
import copy
import re
import symtable
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

import nbformat
from nbformat import NotebookNode

from autograder.exercises import CourseFault
from autograder.text import Text

_LONGEST_PARSED = 20_000  # characters; longer cells are pasted data, and parsing them costs memory and time
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what Python's parser raises on hostile code
_MAGIC = re.compile(r"^([ \t]*)[%!?].*$", re.MULTILINE)
_CELL_MAGIC = re.compile(r"\s*%%(\w*).*\n?")
_RUNS_THE_CELL = {"time", "capture", "prun"}  # the cell magics after which a definition stands in the notebook
_DEFINES = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+([^\W\d]\w*)", re.MULTILINE)
_ASSIGNS = re.compile(r"^([^\W\d]\w*)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)


def new_cell(
    kind: str,
    source: str,
    cell_id: str,
    metadata: Mapping[str, Any] | None = None,
    attachments: Mapping[str, Any] | None = None,
) -> NotebookNode:
    """A cell of nbformat 4.5 without outputs; it shares nothing with what it is made from."""
    cell: dict[str, Any] = {"cell_type": kind, "id": cell_id, "metadata": metadata or {}, "source": source}
    if kind == "code":
        cell |= {"outputs": [], "execution_count": None}
    elif attachments:
        cell["attachments"] = attachments
    return _node(cell)


def new_notebook(cells: list[NotebookNode], metadata: Mapping[str, Any]) -> NotebookNode:
    """A notebook of nbformat 4.5."""
    return _node({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def _node(plain: Mapping[str, Any]) -> NotebookNode:
    return cast(NotebookNode, nbformat.from_dict(plain))


def nbgrader_metadata(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """The cell's nbgrader metadata; empty for a cell that nbgrader does not manage."""
    metadata = cell.get("metadata")
    found = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def grade_id(cell: Mapping[str, Any]) -> str | None:
    """The cell's ``grade_id``, or None for a cell that nbgrader does not manage."""
    found = nbgrader_metadata(cell).get("grade_id")
    return found if isinstance(found, str) and found else None


def is_solution(cell: Mapping[str, Any]) -> bool:
    """Whether students write their answer into this cell."""
    return nbgrader_metadata(cell).get("solution") is True


def is_grade(cell: Mapping[str, Any]) -> bool:
    """Whether this cell earns points by itself: a check, or a question answered in words."""
    return nbgrader_metadata(cell).get("grade") is True


def points(cell: Mapping[str, Any]) -> float:
    """The points a grade cell or task cell is worth; 0 for every other cell."""
    if not is_grade(cell) and nbgrader_metadata(cell).get("task") is not True:
        return 0.0
    return float(nbgrader_metadata(cell).get("points", 0))


class Names(NamedTuple):
    """The names that a cell's code binds at its top level."""

    bound: frozenset[str]  # by whatever means: def, class, import, assignment, for …
    defined: frozenset[str]  # by ``def`` or ``class``
    parses: bool  # whether the code is Python (magics aside)


def names(source: str) -> Names:
    """The names bound by a cell's code. Magics are skipped; code that does not parse is searched line by line."""
    code = _without_magics(source)
    for candidate in (source, code):
        table = _symbols(candidate) if len(candidate) <= _LONGEST_PARSED else None
        if table is not None:
            return table
    defined = frozenset(_DEFINES.findall(code))
    return Names(defined | frozenset(_ASSIGNS.findall(code)), defined, parses=False)


def defined_names(source: str) -> frozenset[str]:
    """The functions and classes that the code defines; without any, all names that it binds."""
    found = names(source)
    return found.defined or found.bound


def asked_names(stub: Mapping[str, Any]) -> frozenset[str]:
    """The names that an answer to this stub defines; none for an answer in words."""
    return defined_names(stub["source"]) if stub["cell_type"] == "code" else frozenset()


def fingerprint(source: str, kind: str) -> int | str:
    """Equal for cells that hold the same: code with other comments and layout, or words with other spacing."""
    if kind == "code" and len(source) <= _LONGEST_PARSED:
        tree = _tree(source)
        if tree is not None:
            return tree
    return (
        "\n".join(line.rstrip() for line in source.split("\n") if line.strip())
        if kind == "code"
        else " ".join(source.split())
    )


def without_definitions(source: str, unwanted: frozenset[str]) -> str:
    """The code without the functions and classes named; empty when only comments would be left.

    Code that does not parse is returned as it is.
    """
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return source
    lines = source.split("\n")
    kept = 0
    for statement in reversed(statements):
        if getattr(statement, "name", None) in unwanted:
            decorators = getattr(statement, "decorator_list", [])
            first = min([statement.lineno, *(d.lineno for d in decorators)])
            del lines[first - 1 : statement.end_lineno]
        else:
            kept += 1
    return "\n".join(lines).strip() if kept else ""


def fill(release: NotebookNode, answers: Mapping[str, str]) -> NotebookNode:
    """A copy of the release with answers written in, each named by its cell's ``grade_id`` or by its exercise.

    Raises CourseFault when no answer cell of the release is meant by a name.
    """
    filled = copy.deepcopy(release)
    cells: dict[str, NotebookNode] = {}
    for cell in filled.cells:
        if is_solution(cell):
            for name in [grade_id(cell), *sorted(asked_names(cell))]:
                if name is not None:
                    cells.setdefault(name, cell)
    for name, source in answers.items():
        if name not in cells and f"{name}_answer" not in cells:
            known = ", ".join(sorted(cells))
            raise CourseFault(
                Text(
                    zh=f"没有叫 {name!r} 的答题单元：这个笔记本里有 {known}",
                    en=f"no answer cell is called {name!r}: this notebook has {known}",
                )
            )
        cells[name if name in cells else f"{name}_answer"].source = source
    return filled


def _without_magics(source: str) -> str:
    """The code with ``pass`` for every magic and shell line; empty when a cell magic keeps it from running here."""
    cell_magic = _CELL_MAGIC.match(source)
    if cell_magic:
        if cell_magic[1] not in _RUNS_THE_CELL:
            return ""
        source = source[cell_magic.end() :]
    return _MAGIC.sub(r"\1pass", source)


@lru_cache(maxsize=1024)
def _symbols(code: str) -> Names | None:
    """The names bound by code that parses, else None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symbols = symtable.symtable(code, "<cell>", "exec").get_symbols()
    except _UNPARSABLE:
        return None
    bound = frozenset(s.get_name() for s in symbols if s.is_assigned() or s.is_imported())
    return Names(bound, frozenset(s.get_name() for s in symbols if s.is_namespace()), parses=True)


@lru_cache(maxsize=1024)
def _tree(code: str) -> int | None:
    """A fingerprint of the code's syntax tree, or None for code that does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return hash(ast.dump(ast.parse(code)))
    except _UNPARSABLE:
        return None
