"""Where a probe looked, what it found there, and the tensors that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from autograder.text import Text

Mode = Literal["eval", "train", "function"]
Kind = Literal[
    "error",
    "nonfinite",
    "random",
    "stateful",
    "mutates-input",
    "mixes-batch",
    "leaks",
    "numerical-leak",
    "length-dependent",
    "ignores-past",
]

SEVERITY: tuple[Kind, ...] = (
    "nonfinite",
    "random",
    "stateful",
    "mutates-input",
    "mixes-batch",
    "leaks",
    "error",  # in some settings only; a function that never ran is put first by `Finding.rank`
    "numerical-leak",
    "length-dependent",
    "ignores-past",
)


@dataclass(frozen=True)
class Setting:
    """One point of the grid that is searched.

    ``mode`` is "function" for a callable without modules. ``scale`` multiplies the replaced values, ``inputs_scale``
    all floating-point inputs (large logits). ``grad`` says that autograd was recording, ``awake`` that parameters which
    are all zero (a gate that training has yet to open) hold random numbers instead.
    """

    T: int
    B: int = 2
    mode: Mode = "function"
    scale: float = 1.0
    inputs_scale: float = 1.0
    grad: bool = False
    seed: int = 0
    dtype: torch.dtype | None = None
    awake: bool = False

    @property
    def words(self) -> Text:
        """The setting for a reader, leaving out what is plain."""
        parts = [Text(f"T={self.T}", f"T={self.T}"), Text(f"B={self.B}", f"B={self.B}")]
        if self.mode != "function":
            parts.append(Text(zh=f"{self.mode} 模式", en=f"{self.mode} mode"))
        if self.scale != 1:
            parts.append(Text(zh=f"替换的数 ×{self.scale:g}", en=f"replaced values x{self.scale:g}"))
        if self.inputs_scale != 1:
            parts.append(Text(zh=f"所有输入 ×{self.inputs_scale:g}", en=f"all inputs x{self.inputs_scale:g}"))
        if self.grad:
            parts.append(Text(zh="autograd 记录中", en="autograd recording"))
        if self.awake:
            parts.append(Text(zh="全零的参数换成随机数", en="all-zero parameters at random values"))
        parts.append(Text(f"seed={self.seed}", f"seed={self.seed}"))
        return Text(zh="，".join(part.zh for part in parts), en=", ".join(part.en for part in parts))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "B": self.B,
            "T": self.T,
            "mode": self.mode,
            "scale": self.scale,
            "inputs_scale": self.inputs_scale,
            "grad": self.grad,
            "awake": self.awake,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Witness:
    """The tensors that show a finding: two sets of inputs and what came out for each (None: the call failed)."""

    inputs_before: Mapping[str, Any]
    inputs_after: Mapping[str, Any]
    output_before: Tensor | None
    output_after: Tensor | None


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: target row ``t`` moved by ``size`` when position ``j`` of ``input`` was replaced.

    Fields that make no sense for a kind are None. ``message`` says what was seen, ``meaning`` what such a pattern
    usually comes from.
    """

    kind: Kind
    setting: Setting
    message: Text
    input: str | None = None
    t: int | None = None
    j: int | None = None
    size: float = 0.0
    meaning: Text | None = None
    always: bool = False
    witness: Witness | None = field(default=None, repr=False, compare=False)
    again: Callable[[Setting], Finding | None] | None = field(default=None, repr=False, compare=False)

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key: worst first."""
        return (-1 if self.kind == "error" and self.always else SEVERITY.index(self.kind)), -self.size

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite size becomes the string "inf"."""
        return {
            "kind": self.kind,
            "input": self.input,
            "t": self.t,
            "j": self.j,
            "size": self.size if self.size != float("inf") else "inf",
            "setting": self.setting.as_dict(),
            "message": {"zh": self.message.zh, "en": self.message.en},
            "meaning": {"zh": self.meaning.zh, "en": self.meaning.en} if self.meaning else None,
        }
