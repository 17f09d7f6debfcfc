"""check and case: what a student reads after running the visible examples."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from autograder import case, check
from autograder.desk.check import CheckFailed


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRADER_LANGUAGE", "en")


def report(capsys: pytest.CaptureFixture[str], fn: Callable[..., Any], *cases: Any) -> str:
    """What check prints, whether it fails or not. Nothing may go to stderr: nbgrader would give 0 points for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with contextlib.suppress(CheckFailed):
            check(fn, *cases)
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize(
    ("result", "gives"),
    [
        (torch.tensor([[1.0, 0.0], [0.5, 0.5]]), [[1.0, 0.0], [1 / 2, 1 / 2]]),
        (torch.tensor([1 / 3, 1.0], dtype=torch.float32), [1 / 3, 1.0]),
        (torch.tensor([1 / 3, 1.0], dtype=torch.float16), [1 / 3, 1.0]),
        (torch.tensor([[True, False]]), [[True, False]]),
        (torch.tensor([3, 4]), [3, 4]),
        (torch.tensor([3, 4], dtype=torch.int32), [3, 4]),
        ([torch.tensor([0.5]), torch.tensor(5.0)], ([0.5], 5.0)),
        (torch.tensor([5.0]), 5),
        (5, 5.0),
        (True, True),
        (torch.tensor([1.0], requires_grad=True), [1.0]),
        (torch.tensor([float("nan"), float("inf")]), [float("nan"), float("inf")]),
        (torch.tensor([1.0]), torch.tensor([1.0])),
        ("abc", "abc"),
    ],
)
def test_right_results_pass(result: Any, gives: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(capsys, lambda: result, case(gives=gives)).startswith("<lambda>: all 1 examples pass")


@pytest.mark.parametrize(
    ("result", "gives", "says"),
    [
        (
            torch.tensor([[1.0, 0.0], [0.4, 0.6]]),
            [[1.0, 0.0], [0.5, 0.5]],
            "2 of 4 numbers of the result are wrong, the first in row 1.",
        ),
        (
            torch.tensor([[1.0, 0.0], [0.4, 0.6]]),
            [[1.0, 0.0], [0.5, 0.5]],
            "expected: [0.5, 0.5]\n      yours: [0.4, 0.6]",
        ),
        (torch.zeros(2, 3, 1), [[[0.0]] * 3, [[0.0], [0.0], [1.0]]], "the first in row [1, 2]"),
        (torch.zeros(2, 3), [[0.0, 0.0]], "The result should have shape (1, 2), got (2, 3)."),
        (torch.zeros(2), [False, False], "The result should have dtype bool, got float32."),
        (torch.zeros(2), [0, 0], "The result should have an integer dtype, got float32."),
        (torch.zeros(2, dtype=torch.int64), [0.0, 0.0], "The result should have a floating-point dtype, got int64."),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), "The result should have dtype float64, got float32."),
        (torch.tensor([1.0, float("nan")]), [1.0, 2.0], "The result contains NaN, the first at index 1."),
        (torch.tensor([1 / 3]).double(), [1 / 3], "expected: [0.3333333333]\n      yours: [0.3333333433]"),
        (torch.arange(20.0), [*map(float, range(19)), 0.0], "yours: […, 12, 13, 14, 15, 16, 17, 18, 19]"),
        (None, [1.0], "The result is None: does the function end with a return?"),
        ([1.0, 2.0], [1.0, 2.0], "should be a tensor of shape (2,), got [1.0, 2.0] (list)"),
        (torch.zeros(2), ([0.0], 1.0), "The result should be 2 values, got [0, 0] (float32)."),
        ((torch.zeros(1), 2.0), ([0.0], 1.0), "Return value 1 should be 1, got 2."),
        (4.0, 5.0, "The result should be 5, got 4."),
        (1, True, "The result should be bool, got 1."),
        (False, True, "The result should be True, got False."),
        (torch.zeros(2), 1.0, "The result should be a number, got [0, 0] (float32)."),
    ],
)
def test_wrong_results_say_what_was_expected_and_what_came(
    result: Any, gives: Any, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = report(capsys, lambda: result, case(gives=gives))
    assert "1 of 1 examples fail" in said
    assert says in said


def test_stub_is_not_answered_yet(capsys: pytest.CaptureFixture[str]) -> None:
    def stub(x: int) -> None:
        raise NotImplementedError

    assert report(capsys, stub, case(1, gives=1), case(2, raises=RuntimeError)) == "stub: not answered yet\n"


def test_exception_shows_the_line_of_the_student(capsys: pytest.CaptureFixture[str]) -> None:
    def product(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    said = report(capsys, product, case(torch.zeros(2, 3), gives=[1.0]))
    assert "It raised RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)" in said
    assert ": return x @ x" in said
    assert "torch/" not in said


def test_expected_exception(capsys: pytest.CaptureFixture[str]) -> None:
    def picky(x: int) -> int:
        if x > 3:
            raise ValueError(x)
        return x

    assert "all 1 examples pass" in report(capsys, picky, case(4, raises=ValueError))
    assert "It should raise ValueError, but returned 2." in report(capsys, picky, case(2, raises=ValueError))
    assert "It raised ValueError: 4" in report(capsys, picky, case(4, raises=KeyError))


def test_property_is_said_in_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    good = case(2.0, satisfies=lambda y: y > 0, says="positive")
    assert "✓ positive" in report(capsys, lambda x: x, good)
    said = report(capsys, lambda x: -x, good)
    assert "✗ positive\n      This does not hold.\n      yours: -2.0" in said
    unusable = report(capsys, lambda x: None, good)
    assert "The check could not use this result." in unusable
    assert "TypeError" in unusable


@pytest.mark.parametrize(
    "change", [lambda x: x.add_(1), lambda x: x.masked_fill_(x == 0, 1), lambda x: x.fill_(float("nan"))]
)
def test_changed_argument_is_named(change: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    def careless(scores: torch.Tensor) -> float:
        change(scores)
        return 1.0

    given = torch.zeros(2)
    said = report(capsys, careless, case(given, gives=1.0), case(given, gives=1.0))
    assert said.count("It changed the scores that was passed in") == 2
    assert torch.equal(given, torch.zeros(2))


def test_nan_in_an_argument_is_no_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert "all 1 examples pass" in report(capsys, lambda x: 1.0, case(torch.tensor([float("nan")]), gives=1.0))


def test_warnings_are_part_of_the_report_not_of_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    def warns(x: int) -> int:
        warnings.warn("deprecated thing", stacklevel=1)
        return x

    assert "warning: deprecated thing" in report(capsys, warns, case(1, gives=1))


def test_class_is_made_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    def parameters(head: torch.nn.Module) -> bool:
        return sum(p.numel() for p in head.parameters()) == 12

    assert "Linear: all 1 examples pass" in report(capsys, torch.nn.Linear, case(3, 3, satisfies=parameters, says="12"))


def test_failing_check_raises_one_short_error() -> None:
    with pytest.raises(CheckFailed, match=r"f: 1 of 2 examples fail\nThe result should be 3, got 2.") as caught:
        _named(case(1, gives=1), case(2, gives=3))
    assert isinstance(caught.value, AssertionError)
    assert caught.value._render_traceback_() == [f"CheckFailed: {caught.value}"]


def _named(*cases: Any) -> None:
    def f(x: int) -> int:
        return x

    check(f, *cases)


def test_wrong_use_is_said_plainly() -> None:
    with pytest.raises(TypeError, match="exactly one of gives=, raises= and satisfies="):
        case(1)
    with pytest.raises(TypeError, match="exactly one"):
        case(1, gives=1, raises=ValueError)
    with pytest.raises(TypeError, match=r"write case\(...\) around"):
        check(_named, 3)  # type: ignore[arg-type]
    with pytest.raises(CheckFailed, match="takes your function or class first, got 3"):
        check(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "says"), [("zh", "还没有作答"), ("en", "not answered yet"), ("", "还没有作答 / not answered yet")]
)
def test_language_is_the_one_asked_for_or_both(
    asked: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stub() -> None:
        raise NotImplementedError

    monkeypatch.setenv("AUTOGRADER_LANGUAGE", asked)
    assert report(capsys, stub, case(gives=1)) == f"stub: {says}\n"


def test_importing_autograder_loads_neither_torch_nor_the_tools() -> None:
    code = (
        "import sys, autograder; assert 'torch' not in sys.modules; assert 'autograder.desk' not in sys.modules;"
        "assert set(autograder.__all__) <= set(dir(autograder));"
        "import sys; sys.modules.update(dict.fromkeys(['numpy', 'IPython', 'pydantic', 'jinja2', 'rich', 'typer', 'nbformat']));"
        "from autograder import case, check, detect_leaks, hint, show_weights, status"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_unknown_name_says_what_there_is() -> None:
    import autograder

    with pytest.raises(AttributeError, match="a notebook finds case, check, detect_leaks"):
        autograder.chekc  # noqa: B018
