"""Words for a mistake that nobody has named: the first property by which the student's result differs from the reference's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from autograder.exercises.tolerance import is_close, tolerance
from autograder.text import Text

Property = Callable[[torch.Tensor, torch.Tensor], Text | None]


def describe(got: Any, want: Any, swapped: Callable[[], Text | None] = lambda: None) -> Text | None:
    """The first property that fails, as a sentence; None where the values agree or are no tensors or numbers.

    ``got`` and ``want`` have one structure. ``swapped`` is asked whether exchanging two arguments explains the result.
    """
    if isinstance(want, (tuple, list)):
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            found = describe(g, w, swapped)
            if found is not None:
                return Text(zh=f"结果的第 {i + 1} 项：{found.zh}", en=f"Part {i + 1} of the result: {found.en}")
        return None
    if isinstance(want, float) and isinstance(got, (int, float)):
        got, want = torch.tensor(float(got), dtype=torch.float64), torch.tensor(want, dtype=torch.float64)
    if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor) or got.shape != want.shape:
        return None
    if is_close(got, want):
        return None
    if want.dtype == torch.bool:
        return _boolean(got, want)
    return swapped() or next(filter(None, (check(got.double(), want.double()) for check in _PROPERTIES)), None)


def swapped_arguments(args: tuple[Any, ...], got: Any, call: Callable[..., Any]) -> Text | None:
    """Whether ``call`` (the reference) gives ``got`` when two of the tensor arguments are exchanged."""
    for i, j in itertools.combinations(range(len(args)), 2):
        a, b = args[i], args[j]
        if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.shape == b.shape):
            continue
        exchanged = list(args)
        exchanged[i], exchanged[j] = b, a
        try:
            result = call(*exchanged)
        except Exception:  # the reference need not accept them that way round
            continue
        if isinstance(result, torch.Tensor) and isinstance(got, torch.Tensor) and is_close(got, result):
            return Text(
                zh=f"这是把第 {i + 1} 个和第 {j + 1} 个参数对调后的结果。",
                en=f"This is what comes out when arguments {i + 1} and {j + 1} are exchanged.",
            )
    return None


def _boolean(got: torch.Tensor, want: torch.Tensor) -> Text:
    if torch.equal(got, ~want):
        return Text(zh="真假正好相反。", en="True and False are the wrong way round.")
    wrong = int((got != want).sum())
    return Text(
        zh=f"{wrong}/{want.numel()} 个位置的真假不对。",
        en=f"{wrong} of {want.numel()} places are the wrong one of True and False.",
    )


def _future_weight(got: torch.Tensor, want: torch.Tensor) -> Text | None:
    if want.dim() < 2 or want.shape[-1] < 2 or want.shape[-1] != want.shape[-2]:
        return None
    future = torch.ones(want.shape[-2:], dtype=torch.bool).triu(1)  # (T, T)
    if bool((want[..., future] == 0).all()) and bool((got[..., future] != 0).any()):
        worst = float(got[..., future].abs().max())
        return Text(
            zh=f"未来的来源应当恰好得到 0，你的结果里最大是 {worst:.3g}。",
            en=f"Future sources should get exactly 0; the largest in your result is {worst:.3g}.",
        )
    return None


def _row_sums(got: torch.Tensor, want: torch.Tensor) -> Text | None:
    if want.dim() < 1 or want.shape[-1] < 2 or not _sums_to_one(want, -1) or _sums_to_one(got, -1):
        return None
    sums = got.sum(-1)
    found = Text(
        zh=f"每一行（最后一维）的和应为 1，你的在 {float(sums.min()):.3g} 到 {float(sums.max()):.3g} 之间。",
        en=f"Every row (last axis) should add up to 1; yours add up to between {float(sums.min()):.3g} and {float(sums.max()):.3g}.",
    )
    for axis in range(want.dim() - 1):
        if _sums_to_one(got, axis):
            found = Text(
                zh=f"{found.zh}加起来为 1 的是第 {axis} 维。", en=f"{found.en} It is axis {axis} that adds up to 1."
            )
            break
    return found


def _sums_to_one(value: torch.Tensor, axis: int) -> bool:
    sums = value.sum(axis)
    return bool(sums.isfinite().all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-5)


def _factor(got: torch.Tensor, want: torch.Tensor) -> Text | None:
    used = want.abs() > 1e-9
    if not bool(used.any()) or bool((got[~used].abs() > 1e-9).any()):
        return None
    ratio = got[used] / want[used]
    factor = float(ratio.median())
    if used.sum() < 2 or not torch.allclose(ratio, torch.full_like(ratio, factor), rtol=1e-4, atol=0.0):
        return None
    if factor == 0.0:
        return Text(zh="结果全是 0。", en="The result is 0 everywhere.")
    return Text(
        zh=f"每个数都是应有的 {factor:.4g} 倍：多了或少了一个常数因子。",
        en=f"Every number is {factor:.4g} times what it should be: a constant factor too many or too few.",
    )


def _offset(got: torch.Tensor, want: torch.Tensor) -> Text | None:
    apart = got - want
    if apart.numel() < 2 or not torch.allclose(apart, apart.flatten()[0].expand_as(apart), rtol=1e-4, atol=1e-12):
        return None
    offset = float(apart.flatten()[0])
    return Text(
        zh=f"每个数都差同一个常数 {offset:.4g}。", en=f"Every number is off by the same constant, {offset:.4g}."
    )


def _permuted_axes(got: torch.Tensor, want: torch.Tensor) -> Text | None:
    for i, j in itertools.combinations(range(want.dim()), 2):
        if want.shape[i] == want.shape[j] and _near(got.transpose(i, j), want):
            return Text(zh=f"第 {i} 维和第 {j} 维对调了。", en=f"Axes {i} and {j} are exchanged.")
    return None


def _reversed_axis(got: torch.Tensor, want: torch.Tensor) -> Text | None:
    for axis in range(want.dim()):
        if want.shape[axis] > 1 and _near(got.flip(axis), want):
            return Text(zh=f"沿第 {axis} 维的顺序是反的。", en=f"The order along axis {axis} is reversed.")
        if want.shape[axis] > 2 and any(_near(got.roll(k, axis), want) for k in (1, -1)):
            return Text(zh=f"沿第 {axis} 维错开了一位。", en=f"Along axis {axis} everything is shifted by one.")
    return None


def _precision(got: torch.Tensor, want: torch.Tensor) -> Text | None:
    worst = float((got - want).abs().max())
    if worst > 1e-3 * max(1.0, float(want.abs().max())):
        return None
    return Text(
        zh=f"几乎对了，但相差 {worst:.2g}，比舍入误差大：是否中途降低了精度，或多加了一个很小的量？",
        en=f"Nearly right, but off by {worst:.2g}, more than rounding: was precision lost on the way, or a small amount added?",
    )


def _where(got: torch.Tensor, want: torch.Tensor) -> Text | None:
    """Which rows are wrong, when some are right: the last but one axis is the receiver in this chapter, a vector's only axis is its own."""
    if want.dim() == 0:
        return Text(
            zh=f"得到 {float(got):.4g}，应为 {float(want):.4g}。",
            en=f"Got {float(got):.4g}, expected {float(want):.4g}.",
        )
    axis = max(want.dim() - 2, 0)
    apart = (got - want).abs().movedim(axis, 0).flatten(1) if want.dim() > 1 else (got - want).abs()[:, None]
    limit = tolerance(torch.float32, want.numel(), float(want.abs().max()))
    wrong = (~(apart.amax(1) <= limit)).nonzero().flatten().tolist() if apart.numel() else []
    if not wrong:
        return None
    if len(wrong) == apart.shape[0]:
        return Text(zh="每一行都不对。", en="Every row is wrong.")
    listed = ", ".join(map(str, wrong[:6])) + ("…" if len(wrong) > 6 else "")
    return Text(
        zh=f"第 {listed} 行不对，其余各行都对（从 0 数起）。",
        en=f"Rows {listed} are wrong, the others right (counting from 0).",
    )


def _near(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-5, atol=1e-6)


_PROPERTIES: tuple[Property, ...] = (
    _factor,
    _offset,
    _permuted_axes,
    _row_sums,
    _future_weight,
    _reversed_axis,
    _precision,
    _where,
)
