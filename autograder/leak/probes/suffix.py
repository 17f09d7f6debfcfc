"""Whole-suffix replacement at every cut: the probe that finds most leaks.

Everything from a cut on is replaced; the rows before it must stay bitwise equal.
"""

from __future__ import annotations

from dataclasses import replace

from autograder.leak.bench import Bench
from autograder.leak.contract import Contract
from autograder.leak.probes.replacement import leak
from autograder.leak.setting import Finding, Setting
from autograder.leak.stage import Stage

EVERY_CUT = 64  # beyond this length a sample of cuts: each costs a forward pass
SOME_CUTS = 12


def suffix(bench: Bench, stage: Stage, name: str, scale: float, most: int = EVERY_CUT) -> Finding | None:
    """Replace the suffix of one input at every cut, or at ``most`` cuts spread over the sequence."""
    length, rows, offset = bench.inputs.length(stage.values, name), len(stage.base()), bench.offset(stage, name)
    cuts = spread(max(0, offset + 1), length, most)
    forbidden = Contract.forbidden_suffixes(cuts, rows, offset)

    def again(smaller: Setting) -> Finding | None:
        return suffix(bench, bench.stage(replace(smaller, scale=1.0)), name, smaller.scale)

    return leak(bench, stage, name, scale, [(cut, length) for cut in cuts], forbidden, again)


def spread(first: int, stop: int, most: int) -> list[int]:
    """All of range(first, stop), or ``most`` of them: both ends, and the rest evenly spread."""
    everything = range(first, stop)
    if len(everything) <= most:
        return list(everything)
    return sorted({first + round(i * (stop - 1 - first) / (most - 1)) for i in range(most)})
