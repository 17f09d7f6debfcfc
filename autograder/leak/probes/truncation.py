"""Prefix truncation: are the rows of a prefix the same when nothing follows it?

The only look at code that knows the length, or counts positions from the end. Calls of different shapes round
differently, so this one needs a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from autograder.leak.bench import Bench
from autograder.leak.compare import compare
from autograder.leak.setting import Finding, Setting, Witness
from autograder.leak.subject import Failed
from autograder.text import Text

TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3}  # relative; anything coarser:
COARSE = 5e-2

SEEN = Text(
    zh="把序列从 {T} 截到 {n} 个位置，第 {t} 行变了 {size:.3g}，尽管它的过去没有变。",
    en="Cutting the sequence from {T} to {n} positions moved row t={t} by {size:.3g}, though its past is the same.",
)
MEANING = Text(
    zh="结果随总长度变化。常见原因：除以 T 而不是 t+1，位置表取了第 T 行（[:, T] 而不是 [:, :T]），或从末尾数位置。",
    en="Rows depend on the total length. Usual cause: dividing by T instead of t+1, a position table read at T "
    "([:, T] instead of [:, :T]), or positions counted from the end.",
)


def prefix(bench: Bench, setting: Setting, lengths: Iterable[int]) -> Finding | None:
    """Compare f(x[:n]) with f(x)[:n] for each shorter length n; the largest difference above rounding."""
    if setting.mode in bench.noisy or not bench.inputs.truncatable:
        return None
    stage = bench.stage(setting)
    whole = stage.base()
    tolerance = TOLERANCE.get(whole.dtype, COARSE) if whole.is_floating_point() else 0.0
    worst: Finding | None = None
    for n in lengths:
        kept = len(whole) - (setting.T - n)
        tried = []
        for keep in ((), bench.inputs.exempt) if bench.inputs.exempt else ((),):  # rows may see all of a memory
            values = bench.inputs.truncate(stage.values, setting.T - n, keep)
            try:
                rows = stage.rows(values)
            except Failed:  # the length sweep speaks about lengths that fail
                continue
            if len(rows) == kept:
                sizes, relative, _ = compare(whole[:kept], rows).amax(1).unbind(-1)  # each (kept,)
                tried.append((torch.where(relative > tolerance, sizes, 0.0), values, rows))
        if not tried:
            continue
        sizes, values, rows = min(tried, key=lambda one: float(one[0].max()))
        size = float(sizes.max())
        if size and (worst is None or size > worst.size):
            t = int(sizes.argmax())
            worst = Finding(
                "length-dependent",
                setting,
                SEEN.format(T=setting.T, n=n, t=t, size=size),
                t=t,
                size=size,
                meaning=MEANING,
                witness=Witness(stage.values, values, whole.squeeze(1), rows.squeeze(1)),
                again=lambda smaller: prefix(bench, smaller, range(1, smaller.T)),
            )
    return worst
