"""How far two outputs are apart. Equal means bitwise equal, where a NaN equals a NaN."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.leak.subject import Failed


def compare(before: Tensor, after: Tensor) -> Tensor:
    """Row by row difference of two outputs (T_out, n, ...) as (T_out, n, 3): size, relative size, broken.

    The size is the largest absolute difference, infinite where a number became NaN or infinite; the relative size
    divides it by the largest finite number in either output.
    """
    if before.shape != after.shape:
        raise Failed(
            ValueError(f"the output's shape depends on values: {tuple(before.shape)} and {tuple(after.shape)}")
        )
    result = torch.zeros(*before.shape[:2], 3, dtype=torch.float64)
    if torch.equal(before, after):
        return result
    a, b = (x.flatten(2) if x.dim() > 2 else x[..., None] for x in (before, after))  # (T_out, n, features)
    a, b = a.double(), b.double()
    size = (a - b).abs().amax(-1)  # (T_out, n)
    if not bool(size.isfinite().all()):  # NaN or infinity somewhere: equal only to itself
        equal = (a == b) | ((a != a) & (b != b))
        size = torch.where(equal, 0.0, (a - b).abs()).nan_to_num(nan=torch.inf).amax(-1)
        result[..., 2] = (a.isfinite() != b.isfinite()).any(-1)
    largest = max(float(x.abs().nan_to_num(nan=0.0, posinf=0.0).max()) for x in (a, b))
    result[..., 0] = size
    result[..., 1] = size / max(largest, 1e-300)
    return result


def distance(before: Tensor, after: Tensor) -> float:
    """The largest absolute difference of two outputs; infinite if the shapes differ."""
    if before.shape != after.shape:
        return torch.inf
    return float(compare(before.reshape(1, 1, -1), after.reshape(1, 1, -1))[0, 0, 0])


def rounding(output: Tensor) -> float:
    """The relative rounding step of the arithmetic behind an output.

    That of its dtype, or of float32 if a float64 output holds nothing but float32 numbers (computed there, cast back).
    """
    if not output.is_floating_point():
        return 0.0
    if (
        output.dtype is torch.float64
        and len(set(output.flatten()[:4096].tolist())) > 16
        and torch.equal(output.float().double(), output)
    ):
        return torch.finfo(torch.float32).eps
    return torch.finfo(output.dtype).eps
