"""Batch independence: does one sample's output change when another sample's input does?"""

from __future__ import annotations

from autograder.leak.bench import Bench
from autograder.leak.compare import compare
from autograder.leak.setting import Finding, Setting, Witness
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


def other_samples(bench: Bench, setting: Setting, scales: tuple[float, ...] = (1.0, 50.0)) -> list[Finding]:
    """Replace the first, then the last sample of each input and compare all others, bitwise; one finding per input."""
    stage = bench.stage(setting)
    base = stage.by_sample()
    if base is None or setting.B < 2:
        return []
    findings: list[Finding] = []
    for name in bench.inputs.tensors:
        axis = bench.inputs.batch[name]
        if axis is None:
            continue
        worst: Finding | None = None
        for scale in scales:
            for sample in (0, setting.B - 1):
                changed = stage.values[name].clone()
                changed.select(axis, sample).copy_(stage.fresh(name, scale).select(axis, sample))
                values = {**stage.values, name: changed}
                rows = stage.rows(values)
                after = stage.samples(rows)
                if after is None:
                    continue
                sizes = compare(base, after)[..., 0] if base.dim() > 2 else compare(base[..., None], after[..., None])[..., 0]
                sizes[sample] = 0  # (B, T_out): the replaced sample itself may move
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
                        again=lambda smaller, name=name: _of(other_samples(bench, smaller, scales), name),
                    )
        if worst is not None:
            findings.append(worst)
    return findings


def _of(findings: list[Finding], name: str) -> Finding | None:
    return next((finding for finding in findings if finding.input == name), None)


