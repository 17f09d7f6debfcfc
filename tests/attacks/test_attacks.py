"""Every attack through the whole pipeline: it gains nothing, learns nothing, leaves nothing, and disturbs nobody."""

from __future__ import annotations

import json

import pytest

from autograder.judge.faults import Fault
from autograder.judge.verdict import Outcome, Status
from tests.attacks.attack import KINDS, Attack
from tests.attacks.break_ import BREAK
from tests.attacks.escape import ESCAPE
from tests.attacks.forge import FORGE
from tests.attacks.range import LIMITS, everything_shown, opened
from tests.attacks.steal import STEAL

ATTACKS = [*STEAL, *FORGE, *BREAK, *ESCAPE]
# All of them take five minutes: by default every third, the rest by `make attacks`.
_PARAMETERS = [
    pytest.param(a, id=f"{a.kind}: {a.name}", marks=[pytest.mark.slow] if a.slow or i % 3 else [])
    for i, a in enumerate(ATTACKS)
]


@pytest.fixture(scope="module")
def attacked():
    with opened() as place:
        yield place


@pytest.mark.parametrize("attack", _PARAMETERS)
def test_attack(attacked, attack: Attack):
    found = attacked.try_(attack, then_honest=attack.kind == "break")
    assert found.points == 0
    assert found.leaked == set()
    assert found.left == []
    assert not found.disturbed, "an honest notebook that came after it was graded otherwise than alone"
    assert found.graded.verdict.status is Status.GRADED
    assert found.graded.verdict.course_faults == []
    assert found.other_full or attack.ruins_itself
    assert len(everything_shown(found.graded)) < 8 * LIMITS.output_bytes
    json.loads(found.graded.verdict.model_dump_json())


def test_names_are_unique_and_every_kind_is_tried():
    assert len({(a.kind, a.name) for a in ATTACKS}) == len(ATTACKS)
    assert all(sum(a.kind == kind for a in ATTACKS) >= 15 for kind in KINDS)


def test_after_all_of_them_an_honest_notebook_is_graded_as_before(attacked):
    assert attacked.alone() == attacked.honest
    assert [e["points"] for e in json.loads(attacked.honest)["exercises"]] == [0, 10]


def test_without_a_sandbox_the_alarm_goes_off():
    """That the range notices a theft: with nothing in the way these succeed. The last one does not, as nothing secret is in the process."""
    thieves = (
        "reads the solutions",
        "reads the gradebook",
        "reads a key in the home directory",
        "searches its own memory",
    )
    with opened("none") as place:
        found = [place.try_(a, then_honest=False) for name in thieves for a in STEAL if a.name == name]
    assert {f.tier for f in found} == {"none"}
    assert [bool(f.leaked) for f in found] == [True, True, True, False]


def test_a_socket_that_nobody_serves_is_noticed_without_waiting(attacked):
    """The kernel's own answer, that it does not serve, ends the wait: no limit on time has to run out."""
    stolen = next(a for a in BREAK if a.name == "cell: names another file as the judge's socket")
    tests = [test for e in attacked.try_(stolen, then_honest=False).graded.verdict.exercises for test in e.tests]
    assert {test.fault for test in tests if test.outcome is Outcome.FAILED} == {Fault.DIED}
    assert {test.message.en for test in tests if test.message} == {
        "The connection to the grader was closed during the call."
    }
