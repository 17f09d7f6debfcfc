"""Cells, names and the few rules of reading and rebuilding that the unlucky notebooks do not show."""

from __future__ import annotations

import json
import time

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.exercises import CourseFault
from autograder.notebooks import (
    Submission,
    defined_names,
    fill,
    grade_id,
    identify,
    is_grade,
    is_solution,
    points,
    read_submission,
    rebuild,
)
from autograder.notebooks.cells import names, without_definitions
from autograder.notebooks.submitted import Cell, join_split_code
from tests.broken.minirelease import ANSWERS, STUBS, release


@pytest.mark.parametrize(
    ("source", "defined"),
    [
        ("def f(x): return x\nclass G: pass\ny = 1", {"f", "G"}),
        ("async def f(): pass", {"f"}),
        ("f = lambda x: x\ny: int = 2", {"f", "y"}),
        ("from m import f, g as h", {"f", "h"}),
        ("if True:\n    def f(): pass", {"f"}),
        ("class Answers:\n    def f(self): pass", {"Answers"}),
        ("'''\ndef old(): pass\n'''\ndef f(): pass", {"f"}),
        ("%matplotlib inline\n!ls\ndef f(): pass\n?f", {"f"}),
        ("%%time\ndef f(): pass", {"f"}),
        ("%%writefile f.py\ndef f(): pass", set()),
        ("%%bash\nf=1", set()),
        ("x = (7\n% 2)\n'''\ndef old(): pass\n'''\ndef f(): pass", {"f"}),
        ("def f(x:\n    return [", {"f"}),
        ("files = !ls\ndef f(): pass", {"f"}),
        ("f = (1\nassert f == 1", {"f"}),
        ("def 前缀(x): pass", {"前缀"}),
        ("", set()),
        ("((((", set()),
    ],
)
def test_the_names_a_cell_defines(source: str, defined: set[str]):
    assert defined_names(source) == defined


@pytest.mark.parametrize(
    "magic", ["%matplotlib inline", "!ls -l {x}", "if 1:\n    %run y.py", "?x", "%%time", "%%capture o"]
)
def test_magics_do_not_keep_code_from_being_parsed(magic: str):
    found = names(f"{magic}\n'''\ndef old(): pass\n'''\nx = 1\ndef f(): pass")
    assert found.defined == {"f"}
    assert found.bound == {"f", "x"}
    assert found.parses


@pytest.mark.parametrize(
    "source",
    [
        "(" * 9000,
        "-" * 19_000 + "1",
        "not " * 4000 + "1",
        "x" + "()" * 9000,
        "[x for x in " * 1000,
        "f(" * 20_000,
        "\0",
    ],
)
def test_code_made_to_break_the_parser_is_searched_line_by_line(source: str):
    assert "f" in defined_names(f"{source}\ndef f(): pass")


def test_code_too_long_to_parse_still_shows_its_names():
    found = names("data = '" + "0" * 30_000 + "'\ndef f(x):\n    return x")
    assert found.defined == {"f"}
    assert not found.parses


@pytest.mark.parametrize(
    ("source", "rest"),
    [
        ("def f(): pass", ""),
        ("# only words\ndef f(): pass\n# more", ""),
        (
            "import math\n\n\n@staticmethod\ndef f():\n    pass\n\n\ndef g(): pass",
            "import math\n\n\n\n\ndef g(): pass",
        ),
        ("def f(: pass", "def f(: pass"),
    ],
)
def test_a_stub_without_what_was_answered(source: str, rest: str):
    assert without_definitions(source, frozenset({"f"})) == rest


def test_the_roles_and_points_of_a_cell():
    cells = {grade_id(cell): cell for cell in release().cells if grade_id(cell)}
    assert [name for name in cells if is_grade(cells[name])] == [*list(ANSWERS)[:-1], "why_scale"]
    assert is_solution(cells["why_scale"])
    assert not is_solution(cells["setup"])
    assert [points(cells[name]) for name in ("Head", "Head_answer", "setup", "why_scale")] == [2, 0, 0, 3]
    assert points(nbformat.from_dict({"metadata": {"nbgrader": {"task": True, "points": 4}}})) == 4
    assert grade_id(NotebookNode(metadata={"nbgrader": "no"})) is None


def test_fill_by_exercise_and_by_grade_id():
    filled = fill(
        release(), {"Head": "class Head: ...", "causal_mask_answer": "def causal_mask(T): ...", "why_scale": "so"}
    )
    found = {grade_id(cell): cell.source for cell in filled.cells}
    assert found["Head_answer"] == "class Head: ..."
    assert found["causal_mask_answer"] == "def causal_mask(T): ..."
    assert found["why_scale"] == "so"
    assert found["prefix_mean_answer"] == STUBS["prefix_mean"]
    with pytest.raises(CourseFault, match=r"no answer cell is called 'tail': this notebook has Head, Head_answer, "):
        fill(release(), {"tail": "x"})


def test_a_release_that_uses_an_id_twice_is_the_courses_fault():
    broken = release()
    broken.cells.append(broken.cells[1])
    with pytest.raises(CourseFault, match="more than one cell with grade_id 'setup'"):
        rebuild(release(), broken)


def test_a_release_without_cell_ids_gets_some():
    old = release()
    for cell in old.cells:
        del cell["id"]
    result = rebuild(fill(old, ANSWERS), old)
    nbformat.validate(result.notebook)
    assert result.untouched == frozenset()


