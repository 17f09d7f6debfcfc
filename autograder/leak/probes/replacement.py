"""What the suffix and the single-position probe share: from moved rows to a confirmed, located finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from autograder.leak.bench import Bench
from autograder.leak.probes.gradient import steepest_position
from autograder.leak.probes.precision import is_numerical
from autograder.leak.setting import Finding, Setting, Witness
from autograder.leak.stage import Region, Stage
from autograder.text import Text

ONE_BY_ONE = 64  # up to this length every source position is tried, beyond it the gradient and a bisection point

SEEN = Text(
    zh="替换 {name} 的第 {j} 个位置，第 {t} 行变了 {size:.3g}；它不该看到这个位置。",
    en="Replacing position j={j} of {name} moved row t={t} by {size:.3g}; that row must not see it.",
)
SEEN_FROM = Text(
    zh="替换 {name} 从第 {j} 个起的所有位置，第 {t} 行变了 {size:.3g}；它不该看到这些位置。",
    en="Replacing {name} from position j={j} on moved row t={t} by {size:.3g}; that row must not see them.",
)
NUMERICAL = Text(
    zh="算法在数学上是因果的，但舍入或下溢让第 {t} 行随 {name} 的第 {j} 个位置变了 {size:.3g}。",
    en="Causal on paper, but rounding or underflow moved row t={t} by {size:.3g} with position j={j} of {name}.",
)
NUMERICAL_MEANING = Text(
    zh="未来的数参与了运算后才被消去。常见原因：softmax 之后才遮罩再重新归一化，或用 FFT 做卷积；数值很大时会失效。",
    en="Future numbers take part and are cancelled afterwards. Usual cause: masking after the softmax and normalising "
    "again, or a convolution by FFT; it fails for large numbers.",
)


def leak(
    bench: Bench,
    stage: Stage,
    name: str,
    scale: float,
    regions: Sequence[Region],
    forbidden: Tensor,
    again: Callable[[Setting], Finding | None],
) -> Finding | None:
    """Replace regions of one input; if rows move that must not (``forbidden``: R, T_out), confirm and locate it."""
    if not regions:
        return None
    moves = stage.moves(name, scale, regions)
    bad = moves.size.masked_fill(~forbidden, 0.0)  # (R, T_out)
    if not bad.any():
        return None
    finite = bad.masked_fill(bad.isinf(), 0.0)  # prefer a number over a NaN as evidence
    which = int((finite if finite.any() else bad).amax(1).argmax())
    region, past = regions[which], forbidden[which]
    plain = bench.stage(stage.setting) if stage.folded else stage
    sizes = plain.moves(name, scale, [region]).size[0].masked_fill(~past, 0.0)  # (T_out,)
    if not sizes.any():
        if not stage.folded:
            return None
        return _only_in_large_batches(bench, stage, name, scale, region, past, len(regions), again)
    numerical = is_numerical(bench, plain, name, scale, regions, forbidden, which)
    moved = int(sizes.masked_fill(sizes.isinf(), 1e-300).argmax())
    row, column, size, one = _locate(bench, plain, name, scale, region, past, moved, float(sizes[moved]))
    seen = NUMERICAL if numerical else SEEN if one else SEEN_FROM
    values = plain.replaced(name, scale, (column, column + 1) if one else (column, region[1]))
    return Finding(
        "numerical-leak" if numerical else "leaks",
        replace(stage.setting, scale=scale),
        seen.format(name=name, t=row, j=column, size=size),
        input=name,
        t=row,
        j=column,
        size=size,
        meaning=NUMERICAL_MEANING if numerical else None,
        witness=Witness(plain.values, values, plain.base().squeeze(1), plain.rows(values).squeeze(1)),
        again=again,
    )


def _only_in_large_batches(
    bench: Bench,
    stage: Stage,
    name: str,
    scale: float,
    region: Region,
    past: Tensor,
    copies: int,
    again: Callable[[Setting], Finding | None],
) -> Finding | None:
    """Seen when folded but not at the setting's own batch size: look once at a plain batch of the folded size."""
    large = bench.stage(replace(stage.setting, B=stage.setting.B * copies))
    return leak(bench, large, name, scale, [region], past[None], again)


def _locate(
    bench: Bench, stage: Stage, name: str, scale: float, region: Region, past: Tensor, moved: int, size: float
) -> tuple[int, int, float, bool]:
    """The row and the single position that move most, or the row and the start of the region that does it jointly."""
    start, stop = region
    if stop - start == 1:
        return moved, start, size, True
    if len(past) <= ONE_BY_ONE:
        candidates = list(range(start, stop))
    else:
        guess = steepest_position(bench, stage, name, moved, start)
        candidates = [_last_start(stage, name, scale, region, moved)] if guess is None else [guess]
    single = stage.moves(name, scale, [(j, j + 1) for j in candidates]).size.masked_fill(~past, 0.0)  # (n, T_out)
    single = single.masked_fill(single.isinf(), 1e-300)
    if single.any():
        which, row = divmod(int(single.argmax()), single.size(1))
        return row, candidates[which], float(single[which, row]), True
    return moved, start, size, False


def _last_start(stage: Stage, name: str, scale: float, region: Region, row: int) -> int:
    """The latest start from which replacing everything still moves the row, by bisection."""
    low, high = region
    while high - low > 1:
        middle = (low + high) // 2
        if stage.moves(name, scale, [(middle, region[1])]).size[0, row] > 0:
            low = middle
        else:
            high = middle
    return low
