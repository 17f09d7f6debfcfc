"""Where to look and in which order: from the plain setting to the odd ones, so that the first sighting is telling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from autograder.leak import patterns
from autograder.leak.bench import Bench
from autograder.leak.contract import Contract
from autograder.leak.probes.batch import other_samples, place_in_batch
from autograder.leak.probes.finite import finite_rows
from autograder.leak.probes.liveness import looks_back, past_matters
from autograder.leak.probes.mutation import edited_inputs
from autograder.leak.probes.repeat import repeated_call
from autograder.leak.probes.single import joint, matrix, single
from autograder.leak.probes.suffix import EVERY_CUT, SOME_CUTS, suffix
from autograder.leak.probes.truncation import prefix
from autograder.leak.setting import Finding, Mode, Setting, Witness
from autograder.leak.stage import Stage
from autograder.leak.subject import Failed
from autograder.text import Text

P = ParamSpec("P")
R = TypeVar("R")
LARGE, SMALL = 300.0, 0.1  # factors on all inputs: a fill of -1e4 loses to the first, saturation hides from the second
STANDARD = (16, 32)  # lengths that code without a stated limit should take


@dataclass(frozen=True)
class Effort:
    """How much of the grid is searched."""

    T: int
    lengths: tuple[int, ...]
    batches: tuple[int, ...]  # batch sizes for the batch probe
    plain: tuple[tuple[int, int], ...]  # (B, T) searched without folding
    scaled: tuple[int, ...]  # lengths searched with all inputs scaled
    train: tuple[int, ...]
    zeros: bool


EFFORTS = {
    "quick": Effort(T=8, lengths=(5, 9, 17), batches=(2,), plain=((1, 5), (4, 4)), scaled=(), train=(5,), zeros=False),
    "full": Effort(
        T=16,
        lengths=(2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 65),
        batches=(2, 3, 4, 5, 8),
        plain=((1, 5), (1, 8), (2, 8), (4, 4), (5, 5), (8, 8), (16, 16), (1, 33), (33, 33)),
        scaled=(5, 8),
        train=(3, 5, 8, 9, 17, 33),
        zeros=True,
    ),
}
REFUSED = Text(
    zh="不接受 T = {lengths}（{error}），那里没有检查。",
    en="It declines T = {lengths} ({error}); nothing was looked at there.",
)
FAILS = Text(
    zh="在 T = {lengths} 时出错（{error}），那里没有检查。",
    en="It fails at T = {lengths} ({error}); nothing was looked at there.",
)
ERROR_MEANING = Text(
    zh="其他设置下能运行。常见原因：遮罩或位置表的长度固定（少了 [:T, :T]），或批次轴对不上。长度本来有上限时用 max_T= 说明。",
    en="Other settings run. Usual cause: a mask or position table of fixed length (no [:T, :T]), or a batch axis that "
    "does not fit. If the length is meant to be bounded, say so with max_T=.",
)
NEVER_RUNS = Text(zh="没有一种设置能运行：先让它跑通。", en="No setting runs: first make the call work.")
UNREPEATABLE = Text(
    zh="同样的调用每次结果不同，因此无法判断有没有泄漏。",
    en="The same call never gives the same output, so leaks could not be told apart.",
)
OUT_OF_TIME = Text(
    zh="时间用完：{planned} 种设置只检查了 {done} 种。", en="Out of time: {done} of {planned} settings were searched."
)
OVERFLOWS = Text(
    zh="输入放大到 ×{scale:g} 时输出含 NaN 或无穷大。",
    en="With all inputs x{scale:g} the output holds NaN or infinity.",
)


def failed_call(setting: Setting, error: Exception, witness: Witness | None = None) -> Finding:
    """A call that raised."""
    seen = Text(zh=f"调用失败（{setting.words.zh}）：{error}", en=f"The call fails ({setting.words.en}): {error}")
    return Finding("error", setting, seen, meaning=ERROR_MEANING, witness=witness)


@dataclass
class Search:
    """One search: what was found, what was looked at, what is worth a remark."""

    bench: Bench
    effort: Effort
    T: int
    max_T: int | None
    seed: int
    deadline: float  # on time.perf_counter()
    findings: list[Finding] = field(default_factory=list)
    notes: list[Text] = field(default_factory=list)
    searched: list[Setting] = field(default_factory=list)
    failures: list[tuple[Setting, Failed]] = field(default_factory=list)
    clean: dict[str, list[Setting]] = field(default_factory=dict)  # per input, before its first leak
    main: Stage | None = None
    matrix: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.float64))
    leaks: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.float64))
    allowed: Tensor | None = None  # the cells of the matrix that some input may use
    matrix_setting: Setting | None = None

    def steps(self) -> Iterator[float]:
        """Run everything, reporting the share done after each step. Stops where nothing further can be told."""
        bench, mode = self.bench, self.bench.subject.modes[0]
        start = self._first_that_runs(mode)
        if start is None:
            self._never_runs()
            return
        yield 0.02
        modes = [m for m in bench.subject.modes if self._calibrate(replace(start, mode=m))]
        yield 0.1
        if bench.contract.expect != "none":
            plan = list(self._grid(start, modes))
            for i, (setting, folded, scales) in enumerate(plan):
                if time.perf_counter() > self.deadline:
                    self.notes.append(OUT_OF_TIME.format(done=i, planned=len(plan)))
                    break
                self._look(setting, folded, scales)
                yield 0.1 + 0.6 * (i + 1) / len(plan)
        if mode in modes:
            self.main = main = bench.stage(start, folded=True)
            if bench.contract.expect != "none":
                self._try(start, self._singles, main)
                yield 0.85
                if not any(f.kind in ("leaks", "nonfinite") for f in self.findings):  # it would say the same again
                    self._try(start, self._prefixes, start)
        self.findings += edited_inputs(bench)
        self._errors(start)
        if mode in modes:
            self._try(start, self._conclude, start)
        yield 1.0

    def _first_that_runs(self, mode: Mode) -> Setting | None:
        """The plainest setting in which the function runs at all."""
        for T in dict.fromkeys((self.T, *(t for t in (8, 16, 4, 32) if self._fits(t)))):
            for B in (2, 1, 4) if self.T <= EVERY_CUT else (1, 2):
                setting = Setting(T=T, B=B, mode=mode, seed=self.seed)
                if self._try(setting, self._runs, setting) is not None:
                    return setting
        return None

    def _runs(self, setting: Setting) -> Tensor:
        """The output at a setting, whose axis of rows is the one that follows T; Failed if none does."""
        bench = self.bench
        output = bench.subject.run(bench.inputs.draw(setting), setting)
        shorter = replace(setting, T=setting.T - 1)
        try:
            less = bench.subject.run(bench.inputs.draw(shorter), shorter)
        except Failed:  # one fixed length, or multiples only: the sweep will tell
            return bench.stage(setting).base()
        if less.shape == output.shape:
            raise Failed(
                ValueError(f"expected an output with one row per position, got {tuple(output.shape)} whatever T is")
            )
        if less.dim() == output.dim():
            follows = [axis for axis in range(output.dim()) if less.size(axis) != output.size(axis)]
            if len(follows) == 1:
                bench.out_time_dim = follows[0]
        return bench.stage(setting).base()

    def _calibrate(self, setting: Setting) -> bool:
        """Repeatability, finiteness and batch independence of one mode; False if leaks cannot be told there."""
        bench = self.bench
        if self._try(setting, bench.stage(setting).base) is None:
            return False
        self._add(self._try(setting, repeated_call, bench, setting))
        if setting.mode in bench.unrepeatable:
            self.notes.append(UNREPEATABLE)
            return False
        self._add(self._try(setting, finite_rows, bench, setting))
        where = [replace(setting, T=min(8, setting.T), B=B) for B in self.effort.batches] + [replace(setting, B=2)]
        tried = [self._try(w, other_samples, bench, w) for w in dict.fromkeys(where)]
        for found in tried:
            for finding in found or []:
                self._add(finding)
        self._add(self._try(where[0], place_in_batch, bench, where[0]))
        if not any(tried) and any(found is not None for found in tried):
            bench.independent.add(setting.mode)
        return True

    def _grid(self, start: Setting, modes: list[Mode]) -> Iterator[tuple[Setting, bool, tuple[float, ...]]]:
        """The settings of the suffix probe: plain ones first."""
        effort, mode = self.effort, modes[0] if modes else start.mode
        both, all_three = (1.0, 50.0), ((1.0, 50.0, 0.0) if effort.zeros else (1.0, 50.0))
        main = replace(start, mode=mode)
        small = [T for T in effort.lengths if T != start.T and self._fits(T)]
        if mode == start.mode:
            if start.T <= EVERY_CUT:
                yield main, True, all_three
            for T in small:
                yield replace(main, T=T, B=2), True, all_three if T == 8 else both
            for B, T in effort.plain:
                if self._fits(T):
                    yield replace(main, T=T, B=B), False, both
            usual = min(start.T, 16)
            for T in (usual, *effort.scaled):
                if self._fits(T) and self._scalable():
                    yield replace(main, T=T, B=8, inputs_scale=LARGE), True, (1.0,)  # many first rows
                    if T >= 8:
                        yield replace(main, T=T, B=2, inputs_scale=SMALL), True, (1.0,)
            if self.bench.subject.asleep:
                yield replace(main, T=usual, B=2, awake=True), True, both
            yield replace(main, T=usual, B=2, grad=True), True, both
            yield replace(main, T=min(8, usual), B=1, grad=True), False, (1.0,)
        if "train" in modes:
            train = replace(start, mode="train", T=min(start.T, 16), B=2, grad=True)
            yield train, True, both
            for T in effort.train:
                if self._fits(T):
                    yield replace(train, T=T), True, both
            yield replace(train, grad=False), True, (1.0,)
            for B, T in effort.plain[:5]:
                if self._fits(T):
                    yield replace(train, T=T, B=B), False, (1.0,)
            if effort.scaled and self._scalable():
                yield replace(train, B=8, inputs_scale=LARGE), True, (1.0,)
        if start.T > EVERY_CUT:
            for m in modes:
                yield replace(start, mode=m, grad=m == "train"), True, both if m == mode else (1.0,)

    def _look(self, setting: Setting, folded: bool, scales: tuple[float, ...]) -> None:
        """The suffix probe on every input that is not yet known to leak."""
        bench = self.bench
        if setting.grad and not bench.subject.records_grad:
            setting = replace(setting, grad=False)
            if setting in self.searched:
                return
        pending = [name for name in bench.inputs.causal if not self._leaks(name)]
        if not pending:
            return
        stage = bench.stage(setting, folded)
        if self._try(setting, stage.base) is None:
            return
        self.searched.append(setting)
        self._check_finite(stage)
        cells = setting.B * setting.T
        few = setting.T > EVERY_CUT or (setting.T > 17 and not stage.folded) or cells > 200
        most = 4 if cells > 1000 else SOME_CUTS if few else EVERY_CUT
        for name in pending:
            for scale in scales:
                finding = self._try(setting, suffix, bench, stage, name, scale, most)
                self._add(finding)
                if finding is not None and finding.kind == "leaks":
                    break
                self.clean.setdefault(name, []).append(replace(setting, scale=scale))

    def _check_finite(self, stage: Stage) -> None:
        if bool(stage.base().isfinite().all()) or any(f.kind == "nonfinite" for f in self.findings):
            return
        scale = stage.setting.inputs_scale
        if scale > 1:
            note = OVERFLOWS.format(scale=scale)
            if note not in self.notes:
                self.notes.append(note)
        else:
            self._add(finite_rows(self.bench, stage.setting))

    def _singles(self, stage: Stage) -> None:
        for name in self.bench.inputs.causal:
            if not self._leaks(name):
                self._add(single(self.bench, stage, name, 1.0))

    def _prefixes(self, start: Setting) -> None:
        longest = max((s.T for s in self.searched if s.mode == start.mode), default=start.T)
        shorter = [T for T in dict.fromkeys((1, *self.effort.lengths, start.T)) if longest > T]
        self._add(prefix(self.bench, replace(start, T=longest), shorter))

    def _conclude(self, start: Setting) -> None:
        """The matrix, whether the past matters, and words for what was found."""
        bench = self.bench
        sightings = [f for f in self.findings if f.kind in ("leaks", "numerical-leak")]
        worst = min(sightings, key=lambda f: f.rank, default=None)
        stage, scale = self.main, 1.0
        assert stage is not None
        if worst is not None and worst.setting != start:
            scale = worst.setting.scale
            stage = bench.stage(replace(worst.setting, scale=1.0), folded=worst.setting.B != worst.setting.T)
        sizes = {name: matrix(stage, name, scale) for name in bench.inputs.causal}
        for f in sightings:
            if f.t is not None and f.j is not None and f.setting == replace(stage.setting, scale=scale):
                sizes[f.input or ""][f.t, f.j] = max(float(sizes[f.input or ""][f.t, f.j]), f.size)
        self.matrix = joint(sizes)
        if bench.contract.expect != "none":
            cells = {n: Contract.forbidden(m.size(0), m.size(1), bench.offset(stage, n)) for n, m in sizes.items()}
            self.allowed = joint({n: (~cell).double() for n, cell in cells.items()}) > 0
            self.leaks = joint({n: sizes[n] * cell for n, cell in cells.items()})
        self.matrix_setting = replace(stage.setting, scale=scale)
        leaking = {f.input for f in sightings if f.kind == "leaks" and f.input}
        self.findings = [replace(f, meaning=self._words(f, leaking)) if f.kind == "leaks" else f for f in self.findings]
        if bench.contract.expect == "none" or any(f.kind == "nonfinite" for f in self.findings):
            return
        if not any(looks_back(size, max(bench.offset(stage, name), 0)) for name, size in sizes.items()):
            finding, note = past_matters(bench, replace(start, T=min(start.T, 8), awake=bench.subject.asleep))
            self._add(finding)
            self.notes += [note] if note else []

    def _words(self, finding: Finding, leaking: set[str]) -> Text:
        name, s = finding.input or "", finding.setting
        plain = replace(s, scale=1.0)
        stage = self.bench.stage(plain, folded=s.B != s.T and s.B != 1)
        moved = matrix(stage, name, s.scale)
        if finding.t is not None and finding.j is not None:
            moved[finding.t, finding.j] = max(float(moved[finding.t, finding.j]), finding.size)
        forbidden = Contract.forbidden(moved.size(0), moved.size(1), self.bench.offset(stage, name))
        b_is_t = s.B == s.T and finding.again is not None and finding.again(replace(s, B=s.B + 1)) is None
        return patterns.meaning(
            finding,
            moved,
            forbidden,
            leaking,
            self.clean.get(name, []),
            b_is_t=b_is_t,
            noisy=s.mode in self.bench.noisy,
        )

    def _errors(self, start: Setting) -> None:
        """Failures in some settings: a finding where the code ought to run, otherwise a remark."""
        plain = [(s, e) for s, e in self.failures if s.inputs_scale == 1 and not (s.grad and s.mode != "train")]
        if not plain:
            return
        lengths_that_run = {s.T for s in self.searched}
        serious = []
        for s, e in plain:
            length_fails = s.T not in lengths_that_run
            expected = s.T in (*STANDARD, self.T) if length_fails else s.T > 1
            if expected and not e.refused:
                serious.append((s, e))
        if serious:
            s, e = serious[0]
            self.findings.append(failed_call(s, e, self._inputs_of(s)))
            return
        lengths = ", ".join(map(str, sorted({s.T for s, _ in plain})))
        self.notes.append((REFUSED if plain[0][1].refused else FAILS).format(lengths=lengths, error=plain[0][1]))

    def _never_runs(self) -> None:
        setting, error = self.failures[0]
        self.findings = [
            replace(failed_call(setting, error, self._inputs_of(setting)), meaning=NEVER_RUNS, always=True)
        ]

    def _inputs_of(self, setting: Setting) -> Witness:
        values = self.bench.inputs.draw(setting)
        return Witness(values, values, None, None)

    def _leaks(self, name: str) -> bool:
        return any(f.kind == "leaks" and f.input == name for f in self.findings)

    def _add(self, finding: Finding | None) -> None:
        """Keep the first finding of a kind and input; a leak replaces a numerical leak."""
        if finding is None:
            return
        if finding.kind == "leaks":
            self.findings = [f for f in self.findings if not (f.kind == "numerical-leak" and f.input == finding.input)]
        if not any(f.kind == finding.kind and f.input == finding.input for f in self.findings):
            self.findings.append(finding)

    def _try(self, setting: Setting, step: Callable[P, R], *args: P.args, **options: P.kwargs) -> R | None:
        """A step, or None and a note of the failure if the function under test fails in it."""
        try:
            return step(*args, **options)
        except Failed as failed:
            self.failures.append((setting, failed))
            return None

    def _fits(self, T: int) -> bool:
        return self.max_T is None or self.max_T >= T

    def _scalable(self) -> bool:
        values = self.bench.inputs.draw(Setting(T=2, B=1))
        return any(values[name].is_floating_point() for name in self.bench.inputs.causal)
