"""CSV, Gradescope's results.json, and totals with the worst left out."""

from __future__ import annotations

import csv
import io
import itertools
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course import Course
from autograder.gradebook.export import gradescope, scores_csv
from autograder.gradebook.scores import CellScore, Row
from autograder.gradebook.totals import totals
from autograder.judge.verdict import (
    CellVerdict,
    Diagnosis,
    ExerciseVerdict,
    Outcome,
    Status,
    Verdict,
    Words,
)
from autograder.judge.verdict import TestVerdict as HiddenTest

WHEN = datetime(2026, 3, 10, 1, 0, tzinfo=UTC)


def a_row(assignment: str, student: str, points: float, most: float = 10.0, **more: object) -> Row:
    cells = (CellScore("n1", "t", most, points, None, 0.0, False),)
    return Row(assignment, student, **{
        "first_name": "", "last_name": "", "email": "", "lms_user_id": "", "has_submission": True, "submitted": WHEN,
        "penalty": 0.0, "max_points": most, "cells": cells, **more,
    })  # fmt: skip


def test_csv_is_quoted_and_guarded(unreleased: Path) -> None:
    course = Course.load(unreleased)
    rows = [
        a_row("a1", "0123", 8.25, last_name='O"Neil, Jr.', first_name="=HYPERLINK(1)", email="@x", penalty=1.65),
        a_row("a1", "学生", 0.1 + 0.2, last_name="+1\n2", first_name="-x", email="a@b"),
        a_row("a1", "none", 0, has_submission=False, submitted=None, cells=()),
    ]
    lines = list(csv.DictReader(io.StringIO(scores_csv(course, rows))))
    assert lines[0] == {
        "assignment": "a1",
        "duedate": "2026-03-12T23:59:00+08:00",
        "timestamp": "2026-03-10T09:00:00+08:00",
        "student_id": "0123",
        "last_name": 'O"Neil, Jr.',
        "first_name": "'=HYPERLINK(1)",
        "email": "'@x",
        "raw_score": "8.25",
        "late_submission_penalty": "1.65",
        "score": "6.6",
        "max_score": "10",
        "needs_manual_grade": "",
        "n1/t": "8.25",
    }
    assert (lines[1]["last_name"], lines[1]["first_name"], lines[1]["score"]) == ("'+1\n2", "'-x", "0.3")
    assert (lines[2]["timestamp"], lines[2]["score"], lines[2]["n1/t"]) == ("", "0", "")


def test_gradescope() -> None:
    about = Words(zh="形状", en="shape")
    verdict = Verdict(
        assignment="a1", notebook="n1", student="x", status=Status.GRADED, seconds=1.5,
        repairs=[Words(zh="补", en="a cell was put back")],
        exercises=[
            ExerciseVerdict(
                name="masked_softmax", points=2, max_points=3,
                tests=[
                    HiddenTest(name="t1", about=about, outcome=Outcome.PASSED, weight=2),
                    HiddenTest(name="t2", about=about, outcome=Outcome.FAILED, weight=1, message=Words(zh="错", en="rows sum to 2")),
                ],
                diagnosis=Diagnosis(name="m", hint=Words(zh="先遮罩", en="mask before softmax")),
            ),
            ExerciseVerdict(name="full", points=1, max_points=1, tests=[]),
        ],
        cells=[CellVerdict(grade_id="c", points=0.5, max_points=1), CellVerdict(grade_id="w", points=None, max_points=4, manual=True)],
    )  # fmt: skip
    done = gradescope([verdict])
    assert json.loads(json.dumps(done)) == done
    assert (done["score"], done["execution_time"], done["output"]) == (3.5, 1.5, "a cell was put back")
    first, second, third = done["tests"]
    assert first["output"] == "mask before softmax\n[passed] shape\n[failed] shape: rows sum to 2"
    assert (first["score"], first["max_score"], first["status"], first["visibility"]) == (2, 3, "failed", "visible")
    assert (second["status"], third["name"], third["score"], third["number"]) == ("passed", "c", 0.5, "3")
    assert gradescope([verdict], "zh", show_tests=False)["tests"][0]["output"] == "先遮罩"
    broken = Verdict(
        assignment="a1", notebook="n1", student="x", status=Status.UNREADABLE, message=Words(zh="坏", en="broken")
    )
    assert (gradescope([broken])["score"], gradescope([broken])["output"]) == (0, "n1: broken")


def _course(folder: Path, drop: int, never: list[str]) -> Course:
    ids = [f"a{i}" for i in range(6)]
    items = "\n".join(f"  - {{id: {i}, title: {{zh: x, en: x}}, group: g}}" for i in ids)
    (folder / "course.yaml").write_text(
        f"version: 1\nid: c\ntitle: {{zh: x, en: x}}\ntimezone: UTC\n"
        f"groups: [{{id: g, drop_lowest: {drop}, never_drop: [{', '.join(never)}]}}]\nassignments:\n{items}\n"
    )
    return Course.load(folder)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=6),
    st.integers(0, 6),
    st.sets(st.sampled_from(["a0", "a1", "a2"])),
)
def test_totals_drop_what_helps_most(
    tmp_path_factory: pytest.TempPathFactory, scores: list[tuple[int, int]], drop: int, never: set[str]
) -> None:
    course = _course(tmp_path_factory.getbasetemp(), drop, sorted(never))
    rows = {f"a{i}": [a_row(f"a{i}", "x", min(p, m), m)] for i, (p, m) in enumerate(scores)}
    (total,) = totals(course, rows)
    free = [a for a in rows if a not in never]
    fixed = [a for a in rows if a in never]
    count = max(len(free) - drop, 0 if fixed else 1)
    choices = [[*fixed, *kept] for kept in itertools.combinations(free, count)]
    best = max(sum(rows[a][0].points for a in kept) / sum(rows[a][0].max_points for a in kept) for kept in choices)
    assert total.points / total.max_points == pytest.approx(best)
    assert len(total.dropped) == len(free) - count
    assert not never & set(total.dropped)


def test_what_was_not_handed_in_counts_zero(tmp_path: Path) -> None:
    course = _course(tmp_path, 0, [])
    rows = {
        "a0": [a_row("a0", "x", 8)],
        "a1": [a_row("a1", "x", 0, has_submission=False, cells=())],
    }
    assert [(t.points, t.max_points, t.dropped) for t in totals(course, rows)] == [(8, 20, ())]
    course = _course(tmp_path, 1, [])
    assert [(t.points, t.max_points, t.dropped) for t in totals(course, rows)] == [(8, 10, ("a1",))]
