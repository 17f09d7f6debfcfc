"""The external folder of cases: how to call each kind, and what its index says about it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FOLDER = Path(os.environ.get("AUTOGRADER_LEAK_CASES", Path(__file__).parents[2] / ".." / "shared" / "cases"))
C, H, D, VOCAB = 8, 2, 4, 11
AHEAD = 3  # cached keys ahead of the queries
DATA_KINDS = {"pairs", "windows", "pe"}  # not functions of a sequence: nothing to replace


@dataclass
class Call:
    """A function or module and how to call it."""

    fn: Callable[..., Any]
    inputs: Callable[[int, int, torch.Generator], dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)


def index() -> list[dict[str, Any]]:
    """The index, or an empty list where the folder is absent."""
    path = FOLDER / "index.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def leaks(case: dict[str, Any]) -> bool:
    """Whether the case leaks from the future."""
    return case["kind"] not in DATA_KINDS and (case["leaks"].startswith("yes") or bool(ways_in(case)))


def ways_in(case: dict[str, Any]) -> set[str]:
    """The inputs through which the index measured a leak."""
    return {key.split(":")[1] for key in (case["measured"] or {}).get("pairs_T8", {}) if ":" in key}


def named(case: dict[str, Any]) -> set[str]:
    """The inputs that the index names in words."""
    return set(re.findall(r"\b[qkvx]\b", case["path"]))


def load(case: dict[str, Any], dtype: torch.dtype = torch.float64) -> Call:
    """The case's function, with inputs of its kind."""
    kind = case["kind"]
    spec = importlib.util.spec_from_file_location(case["id"], FOLDER / f"{case['id']}.py")
    module = importlib.util.module_from_spec(spec)
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    fn = getattr(module, "attention", None) or module.model

    def rand(*shape: int, rng: torch.Generator) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=dtype)

    def qkv(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
        return {name: rand(B, H, T, D, rng=rng) for name in "qkv"}

    def positive(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
        return {name: value.abs() if name in "qk" else value for name, value in qkv(B, T, rng).items()}

    def padded(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
        left = torch.randint(0, max(1, T // 2), (B, 1), generator=rng) + torch.arange(B)[:, None] % 2
        return {**qkv(B, T, rng), "pad": torch.arange(T)[None] < left.clamp(max=T - 1)}

    def cached(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
        return {name: rand(B, H, T + (AHEAD if name in "kv" else 0), D, rng=rng) for name in "qkv"}

    def heads(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
        weights = {name: rand(C, C, rng=rng) for name in ("wq", "wk", "wv", "wo")}
        return {**weights, "x": rand(B, T, C, rng=rng), "n_head": H}

    if kind in ("sdpa", "relpos", "alibi", "lin"):
        return Call(fn, qkv)
    if kind == "linn":
        return Call(fn, positive)
    if kind == "pad":
        return Call(fn, padded, {"causal_inputs": ["q", "k", "v"]})
    if kind == "win":
        return Call(fn, lambda B, T, rng: {**qkv(B, T, rng), "window": 3})
    if kind == "prefix":
        return Call(fn, lambda B, T, rng: {**qkv(B, T, rng), "p": 3})
    if kind == "packed":
        return Call(fn, lambda B, T, rng: {**qkv(B, T, rng), "doc": torch.arange(T).expand(B, T) // 4})
    if kind.startswith("cache"):
        return Call(fn, cached, {"diagonal": AHEAD})
    if kind == "mha":
        return Call(fn, heads)
    if kind in ("ropeoff", "ropelong"):
        return Call(fn, lambda B, T, rng: {"x": rand(B, H, T, D, rng=rng)})
    if kind in ("mean", "peadd"):
        return Call(fn, lambda B, T, rng: {"x": rand(B, T, C, rng=rng)})
    if kind == "tok":
        return Call(fn(VOCAB).to(dtype), lambda B, T, rng: {"ids": torch.randint(VOCAB, (B, T), generator=rng)})
    if kind == "seq":
        return Call(fn(C).to(dtype), lambda B, T, rng: {"x": rand(B, T, C, rng=rng)})
    raise ValueError(f"no way to call a case of kind {kind!r}; add one to tests/leak/external.py")
