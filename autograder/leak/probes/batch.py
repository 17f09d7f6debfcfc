"""Batch independence: does one sample's output change when another sample's input does?"""

from __future__ import annotations

import itertools

from torch import Tensor

from autograder.leak.bench import Bench
from autograder.leak.compare import compare
from autograder.leak.setting import Finding, Setting, Witness
from autograder.leak.stage import Stage
from autograder.text import Text

SEEN = Text(
    zh="替换第 {other} 个样本的 {name} 后，第 {sample} 个样本的第 {t} 行变了 {size:.3g}。",
    en="Replacing {name} of sample {other} moved row t={t} of sample {sample} by {size:.3g}.",
)
MEANING = Text(
    zh="样本互相混在一起。常见原因：忘了 batch_first=True，softmax 或统计量取在批次轴上，掩码的批次轴广播到了头轴。",
    en="Samples mix. Usual cause: batch_first=True forgotten, a softmax or statistics taken over the batch axis, "
    "or a mask whose batch axis broadcasts onto the heads.",
)
MEANING_TRAIN = Text(
    zh="只在训练模式下混合样本。常见原因：BatchNorm 的统计量同时取自其他样本和其他位置。",
    en="Samples mix in train mode only. Usual cause: BatchNorm takes its statistics over other samples and positions.",
)


MOVED = Text(
    zh="把样本换到批次中的另一个位置，它的第 {t} 行变了 {size:.3g}。",
    en="Moving a sample to another place in the batch moved its row t={t} by {size:.3g}.",
)
MEANING_MOVED = Text(
    zh="结果取决于样本在批次里排第几。常见原因：位置编码按批次轴取（pe[:x.size(0)]），或把批次轴当成了时间轴。",
    en="Results depend on a sample's place in the batch. Usual cause: positional encodings indexed by the batch axis "
    "(pe[:x.size(0)]), or the batch axis taken for time.",
)
TOLERANCE = 1e-3  # relative: another place in the batch may round differently


def place_in_batch(bench: Bench, setting: Setting) -> Finding | None:
    """Shift all samples by one place; each must take its output along (up to rounding)."""
    stage = bench.stage(setting)
    base = stage.by_sample(stage.base())
    if base is None or setting.B < 2 or setting.mode in bench.noisy | bench.subject.fresh_each_call:
        return None  # fresh noise differs from place to place, whatever its source
    axes = {name: axis for name, axis in bench.inputs.batch.items() if axis is not None}
    values = {name: v.roll(1, axes[name]) if name in axes else v for name, v in stage.values.items()}
    rows = stage.rows(values)
    after = stage.by_sample(rows)
    if after is None or after.shape != base.shape:
        return None
    sizes, relative, _ = compare(base.roll(1, 0), after).unbind(-1)  # each (B, T_out)
    sizes = sizes.masked_fill(relative < TOLERANCE, 0.0).amax(0)
    size = float(sizes.max())
    if not size:
        return None
    return Finding(
        "mixes-batch",
        setting,
        MOVED.format(t=int(sizes.argmax()), size=size),
        t=int(sizes.argmax()),
        size=size,
        meaning=MEANING_MOVED,
        witness=Witness(stage.values, values, stage.base().squeeze(1), rows.squeeze(1)),
        again=lambda smaller: place_in_batch(bench, smaller),
    )


def other_samples(bench: Bench, setting: Setting, scales: tuple[float, ...] = (1.0, 50.0)) -> list[Finding]:
    """Replace the first, then the last sample of each input and compare all others, bitwise; one finding per input."""
    stage = bench.stage(setting)
    base = stage.by_sample(stage.base())
    if base is None or setting.B < 2:
        return []
    names = [name for name in bench.inputs.tensors if bench.inputs.batch[name] is not None]
    found = [_worst(bench, stage, base, name, scales) for name in names]
    return [finding for finding in found if finding is not None]


def _worst(bench: Bench, stage: Stage, base: Tensor, name: str, scales: tuple[float, ...]) -> Finding | None:
    """The largest change in another sample that one input brings about."""
    setting, axis = stage.setting, bench.inputs.batch[name] or 0

    def again(smaller: Setting) -> Finding | None:
        return next((f for f in other_samples(bench, smaller, scales) if f.input == name), None)

    worst: Finding | None = None
    for scale, sample in itertools.product(scales, (0, setting.B - 1)):
        changed = stage.values[name].clone()
        changed.select(axis, sample).copy_(stage.fresh(name, scale).select(axis, sample))
        values = {**stage.values, name: changed}
        rows = stage.rows(values)
        after = stage.by_sample(rows)
        if after is None:
            continue
        sizes = compare(base, after)[..., 0]  # (B, T_out)
        sizes[sample] = 0  # the replaced sample itself may move
        size = float(sizes.max())
        if size and (worst is None or size > worst.size):
            moved, t = divmod(int(sizes.argmax()), sizes.size(1))
            worst = Finding(
                "mixes-batch",
                setting,
                SEEN.format(name=name, other=sample, sample=moved, t=t, size=size),
                input=name,
                t=t,
                size=size,
                meaning=MEANING_TRAIN if setting.mode == "train" else MEANING,
                witness=Witness(stage.values, values, stage.base().squeeze(1), rows.squeeze(1)),
                again=again,
            )
    return worst
