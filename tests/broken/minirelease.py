"""A small release as nbgrader generates one: four exercises, a written question, prose, a locked cell, an open cell."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.notebooks import is_solution

STUBS = {
    "prefix_mean": '''\
def prefix_mean(X):
    """Means of X[:1], X[:2], ... as a list of floats."""
    # YOUR CODE HERE
    raise NotImplementedError()''',
    "causal_mask": '''\
def causal_mask(T):
    """Row t says which of the T sources receiver t may read."""
    # YOUR CODE HERE
    raise NotImplementedError()''',
    "masked_softmax": '''\
from math import exp


def masked_softmax(scores, allowed):
    """Softmax over the allowed entries of one row; the others get exactly 0."""
    # YOUR CODE HERE
    raise NotImplementedError()''',
    "Head": '''\
class Head:
    """One attention score per key for a query, scaled by the root of head_size."""

    def __init__(self, head_size):
        self.head_size = head_size

    def __call__(self, query, keys):
        # YOUR CODE HERE
        raise NotImplementedError()''',
    "why_scale": "YOUR ANSWER HERE",
}

ANSWERS = {
    "prefix_mean": """\
def prefix_mean(X):
    return [sum(X[: t + 1]) / (t + 1) for t in range(len(X))]""",
    "causal_mask": """\
def causal_mask(T):
    rows = []
    for t in range(T):
        rows.append([j <= t for j in range(T)])
    return rows""",
    "masked_softmax": """\
from math import exp


def masked_softmax(scores, allowed):
    top = max(s for s, a in zip(scores, allowed) if a)
    raised = [exp(s - top) if a else 0.0 for s, a in zip(scores, allowed)]
    return [r / sum(raised) for r in raised]""",
    "Head": """\
class Head:
    def __init__(self, head_size):
        self.head_size = head_size

    def __call__(self, query, keys):
        return [sum(q * k for q, k in zip(query, key)) / self.head_size**0.5 for key in keys]""",
    "why_scale": "The variance of a dot product grows with head_size; 不缩放的话 softmax 会饱和。",
}

CHECKS = {
    "prefix_mean": "assert prefix_mean([2, 0, 4]) == [2, 1, 2]",
    "causal_mask": "assert causal_mask(2) == [[True, False], [True, True]]",
    "masked_softmax": "assert masked_softmax([0, 0, 9], [True, True, False]) == [0.5, 0.5, 0]",
    "Head": "assert Head(4)([2, 0, 0, 0], [[1, 0, 0, 0]]) == [1]",
}


def works(namespace: dict[str, Any]) -> set[str]:
    """The exercises that the functions in a namespace solve, on values that are in no visible check."""
    tries = {
        "prefix_mean": lambda f: f([1, 3, 5]) == [1, 2, 3],
        "causal_mask": lambda f: [sum(row) for row in f(3)] == [1, 2, 3],
        "masked_softmax": lambda f: f([7, 1, 1], [False, True, True]) == [0, 0.5, 0.5],
        "Head": lambda f: f(9)([3, 3], [[1, 1], [0, 2]]) == [2, 2],
    }
    solved = set()
    for name, attempt in tries.items():
        with contextlib.suppress(Exception), warnings.catch_warnings():  # a student's function may do anything
            warnings.simplefilter("ignore")
            if attempt(namespace[name]):
                solved.add(name)
    return solved


def release() -> NotebookNode:
    """The notebook that students got."""
    cells = [
        _prose("# 平均 / Averaging", ["lang-zh", "lang-en"]),
        _managed("setup", "code", "import random\n\nrandom.seed(0)", locked=True),
        {"cell_type": "code", "source": "T = 4  # change it and see", "metadata": {}},
    ]
    for number, (name, check) in enumerate(CHECKS.items(), 1):
        cells += [
            _prose(f"## {number}. 练习 `{name}`", ["lang-zh"]),
            _prose(f"## {number}. Exercise `{name}`", ["lang-en"]),
            _managed(f"{name}_answer", "code", STUBS[name], solution=True),
            _managed(name, "code", check, grade=True, locked=True, points=2),
        ]
    cells += [
        _managed("why_scale_prompt", "markdown", "Why are the scores divided by the root of head_size?", locked=True),
        _managed("why_scale", "markdown", STUBS["why_scale"], grade=True, solution=True, points=3),
        _prose("The end.", ["lang-en"]),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"given-{number}"
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": python, "language_info": {"name": "python", "version": "3.11.7"}}
    return nbformat.from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def assert_structure(notebook: NotebookNode, given: NotebookNode) -> None:
    """That a rebuilt notebook is valid and has the release's cells in order, locked in text and all in metadata."""
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    expected = {cell.id: cell for cell in given.cells}
    assert [identity for identity in ids if identity in expected] == list(expected)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        if cell.id not in expected:
            assert cell.metadata == {}
            continue
        assert (cell.cell_type, cell.metadata) == (expected[cell.id].cell_type, expected[cell.id].metadata)
        if not is_solution(cell):
            assert cell.source == expected[cell.id].source
    assert notebook.metadata == given.metadata


def run(notebook: NotebookNode) -> dict[str, Any]:
    """The names that stand after running every cell in order; a cell that fails is left behind, as in a kernel."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in notebook.cells:
            if cell.cell_type == "code":
                with contextlib.suppress(Exception):
                    exec(compile(cell.source, "<cell>", "exec"), namespace)
    return namespace


def _prose(source: str, tags: list[str]) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {"tags": tags}}


def _managed(grade_id: str, kind: str, source: str, **flags: object) -> dict[str, Any]:
    roles = {"grade": False, "solution": False, "locked": False, "task": False} | flags
    return {
        "cell_type": kind,
        "source": source,
        "metadata": {
            "deletable": False,
            "nbgrader": {"grade_id": grade_id, "schema_version": 3, "cell_type": kind, "checksum": "0" * 32} | roles,
        },
    }
