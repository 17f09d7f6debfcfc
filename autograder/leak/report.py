"""What was found, for people (terminal, notebook) and for programs (JSON)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import Tensor

from autograder.leak import heatmap
from autograder.leak.setting import Finding, Kind, Setting, Witness
from autograder.leak.subject import Failed, undisturbed
from autograder.text import Language, Text

Verdict = Literal["causal"] | Kind

HEADLINES: dict[str, Text] = {
    "causal": Text(zh="没有发现泄漏", en="Causal: no leak found"),
    "error": Text(zh="运行出错", en="Error"),
    "nonfinite": Text(zh="输出含 NaN 或无穷大", en="Not finite"),
    "random": Text(zh="输出是随机的", en="Random"),
    "stateful": Text(zh="有记忆：结果取决于之前的调用", en="Stateful"),
    "mutates-input": Text(zh="改动了传入的张量", en="Changes its inputs"),
    "mixes-batch": Text(zh="样本互相影响", en="Mixes samples"),
    "leaks": Text(zh="泄漏", en="Leak"),
    "numerical-leak": Text(zh="只有数值上的泄漏", en="Numerical leak only"),
    "length-dependent": Text(zh="结果取决于序列总长", en="Depends on the length"),
    "ignores-past": Text(zh="没有用到过去", en="Ignores the past"),
}
ALL_CAUSAL = Text(
    zh="替换未来的任何位置，过去的行都没有变化（逐位比较）。",
    en="Whatever was replaced in the future, no earlier row changed by a single bit.",
)
NO_CONTRACT = Text(
    zh="没有要求因果性，只检查了其他方面。", en="Causality was not asked for; only the rest was checked."
)
COVERED = Text(
    zh="检查了 {settings} 种设置（T {T}，B {B}，{modes}），调用 {calls} 次，用时 {seconds:.2f} 秒。",
    en="Searched {settings} settings (T {T}, B {B}, {modes}): {calls} calls, {seconds:.2f} s.",
)
SHOWN = Text(zh="出现在：{setting}。", en="Shown at {setting}.")
ALSO = Text(zh="另外：{others}。", en="Also: {others}.")


@dataclass(frozen=True)
class Replay:
    """The smallest setting that shows a finding, as tensors to look at; None for outputs of a call that failed."""

    finding: Finding
    inputs_before: dict[str, Any]
    inputs_after: dict[str, Any]
    output_before: Tensor | None
    output_after: Tensor | None


@dataclass(frozen=True)
class Report:
    """The result of `detect`.

    ``matrix`` (T_out, L): [t, j] is how far row t moved when position j moved, the largest over all inputs, measured
    at ``matrix_setting``: that of the worst leak, or the plain one. ``leaks`` holds those of its sizes that the
    contract wants at 0, ``allowed`` the cells that some input may use. ``calls`` counts calls of the function.
    """

    findings: list[Finding]
    matrix: Tensor
    matrix_setting: Setting | None
    searched: list[Setting]
    notes: list[Text]
    calls: int
    seconds: float
    expect: str
    language: Language = "zh"
    leaks: Tensor | None = field(default=None, repr=False)
    allowed: Tensor | None = field(default=None, repr=False)

    @property
    def verdict(self) -> Verdict:
        """ "causal", or the kind of the worst finding."""
        return self.findings[0].kind if self.findings else "causal"

    @property
    def ok(self) -> bool:
        """Whether the code is right on paper: causal, or a leak by rounding and underflow alone."""
        return self.verdict in ("causal", "numerical-leak")

    def leaking_inputs(self) -> list[str]:
        """Names of the inputs through which the future gets in."""
        return [f.input for f in self.findings if f.kind == "leaks" and f.input]

    def text(self, language: Language | None = None) -> str:
        """Three lines: what, what it usually means, where it shows and what was searched."""
        language = language or self.language
        stop = "。" if language == "zh" else "."
        colon = "：" if language == "zh" else ": "
        head = HEADLINES[self.verdict].lang(language)
        covered = self._covered().lang(language)
        if not self.findings:
            body = NO_CONTRACT if self.expect == "none" else ALL_CAUSAL
            remarks = " ".join(note.lang(language) for note in self.notes)
            return "\n".join([head + stop, f"{body.lang(language)} {remarks}".strip(), covered])
        worst = self.findings[0]
        others = [self._short(f, language) for f in self.findings[1:] if f.input or f.kind != worst.kind]
        last = [SHOWN.lang(language).format(setting=worst.setting.words.lang(language))]
        last += [ALSO.format(others=("；" if language == "zh" else "; ").join(others)).lang(language)] if others else []
        second = worst.meaning.lang(language) if worst.meaning else ""
        return "\n".join(
            [
                f"{head}{colon}{worst.message.lang(language)}",
                second,
                ("" if language == "zh" else " ").join([*last, covered]),
            ]
        )

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return heatmap.page(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; infinite sizes become the string "inf"."""
        return {
            "verdict": self.verdict,
            "ok": self.ok,
            "findings": [finding.as_dict() for finding in self.findings],
            "matrix": [[x if x != float("inf") else "inf" for x in row] for row in self.matrix.tolist()],
            "matrix_setting": self.matrix_setting.as_dict() if self.matrix_setting else None,
            "notes": [{"zh": note.zh, "en": note.en} for note in self.notes],
            "searched": [setting.as_dict() for setting in self.searched],
            "calls": self.calls,
            "seconds": round(self.seconds, 4),
        }

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False)

    def replay(self, seconds: float = 2.0) -> Replay | None:
        """The worst finding again in the smallest setting that shows it, searched for at most ``seconds``.

        Returns None if nothing was found.
        """
        if not self.findings:
            return None
        worst = _shrink(self.findings[0], time.perf_counter() + seconds)
        witness = worst.witness or Witness({}, {}, None, None)
        return Replay(
            worst, dict(witness.inputs_before), dict(witness.inputs_after), witness.output_before, witness.output_after
        )

    def _covered(self) -> Text:
        def span(values: list[int]) -> str:
            low, high = min(values, default=0), max(values, default=0)
            return f"{low}" if low == high else f"{low}–{high}"

        return COVERED.format(
            settings=len(self.searched),
            T=span([s.T for s in self.searched]),
            B=span([s.B for s in self.searched]),
            modes=" + ".join(dict.fromkeys(s.mode for s in self.searched)) or "-",
            calls=self.calls,
            seconds=self.seconds,
        )

    @staticmethod
    def _short(finding: Finding, language: Language) -> str:
        head = HEADLINES[finding.kind].lang(language)
        return f"{head} ({finding.input})" if finding.input else head


def _shrink(finding: Finding, deadline: float) -> Finding:
    """The same finding at the smallest T, then the smallest B, that shows it before the deadline."""
    if finding.again is None:
        return finding
    s = finding.setting
    batches = [s.B] if s.B == s.T else sorted({1, 2, s.B})
    with undisturbed():
        for T in range(1, s.T + 1):
            for B in [T] if s.B == s.T else batches:
                if time.perf_counter() > deadline:
                    return finding
                try:
                    smaller = finding.again(replace(s, T=T, B=B))
                except (Failed, ValueError):
                    continue
                if smaller is not None and smaller.kind == finding.kind and smaller.input == finding.input:
                    return replace(smaller, meaning=finding.meaning)
    return finding
