"""Each unlucky notebook gets the release's structure, keeps the answers a fair human would count, and is told about."""

from __future__ import annotations

import pytest

from autograder.notebooks import Rebuilt, Submission, Unreadable, grade_id, identify, read_submission, rebuild
from autograder.notebooks.cells import names
from tests.broken.builders import CASES
from tests.broken.minirelease import ANSWERS, assert_structure, release, run, works
from tests.broken.sheet import Case

READABLE = [case for case in CASES if not case.unreadable]


def rebuilt(case: Case) -> tuple[Rebuilt, str]:
    """The rebuilt notebook of a case, and all that the student reads about it in English."""
    submission = read_submission(case.build(release(), ANSWERS))
    assert isinstance(submission, Submission)
    result = rebuild(submission.notebook, release())
    return result, "\n".join(repair.text.en for repair in (*submission.repairs, *result.repairs))


def defined(source: str, name: str) -> bool:
    return names(source).parses and name in names(source).bound


def test_there_are_enough_and_none_has_the_name_of_another():
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.name)
def test_structure_is_the_releases(case: Case):
    result, _ = rebuilt(case)
    assert_structure(result.notebook, release())


@pytest.mark.parametrize("case", [case for case in READABLE if not case.kernel], ids=lambda case: case.name)
def test_the_fair_answers_work_when_run(case: Case):
    result, _ = rebuilt(case)
    fair = case.fair(release(), ANSWERS)
    assert works(run(result.notebook)) == set(fair) - {"why_scale"}
    cells = {grade_id(cell): cell for cell in result.notebook.cells}
    for name in set(fair) - {"why_scale"}:
        if result.matched[f"{name}_answer"] != "elsewhere":  # the answer is to be seen where it was asked for
            assert defined(cells[f"{name}_answer"].source, name)
    assert (ANSWERS["why_scale"].split()[-1] in cells["why_scale"].source) == ("why_scale" in fair)
    assert ("why_scale" in result.untouched) == ("why_scale" not in fair)


@pytest.mark.parametrize("case", [case for case in READABLE if case.kernel], ids=lambda case: case.name)
def test_answers_that_need_a_kernel_stay_in_their_cells(case: Case):
    result, _ = rebuilt(case)
    assert result.untouched == frozenset()
    assert set(result.matched.values()) == {"grade_id"}


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.name)
def test_what_was_mended_is_told(case: Case):
    _, told = rebuilt(case)
    for words in case.told:
        assert words in told
    assert bool(case.told) == bool(told), told


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.name)
def test_rebuilding_again_changes_nothing(case: Case):
    once, _ = rebuilt(case)
    again = rebuild(once.notebook, release())
    assert again.notebook == once.notebook
    assert again.untouched == once.untouched


@pytest.mark.parametrize("case", [case for case in CASES if case.unreadable], ids=lambda case: case.name)
def test_no_notebook_is_a_reason_in_words(case: Case):
    result = read_submission(case.build(release(), ANSWERS))
    assert isinstance(result, Unreadable)
    for words in case.told:
        assert words in result.reason.en
    assert "{" not in str(result.reason)
    assert result.reason.zh != result.reason.en


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.name)
def test_the_assignment_is_recognised_whatever_the_file_is_called(case: Case):
    other = release()
    for cell in other.cells:
        if identity := grade_id(cell):
            cell.metadata.nbgrader.grade_id = f"week2_{identity}"
            cell.source = cell.source.replace("def ", "def other_").replace("class ", "class Other")
    submission = read_submission(case.build(release(), ANSWERS))
    assert isinstance(submission, Submission)
    found = identify(submission.notebook, {"week2": other, "week1": release()})
    nothing_left = case.name in ("all_cells_deleted", "notebook_of_another_assignment")
    assert found == (None if nothing_left else "week1")


@pytest.mark.parametrize(
    "case", [case for case in READABLE if case.name.startswith("nothing_done")], ids=lambda c: c.name
)
def test_nothing_done_is_seen_to_be_nothing(case: Case):
    result, _ = rebuilt(case)
    assert result.matched == {}
    assert result.notebook == release()


def test_a_notebook_pasted_twice_is_neither_out_of_order_nor_answered_twice():
    [case] = [case for case in CASES if case.name == "notebook_pasted_twice"]
    result, _ = rebuilt(case)
    assert {repair.kind for repair in result.repairs} == {"duplicate-locked", "duplicate-answer"}
    assert [cell.source for cell in result.notebook.cells if grade_id(cell) == "why_scale"] == [ANSWERS["why_scale"]]
