"""hint, status, show_weights and detect_leaks, in a terminal and in a kernel."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from autograder import detect_leaks, hint, show_weights, status
from autograder.desk import hint as hints_module
from autograder.desk.leaks import LeakFound


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to work in, in English, with no hint given yet."""
    monkeypatch.setenv("AUTOGRADER_LANGUAGE", "en")
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hints_module, "_given", {})
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert err == ""
    return out


# ---------------------------------------------------------------------------------------------------------------- hint

LEVELS = {"f": [{"zh": "一", "en": "first"}, {"zh": "二", "en": "second"}], "g": [{"zh": "只有", "en": "only"}]}


def test_hints_come_one_level_at_a_time_and_the_last_one_stays(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "hints.json").write_text(json.dumps(LEVELS), encoding="utf-8")

    def f() -> None: ...

    hint(f)
    assert said(capsys) == "f 1/2: first\n(1 more: run it again)\n"
    hint("f")
    hint("f")
    assert said(capsys) == "f 2/2: second\n(this was the last hint)\n" * 2
    hint("g")
    assert "g 1/1: only" in said(capsys)


def test_unknown_exercise_lists_those_with_hints(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "hints.json").write_text(json.dumps(LEVELS), encoding="utf-8")
    hint("h")
    assert said(capsys) == 'There is no hint for "h". There are hints for: f, g.\n'


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"f": 3}', '{"f": [{"zh": "一"}]}'])
def test_hints_packed_with_the_tools_are_used_where_the_folder_has_none(
    broken: str, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk / "hints.json").write_text(broken, encoding="utf-8")
    hint("f")
    assert "No hints found" in said(capsys)
    monkeypatch.setattr(hints_module, "_packed", lambda: json.dumps(LEVELS).encode())
    hint("f")
    assert "f 1/2: first" in said(capsys)


# -------------------------------------------------------------------------------------------------------------- status


def cell(kind: str, source: str, grade_id: str = "", **marks: Any) -> dict[str, Any]:
    metadata = {"nbgrader": {"grade_id": grade_id, "schema_version": 3, **marks}} if grade_id else {}
    return {"cell_type": kind, "source": source, "metadata": metadata}


def answer(name: str, source: str) -> dict[str, Any]:
    return cell("code", source, f"{name}_answer", solution=True)


def grade_cell(name: str = "f") -> dict[str, Any]:
    return cell("code", f"check({name})", name, grade=True)


def save(desk: Path, *cells: dict[str, Any], name: str = "hw.ipynb") -> Path:
    path = desk / name
    path.write_text(json.dumps({"nbformat": 4, "cells": list(cells)}, ensure_ascii=False), encoding="utf-8")
    return path


STUB = 'def f(x):\n    """Doc."""\n    # YOUR CODE HERE\n    raise NotImplementedError()'


def test_status_sorts_answered_from_unanswered_and_gives_a_receipt(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(
        desk,
        answer("f", STUB),
        grade_cell("f"),
        answer("g", "%matplotlib inline\ndef g(x):\n    return x"),
        answer("h", 'def h(x):\n    """Doc."""\n    '),
        cell("markdown", "在这里作答 / Write your answer here", "why", grade=True, solution=True),
        cell("markdown", "Because.", "how", grade=True, solution=True),
    )
    status()
    out = said(capsys)
    assert out.startswith("hw.ipynb: could be handed in, but some exercises are not answered")
    assert "✓ answered: g, how\n" in out
    assert "○ not answered: f, h, why\n" in out
    assert hashlib.sha256(path.read_bytes()).hexdigest() in out


def test_status_of_a_finished_notebook(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(desk, answer("f", "def f(x):\n    return x"), grade_cell("f"))
    status("hw.ipynb")
    assert "hw.ipynb: everything is answered; ready to be handed in" in said(capsys)


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([answer("f", "def f(x):\n    return (x")], "Syntax error in line 2 of f."),
        ([answer("f", "x = 1"), answer("f", "x = 1")], "These cells are there twice: f_answer."),
        ([answer("g", "x = 1"), grade_cell("f")], "The answer cell of f is gone."),
        ([cell("code", "x = 1")], "No marked exercises in this notebook"),
    ],
)
def test_status_names_what_is_wrong(
    cells: list[dict[str, Any]], says: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(desk, *cells)
    status("hw.ipynb")
    out = said(capsys)
    assert "there is a problem with this file" in out
    assert says in out


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"cells": 3}', b"[" * 100_000])
def test_status_of_a_broken_file(data: bytes, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "hw.ipynb").write_bytes(data)
    status("hw.ipynb")
    assert "The file does not hold a notebook" in said(capsys)


