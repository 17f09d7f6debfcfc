"""``make mutants``: every one-token mutation of every reference, run against the hidden tests as `autograder check` runs a mistake."""

from __future__ import annotations

import ast
import multiprocessing
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograder.exercises import Exercise, load
from autograder.judge.draw import derive
from autograder.judge.session import Judge
from autograder.judge.verdict import Outcome
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.generate import mutants

ROOT = Path(__file__).parents[2]
SOLUTIONS = ROOT / "solutions" / "ch18"
TESTS = ROOT / "tests" / "hidden" / "ch18"
SECONDS = 60.0  # for one mutant; the slowest that ends takes a few

_judge: Judge


def main(only: Iterable[str] = ()) -> int:
    """Print the table and the survivors; 1 when one of them is not listed as equivalent."""
    exercises = load(SOLUTIONS)
    wanted = set(only) or exercises.keys()
    totals = [0, 0, 0, 0]
    survivors: list[str] = []
    pool = _pool()
    print(f"{'':22}" + "".join(f"{column:>12}" for column in ("tried", "caught", "equivalent", "survivors")))
    for name in filter(wanted.__contains__, exercises):
        found = mutants(exercises[name].reference)
        listed = EQUIVALENT.get(name, {})
        alive = []
        for what in found:
            if what in listed:
                continue
            try:
                if pool.apply_async(_survives, (name, what)).get(SECONDS):
                    alive.append(what)
            except multiprocessing.TimeoutError:  # caught: a student's answer is ended too
                pool.terminate()
                pool = _pool()
        equivalent = len(listed.keys() & found.keys())
        row = (len(found), len(found) - equivalent - len(alive), equivalent, len(alive))
        totals = [a + b for a, b in zip(totals, row, strict=True)]
        survivors += [f"{name}: {what}" for what in alive]
        print(f"{name:22}" + "".join(f"{figure:>12}" for figure in row), flush=True)
    pool.terminate()
    print(f"{'all':22}" + "".join(f"{figure:>12}" for figure in totals))
    print("\n".join(survivors))
    return bool(survivors)


def _pool() -> Any:
    """One process with the hidden tests loaded, ended and begun anew when a mutant hangs."""
    return multiprocessing.get_context("fork").Pool(1, _start)


def _start() -> None:
    global _judge
    _judge = Judge(TESTS, load(SOLUTIONS))


def _survives(name: str, what: str) -> bool:
    exercise = _judge.exercises[name]
    try:
        solution = _built(exercise, what)
        runs = list(_judge.run(name, lambda: _judge.solution(exercise, solution), derive(0, "check")))
    except Exception:  # it cannot even be defined
        return False
    return all(run.outcome is Outcome.PASSED for run in runs)


def _built(exercise: Exercise, what: str) -> Any:
    tree = ast.Module([mutants(exercise.reference)[what]], [])
    names = dict(vars(exercise.module))
    exec(compile(tree, f"<{exercise.name}: {what}>", "exec"), names)
    return names[exercise.name]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
