"""Precision: is a change in the past real, or rounding and underflow of an algorithm that is causal on paper?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from autograder.leak.bench import Bench
from autograder.leak.compare import rounding
from autograder.leak.setting import Setting
from autograder.leak.stage import Region, Stage
from autograder.leak.subject import Failed

A_FEW, MANY = 64, 1e6  # rounding steps: a float64 change below the first is rounding, above the second it is real
SHRINKS = 1e-6  # rounding shrinks by 2e-9 from float32 to float64, a real dependence does not shrink
LARGER = 4.0
NO_ROUNDING = 0.03  # a relative change above this is none even in bfloat16


def is_numerical(
    bench: Bench, stage: Stage, name: str, scale: float, regions: Sequence[Region], forbidden: Tensor, which: int
) -> bool:
    """Whether the rows forbidden (R, T_out) to move did so by rounding or underflow only; ``which`` moved most.

    Three signs: the change all but vanishes in higher precision; it is a rounding step and there is no higher
    precision to ask; or it shows for large numbers only, and there (or at numbers four times as large) the rows in
    question turn into NaN or infinity.
    """
    setting, past = stage.setting, forbidden[which]
    moves = stage.moves(name, scale, [regions[which]])
    relative = float(moves.relative[0][past].max())
    large = scale > 1 or setting.inputs_scale > 1
    if large and bool(moves.broken[0][past].any()):
        return True
    base = stage.base()
    step = rounding(base)
    double = base.dtype is torch.float64
    if not base.is_floating_point() or (double and relative > MANY * step):
        return large and _breaks(bench, setting, name, scale, regions[which], past)
    if relative < A_FEW * step and double:
        return True
    other = torch.float32 if double else torch.float64
    again = (
        None
        if step > torch.finfo(base.dtype).eps
        else _relative(bench, setting, other, name, scale, regions, forbidden)
    )
    lower, higher = (again, relative) if double else (relative, again)
    if lower is None or higher is None:
        return relative < min(1e3 * step, NO_ROUNDING)
    return higher <= SHRINKS * lower or (large and _breaks(bench, setting, name, scale, regions[which], past))


def _relative(
    bench: Bench,
    setting: Setting,
    dtype: torch.dtype,
    name: str,
    scale: float,
    regions: Sequence[Region],
    forbidden: Tensor,
) -> float | None:
    """The largest relative change with everything in another precision; None if the code does not run in it."""
    try:
        stage = bench.stage(replace(setting, dtype=dtype), folded=True)
        if stage.base().dtype is not dtype:
            return None
        return float(stage.moves(name, scale, regions).relative.masked_fill(~forbidden, 0.0).max())
    except Failed:
        return None


def _breaks(bench: Bench, setting: Setting, name: str, scale: float, region: Region, past: Tensor) -> bool:
    """Whether the rows turn into NaN or infinity for numbers four times as large."""
    if scale > 1:
        scale *= LARGER
    else:
        setting = replace(setting, inputs_scale=setting.inputs_scale * LARGER)
    try:
        return bool(bench.stage(setting).moves(name, scale, [region]).broken[0][past].any())
    except Failed:
        return False
