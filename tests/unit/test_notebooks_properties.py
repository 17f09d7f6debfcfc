"""What holds for any submission: nothing is raised, the structure is the release's, no answer is lost by moves."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode

from autograder.notebooks import Submission, Unreadable, fill, identify, read_submission, rebuild
from tests.broken.minirelease import ANSWERS, assert_structure, release, run, works

RELEASE = release()
FILLED = fill(RELEASE, ANSWERS)
PIECES = [cell.source for cell in FILLED.cells] + [cell.source for cell in RELEASE.cells]

words = st.text(max_size=20) | st.sampled_from(
    [*PIECES, "code", "markdown", "raw", "heading", "\0", "\ud800", "%%time\nx = 1"]
)
identities = st.sampled_from([cell.metadata.get("nbgrader", {}).get("grade_id", "unknown") for cell in RELEASE.cells])
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


def maybe(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there, sometimes anything."""
    return good | good | good | junk


managed = st.fixed_dictionaries(
    {},
    optional={"grade_id": maybe(identities), "grade": junk, "solution": junk, "points": junk, "schema_version": junk},
)
images = st.dictionaries(st.just("image/png"), junk, max_size=1)
cells = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": maybe(st.sampled_from(["code", "markdown", "raw", "heading"])),
        "source": maybe(words | st.lists(words, max_size=4)),
        "input": words,
        "level": junk,
        "metadata": maybe(st.fixed_dictionaries({}, optional={"nbgrader": maybe(managed), "tags": junk})),
        "attachments": maybe(st.dictionaries(words, maybe(images), max_size=2)),
        "id": junk,
        "outputs": junk,
    },
)
sheets = st.lists(st.fixed_dictionaries({"cells": maybe(st.lists(cells, max_size=3))}), max_size=2)
documents = st.fixed_dictionaries(
    {},
    optional={
        "cells": maybe(st.lists(maybe(cells), max_size=8)),
        "worksheets": maybe(sheets),
        "metadata": maybe(st.dictionaries(st.sampled_from(["kernelspec", "language_info"]), junk, max_size=2)),
        "nbformat": junk,
    },
)


@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-16", "replace")))
def test_any_bytes_are_a_notebook_or_a_reason(data: bytes):
    found = read_submission(data)
    assert isinstance(found, Submission | Unreadable)
    if isinstance(found, Unreadable):
        assert found.reason.zh
        assert found.reason.en


@settings(max_examples=200, deadline=None)
@given(documents)
def test_any_json_is_rebuilt_or_refused(document: dict[str, Any]):
    found = read_submission(json.dumps(document).encode())
    if isinstance(found, Submission):
        nbformat.validate(found.notebook)
        once = rebuild(found.notebook, RELEASE)
        assert_structure(once.notebook, RELEASE)
        assert set(once.matched) | once.untouched == {f"{name}_answer" for name in list(ANSWERS)[:-1]} | {"why_scale"}
        assert not set(once.matched) & once.untouched
        nbformat.writes(once.notebook).encode("utf-8")


@settings(max_examples=100, deadline=None)
@given(documents)
def test_a_notebook_not_read_by_us_is_rebuilt_too(document: dict[str, Any]):
    submission = NotebookNode(document)
    assert_structure(rebuild(submission, RELEASE).notebook, RELEASE)
    assert identify(submission, {"week1": RELEASE}) in (None, "week1")


def test_the_release_is_rebuilt_to_itself():
    result = rebuild(RELEASE, RELEASE)
    assert result.notebook == RELEASE
    assert result.repairs == ()
    assert result.matched == {}
    assert len(result.untouched) == len(ANSWERS)


def shuffled(filled: NotebookNode, data: st.DataObject) -> list[NotebookNode]:
    """The cells of a filled-in release, some of them moved, doubled or stripped of their metadata, others slipped in."""
    result = [json.loads(json.dumps(cell)) for cell in data.draw(st.permutations(filled.cells))]
    for cell in list(result):
        mishap = data.draw(st.sampled_from(["", "", "", "double", "strip", "double and strip", "slip in"]))
        if "double" in mishap:
            result.insert(data.draw(st.integers(0, len(result))), json.loads(json.dumps(cell)))
        if "strip" in mishap:
            cell["metadata"] = {}
        if mishap == "slip in":
            own = {"cell_type": "code", "source": "T = 1\nprint(T)", "metadata": {}}
            result.insert(data.draw(st.integers(0, len(result))), own)
    return result


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_answer_is_lost_by_moving_doubling_or_stripping(data: st.DataObject):
    submission = {"nbformat": 4, "metadata": {}, "cells": shuffled(FILLED, data)}
    found = read_submission(json.dumps(submission).encode())
    assert isinstance(found, Submission)
    result = rebuild(found.notebook, RELEASE)
    assert_structure(result.notebook, RELEASE)
    assert works(run(result.notebook)) == {"prefix_mean", "causal_mask", "masked_softmax", "Head"}
    assert identify(found.notebook, {"week1": RELEASE, "week2": fill(RELEASE, {})}) is None  # two that fit equally


@settings(max_examples=100, deadline=None)
@given(st.permutations(list(ANSWERS)[:-1]), st.integers(0, 4), st.booleans())
def test_answers_in_new_cells_take_the_place_of_their_stubs(order: list[str], place: int, stubs_first: bool):
    own = [{"cell_type": "code", "source": ANSWERS[name], "metadata": {}} for name in order]
    stubs = [json.loads(json.dumps(cell)) for cell in RELEASE.cells]
    submission = {"cells": [*stubs, *own] if stubs_first else [*own[:place], *stubs, *own[place:]]}
    found = read_submission(json.dumps(submission).encode())
    assert isinstance(found, Submission)
    result = rebuild(found.notebook, RELEASE)
    assert works(run(result.notebook)) == set(order)
    assert result.untouched == {"why_scale"}
    assert {repair.kind for repair in result.repairs} == {"found-by-name"}


@pytest.mark.parametrize("seed", range(3))
def test_pasting_the_notebook_over_and_over_costs_no_answer(seed: int):
    cells = [json.loads(json.dumps(cell)) for n in range(3) for cell in (FILLED if n == seed else RELEASE).cells]
    result = rebuild(NotebookNode(cells=cells), RELEASE)
    assert works(run(result.notebook)) == {"prefix_mean", "causal_mask", "masked_softmax", "Head"}
    assert result.untouched == frozenset()
