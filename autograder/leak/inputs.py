"""The inputs of the probed function: drawing them, finding their axes, replacing part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from autograder.leak.setting import Setting

Values = dict[str, Any]
Factory = Callable[[int, int, torch.Generator], Mapping[str, Any]]


class Inputs:
    """Draws inputs of any B and T and knows which axis of each is time and which is the batch.

    The axes are read off by drawing twice: an axis that grows with B is the batch axis, one that grows with T is time.
    ``time_dim`` decides where several grow. A tensor with no growing axis (a weight) or with two (a mask) has no time
    axis unless it is named in ``time_dim``.

    Raises ValueError when the factory fails, returns something else than a dict, or does not follow T.
    """

    def __init__(
        self,
        factory: Factory,
        time_dim: int | Mapping[str, int | None],
        causal_inputs: Iterable[str] | None,
        B: int,
        T: int,
        seed: int,
    ) -> None:
        self.factory = factory
        small, wide, long = (self.draw(Setting(B=b, T=t, seed=seed)) for b, t in ((B, T), (B + 1, T), (B, T + 1)))
        self.tensors = [name for name, value in small.items() if isinstance(value, Tensor)]
        self.batch: dict[str, int | None] = {}
        self.growing: dict[str, list[int]] = {}  # every axis that follows T
        self.time: dict[str, int | None] = {}
        for name in self.tensors:
            grows_B = [a for a, (m, n) in enumerate(zip(small[name].shape, wide[name].shape, strict=True)) if m != n]
            self.batch[name] = grows_B[0] if grows_B else None
            grows_T = [a for a, (m, n) in enumerate(zip(small[name].shape, long[name].shape, strict=True)) if m != n]
            self.growing[name] = grows_T
            self.time[name] = _time_axis(name, small[name].dim(), grows_T, time_dim)
        plain = [name for name in small if name not in self.tensors]
        self.truncatable = all(small[name] == long.get(name) for name in plain)  # no input states T itself
        with_time = [name for name in self.tensors if self.time[name] is not None]
        if causal_inputs is None:  # a boolean mask describes the structure of the input: it is not part of the past
            self.causal = [name for name in with_time if small[name].dtype is not torch.bool]
        else:
            self.causal = list(causal_inputs)
            if unknown := [name for name in self.causal if name not in with_time]:
                raise ValueError(f"causal_inputs names {unknown}, but the inputs with a time axis are {with_time}")
        self.exempt = [n for n in with_time if n not in self.causal and small[n].dtype is not torch.bool]
        if not self.causal:
            shapes = {name: tuple(small[name].shape) for name in self.tensors}
            raise ValueError(f"no input has an axis that follows T (shapes at B={B}, T={T}: {shapes}); see time_dim=")

    def draw(self, setting: Setting, salt: int = 0) -> Values:
        """Fresh inputs for a setting; another ``salt`` gives other values of the same shapes."""
        seed = setting.seed * 1009 + salt
        torch.default_generator.manual_seed(seed)  # for factories that do not use rng
        try:
            values = dict(self.factory(setting.B, setting.T, torch.Generator().manual_seed(seed)))
        except Exception as error:
            raise ValueError(f"inputs(B={setting.B}, T={setting.T}, rng) failed: {error!r}") from error
        for name, value in values.items():
            if isinstance(value, Tensor):
                value = value.detach()
                if value.is_floating_point():
                    value = value.to(setting.dtype or value.dtype)
                    if setting.inputs_scale != 1 and name in self.causal:
                        value = value * setting.inputs_scale
                values[name] = value
        return values

    def length(self, values: Values, name: str) -> int:
        """How many positions this input has."""
        return int(values[name].size(self.time[name]))

    def fresh(self, setting: Setting, values: Values, name: str, scale: float) -> Tensor:
        """New values for one input, none equal to the old ones: numbers times ``scale``, tokens simply others."""
        old: Tensor = values[name]
        new: Tensor = self.draw(setting, salt=1 + int(scale))[name]
        if old.dtype is torch.bool:
            return ~old
        if old.is_floating_point() or old.is_complex():
            new = new * scale
            return torch.where(new == old, old + 1, new) if torch.equal(new, old) else new
        if scale == 0:
            new = torch.zeros_like(old)
        pool = torch.tensor(sorted({*old.flatten().tolist(), *new.flatten().tolist()}), dtype=old.dtype)
        other = pool[(torch.searchsorted(pool, new) + 1) % len(pool)]
        return torch.where(new == old, other, new)

    def fold(self, values: Values, n: int) -> Values:
        """``n`` copies of the batch behind each other: sample b of copy i is at i * B + b."""
        if n == 1:
            return values
        axes = {name: axis for name, axis in self.batch.items() if axis is not None}
        return {
            name: torch.cat([value] * n, dim=axes[name]) if name in axes else value for name, value in values.items()
        }

    def truncate(self, values: Values, n: int, keep: Iterable[str] = ()) -> Values:
        """The same inputs with the last ``n`` positions cut off every axis that follows T, but for those to keep."""
        cut = dict(values)
        for name in self.tensors:
            for axis in self.growing[name] if name not in keep else ():
                cut[name] = cut[name].narrow(axis, 0, cut[name].size(axis) - n).clone()
        return cut


def _time_axis(name: str, ndim: int, growing: list[int], stated: int | Mapping[str, int | None]) -> int | None:
    """The time axis of one input: as stated if it follows T, else the only one that does."""
    if isinstance(stated, Mapping) and name in stated:
        axis = stated[name]
        if axis is None:
            return None
        if axis % ndim not in growing:
            raise ValueError(f"time_dim says {axis} for {name!r}, but only the axes {growing} of it follow T")
        return axis % ndim
    if len(growing) != 1:
        return None
    return growing[0]
