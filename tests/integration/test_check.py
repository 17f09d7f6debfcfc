"""The course in this repository is consistent, for several sets of hidden inputs, and `check` says so when it is not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest

from autograder.course import Course
from autograder.exercises import load
from autograder.exercises.source import answer
from autograder.grading.check import check
from autograder.notebooks import fill

ROOT = Path(__file__).parents[2]


def test_the_course_is_consistent():
    found = check(Course.load(ROOT), "ch18")
    assert found.problems == []
    assert (found.survived, found.undiagnosed, found.false_alarms, found.stubs_that_score) == (0, 0, 0, 0)
    assert found.exercises >= 24
    assert found.mistakes >= 115


@pytest.mark.slow
def test_the_course_is_consistent_for_five_seeds():
    assert check(Course.load(ROOT), "ch18", seeds=5).problems == []


@pytest.fixture
def broken(tmp_path):
    """A course of notebook 1 alone, whose files a test then spoils."""
    for name in ("source/ch18", "release/ch18", "solutions/ch18", "tests/hidden/ch18"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("[234]_*", "__pycache__", "*.whl"))
    for name in ("qkv_head", "position_cross", "prove_causal"):
        (tmp_path / "solutions" / "ch18" / f"{name}.py").unlink()
        (tmp_path / "tests" / "hidden" / "ch18" / f"test_{name}.py").unlink()
    shutil.copy(ROOT / "course.yaml", tmp_path)
    return tmp_path


def problems(folder):
    return [problem.en for problem in check(Course.load(folder), "ch18").problems]


def edit(path, pattern, replacement):
    text = path.read_text()
    changed = re.sub(pattern, replacement, text, count=1, flags=re.DOTALL)
    assert changed != text
    path.write_text(changed)


def test_a_consistent_course_has_no_problem(broken):
    assert problems(broken) == []


def test_a_reference_without_tests_and_cells_is_told_step_by_step(broken):
    path = broken / "solutions" / "ch18" / "averaging.py"
    path.write_text(path.read_text() + "\n\n@exercise\ndef window_mean(X, w):\n    return X\n")
    found = "\n".join(problems(broken))
    assert "window_mean: no hidden test: add a class with @pytest.mark.exercise('window_mean')" in found
    assert "window_mean: no grade cell with grade_id 'window_mean' in source/ch18" in found
    assert "window_mean: no answer cell with grade_id 'window_mean_answer' in source/ch18" in found


def test_a_mistake_that_earns_everything_is_told(broken):
    path = broken / "solutions" / "ch18" / "averaging.py"
    more = '\n\n@mistake(of=causal_mask, zh="一", en="one")\ndef right_after_all(T):\n    return torch.ones(T, T).tril().bool()\n'
    path.write_text(path.read_text() + more)
    assert "causal_mask: the mistake right_after_all earns everything: add a hidden test that fails it" in problems(
        broken
    )


def test_two_mistakes_with_equal_outputs_are_told(broken):
    path = broken / "solutions" / "ch18" / "averaging.py"
    more = (
        '\n\n@mistake(of=causal_mask, zh="一", en="one")\ndef all_allowed_{n}(T):\n    return torch.ones(T, T).bool()\n'
    )
    path.write_text(path.read_text() + more.format(n=1) + more.format(n=2))
    assert any("the mistake all_allowed_2 is named as" in problem for problem in problems(broken))


def test_a_release_that_holds_a_reference_is_told(broken):
    notebook = broken / "release" / "ch18" / "1_averaging.ipynb"
    reference = load(ROOT / "solutions" / "ch18")["prefix_mean_loop"].reference
    filled = fill(nbformat.read(notebook, as_version=4), {"prefix_mean_loop": answer(reference, "prefix_mean_loop")})
    nbformat.write(filled, notebook)
    assert any("holds the reference of prefix_mean_loop" in problem for problem in problems(broken))


def test_a_release_that_is_older_than_its_source_is_told(broken):
    edit(broken / "source" / "ch18" / "1_averaging.ipynb", r'"points": 5', '"points": 6')
    assert any("does not match its source: run `autograder release ch18`" in problem for problem in problems(broken))


def test_a_test_that_fails_a_right_answer_is_told(broken):
    path = broken / "tests" / "hidden" / "ch18" / "test_averaging.py"
    more = (
        '\n\n@pytest.mark.exercise("causal_mask")\nclass TestMore:\n    def test_wrong(self, student):\n'
        '        """一。\n\n        one.\n        """\n        assert student.causal_mask(3).sum() == 7\n'
    )
    path.write_text(path.read_text() + more)
    assert any(
        problem.startswith("causal_mask: the reference should pass everything but fails test_wrong")
        for problem in problems(broken)
    )
