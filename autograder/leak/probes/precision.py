"""Precision: is a change in the past real, or rounding and underflow of an algorithm that is causal on paper?"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from autograder.leak.bench import Bench
from autograder.leak.compare import rounding
from autograder.leak.setting import Setting
from autograder.leak.stage import Region, Stage
from autograder.leak.subject import Failed

FAR_ABOVE = 1e6  # a float64 change this many rounding steps in size needs no second look
SHRINKS = 1e-6  # rounding shrinks by 2e-9 from float32 to float64, a real dependence does not shrink
LARGER = 4.0


def is_numerical(bench: Bench, stage: Stage, name: str, scale: float, region: Region, past: Tensor) -> bool:
    """Whether rows ``past`` (T_out, bool) moved by rounding or underflow only when the region was replaced.

    Three signs: the change all but vanishes in higher precision; it is a rounding step and there is no higher
    precision to ask; or it shows for large numbers only, and there (or at numbers four times as large) the rows in
    question turn into NaN or infinity.
    """
    setting = stage.setting
    moves = stage.moves(name, scale, [region])
    relative = float(moves.relative[0][past].max())
    large = scale > 1 or setting.inputs_scale > 1
    if large and bool(moves.broken[0][past].any()):
        return True
    base = stage.base()
    step = rounding(base)
    if base.is_floating_point() and not (step < 1e-12 and relative > FAR_ABOVE * step):
        lower, higher = relative, _relative(bench, setting, torch.float64, name, scale, region, past)
        if step < 1e-12:
            lower, higher = _relative(bench, setting, torch.float32, name, scale, region, past), relative
        if lower is None or higher is None or step > torch.finfo(base.dtype).eps:
            if relative < 1e3 * step:
                return True
        elif higher <= SHRINKS * lower:
            return True
    return large and _breaks(bench, setting, name, scale, region, past)


def _relative(
    bench: Bench, setting: Setting, dtype: torch.dtype, name: str, scale: float, region: Region, past: Tensor
) -> float | None:
    """The relative change with everything in another precision; None if the code does not run in it."""
    try:
        stage = bench.stage(replace(setting, dtype=dtype))
        if stage.base().dtype is not dtype:
            return None
        return float(stage.moves(name, scale, [region]).relative[0][past].max())
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
