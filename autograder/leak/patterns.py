"""What a pattern of leaks usually means, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from autograder.leak.setting import Finding, Setting
from autograder.text import Text

WHOLE = Text(zh="整个右上三角都在泄漏", en="The whole upper triangle leaks")
NEXT = Text(zh="只泄漏紧邻的下一个位置", en="Only the next position leaks")
BAND = Text(zh="只泄漏之后 {width} 个位置以内", en="Only the next {width} positions leak")
CORNER = Text(zh="只有序列末尾泄漏到开头", en="Only the end of the sequence leaks into its start")
BLOCK = Text(zh="只在每 {width} 个位置的一块之内泄漏", en="It leaks inside blocks of {width} positions only")
COLUMN = Text(zh="只有第 {j} 个来源位置泄漏", en="Only source position j={j} leaks")
ROWS = Text(zh="只泄漏到前 {n} 行", en="It leaks into the first {n} rows only")
SOME = Text(zh="右上三角中有 {hits}/{cells} 格泄漏", en="{hits} of {cells} cells of the upper triangle leak")

CAUSES = {
    "k": Text(
        zh="只经由 {only}：归一化的分母在遮罩之前就取了（先 softmax 后遮罩，或分母对所有 key 求和）",
        en="and through {only} alone: the normaliser is taken before the mask (softmax first, or a denominator over all keys)",
    ),
    "q": Text(
        zh="只经由 {only}：softmax 取在了 query 轴上，应取最后一维（key）",
        en="and through {only} alone: the softmax runs over the query axis instead of the key axis (dim=-1)",
    ),
    "v": Text(
        zh="只经由 {only}：被遮的权重并不是 0（填充值是 0 或太弱，或用乘法遮罩分数），或另有一条对全部 value 求和的路",
        en="and through {only} alone: masked weights are not 0 (a fill of 0 or a weak one, scores multiplied by the mask), "
        "or a side path sums over all values",
    ),
    "whole": Text(
        zh="通常是没有遮罩、布尔遮罩含义相反、双向的循环层，或在整个时间轴上取平均、归一化或最大值",
        en="usually no mask at all, a boolean mask of the opposite meaning, a bidirectional layer, or a mean, norm or "
        "maximum over the whole time axis",
    ),
    "next": Text(
        zh="通常是对角线差一（tril(diagonal=1)），或移位的方向反了",
        en="usually the diagonal is off by one (tril(diagonal=1)), or a shift goes the wrong way",
    ),
    "band": Text(
        zh="通常是居中的卷积或滑动窗口：应只在左侧填充，窗口也要有因果边界",
        en="usually a centred convolution or window: pad on the left only and bound the window causally",
    ),
    "corner": Text(
        zh="通常是绕回：torch.roll、循环填充，或没有补零的 FFT",
        en="usually a wrap-around: torch.roll, circular padding, or an FFT without zero padding",
    ),
    "block": Text(
        zh="通常是分块计算：块内没有遮罩，或先写入整段记忆再读取",
        en="usually chunked code: no mask inside the chunk, or a memory written before it is read",
    ),
    "some": Text(
        zh="通常是位置被打乱（合并或拆分头时少了 transpose），或对全序列做了硬选择（top-k）",
        en="usually scrambled positions (heads split or merged without a transpose), or a hard choice (top-k) over "
        "the whole sequence",
    ),
    "column": Text(zh="通常是遮罩多开了一列", en="usually the mask opens one column too many"),
    "rows": Text(
        zh="通常是这些行没有可用的来源，有限的填充值把它们变成了对所有位置的平均",
        en="usually these rows have no source left and a finite fill turns them into a mean over all positions",
    ),
}

TRAIN = Text(
    zh="通常是只在训练时走的分支没有遮罩，或 BatchNorm 的统计量跨越了时间",
    en="usually a branch without a mask that only training takes, or BatchNorm statistics over time",
)
DROPOUT = Text(
    zh="通常是对遮罩后的分数做了 dropout：-inf 或 -1e9 被置为 0，那一格就重新打开了",
    en="usually dropout on masked scores: a dropped -1e9 becomes 0 and the cell is open again",
)
FINITE_FILL = Text(
    zh="有限的填充值（如 -1e4）敌不过很大的分数，应填 -inf",
    en="a finite fill (such as -1e4) loses to large scores; use -inf",
)
TRAIN_ONLY = Text(zh="只在训练模式下出现。", en="It shows in train mode only.")
BATCH_IS_T = Text(
    zh="只在 B 等于 T 时出现：某个批次轴广播到了时间轴上。",
    en="It shows only when B equals T: some batch axis broadcasts onto the time axis.",
)
BATCH_ONE = Text(
    zh="只在 B=1 时出现：squeeze，或另一条分支。", en="It shows only when B is 1: a squeeze, or another branch."
)
LONG_ONLY = Text(zh="{n} 个位置以内看不到，更长才出现。", en="It shows only above {n} positions.")
LARGE_LOGITS = Text(zh="只在输入很大（×{scale:g}）时出现。", en="It shows for large logits only (inputs x{scale:g}).")
LARGE_VALUES = Text(
    zh="只在替换的数很大（×{scale:g}）时出现：像是最大值、top-k 或过弱的填充值。",
    en="It shows for large replaced values only (x{scale:g}), as a maximum, a top-k or a weak fill does.",
)
GRAD_ONLY = Text(zh="只在 autograd 记录时出现。", en="It shows only while autograd records.")
ASLEEP = Text(
    zh="只在全零的参数换成别的数之后出现，而训练正会这样做。",
    en="It shows once parameters that are all zero hold other numbers, as training will give them.",
)
TINY = Text(
    zh="它小得能通过常见的容差，但不是舍入：像是太弱的填充值（如 -20），应填 -inf。",
    en="It is small enough to pass the usual tolerances, yet not rounding: as a weak fill (such as -20) does; use -inf.",
)


def meaning(
    finding: Finding,
    moved: Tensor,
    forbidden: Tensor,
    leaking: Iterable[str],
    clean: Sequence[Setting],
    *,
    b_is_t: bool,
    noisy: bool,
) -> Text:
    """Words for one leak.

    ``moved`` (T_out, L) sizes of its input in its setting, ``forbidden`` the cells that must be 0, ``leaking`` all
    inputs that leak, ``clean`` the settings that were searched before without seeing it. ``b_is_t``: another batch
    size of that length is clean; ``noisy``: the function draws random numbers in this mode.
    """
    shape, place = _shape((moved > 0) & forbidden, forbidden)
    conditions = _conditions(finding, moved, clean, b_is_t)
    letter = (finding.input or "")[:1].lower()
    if finding.setting.inputs_scale > 1:
        cause = FINITE_FILL
    elif TRAIN_ONLY in conditions and shape in ("whole", "some"):
        cause = TRAIN if shape == "whole" or not noisy else DROPOUT
    elif shape == "whole" and letter in ("q", "k", "v") and set(leaking) == {finding.input}:
        cause = CAUSES[letter].format(only=finding.input)
    else:
        cause = CAUSES[shape]
    return Text(
        zh="".join([f"{place.zh}，{cause.zh}。", *(c.zh for c in conditions)]),
        en=" ".join([f"{place.en}, {cause.en}.", *(c.en for c in conditions)]),
    )


def _shape(hits: Tensor, forbidden: Tensor) -> tuple[str, Text]:
    """Which figure the leaking cells make."""
    cells, count = int(forbidden.sum()), int(hits.sum())
    some = SOME.format(hits=count, cells=cells)
    if not count:
        return "some", some
    if count >= 0.9 * cells:
        return "whole", WHOLE
    t, j = torch.nonzero(hits).T
    # The first forbidden column of each row is one step ahead.
    ahead = j - forbidden.float().argmax(1)[t] + 1
    length = hits.size(1)
    if bool((ahead == 1).all()):
        return ("next", NEXT) if t.unique().numel() > 1 else ("some", some)
    if bool((j - t >= length - max(1, length // 3)).all()):
        return "corner", CORNER
    if j.unique().numel() == 1:
        return "column", COLUMN.format(j=int(j[0]))
    for width in range(2, length // 2 + 1):
        if bool((t // width == j // width).all()):
            return "block", BLOCK.format(width=width)
    width = int(ahead.max())
    within = torch.arange(length)[None] - forbidden.float().argmax(1)[:, None] < width  # (T_out, L)
    if width <= length // 2 and count >= 0.8 * int((within & forbidden).sum()):
        return "band", BAND.format(width=width)
    if int(t.max()) < length // 2 and bool(
        hits[: int(t.max()) + 1].sum(1).eq(forbidden[: int(t.max()) + 1].sum(1)).all()
    ):
        return "rows", ROWS.format(n=int(t.max()) + 1)
    return "some", some


def _conditions(finding: Finding, moved: Tensor, clean: Sequence[Setting], b_is_t: bool) -> list[Text]:
    """What sets the first setting that shows the leak apart from those that did not."""
    s = finding.setting
    found: list[Text] = []
    alike = [c for c in clean if c.mode == s.mode and c.grad == s.grad and c.inputs_scale == s.inputs_scale]
    if s.mode == "train" and any(c.mode == "eval" for c in clean):
        found.append(TRAIN_ONLY)
    if s.inputs_scale > 1:
        found.append(LARGE_LOGITS.format(scale=s.inputs_scale))
    elif s.scale > 1 and any(c.T == s.T and c.B == s.B and c.scale == 1 for c in alike):
        found.append(LARGE_VALUES.format(scale=s.scale))
    elif s.grad and s.mode != "train" and any(not c.grad for c in clean):
        found.append(GRAD_ONLY)
    if s.awake:
        found.append(ASLEEP)
    if b_is_t:
        found.append(BATCH_IS_T)
    elif s.B == 1 and any(c.T == s.T and c.B > 1 for c in alike):
        found.append(BATCH_ONE)
    shorter = {c.T for c in alike}
    if len(shorter) >= 4 and max(shorter) < s.T:
        found.append(LONG_ONLY.format(n=max(shorter)))
    if finding.size < 1e-4 * float(moved[moved.isfinite()].max().clamp(min=1e-300)):
        found.append(TINY)
    return found
