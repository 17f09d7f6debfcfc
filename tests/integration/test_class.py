"""The whole way: the sample class of the course in this repository, from release to feedback pages."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from autograder.course import Course
from autograder.gradebook.book import Book
from autograder.grading.assignment import Assignment
from autograder.grading.demo import run_demo, sample_class
from autograder.grading.run import grade_class, local_pool
from autograder.judge.verdict import Outcome, Status, schema

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    into = tmp_path_factory.mktemp("class") / "demo"
    return into, run_demo(ROOT, into, jobs=2)


def verdicts(demo, student):
    (done,) = [each for each in demo[1].done if each.student == student]
    return {verdict.notebook: verdict for verdict in done.verdicts}


def exercises(demo, student):
    return {e.name: e for verdict in verdicts(demo, student).values() for e in verdict.exercises}


def test_every_score_and_every_named_mistake_is_as_designed(demo):
    assert demo[1].surprises == []


def test_every_student_has_a_verdict_on_every_notebook(demo):
    assert len(demo[1].done) >= 14
    assert {len(each.verdicts) for each in demo[1].done} == {4}


def test_verdicts_follow_the_published_schema(demo):
    published = schema()
    paths = list(demo[0].glob("verdicts/*/*/*.json"))
    assert len(paths) == 4 * len(demo[1].done)
    for path in paths:
        jsonschema.validate(json.loads(path.read_text()), published)


def test_every_notebook_was_graded_in_a_sandbox(demo):
    tiers = {v.sandbox for each in demo[1].done for v in each.verdicts if v.status is Status.GRADED}
    assert "none" not in tiers


def test_the_right_ones_keep_their_written_answers_for_a_person(demo):
    cells = [cell for verdict in verdicts(demo, "01_reference").values() for cell in verdict.cells]
    assert len(cells) >= 4
    assert all(cell.manual and cell.points is None for cell in cells)


def test_nothing_goes_wrong_in_a_right_notebook(demo):
    for student in ("01_reference", "02_alternative", "03_alternative"):
        for verdict in verdicts(demo, student).values():
            assert (verdict.problems, verdict.limits_hit, verdict.repairs, verdict.course_faults) == ([], [], [], [])


WORDS = {
    "11_syntax_error": "SyntaxError",
    "12_infinite_loop": "did not end within 2 seconds",
    "13_memory_bomb": "MemoryError",
    "14_os_exit": "the notebook's kernel exited by itself (status 0)",
}


@pytest.mark.parametrize("student", WORDS)
def test_what_broke_a_notebook_is_said_in_words(demo, student):
    verdict = verdicts(demo, student)["1_averaging"]
    said = [p.text.en for p in verdict.problems]
    said += [t.message.en for e in verdict.exercises for t in e.tests if t.message]
    assert any(WORDS[student] in text for text in said), said


def test_a_broken_file_gets_a_reason_and_no_points(demo):
    for verdict in verdicts(demo, "17_broken_file").values():
        assert verdict.status is Status.UNREADABLE
        assert "hand in the .ipynb file again" in verdict.message.en
        assert verdict.points == 0


def test_an_untouched_stub_is_no_mistake(demo):
    for exercise in exercises(demo, "10_untouched").values():
        assert exercise.untouched
        assert exercise.diagnosis is None
        assert {test.outcome for test in exercise.tests} <= {Outcome.FAILED, Outcome.NOT_CHECKED}


def test_repairs_are_told(demo):
    repairs = [r.en for v in verdicts(demo, "15_cells_doubled_and_deleted").values() for r in v.repairs]
    assert len(repairs) >= 8


def test_feedback_pages_hold_no_hidden_test_and_no_solution(demo):
    hidden = "".join(path.read_text() for path in (ROOT / "tests" / "hidden").rglob("*.py"))
    lines = {line.strip() for line in hidden.splitlines() if len(line.strip()) > 45 and "expect." in line}
    assert lines
    assert len(demo[1].pages) == 4 * len(demo[1].done)
    for path in [*demo[1].pages, demo[1].report]:
        html = Path(path).read_text()
        assert not [line for line in lines if line in html]
        assert "Traceback" not in html


def test_the_gradebook_holds_what_the_verdicts_say(demo):
    course = Course.load(demo[0])
    with Book(course) as book:
        rows = {row.student: row for row in book.rows("ch18")}
    for each in demo[1].done:
        assert rows[each.student].raw == pytest.approx(sum(v.points for v in each.verdicts))


def test_a_second_run_grades_nothing_and_changes_nothing(demo):
    course = Course.load(demo[0])
    course = course.model_copy(update={"limits": demo_limits(course)})
    before = {path: path.read_bytes() for path in demo[0].glob("verdicts/*/*/*.json")}
    again = list(grade_class(course, Assignment.load(demo[0], "ch18"), local_pool(1), workers=1))
    assert [each.fresh for each in again] == [False] * len(demo[1].done)
    assert {path: path.read_bytes() for path in demo[0].glob("verdicts/*/*/*.json")} == before


def demo_limits(course):
    import dataclasses

    from autograder.grading import demo as module

    return dataclasses.replace(course.limits, **module._SHORT)


def test_the_sample_class_covers_every_kind():
    names = {sample.student for sample in sample_class(Assignment.load(ROOT, "ch18"))}
    kinds = ["reference", "alternative", "one_mistake", "everywhere", "untouched", "syntax", "loop", "memory", "exit"]
    kinds += ["doubled", "colab", "broken"]
    assert all(any(kind in name for name in names) for kind in kinds)
