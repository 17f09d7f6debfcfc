"""What a row may depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Expect = Literal["causal", "strictly-causal", "none"]


@dataclass(frozen=True)
class Contract:
    """Row t may depend on position j of an input if j <= t + offset.

    The offset is 0, or ``diagonal`` for inputs longer than the output (cached keys ahead of the queries), less one
    for "strictly-causal". If no input is longer, ``diagonal`` holds for all: a stated look-ahead.
    """

    expect: Expect
    diagonal: int | Mapping[str, int]

    def __post_init__(self) -> None:
        if self.expect not in ("causal", "strictly-causal", "none"):
            raise ValueError(f'expect is "causal", "strictly-causal" or "none", got {self.expect!r}')

    def offset(self, name: str, lengths: Mapping[str, int], rows: int) -> int:
        """The offset for one input, from the lengths of all inputs and the number of rows."""
        strict = 1 if self.expect == "strictly-causal" else 0
        if isinstance(self.diagonal, Mapping):
            return self.diagonal.get(name, 0) - strict
        longer = [n for n, length in lengths.items() if length > rows]
        return (self.diagonal if not longer or name in longer else 0) - strict

    @staticmethod
    def forbidden_suffixes(cuts: list[int], rows: int, offset: int) -> Tensor:
        """(cuts, rows) bool: row t must not move when everything from the cut on is replaced."""
        return torch.arange(rows)[None, :] + offset < torch.tensor(cuts)[:, None]

    @staticmethod
    def forbidden(rows: int, length: int, offset: int) -> Tensor:
        """(rows, length) bool: row t must not depend on position j."""
        return torch.arange(length)[None, :] > torch.arange(rows)[:, None] + offset
