"""`detect` and `assert_causal`: the two ways in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from autograder.leak.bench import Bench
from autograder.leak.contract import Contract, Expect
from autograder.leak.inputs import Factory, Inputs
from autograder.leak.plan import EFFORTS, Search, failed_call
from autograder.leak.report import Report
from autograder.leak.setting import Setting
from autograder.leak.subject import Subject, undisturbed
from autograder.text import Language


def detect(
    fn: Callable[..., Any],
    inputs: Factory,
    *,
    time_dim: int | Mapping[str, int | None] = -2,
    out_time_dim: int = -2,
    causal_inputs: Iterable[str] | None = None,
    effort: Literal["quick", "full"] = "full",
    expect: Expect = "causal",
    diagonal: int | Mapping[str, int] = 0,
    T: int | None = None,
    max_T: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    language: Language = "zh",
    progress: Callable[[float], None] | None = None,
) -> Report:
    """Ask of a function or module: does output row t change when an input position j > t changes?

    ``fn`` is called as ``fn(**inputs)`` on copies; its first output tensor is looked at. ``inputs(B, T, rng)`` returns
    a dict of fresh inputs for any B and T, with ``rng`` a seeded `torch.Generator`.

    - ``time_dim``, ``out_time_dim``: the time axis of inputs (one for all, or a dict; None: no time axis) and of the
      output. An input whose stated axis does not follow T, while another does, is taken at that other one.
    - ``causal_inputs``: the inputs to replace; by default all with a time axis, boolean masks excepted.
    - ``effort``: "quick" for a student's cell, "full" for grading.
    - ``expect``: "strictly-causal" forbids j = t too; "none" drops the question and keeps the other checks.
    - ``diagonal``: keys ahead of the queries in a cache: row t may see j <= t + diagonal of the longer inputs.
    - ``T``: length of the plain setting and the matrix (default 16, quick 8); ``max_T``: the longest the code takes.
    - ``seconds``: start no further setting after this time; what was left out is said in the report.
    - ``progress``: called with the share done, 0 to 1.

    The caller's tensors, module, mode, random generators and grad mode stay as they are. Raises ValueError or
    TypeError for arguments that make no sense; what goes wrong inside ``fn`` is a finding.
    """
    if effort not in EFFORTS:
        raise ValueError(f'effort is "quick" or "full", got {effort!r}')
    length = T or min(EFFORTS[effort].T, max_T or EFFORTS[effort].T)
    start = time.perf_counter()
    contract = Contract(expect, diagonal)
    subject = Subject(fn)
    with undisturbed():
        drawn = Inputs(inputs, time_dim, causal_inputs, 2, length, seed)
        search = Search(
            Bench(subject, drawn, contract, out_time_dim),
            EFFORTS[effort],
            length,
            max_T,
            seed,
            start + (seconds or float("inf")),
        )
        try:
            for share in search.steps():
                if progress is not None:
                    progress(share)
        except TimeoutError as error:  # a call that hangs once would hang hundreds of times
            setting = search.searched[-1] if search.searched else Setting(T=length, seed=seed)
            search.findings.append(replace(failed_call(setting, error), always=True))
    return Report(
        findings=sorted(search.findings, key=lambda finding: finding.rank),
        matrix=search.matrix,
        matrix_setting=search.matrix_setting,
        searched=search.searched,
        notes=search.notes,
        calls=subject.calls,
        seconds=time.perf_counter() - start,
        expect=expect,
        language=language,
        leaks=search.leaks,
        allowed=search.allowed,
    )


def assert_causal(fn: Callable[..., Any], inputs: Factory, **options: Any) -> None:
    """Raise AssertionError with the report as its message unless `detect` finds the function causal.

    Takes the arguments of `detect`. A leak by rounding alone passes.
    """
    report = detect(fn, inputs, **options)
    if not report.ok:
        raise AssertionError(str(report))
