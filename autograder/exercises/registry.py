"""The registry: each exercise with its reference, its named mistakes and its valid alternatives.

A solutions file reads like a list::

    @exercise
    def causal_mask(T): ...

    @mistake(of=causal_mask, zh="…", en="…")
    def diagonal_excluded(T): ...

    @alternative(of=causal_mask)
    def by_comparing_indices(T): ...
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from autograder.text import Text

Solution = Callable[..., Any]
S = TypeVar("S", bound=Solution)
_MARK = "__autograder_exercise__"


class CourseFault(Exception):
    """Something in the course itself is wrong; no student may lose points by it. ``text`` says what, and what to do."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


@dataclass(frozen=True)
class Mistake:
    """A known wrong solution and the hint that a student who wrote it should read."""

    name: str
    solution: Solution
    hint: Text


@dataclass
class Exercise:
    """One exercise: ``name`` is also the ``grade_id`` of its grade cell and the name students define."""

    name: str
    reference: Solution
    mistakes: dict[str, Mistake] = field(default_factory=dict)
    alternatives: dict[str, Solution] = field(default_factory=dict)

    @property
    def module(self) -> ModuleType:
        """The solutions module that defines the reference."""
        return sys.modules[self.reference.__module__]


def exercise(reference: S) -> S:
    """Register a function or class as the reference solution of the exercise that bears its name."""
    setattr(reference, _MARK, Exercise(reference.__name__, reference))
    return reference


def mistake(*, of: Solution, zh: str, en: str) -> Callable[[S], S]:
    """Register a known wrong solution of the exercise ``of`` with its hint in both languages."""

    def register(solution: S) -> S:
        known = exercise_of(of)
        _refuse_duplicate(known, solution)
        known.mistakes[solution.__name__] = Mistake(solution.__name__, solution, Text(zh=zh, en=en))
        return solution

    return register


def alternative(*, of: Solution) -> Callable[[S], S]:
    """Register another right solution of the exercise ``of``; it must get full marks."""

    def register(solution: S) -> S:
        known = exercise_of(of)
        _refuse_duplicate(known, solution)
        known.alternatives[solution.__name__] = solution
        return solution

    return register


def exercise_of(reference: Solution) -> Exercise:
    """The exercise that a reference was registered as.

    Raises CourseFault when the object is no registered reference.
    """
    found = vars(reference).get(_MARK)  # vars(): a subclass of a reference class is not itself a reference
    if not isinstance(found, Exercise):
        raise CourseFault(
            Text(
                zh=f"{reference!r} 不是参考解答：请先给它加上 @exercise",
                en=f"{reference!r} is not a reference solution: decorate it with @exercise first",
            )
        )
    return found


def load(folder: Path) -> dict[str, Exercise]:
    """Import every solutions file in ``folder`` and return its exercises by name, in the files' order.

    Raises CourseFault when two exercises share a name or a file does not import.
    """
    exercises: dict[str, Exercise] = {}
    for path in sorted(folder.glob("*.py")):
        for found in _exercises_in(_import(path)):
            if found.name in exercises:
                raise CourseFault(
                    Text(
                        zh=f"{path}：练习 {found.name!r} 在 {folder} 里定义了两次",
                        en=f"{path}: exercise {found.name!r} is defined twice in {folder}",
                    )
                )
            exercises[found.name] = found
    return exercises


def _refuse_duplicate(known: Exercise, solution: Solution) -> None:
    if solution.__name__ in known.mistakes or solution.__name__ in known.alternatives:
        raise CourseFault(
            Text(
                zh=f"练习 {known.name!r} 已经有一个叫 {solution.__name__!r} 的解答：请改掉其中一个的名字",
                en=f"exercise {known.name!r} already has a solution named {solution.__name__!r}: rename one",
            )
        )


def _exercises_in(module: ModuleType) -> Iterator[Exercise]:
    for value in list(vars(module).values()):
        marked = vars(value).get(_MARK) if hasattr(value, "__dict__") else None
        if isinstance(marked, Exercise) and marked.reference.__module__ == module.__name__:
            yield marked


def _import(path: Path) -> ModuleType:
    """Import a solutions file anew under a name of its own (two courses may both have an ``averaging.py``)."""
    name = "autograder_solutions_" + "_".join(path.resolve().with_suffix("").parts[1:])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except CourseFault:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise CourseFault(Text(zh=f"{path} 无法导入：{said}", en=f"{path} does not import: {said}")) from error
    return module
