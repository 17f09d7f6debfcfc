"""From test runs to points and words: one exercise's part of the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from autograder.exercises import Exercise
from autograder.judge.conform import shape
from autograder.judge.diagnose import named_mistake, signature, telling_call
from autograder.judge.draw import derive
from autograder.judge.faults import Fault
from autograder.judge.properties import describe, swapped_arguments
from autograder.judge.session import Judge, Run
from autograder.judge.student import Call, Channel, Instance, Student
from autograder.judge.verdict import (
    Diagnosis,
    Example,
    ExerciseVerdict,
    LeakFinding,
    Outcome,
    TestVerdict,
    Value,
    Words,
)
from autograder.judge.wire import Kept, Other

_SHOWN = 64  # elements of a tensor that a page shows
_COUNTED = frozenset({Outcome.PASSED, Outcome.FAILED, Outcome.NOT_CHECKED})


def exercise_verdict(
    judge: Judge, exercise: Exercise, runs: Sequence[Run], points: float, seed: int
) -> ExerciseVerdict:
    """Points and words for the runs of one exercise's hidden tests."""
    diagnosis, call = None, telling_call(runs)
    mistake = named_mistake(judge, exercise, runs, seed)
    if mistake is not None:
        diagnosis = Diagnosis(name=mistake.name, hint=Words.of(mistake.hint))
    elif call is not None:
        diagnosis = _property(judge, exercise, call, seed)
    return ExerciseVerdict(
        name=exercise.name,
        points=earned(runs, points),
        max_points=points,
        tests=[_test_verdict(run) for run in runs],
        diagnosis=diagnosis,
        example=_example(call) if call is not None else None,
        leak=next((_leak(run.leak) for run in runs if run.leak is not None), None),
        untouched=any(run.fault is Fault.UNFINISHED for run in runs),
    )


def earned(runs: Sequence[Run], points: float) -> float:
    """``points`` times the passed share of the weights that count; a test that is the course's or the machine's fault does not count."""
    counted = [run for run in runs if run.outcome in _COUNTED]
    total = sum(run.test.weight for run in counted)
    if not total:
        return points
    return round(points * sum(run.test.weight for run in counted if run.outcome is Outcome.PASSED) / total, 2)


def needs_signature(verdict: ExerciseVerdict, runs: Sequence[Run]) -> bool:
    """Whether an answer failed in a way that nobody has named and that could be counted with others of its kind."""
    unnamed = verdict.diagnosis is None or verdict.diagnosis.name is None
    hopeless = {Fault.UNFINISHED, Fault.MISSING, Fault.TIMEOUT, Fault.DIED}
    failed = [run for run in runs if run.outcome is Outcome.FAILED]
    return unnamed and bool(failed) and not any(run.fault in hopeless for run in failed)


def signature_of(judge: Judge, exercise: Exercise, channel: Any) -> str:
    """A fingerprint of how an answer behaves on inputs that are the same for the whole class."""
    return signature(list(judge.run(exercise.name, channel, derive(0, "signature", exercise.name))))


def _test_verdict(run: Run) -> TestVerdict:
    return TestVerdict(
        name=run.test.name,
        about=Words.of(run.test.text),
        outcome=run.outcome,
        weight=run.test.weight,
        message=Words.of(run.text) if run.text is not None else None,
        fault=run.fault,
    )


def _property(judge: Judge, exercise: Exercise, call: Call, seed: int) -> Diagnosis | None:
    if call.fault is not None or not call.compared:
        return None

    def reference(*args: Any) -> Any:
        channel: Channel = judge.solution(exercise, exercise.reference)
        return getattr(Student(channel, None, seed), exercise.name)(*args)

    plain = call.op == "call" and call.name == exercise.name and not any(isinstance(a, Instance) for a in call.args)
    text = describe(call.got, call.want, lambda: swapped_arguments(call.args, call.got, reference) if plain else None)
    return Diagnosis(name=None, hint=Words.of(text)) if text is not None else None


def _example(call: Call) -> Example:
    wanted = call.compared and call.want is not None
    return Example(
        call=call.name,
        inputs=[show(value) for value in call.args],
        got=show(call.got) if call.fault is None else None,
        want=show(call.want) if wanted else None,
    )


def show(value: Any) -> Value:
    """A value as a person reads it; a small matrix also as numbers, for a heat map."""
    if isinstance(value, torch.Tensor):
        if value.numel() > _SHOWN or value.is_complex():
            return Value(text=f"{str(value.dtype).removeprefix('torch.')} {shape(value)}")
        matrix = value.double().tolist() if value.dim() == 2 and value.numel() else None
        return Value(text=f"{_numbers(value)}  {shape(value)}", matrix=matrix)
    if isinstance(value, (tuple, list)):
        return Value(text="(" + ", ".join(show(part).text for part in value[:8]) + ")")
    if isinstance(value, (int, float, bool, str)) or value is None:
        return Value(text=f"{value:.6g}" if isinstance(value, float) else repr(value)[:200])
    return Value(text=f"<{value.type if isinstance(value, (Instance, Kept, Other)) else type(value).__name__}>")


def _numbers(tensor: torch.Tensor) -> str:
    if tensor.dim() == 0:
        number = tensor.item()
        return f"{number:.4g}" if isinstance(number, float) else str(number)
    return "[" + ", ".join(_numbers(part) for part in tensor) + "]"


def _leak(report: Any) -> LeakFinding:
    matrix = report.matrix.tolist() if report.matrix is not None and report.matrix.numel() <= 400 else None
    text = Words(zh=report.text("zh"), en=report.text("en"))
    return LeakFinding(verdict=report.verdict, text=text, matrix=matrix)
