"""Comparisons for hidden tests. Each failure says in both languages what was compared and how far it is off, never what the input was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from autograder.exercises.tolerance import is_close
from autograder.judge.faults import Mismatch
from autograder.text import Text, run_on

if TYPE_CHECKING:
    from autograder.leak import Report

_VALUE = Text(zh="数值", en="the values")


class Leaks(Mismatch):
    """The mask-leak detector's verdict is not the one that the exercise asks for."""

    def __init__(self, report: Report) -> None:
        super().__init__(Text(zh=report.text("zh"), en=report.text("en")))
        self.report = report


def close(got: Any, want: Any, what: Text | None = None) -> None:
    """Fail unless equal up to rounding (see :mod:`autograder.exercises.tolerance`). Tuples, lists, dicts and numbers are compared part by part."""
    named = what or _VALUE
    if isinstance(want, (tuple, list)) and isinstance(got, (tuple, list)) and len(got) == len(want):
        for g, w in zip(got, want, strict=True):
            close(g, w, what)
    elif isinstance(want, dict) and isinstance(got, dict) and set(got) == set(want):
        for key in want:
            close(got[key], want[key], what)
    elif isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor):
        if got.shape != want.shape or got.dtype != want.dtype:
            raise Mismatch(_structure(named, got, want))
        if not is_close(got, want):
            raise Mismatch(_distance(named, got, want))
    elif isinstance(want, float) and isinstance(got, (int, float)) and not isinstance(got, bool):
        close(torch.tensor(float(got), dtype=torch.float64), torch.tensor(want, dtype=torch.float64), what)
    elif type(got) is not type(want) or got != want:
        raise Mismatch(_differ(named))


def equal(got: torch.Tensor, want: torch.Tensor, what: Text | None = None) -> None:
    """Fail unless equal in shape, dtype and every bit of value (0.0 equals -0.0)."""
    if got.shape != want.shape or got.dtype != want.dtype:
        raise Mismatch(_structure(what or _VALUE, got, want))
    if not torch.equal(got, want):
        raise Mismatch(_distance(what or _VALUE, got, want))


def zero(got: torch.Tensor, what: Text | None = None) -> None:
    """Fail unless exactly zero everywhere."""
    worst = _size(got)
    if worst != 0.0:
        named = what or _VALUE
        raise Mismatch(
            Text(
                zh=f"{named.zh}应恰好为 0，最大的是 {worst:.3g}。",
                en=f"{named.en} should be exactly 0; the largest is {worst:.3g}.",
            )
        )


def differs(a: torch.Tensor, b: torch.Tensor, by: float = 0.0, what: Text | None = None) -> None:
    """Fail unless somewhere further apart than ``by``."""
    apart = _size(a.double() - b.double()) if a.shape == b.shape else float("inf")
    if not apart > by:
        named = what or _VALUE
        raise Mismatch(
            Text(
                zh=f"{named.zh}应当不同，但最大只差 {apart:.3g}。",
                en=f"{named.en} should differ, but they are at most {apart:.3g} apart.",
            )
        )


def that(condition: bool, what: Text) -> None:
    """Fail with ``what`` unless the condition holds."""
    if not condition:
        raise Mismatch(what)


def causal(fn: Callable[..., Any], inputs: Callable[..., dict[str, Any]], **options: Any) -> Report:
    """Fail unless the mask-leak detector finds ``fn(**inputs)`` causal; options are those of :func:`autograder.leak.detect`."""
    from autograder.leak import detect  # here: most hidden tests never need it

    report = detect(fn, inputs=inputs, **{"effort": "quick", **options})
    if report.verdict != "causal":
        raise Leaks(report)
    return report


def _size(difference: torch.Tensor) -> float:
    """The largest absolute value; NaN counts as infinitely large."""
    if difference.numel() == 0:
        return 0.0
    return float(difference.double().abs().nan_to_num(nan=float("inf"), posinf=float("inf")).max())


def _structure(what: Text, got: torch.Tensor, want: torch.Tensor) -> Text:
    came = f"{tuple(got.shape)} {str(got.dtype).removeprefix('torch.')}"
    expected = f"{tuple(want.shape)} {str(want.dtype).removeprefix('torch.')}"
    return Text(
        zh=run_on(what.zh, f"应为 {expected}，得到 {came}。"), en=f"{what.en} should be {expected}, got {came}."
    )


def _distance(what: Text, got: torch.Tensor, want: torch.Tensor) -> Text:
    if got.is_complex():
        got, want = torch.view_as_real(got), torch.view_as_real(want)
    apart = (got.double() - want.double()).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    wrong = int((got != want).sum()) if not got.is_floating_point() else int((apart > 0).sum())
    worst = float(apart.max())
    return Text(
        zh=run_on(what.zh, f"与应有的不同：{wrong}/{got.numel()} 个元素有差，最大相差 {worst:.3g}。"),
        en=f"{what.en}: {wrong} of {got.numel()} elements are not as expected, off by up to {worst:.3g}.",
    )


def _differ(what: Text) -> Text:
    return Text(zh=run_on(what.zh, "与应有的不同。"), en=f"{what.en}: not as expected.")
