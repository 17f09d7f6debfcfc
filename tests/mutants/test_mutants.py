"""The generator of mutants, and the list of those that change nothing: it must not outlive the references it speaks about."""

import ast
from pathlib import Path

import pytest

from autograder.exercises import load
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.generate import mutants

EXERCISES = load(Path(__file__).parents[2] / "solutions" / "ch18")


def masked_mean(X, mask):
    total = -X.tril(-1).sum(dim=0, keepdim=True)
    if total.max() > 0:
        total += 1
    return total[:2] @ mask


@pytest.mark.parametrize(
    "what",
    [
        "line 2: -X.tril(-1).sum(dim=0, keepdim=True) -> X.tril(-1).sum(dim=0, keepdim=True)",
        "line 2: X.tril -> X.triu",
        "line 2: X.tril(-1) -> X",
        "line 2: X.tril(-1).sum -> X.tril(-1).mean",
        "line 2: X.tril(-1).sum(dim=0, keepdim=True) -> X.tril(-1).sum(dim=0)",
        "line 2: True -> False",
        "line 2: 0 -> 1",
        "line 2: X -> mask",
        "line 3: total.max -> total.min",
        "line 3: total.max() > 0 -> total.max() >= 0",
        "line 4: total += 1 -> pass",
        "line 4: total += 1 -> total -= 1",
        "line 5: :2 -> :2 + 1",
        "line 5: total[:2] @ mask -> total[:2] * mask",
    ],
)
def test_every_kind_of_slip_is_made(what):
    assert what in mutants(masked_mean)


def test_each_mutant_is_a_definition_of_its_own():
    found = {what: ast.unparse(tree) for what, tree in mutants(masked_mean).items()}
    assert (
        len(set(found.values())) >= len(found) - 1
    )  # -1 with its minus removed, or with its 1 made -1, is one and the same
    assert all(text.startswith("def masked_mean(X, mask):") for text in found.values())


def test_every_listed_mutant_exists_and_has_a_reason():
    for name, listed in EQUIVALENT.items():
        unknown = listed.keys() - mutants(EXERCISES[name].reference).keys()
        assert not unknown, f"{name}: no longer a mutant of the reference: {sorted(unknown)}"
        assert all(reason.endswith(".") for reason in listed.values())