def test_status_where_there_is_no_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    status()
    assert "No assignment notebook was found in this folder" in said(capsys)
    status("other.ipynb")
    assert "The file cannot be read: No such file or directory." in said(capsys)


def test_status_takes_the_notebook_that_runs(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(desk, answer("f", "x = 1"), name="a.ipynb")
    save(desk, answer("f", STUB), name="b.ipynb")
    status()
    assert said(capsys).count("receipt") == 2
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/student/ch18/b.ipynb")
    status()
    assert said(capsys).startswith("b.ipynb:")


# -------------------------------------------------------------------------------------------------------- show_weights


def test_weights_in_a_terminal_are_numbers_with_rows_and_columns(capsys: pytest.CaptureFixture[str]) -> None:
    show_weights(torch.tensor([[[1.0, 0.0], [1 / 4, 3 / 4]]], requires_grad=True), "a ", "a ")
    assert said(capsys).splitlines() == [
        "rows: receivers; columns: sources",
        "      a     ␣",
        "a     1     0",
        "␣   .25   .75",
    ]


def test_weights_larger_than_a_screen_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    show_weights(torch.eye(20))
    lines = said(capsys).splitlines()
    assert len(lines) == 19
    assert lines[-1] == "…"
    assert lines[2].endswith("…")


@pytest.mark.parametrize(
    ("A", "rows", "says"),
    [
        (torch.zeros(2, 3, 3), None, r"draws one matrix \(T, T\), got shape \(2, 3, 3\)"),
        (torch.zeros(3), None, r"got shape \(3,\)"),
        (torch.zeros(0, 3), None, r"got shape \(0, 3\)"),
        (torch.zeros(3, 3), "ab", "This axis has 3 positions, but 2 labels were given."),
    ],
)
def test_what_is_no_matrix_is_refused_in_words(A: torch.Tensor, rows: str | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        show_weights(A, rows)


# -------------------------------------------------------------------------------------------------------- detect_leaks


def inputs(B: int, T: int, rng: torch.Generator) -> dict[str, torch.Tensor]:
    return {"X": torch.randn(B, T, 3, generator=rng, dtype=torch.float64)}  # (B, T, C)


def test_causal_code_is_said_to_be_causal(capsys: pytest.CaptureFixture[str]) -> None:
    detect_leaks(lambda X: X.cumsum(1), inputs=inputs)
    assert "no leak found" in said(capsys)


def test_leak_is_shown_and_raised_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LeakFound, match=r"^Leak: .* moved row") as caught:
        detect_leaks(lambda X: X - X.mean(1, keepdim=True), inputs=inputs)
    assert "\n" not in str(caught.value)
    assert caught.value.report.verdict == "leaks"
    assert str(caught.value) in said(capsys)


# ----------------------------------------------------------------------------------------------------------- in a kernel


def test_in_a_kernel_everything_is_rich_and_nothing_goes_to_stderr(desk: Path) -> None:
    (desk / "hints.json").write_text(json.dumps(LEVELS), encoding="utf-8")
    save(desk, answer("f", STUB))
    sources = [
        "import torch\nfrom autograder import case, check, detect_leaks, hint, show_weights, status",
        "def f(x):\n    return x.T\ncheck(f, case(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), gives=[[1.0, 2.0], [3.0, 4.0]]))",
        "def f(x):\n    return x\ncheck(f, case(1, gives=1))",
        "hint(f)",
        "show_weights(torch.eye(3), '<b>', 'xyz')",
        "detect_leaks(lambda X: X.flip(1), inputs=lambda B, T, rng: {'X': torch.randn(B, T, 2, generator=rng)})",
        "status()",
        "def f(x):\n    raise NotImplementedError()\ncheck(f, case(1, gives=1))",
    ]
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(notebook, allow_errors=True, timeout=120, resources={"metadata": {"path": str(desk)}}).execute()
    html, errors = [], []
    for number, code in enumerate(notebook.cells):
        for output in code.outputs:
            assert output.output_type != "stream", (number, output)
            if output.output_type == "error":
                errors.append((number, output.traceback))
            else:
                html.append((number, output.data["text/html"]))
                assert output.data["text/plain"]
    assert [number for number, _ in html] == [1, 2, 3, 4, 5, 6, 7]
    shown = dict(html)
    assert shown[1].count("<svg") == 2
    assert "2 of 4 numbers of the result are wrong" in shown[1]
    assert "&lt;" in shown[4]
    assert "<b>" not in shown[4]
    assert "receiver t" in shown[4]
    assert [number for number, _ in errors] == [1, 5, 7]
    assert errors[0][1] == [
        "CheckFailed: f: 1 of 1 examples fail\n2 of 4 numbers of the result are wrong, the first in row 0."
    ]
    assert errors[2][1] == ["CheckFailed: f: not answered yet"]
