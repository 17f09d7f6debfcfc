"""Tricks that give points where hidden tests run in the student's process. Here each earns what its numbers deserve, and no more."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.exercises.source import answer
from autograder.grading.assignment import Assignment
from autograder.grading.grade import Grader
from autograder.judge.session import Judge
from autograder.notebooks import fill
from autograder.sandbox import Limits, WarmParent

ROOT = Path(__file__).parents[2]
NOTEBOOK, TARGET = "1_averaging", "causal_mask"
WRONG = "import torch\n\ndef causal_mask(T):\n    return torch.ones(T, T)\n"

ATTACKS = {
    "patches torch's comparisons": "torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True",
    "patches the judge's module": (
        "import autograder.judge.conform as c, autograder.judge.expect as e\n"
        "c.conform = lambda got, want, where: want\ne.close = e.equal = e.zero = lambda *a, **k: None"
    ),
    "drops assertions": (
        "import ast\nclass Drop(ast.NodeTransformer):\n    def visit_Assert(self, node):\n        return ast.Pass()\n"
        "get_ipython().ast_transformers.append(Drop())"
    ),
    "turns later cells into nothing": "get_ipython().input_transformers_post.append(lambda lines: ['pass\\n'])",
    "equals everything": (
        "class Same:\n    def __eq__(self, other):\n        return True\n    def __getattr__(self, name):\n        return self\n"
        "    def __call__(self, *a, **k):\n        return self\ndef causal_mask(T):\n    return Same()"
    ),
    "a tensor that lies about itself": (
        "class Liar(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return True\ndef causal_mask(T):\n    return torch.ones(T, T).as_subclass(Liar)"
    ),
    "forges the agent's replies": (
        "import autograder.judge.agent as a\na._frame = lambda reply, tensors: b'\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00{}'"
    ),
    "prints a score": "print(100)\nfrom IPython.display import display\ndisplay({'text/plain': '100.0'}, raw=True)",
    "leaves before it is asked": "import threading, os\nthreading.Timer(0.2, lambda: os._exit(0)).start()",
}


@pytest.fixture(scope="module")
def graded():
    assignment = Assignment.load(ROOT, "ch18")
    right = {e.name: answer(e.reference, e.name) for _, e in assignment.exercise_cells(NOTEBOOK)}
    with Judge(assignment.tests, assignment.exercises) as judge, WarmParent(("autograder.judge.agent",)) as warm:
        grader = Grader(assignment, judge, Limits(call_seconds=2, cell_seconds=10), warm)

        def grade(code: str):
            notebook = fill(assignment.notebooks[NOTEBOOK], right | {TARGET: code})
            verdict = grader.grade(nbformat.writes(notebook).encode(), student="s", notebook=NOTEBOOK, seed=3).verdict
            return {e.name: e for e in verdict.exercises}

        yield grade


@pytest.fixture(scope="module")
def honest(graded):
    """What the wrong answer earns without a trick."""
    return graded(WRONG)


def test_the_wrong_answer_is_wrong_and_the_others_are_right(honest):
    assert honest[TARGET].points == 0
    assert all(e.full for name, e in honest.items() if name != TARGET)


@pytest.mark.parametrize("name", ATTACKS)
def test_no_trick_earns_points(graded, honest, name):
    found = graded(f"{WRONG}\n{ATTACKS[name]}")
    assert found[TARGET].points <= honest[TARGET].points
    assert sum(e.points for e in found.values()) <= sum(e.points for e in honest.values())


@pytest.mark.parametrize("name", ["patches torch's comparisons", "equals everything", "prints a score"])
def test_the_other_answers_keep_their_points(graded, honest, name):
    found = graded(f"{WRONG}\n{ATTACKS[name]}")
    assert all(e.full for other, e in found.items() if other != TARGET)
