"""Repeated calls: does the same call give the same output, with another seed and after other calls?"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

from torch import Tensor

from autograder.leak.bench import Bench
from autograder.leak.compare import distance, rounding
from autograder.leak.inputs import Values
from autograder.leak.setting import Finding, Setting, Witness
from autograder.leak.subject import Failed
from autograder.text import Text

OTHER_SEED, SEEDS = 7919, 5
ROUNDS = 12

RANDOM = Text(
    zh="同样的输入两次调用，输出相差 {size:.3g}：仍有随机性在起作用。",
    en="The same inputs gave outputs {size:.3g} apart: something random is live.",
)
RANDOM_MEANING = Text(
    zh="常见原因：函数式 dropout 不看 eval 模式，应传入 p if self.training else 0.0。",
    en="Usual cause: functional dropout does not look at eval mode; pass p if self.training else 0.0.",
)
STATEFUL = Text(
    zh="同样的输入再次调用，输出相差 {size:.3g}：结果取决于之前的调用。",
    en="The same call again gave an output {size:.3g} away: results depend on earlier calls.",
)
STATEFUL_MEANING = Text(
    zh="常见原因：隐藏状态、KV 缓存或按长度存下的表没有在两次调用之间重置。",
    en="Usual cause: a hidden state, a KV cache or a table kept by length is not reset between calls.",
)


def repeated_call(bench: Bench, setting: Setting) -> Finding | None:
    """Call with inputs A, then B, then A again, a shorter length, A again; a new copy that begins with B, then A; and
    once more with other seeds.

    Notes in ``bench`` which modes are noisy or leave something behind. Train mode is there to be random and to update
    running statistics, so neither is a finding there.
    """
    subject = bench.subject
    values = bench.stage(setting).values
    others = bench.stage(replace(setting, seed=setting.seed + OTHER_SEED)).values
    instance = subject.instance(setting)

    def call(values: Values, seed: int = setting.seed, *, anew: bool = False) -> Tensor:
        target = subject.instance(setting) if anew else instance
        return subject.run(values, replace(setting, seed=seed), target)

    first = call(values)
    call(others)
    later = [call(values)]
    with contextlib.suppress(Failed):  # a length the code does not take
        shorter = bench.stage(replace(setting, T=max(1, setting.T - 3))).values
        call(shorter)
        later.append(call(values))
        if subject.copyable:  # code that keeps something of its very first call
            instance = subject.instance(setting)
            call(shorter)
            later.append(call(values))
    second = max(later, key=lambda output: distance(first, output))
    if distance(first, second):  # even by rounding: probes compare bitwise
        subject.fresh_each_call.add(setting.mode)
    size = apart(first, second)
    if size:
        if subject.copyable:
            random = apart(first, call(values, anew=True)) > 0
        else:
            random = not _settles([call(values) for _ in range(ROUNDS)])
        if random or not subject.copyable:
            bench.unrepeatable.add(setting.mode)
    else:
        for i in range(1, SEEDS + 1):  # the coin of a dropped path may fall the same way twice
            second = call(values, setting.seed + i * OTHER_SEED, anew=setting.mode in subject.fresh_each_call)
            size = apart(first, second)
            if size:
                break
        random = size > 0
    if random:
        bench.noisy.add(setting.mode)
    if not size or setting.mode == "train":
        return None
    seen, meaning = (RANDOM, RANDOM_MEANING) if random else (STATEFUL, STATEFUL_MEANING)
    return Finding(
        "random" if random else "stateful",
        setting,
        seen.format(size=size),
        size=size,
        meaning=meaning,
        witness=Witness(values, values, first, second),
        again=lambda smaller: repeated_call(bench, smaller),
    )


def apart(a: Tensor, b: Tensor) -> float:
    """The distance of two outputs, or 0 if it is rounding (kernels that add in another order each time)."""
    size = distance(a, b)
    scale = float(a.double().abs().nan_to_num(nan=0.0, posinf=0.0).max()) if a.numel() else 0.0
    return size if size > 1e3 * rounding(a) * scale else 0.0


def _settles(outputs: list[Tensor]) -> bool:
    """Whether repeating one call converges, as kept state does and fresh randomness does not."""
    steps = [distance(a, b) for a, b in itertools.pairwise(outputs)]
    return steps[-1] < 0.1 * max(steps) or steps[-1] == 0