def test_how_each_answer_was_recognised():
    submission = fill(release(), ANSWERS)
    by_id = {grade_id(cell): cell for cell in submission.cells}
    by_id["Head_answer"].metadata = NotebookNode()
    by_id["why_scale"].metadata = NotebookNode()
    by_id["prefix_mean_answer"].source += "\n" + by_id["masked_softmax_answer"].source
    by_id["masked_softmax_answer"].source = ""
    by_id["causal_mask_answer"].source = STUBS["causal_mask"]
    result = rebuild(submission, release())
    assert result.matched == {
        "prefix_mean_answer": "grade_id",
        "masked_softmax_answer": "elsewhere",
        "Head_answer": "name",
        "why_scale": "place",
    }
    assert result.untouched == {"causal_mask_answer"}
    assert [(repair.kind, repair.cell) for repair in result.repairs] == [
        ("found-by-name", "Head_answer"),
        ("found-by-place", "why_scale"),
        ("answered-elsewhere", "masked_softmax_answer"),
    ]
    assert result.repairs[0].text.zh == "Head 的答案写在另一个单元格里，已按名字认出并放到题目的位置。"


def code(source: str) -> NotebookNode:
    return nbformat.from_dict({"cell_type": "code", "source": source, "metadata": {}})


def own_cells(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.id.startswith("own-")]


@pytest.mark.parametrize(
    ("deleted", "slipped_in"),
    [
        (["Head_answer"], ["print(1)", "print(2)"]),  # two candidates
        (["Head_answer"], ["def causal_mask(T):\n    return None"]),  # another exercise's
        (["masked_softmax_answer", "masked_softmax", "Head_answer", None], ["print(1)"]),  # two answers missing
        ([], ["print(1)"]),  # the stub is there
        ([], ["print(1"]),
    ],
)
def test_what_may_be_something_else_is_not_taken_for_an_answer(deleted: list[str | None], slipped_in: list[str]):
    submission = fill(release(), ANSWERS)
    last_check = next(cell for cell in submission.cells if grade_id(cell) == "Head")
    stub = next(cell for cell in submission.cells if grade_id(cell) == "Head_answer")
    stub.source = STUBS["Head"]
    place = submission.cells.index(last_check)
    submission.cells[place:place] = map(code, slipped_in)
    submission.cells = [cell for cell in submission.cells if grade_id(cell) not in deleted or cell.source in slipped_in]
    result = rebuild(submission, release())
    assert own_cells(result.notebook) == slipped_in
    assert "Head_answer" in result.untouched


def test_an_answer_that_defines_only_its_own_name_does_not_answer_another_question_of_that_name():
    twice = release()
    again = nbformat.from_dict(twice.cells[5])
    assert grade_id(again) == "prefix_mean_answer"
    again.metadata.nbgrader.grade_id = "prefix_mean_faster"
    again.id = "again"
    twice.cells.insert(7, again)
    result = rebuild(fill(twice, {"prefix_mean_answer": ANSWERS["prefix_mean"]}), twice)
    assert result.matched == {"prefix_mean_answer": "grade_id"}
    assert "prefix_mean_faster" in result.untouched


def test_halves_of_two_different_answers_are_not_joined():
    halves = [Cell(0, "code", "def f(x):", "f_answer"), Cell(1, "code", "    return x", "g_answer")]
    assert join_split_code(halves, frozenset({"f_answer", "g_answer"})) == halves
    halves[1].identity = None
    [joined] = join_split_code(halves, frozenset({"f_answer", "g_answer"}))
    assert (joined.identity, joined.source) == ("f_answer", "def f(x):\n    return x")
    halves[0].identity = "f"  # a check
    assert join_split_code(halves, frozenset({"f_answer"})) == halves


def test_a_picture_in_a_written_answer_is_kept_and_nothing_else_of_it():
    submission = fill(release(), ANSWERS)
    [cell] = [cell for cell in submission.cells if grade_id(cell) == "why_scale"]
    cell.source = "![sketch](attachment:a.png)"
    cell.attachments = {"a.png": {"image/png": "iVBORw0KGgo=", "text/html": "<script>"}, "b": 7}
    found = read_submission(json.dumps(submission).encode())
    assert isinstance(found, Submission)
    rebuilt = rebuild(found.notebook, release()).notebook
    nbformat.validate(rebuilt)
    [cell] = [cell for cell in rebuilt.cells if grade_id(cell) == "why_scale"]
    assert cell.attachments == {"a.png": {"image/png": "iVBORw0KGgo="}}


def test_neither_the_submission_nor_the_release_is_changed():
    submission, given = fill(release(), ANSWERS), release()
    before = json.dumps([submission, given])
    result = rebuild(submission, given)
    result.notebook.cells[1].metadata.nbgrader.points = 100
    result.notebook.metadata.kernelspec.name = "other"
    assert json.dumps([submission, given]) == before


def test_nothing_is_recognised_where_nothing_fits():
    assert identify(release(), {}) is None
    assert identify(NotebookNode(cells=[]), {"week1": release()}) is None


def test_two_thousand_hostile_cells_take_seconds_at_most():
    stub = STUBS["prefix_mean"]
    cells = [{"cell_type": "code", "source": f"{stub}\n    x{n} = (" + "-" * 600} for n in range(2000)]
    started = time.process_time()
    found = read_submission(json.dumps({"cells": cells}).encode())
    assert isinstance(found, Submission)
    rebuild(found.notebook, release())
    assert time.process_time() - started < 30
