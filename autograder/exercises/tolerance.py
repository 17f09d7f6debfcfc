"""How far two right answers may be apart: the one place where tolerances are written down."""

from __future__ import annotations

import math

import torch

# Room for another order of summation and for scores of a few hundred; measured on softmax, SDPA and prefix means, right answers
# stay below a hundredth of it, and the smallest wrong ones in the course (a fill of -20: 6e-9) are four orders above it.
_ULPS = {torch.float64: 4096.0, torch.float32: 512.0, torch.float16: 16.0, torch.bfloat16: 16.0}


def tolerance(dtype: torch.dtype, numel: int, scale: float) -> float:
    """Largest absolute difference that counts as rounding between two results of ``numel`` elements, the largest of size ``scale``.

    It grows with the square root of the size, as the rounding errors of independent sums do. Zero for dtypes that are not floating point.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    eps = torch.finfo(dtype).eps
    return eps * _ULPS.get(dtype, 512.0) * math.sqrt(max(numel, 16)) / 4 * max(1.0, scale)


def is_close(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype agree up to rounding; NaN agrees with NaN and infinity with itself."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.is_complex():
        return is_close(torch.view_as_real(got), torch.view_as_real(want))
    if not got.is_floating_point():
        return torch.equal(got, want)
    finite = want[want.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(got, want, rtol=0.0, atol=tolerance(want.dtype, want.numel(), scale), equal_nan=True)
