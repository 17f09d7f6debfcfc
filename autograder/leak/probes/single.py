"""Single positions: replace each position alone and see which rows move. The matrix of the report."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from autograder.leak.bench import Bench
from autograder.leak.contract import Contract
from autograder.leak.probes.replacement import leak
from autograder.leak.setting import Finding, Setting
from autograder.leak.stage import Stage


def matrix(stage: Stage, name: str, scale: float = 1.0) -> Tensor:
    """(T_out, L) sizes: [t, j] is how far row t moves when position j of one input is replaced."""
    length = stage.inputs.length(stage.values, name)
    return stage.moves(name, scale, [(j, j + 1) for j in range(length)]).size.T


def single(bench: Bench, stage: Stage, name: str, scale: float) -> Finding | None:
    """Replace each position alone; rows that must not see it must stay bitwise equal."""
    length, rows, offset = bench.inputs.length(stage.values, name), len(stage.base()), bench.offset(stage, name)
    forbidden = Contract.forbidden(rows, length, offset).T  # (L, T_out)

    def again(smaller: Setting) -> Finding | None:
        return single(bench, bench.stage(replace(smaller, scale=1.0)), name, smaller.scale)

    return leak(bench, stage, name, scale, [(j, j + 1) for j in range(length)], forbidden, again)


def joint(matrices: dict[str, Tensor]) -> Tensor:
    """The largest size over all inputs, padded to the longest."""
    rows, columns = (max(m.size(axis) for m in matrices.values()) for axis in (0, 1))
    result = torch.zeros(rows, columns, dtype=torch.float64)
    for one in matrices.values():
        result[: one.size(0), : one.size(1)] = torch.maximum(result[: one.size(0), : one.size(1)], one)
    return result
