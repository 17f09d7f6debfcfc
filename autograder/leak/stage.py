"""One setting, its inputs and its outputs: replace a region of an input and see how far each row moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.leak.compare import compare
from autograder.leak.inputs import Inputs, Values
from autograder.leak.setting import Setting
from autograder.leak.subject import Failed, Subject

Region = tuple[int, int]  # positions start <= j < stop
ELEMENTS_PER_CALL, SCORES_PER_CALL = 1 << 21, 1 << 17  # inputs and (T, T) cells in one folded call: memory and cache


@dataclass(frozen=True)
class Moves:
    """How far each output row moved (R, T_out) for each of R replaced regions, and what that is compared with.

    ``relative`` divides by the largest finite output of the same call pair. ``broken`` marks rows that became, or
    stopped being, NaN or infinite.
    """

    size: Tensor
    relative: Tensor
    broken: Tensor


class Stage:
    """The probed function at one setting. ``folded`` puts all regions into the batch axis, one call for all.

    Folding is right only where samples do not influence each other; outputs are always compared at the same place
    of a call of the same shape, so a causal function gives bitwise equal rows.
    """

    def __init__(
        self, subject: Subject, inputs: Inputs, out_time_dim: int, setting: Setting, folded: bool = False
    ) -> None:
        self.subject, self.inputs, self.setting = subject, inputs, setting
        self.out_time_dim = out_time_dim
        self.values = inputs.draw(setting)
        self.folded = folded and any(axis is not None for axis in inputs.batch.values())
        self._bases: dict[int, Tensor] = {}
        self._fresh: dict[tuple[str, float], Tensor] = {}
        self._moves: dict[tuple[str, float, tuple[Region, ...]], Moves] = {}

    def base(self, n: int = 1) -> Tensor:
        """The output (T_out, n, ...) for n folded copies of the unchanged inputs; n = 1 is the plain call."""
        if n not in self._bases:
            self._bases[n] = self.rows(self.inputs.fold(self.values, n), n)
        return self._bases[n]

    def rows(self, values: Values, n: int = 1) -> Tensor:
        """Call the function and bring its output to (T_out, n, everything else).

        Raises Failed when the function does, or when the output has no axis of rows.
        """
        output = self.subject.run(values, self.setting)
        axis = self._row_axis(output, values)
        rows = output.movedim(axis, 0)
        rows = torch.view_as_real(rows) if rows.is_complex() else rows
        batch = self._batch_axis(rows, self.setting.B * n)
        if n == 1:
            return rows.unsqueeze(1)
        if batch is None:
            raise Failed(
                ValueError(f"output of shape {tuple(output.shape)} has no axis of {self.setting.B * n} samples")
            )
        rows = rows.movedim(batch, 1)
        return rows.reshape(len(rows), n, self.setting.B, *rows.shape[2:])

    def by_sample(self, rows: Tensor) -> Tensor | None:
        """Rows (T_out, 1, ...) of a plain call as (B, T_out, ...), or None if no axis of them follows the batch."""
        rows = rows.squeeze(1)
        axis = self._batch_axis(rows, self.setting.B)
        return None if axis is None else rows.movedim(axis, 0)

    def fresh(self, name: str, scale: float) -> Tensor:
        """The values that replace those of one input."""
        if (name, scale) not in self._fresh:
            self._fresh[name, scale] = self.inputs.fresh(self.setting, self.values, name, scale)
        return self._fresh[name, scale]

    def replaced(self, name: str, scale: float, region: Region) -> Values:
        """The inputs with the positions of a region of one input replaced."""
        axis = self.inputs.time[name]
        assert axis is not None
        changed = self.values[name].clone()
        changed.narrow(axis, region[0], region[1] - region[0]).copy_(
            self.fresh(name, scale).narrow(axis, region[0], region[1] - region[0])
        )
        return {**self.values, name: changed}

    def moves(self, name: str, scale: float, regions: Sequence[Region]) -> Moves:
        """Replace each region in turn and measure every row; measured once per stage."""
        key = (name, scale, tuple(regions))
        if key not in self._moves:
            self._moves[key] = self._measure(name, scale, regions)
        return self._moves[key]

    def _measure(self, name: str, scale: float, regions: Sequence[Region]) -> Moves:
        parts = []
        if not self.folded:
            base = self.base()
            for region in regions:
                parts.append(compare(base, self.rows(self.replaced(name, scale, region))))
        else:
            per_copy = sum(self.values[n].numel() for n in self.inputs.tensors if self.inputs.batch[n] is not None)
            room = min(ELEMENTS_PER_CALL // max(1, per_copy), SCORES_PER_CALL // (self.setting.B * self.setting.T**2))
            size = max(1, min(len(regions), room))
            for first in range(0, len(regions), size):
                chunk = list(regions[first : first + size])
                copies = [self.replaced(name, scale, region)[name] for region in chunk]
                n = len(copies)
                values = self.inputs.fold(self.values, n)
                batch = self.inputs.batch[name]
                if batch is None:
                    raise Failed(ValueError(f"input {name!r} has no batch axis"))
                values[name] = torch.cat(copies, dim=batch)
                parts.append(compare(self.base(n), self.rows(values, n)))
        size_, relative, broken = torch.cat(parts, dim=1).unbind(-1)  # each (T_out, R)
        return Moves(size_.T, relative.T, broken.T.bool())

    def row_axis(self) -> int:
        """Which axis of the function's own output holds the rows."""
        return self._row_axis(self.subject.run(self.values, self.setting), self.values)

    def _row_axis(self, output: Tensor, values: Values) -> int:
        """The stated row axis if its length is that of an input, else the only axis whose length is."""
        lengths = {self.inputs.length(values, name) for name in self.inputs.causal}
        stated = self.out_time_dim
        if -output.dim() <= stated < output.dim() and output.size(stated) in lengths:
            return stated % output.dim()
        fitting = [axis for axis, size in enumerate(output.shape) if size in lengths]
        if len(fitting) == 1:
            return fitting[0]
        raise Failed(
            TypeError(
                f"expected an output with one row per position (length {sorted(lengths)} on axis {stated}), "
                f"got shape {tuple(output.shape)}"
            )
        )

    def _batch_axis(self, rows: Tensor, size: int) -> int | None:
        """The first axis after the rows that has one entry per sample."""
        return next((axis for axis in range(1, rows.dim()) if rows.size(axis) == size), None)
