"""Liveness: a constant is perfectly causal. Does the past matter, and does everything given have an effect?"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from autograder.leak.bench import Bench
from autograder.leak.compare import distance
from autograder.leak.inputs import Values
from autograder.leak.setting import Finding, Setting, Witness
from autograder.leak.stage import Region, Stage
from autograder.leak.subject import Failed
from autograder.text import Text

CONSTANT = Text(
    zh="无论替换哪个输入的哪个位置，输出都不变：结果是常数。",
    en="No input, replaced anywhere, changes the output: it is a constant.",
)
IDLE = Text(
    zh="每一行只取决于自己的位置，而 {idle} 对输出毫无影响：算了却没有用上。",
    en="Each row depends on its own position alone, and {idle} has no effect on the output: computed, never used.",
)
FUTURE_ONLY = Text(
    zh="没有任何一行取决于更早的位置，看的却是更晚的。",
    en="No row depends on an earlier position; rows look at later ones instead.",
)
MEANING = Text(
    zh="常见原因：注意力的结果没有接到输出上，遮罩只留下对角线，或返回了错误的变量。",
    en="Usual cause: the attention result is not wired to the output, the mask keeps the diagonal only, "
    "or the wrong variable is returned.",
)
MEANING_FUTURE = Text(
    zh="常见原因：布尔遮罩的含义反了（SDPA 中 True 表示参与，nn.MultiheadAttention 中 True 表示屏蔽）。",
    en="Usual cause: a boolean mask with the opposite meaning (True takes part in SDPA, is blocked in "
    "nn.MultiheadAttention).",
)
POSITIONWISE = Text(
    zh="每一行只取决于自己的位置（逐位置的层，例如归一化或 MLP）。",
    en="Each row depends on its own position alone (a position-wise layer, such as a norm or an MLP).",
)


def past_matters(bench: Bench, setting: Setting) -> tuple[Finding | None, Text | None]:
    """A finding if the output is constant, sees the future only, or is position-wise with something left unused.

    A position-wise function that uses all it is given may be meant so (a norm, an embedding): that is a remark.
    """
    stage = bench.stage(setting, folded=True)
    seen = [_directions(bench, stage, name, scale) for name in bench.inputs.causal for scale in (1.0, 50.0)]
    past, own, future = (any(direction) for direction in zip(*seen, strict=True))
    if past:
        return None, None
    if future:
        return _finding(setting, FUTURE_ONLY, MEANING_FUTURE, stage), None
    if not own:
        return _finding(setting, CONSTANT, MEANING, stage), None
    idle = _idle(bench, stage)
    if idle:
        return _finding(setting, IDLE.format(idle=", ".join(idle)), MEANING, stage), None
    return None, POSITIONWISE


def looks_back(sizes: Tensor, offset: int) -> bool:
    """Whether a matrix of sizes (T_out, L) shows a row that depends on a position before its own."""
    return bool(sizes.tril(offset - 1).any())


def _directions(bench: Bench, stage: Stage, name: str, scale: float) -> tuple[bool, bool, bool]:
    """Whether rows depend on earlier positions, on their own, on later ones."""
    length, own = bench.inputs.length(stage.values, name), max(bench.offset(stage, name), 0)

    def moved(regions: list[Region]) -> Tensor:
        return stage.moves(name, scale, regions).size.T  # (T_out, regions)

    alone = moved([(j, j + 1) for j in range(length)])
    before = moved([(0, j + 1) for j in range(length)])
    return (
        looks_back(alone, own) or looks_back(before, own),
        bool(alone.diagonal(own).any()),
        bool(alone.triu(own + 1).any()) or bool(moved([(j, length) for j in range(length)]).triu(own + 1).any()),
    )


def _idle(bench: Bench, stage: Stage) -> list[str]:
    """Names of inputs and parameters whose replacement leaves the output bitwise as it was."""
    plain = bench.subject.run(stage.values, stage.setting)
    names = []
    for name in bench.inputs.tensors:
        if stage.values[name].dtype is torch.bool:
            continue
        values = {**stage.values, name: stage.fresh(name, 1.0)}
        if distance(plain, bench.subject.run(values, stage.setting)) == 0:
            names.append(name)
    return names + _idle_parameters(bench, stage, stage.values, plain)


def _idle_parameters(bench: Bench, stage: Stage, values: Values, plain: Tensor) -> list[str]:
    """Parameters without effect; a fused query-key-value weight is looked at in thirds."""
    instance = bench.subject.instance(stage.setting)
    if not isinstance(instance, nn.Module):
        return []
    names = []
    for name, parameter in instance.named_parameters():
        for label, part in _parts(name, parameter):
            saved = part.detach().clone()
            with torch.no_grad():
                part.mul_(-1.5).add_(0.1)
            try:
                changed = bench.subject.run(values, stage.setting, instance)
            except Failed:
                changed = None
            with torch.no_grad():
                part.copy_(saved)
            if changed is not None and distance(plain, changed) == 0:
                names.append(label)
    return names


def _parts(name: str, parameter: Tensor) -> list[tuple[str, Tensor]]:
    whole = parameter.detach()
    if whole.dim() == 2:
        for axis in (0, 1):
            if whole.size(axis) == 3 * whole.size(1 - axis):
                return [(f"{name}[{part}]", piece) for part, piece in zip("qkv", whole.chunk(3, axis), strict=True)]
    return [(name, whole)]


def _finding(setting: Setting, seen: Text, meaning: Text, stage: Stage) -> Finding:
    witness = Witness(stage.values, stage.values, stage.base().squeeze(1), stage.base().squeeze(1))
    return Finding("ignores-past", setting, seen, meaning=meaning, witness=witness)
