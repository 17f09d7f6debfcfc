"""Gradient: which position does a row see most? One backward pass names a candidate that a replacement confirms.

It only locates. A gradient misses what passes through detach, sign or a hard top-k, so it acquits nobody.
"""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.leak.bench import Bench
from autograder.leak.stage import Stage


def steepest_position(bench: Bench, stage: Stage, name: str, t: int, first: int) -> int | None:
    """The position j >= first of an input with the largest |d out[t] / d input[j]|, or None if there is none."""
    axis = bench.inputs.time[name]
    assert axis is not None
    row_axis = stage.row_axis()

    def project(output: Tensor) -> Tensor:
        row = output.select(row_axis, t)
        weights = torch.linspace(1, 2, row.numel(), dtype=row.dtype).reshape(row.shape)
        return (row * weights).sum()  # a plain sum is constant after a softmax or a layer norm

    gradient = bench.subject.gradient(stage.values, stage.setting, name, project)
    if gradient is None:
        return None
    by_position = gradient.abs().movedim(axis, 0).flatten(1).amax(1)[first:]  # (L - first,)
    return first + int(by_position.argmax()) if by_position.numel() and by_position.max() > 0 else None
