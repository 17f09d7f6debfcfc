"""The hidden tests run in the student's own process, as an nbgrader author's grade cells run theirs: no judge, no sandbox, no diagnosis.

The two ways that the grading of this package is measured against (:mod:`tests.bench.grading`) do the same checks with it.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.exercises import Exercise
from autograder.exercises.registry import exercise_of
from autograder.judge.draw import Draw, derive
from autograder.judge.faults import Fault, StudentFault
from autograder.judge.student import Direct, Student

FOLDER = "AUTOGRADER_BENCH_CHAPTER"
"""Environment variable with the folder that holds ``solutions`` and ``tests`` of the chapter."""
_SEED = 18


def share(name: str, namespace: dict[str, Any], seed: int = _SEED) -> float:
    """The share of an exercise's hidden tests, by weight, that pass on the answer in ``namespace``."""
    exercise, tests = _exercise(name)
    passed, earned, total, decided = set[str](), 0.0, 0.0, False
    for test, weight, after, cases in tests:
        total += weight
        if decided or not passed.issuperset(after):
            continue
        try:
            for case in cases:
                _run(exercise, namespace, test, case, derive(seed, name, test.__name__, str(sorted(case))))
        except StudentFault as fault:
            decided = fault.kind in (Fault.MISSING, Fault.UNFINISHED)
        except Exception:
            continue
        else:
            passed.add(test.__name__)
            earned += weight
    return earned / total


def _run(
    exercise: Exercise, namespace: dict[str, Any], test: Callable[..., None], case: dict[str, Any], seed: int
) -> None:
    def reference() -> Direct:
        return Direct({exercise.name: exercise.reference})

    given = {
        "student": lambda: Student(Direct(namespace), reference(), seed),
        "reference": lambda: Student(reference(), None, seed),
        "draw": lambda: Draw(seed),
    }
    test(**{name: make() for name, make in given.items() if name in inspect.signature(test).parameters}, **case)


@functools.cache
def _exercise(name: str) -> tuple[Exercise, list[tuple[Callable[..., None], float, tuple[str, ...], list[Any]]]]:
    """An exercise and its hidden tests: (test, weight, tests that must pass first, sets of parameters)."""
    chapter = Path(os.environ[FOLDER])
    for solutions in sorted((chapter / "solutions").glob("*.py")):
        if f"def {name}(" in (text := solutions.read_text()) or f"class {name}(" in text:
            module = _module(solutions)
            tests = _module(chapter / "tests" / f"test_{solutions.name}")
            return exercise_of(getattr(module, name)), list(_tests(tests, name))
    raise LookupError(name)


@functools.cache
def _module(path: Path) -> ModuleType:
    import sys

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tests(
    module: ModuleType, exercise: str
) -> Iterator[tuple[Callable[..., None], float, tuple[str, ...], list[Any]]]:
    for group in vars(module).values():
        if any(mark.name == "exercise" and mark.args == (exercise,) for mark in getattr(group, "pytestmark", ())):
            for name, function in vars(group).items():
                if name.startswith("test_"):
                    marks = getattr(function, "pytestmark", ())
                    weight = next((mark.args[0] for mark in marks if mark.name == "weight"), 1.0)
                    after = next((mark.args for mark in marks if mark.name == "after"), ())
                    yield getattr(group(), name), weight, after, _cases([m for m in marks if m.name == "parametrize"])


def _cases(parametrize: list[Any]) -> list[dict[str, Any]]:
    choices = []
    for mark in parametrize:
        names = [n.strip() for n in mark.args[0].split(",")] if isinstance(mark.args[0], str) else list(mark.args[0])
        rows = [getattr(row, "values", row) for row in mark.args[1]]
        choices.append([dict(zip(names, row if len(names) > 1 else [row], strict=True)) for row in rows])
    return [{k: v for part in parts for k, v in part.items()} for parts in itertools.product(*choices)]
