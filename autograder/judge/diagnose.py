"""Name the mistake behind a failure by replaying every known mistake on exactly the inputs the student saw.

A named mistake is the diagnosis when it passes and fails the same hidden tests as the student's answer and, in the failing ones, gives the
same outputs. Otherwise the first property that does not hold is named (:mod:`autograder.judge.properties`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from autograder.exercises.registry import Exercise, Mistake
from autograder.exercises.tolerance import is_close
from autograder.judge.faults import Fault, StudentFault
from autograder.judge.session import Judge, Run
from autograder.judge.student import Call, Channel, Instance
from autograder.judge.verdict import Outcome
from autograder.judge.wire import Kept

_NOT_A_MISTAKE = frozenset(
    {Fault.MISSING, Fault.UNFINISHED, Fault.TIMEOUT, Fault.DIED, Fault.OVERSIZED, Fault.MALFORMED}
)
_NAMING_IS_FREE = ("state_dict", "parameters", "buffers")  # a module's attributes may have any name and order


def named_mistake(judge: Judge, exercise: Exercise, runs: Sequence[Run], seed: int) -> Mistake | None:
    """The first named mistake that behaves as ``runs`` did, or None."""
    failed = [run for run in runs if run.outcome is Outcome.FAILED]
    if not failed or any(run.fault in _NOT_A_MISTAKE for run in failed):
        return None
    order = failed + [
        run for run in runs if run.outcome is Outcome.PASSED
    ]  # a failed test tells mistakes apart soonest
    for mistake in exercise.mistakes.values():
        if all(_behaves_as(judge, run, judge.solution(exercise, mistake.solution), seed) for run in order):
            return mistake
    return None


def _behaves_as(judge: Judge, student: Run, mistake: Channel, seed: int) -> bool:
    again = judge.replay(student, mistake, seed, _same_call)  # most mistakes differ at the first call
    if student.outcome is Outcome.PASSED:  # with other values perhaps
        return (again or judge.again(student, mistake, seed)).outcome is Outcome.PASSED
    return (
        again is not None
        and again.outcome is student.outcome
        and again.fault is student.fault
        and len(again.calls) == len(student.calls)
        and all(_same_call(a, b) for a, b in zip(student.calls, again.calls, strict=True))
    )


def _same_call(a: Call, b: Call) -> bool:
    if a.op in _NAMING_IS_FREE and a.fault is None and b.fault is None:
        return _shapes(a.got) == _shapes(b.got)
    if a.op == "gradients" and isinstance(a.got, dict) and isinstance(b.got, dict):
        return same(a.got.get("inputs"), b.got.get("inputs"))
    return _same_fault(a.fault, b.fault) and same(a.got, b.got)


def _same_fault(a: StudentFault | None, b: StudentFault | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.kind is b.kind and a.detail == b.detail


def _shapes(named: Any) -> list[tuple[int, ...]]:
    tensors = named.values() if isinstance(named, dict) else ()
    return sorted(tuple(t.shape) for t in tensors if isinstance(t, torch.Tensor))


def same(a: Any, b: Any) -> bool:
    """Whether two decoded values are equal up to rounding. Instances count as equal: what matters is what calling them gives."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return is_close(a, b)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return is_close(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))
    if isinstance(a, (Instance, Kept)) or isinstance(b, (Instance, Kept)):
        return isinstance(a, (Instance, Kept)) and isinstance(b, (Instance, Kept))
    return bool(type(a) is type(b) and a == b)


def telling_call(runs: Iterable[Run]) -> Call | None:
    """The smallest call of the failing tests whose result is not the reference's; the last one where none differs."""
    calls = [call for run in runs if run.outcome is Outcome.FAILED for call in run.calls if call.op != "probe"]
    wrong = [call for call in calls if call.fault is not None or (call.compared and not same(call.got, call.want))]
    return min(wrong, key=lambda call: _size(call.args)) if wrong else (calls[-1] if calls else None)


def _size(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    return sum(_size(v) for v in value) if isinstance(value, (tuple, list)) else 1


def signature(runs: Iterable[Run]) -> str:
    """A short text, equal for answers that fail alike on the same inputs: lets answers with a mistake that nobody named be counted."""
    digest = hashlib.sha256()
    for run in runs:
        digest.update(f"{run.test.name} {run.outcome} {run.fault}".encode())
        for call in run.calls if run.outcome is Outcome.FAILED else ():
            digest.update(f"{call.what} {call.fault.detail if call.fault else _rounded(call.got)}".encode())
    return digest.hexdigest()[:12]


def _rounded(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        numbers = [f"{x:.3g}" for x in value.double().flatten()[:64].tolist()] if not value.is_complex() else []
        return f"{tuple(value.shape)} {numbers}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(_rounded(v) for v in value) + "]"
    return f"{value:.3g}" if isinstance(value, float) else type(value).__name__
