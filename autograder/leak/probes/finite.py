"""NaN and infinity in the output for ordinary inputs."""

from __future__ import annotations

from autograder.leak.bench import Bench
from autograder.leak.setting import Finding, Setting, Witness
from autograder.text import Text

SEEN = Text(
    zh="普通输入下，{T} 行中有 {n} 行含 NaN 或无穷大，最早是第 {t} 行。",
    en="For ordinary inputs {n} of {T} rows hold NaN or infinity, the first is row t={t}.",
)
ALL = Text(
    zh="每一行都坏了。常见原因：遮罩写成 (1 - mask) * -inf（0 × inf = NaN），或 softmax 取错了轴。",
    en="Every row is broken. Usual cause: a mask built as (1 - mask) * -inf (0 x inf is NaN), "
    "or a softmax over the wrong axis.",
)
SOME = Text(
    zh="有的行一个来源也不剩，softmax 得到 0/0。常见原因：遮罩连对角线也挡住了，或整行都是填充。",
    en="A row has no source left and its softmax is 0/0. Usual cause: the mask blocks the diagonal too, "
    "or the whole row is padding.",
)


def finite_rows(bench: Bench, setting: Setting) -> Finding | None:
    """Report output rows that are not finite."""
    stage = bench.stage(setting)
    base = stage.base()
    broken = ~base.isfinite().flatten(1).all(1)  # (T_out,)
    if not broken.any():
        return None
    n = int(broken.sum())
    return Finding(
        "nonfinite",
        setting,
        SEEN.format(n=n, T=len(base), t=int(broken.float().argmax())),
        t=int(broken.float().argmax()),
        size=float("inf"),
        meaning=ALL if n == len(base) else SOME,
        witness=Witness(stage.values, stage.values, base.squeeze(1), base.squeeze(1)),
        again=lambda smaller: finite_rows(bench, smaller),
    )
