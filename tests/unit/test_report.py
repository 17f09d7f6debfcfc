"""The class report: its numbers, and what an instructor reads."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from autograder.feedback.page import Manual
from autograder.feedback.report import report
from autograder.feedback.statistics import summarise
from autograder.judge import verdict as verdicts
from autograder.judge.verdict import (
    CellVerdict,
    Diagnosis,
    Example,
    ExerciseVerdict,
    Outcome,
    Status,
    Value,
    Verdict,
    Words,
)

VERDICTS = Path(__file__).parent / "verdicts"


def english(html: str) -> str:
    """The words of the page in English."""
    html = re.sub(r'<(span|text) [^>]*lang="zh-CN">.*?</\1>|<style>.*?</style>', " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def exercise(name: str, points: float, **more: Any) -> ExerciseVerdict:
    """An answer worth ``points`` of 10 with two hidden tests, of which the first needs 5 points and the second 10."""
    tests = [
        verdicts.TestVerdict(
            name=f"test_{i}",
            about=Words(zh=f"检查{i}", en=f"Check {i}."),
            outcome=Outcome.PASSED if points >= need else Outcome.FAILED,
            weight=1,
        )
        for i, need in enumerate((5, 10))
    ]
    return ExerciseVerdict(name=name, points=points, max_points=10, tests=tests, **more)


def submission(student: str, *exercises: ExerciseVerdict, **more: Any) -> Verdict:
    given = {"assignment": "ch18", "notebook": "nb", "status": Status.GRADED, "sandbox": "bubblewrap", **more}
    return Verdict(student=student, exercises=list(exercises), **given)


def named(name: str | None, hint: str = "look at the axis") -> Diagnosis:
    return Diagnosis(name=name, hint=Words(zh="看看轴", en=hint))


def test_difficulty_is_the_mean_share_of_points() -> None:
    found = summarise([submission(f"s{i}", exercise("f", points)) for i, points in enumerate((10, 10, 5, 0))])
    (only,) = found.exercises
    assert (only.mean, only.full, only.answers, only.untouched) == (0.625, 2, 4, 0)
    assert found.shares == [1.0, 1.0, 0.5, 0.0]
    assert (found.mean, found.median, found.students) == (0.625, 0.75, 4)


def test_discrimination_is_the_correlation_with_the_rest() -> None:
    able = [i % 10 for i in range(20)]
    class_ = [submission(f"s{i}", exercise("f", a), exercise("g", a), exercise("even", 5)) for i, a in enumerate(able)]
    found = {e.name: e.discrimination for e in summarise(class_).exercises}
    assert found == {"f": pytest.approx(1.0), "g": pytest.approx(1.0), "even": None}  # on "even" everyone scored alike
    against = [submission(f"s{i}", exercise("f", a), exercise("g", 9 - a)) for i, a in enumerate(able)]
    assert [e.discrimination for e in summarise(against).exercises] == [pytest.approx(-1.0), pytest.approx(-1.0)]
    assert [e.discrimination for e in summarise(against[:7]).exercises] == [None, None]  # too few
    assert "-1.00" in english(report(against))


def test_points_that_wait_for_a_person_are_not_held_against_students() -> None:
    cells = [CellVerdict(grade_id="why", points=None, max_points=10, manual=True)]
    class_ = [submission("a", exercise("f", 10), cells=cells), submission("b", exercise("f", 5), cells=cells)]
    assert summarise(class_).shares == [1.0, 0.5]
    given = {("b", "nb"): [Manual("why", 10)]}
    assert summarise(class_, manual=given).shares == [1.0, 0.75]


def test_notebooks_of_one_student_are_added_up() -> None:
    class_ = [
        submission("a", exercise("f", 10), notebook="n1"),
        submission("a", exercise("g", 0), notebook="n2"),
        submission("b", exercise("f", 10), notebook="n1"),  # handed in one of two
    ]
    found = summarise(class_)
    assert (found.students, found.shares) == (2, [0.5, 0.5])


def test_named_mistakes_are_counted_most_frequent_first() -> None:
    class_ = [
        submission("a", exercise("f", 5, diagnosis=named("running_sum"))),
        submission("b", exercise("f", 5, diagnosis=named("no_mask"))),
        submission("c", exercise("f", 0, diagnosis=named("no_mask"))),
        submission("d", exercise("f", 10)),
        submission("e", exercise("f", 0, untouched=True, diagnosis=named("no_mask"))),
    ]
    found = summarise(class_)
    assert [(m.name, m.count) for m in found.mistakes] == [("no_mask", 2), ("running_sum", 1)]
    assert found.unlisted == []


def test_unlisted_mistakes_are_clustered_by_signature_within_an_exercise() -> None:
    example = Example(call="f(X)", inputs=[Value(text="X = 3")], got=Value(text="4"), want=Value(text="5"))
    class_ = [
        submission("a", exercise("f", 5, signature="x", diagnosis=named(None)), exercise("g", 0, signature="x")),
        submission("b", exercise("f", 5, signature="x", example=example)),
        submission("c", exercise("f", 5, signature="y")),
        submission("d", exercise("f", 5, signature="y", diagnosis=named("known"))),
        submission("e", exercise("f", 10, signature="x")),
    ]
    found = summarise(class_)
    assert [(m.exercise, m.count) for m in found.unlisted] == [("f", 2), ("f", 1), ("g", 1)]
    assert found.unlisted[0].example == example
    text = english(report(class_))
    assert "Mistakes that nobody has named yet" in text
    assert "f 2 students what the student reads · look at the axis Check 1." in text
    assert "an example (anonymous) f(X) X = 3 the student&#39;s output 4 expected output 5" in text


def test_tests_that_tell_nothing_apart_are_named() -> None:
    class_ = [submission("a", exercise("f", 5)), submission("b", exercise("f", 7))]
    text = english(report(class_))
    assert "nobody passes (1) f · Check 1." in text
    assert "everybody passes (1) f · Check 0." in text
    assert "f · Check 0. 100% 2 / 2" in text


def test_unchecked_and_untouched_are_left_out_of_pass_rates() -> None:
    skipped = exercise("f", 5)
    skipped.tests[1].outcome = Outcome.NOT_CHECKED
    faulty = exercise("f", 10)
    faulty.tests[1].outcome = Outcome.COURSE_FAULT
    class_ = [submission("a", skipped), submission("b", faulty), submission("c", exercise("f", 0, untouched=True))]
    (only,) = summarise(class_).exercises
    assert [(t.name, t.passed, t.run) for t in only.tests] == [("test_0", 2, 2)]
    assert only.untouched == 1


def test_course_faults_come_before_everything_else() -> None:
    fault = "test_f.py::test_x: TypeError: <b>bad</b>"
    class_ = [submission(s, exercise("f", 10), course_faults=[fault]) for s in "abc"]
    html = report(class_)
    text = english(html)
    assert text.index("Faults in the course itself") < text.index("students handed in")
    assert "&lt;b&gt;bad&lt;/b&gt; (3 times)" in text
    assert "<b>bad" not in html
    assert "Faults in the course" not in english(report([submission("a", exercise("f", 10))]))


def test_late_missing_and_troubled_submissions_are_listed() -> None:
    class_ = [
        submission("ann", exercise("f", 10)),
        submission("bob", exercise("f", 0), status=Status.UNREADABLE),
        submission("cid", exercise("f", 0), status=Status.SET_ASIDE),
        submission("dee", exercise("f", 0), status=Status.MACHINE_FAULT),
        submission("eve", status=Status.MISSING),
    ]
    found = summarise(class_, roster=["ann", "bob", "cid", "dee", "eve", "fay"])
    assert found.missing == ["eve", "fay"]
    assert found.shares == [1.0, 0.0]  # what nobody but the machine is to blame for does not count
    text = english(report(class_, roster=["ann", "fay"], late={"ann": timedelta(hours=3)}))
    assert "could not be read (1) bob (nb)" in text
    assert "ended the grading process twice (1) cid (nb)" in text
    assert "the grading machine failed; grade again (1) dee (nb)" in text
    assert "late (1) ann ( 3 hours )" in text
    assert "missing (2) eve, fay" in text


def test_limits_and_times_are_summed_up() -> None:
    limit = Words(zh="内存不够", en="Out of memory.")
    class_ = [submission(s, exercise("f", 10), limits_hit=[limit, limit], seconds=2.0) for s in "ab"]
    class_.append(submission("c", exercise("f", 10), seconds=100.0, sandbox="none"))
    text = english(report(class_))
    assert "Out of memory. 2 notebooks" in text
    assert "2 min in all; median 2 s, longest 2 min." in text
    assert "1 graded without the sandbox (NOT SANDBOXED)" in text


def test_empty_class_has_a_report_too() -> None:
    text = english(report([], roster=["a"], title="ch18"))
    assert "0 students handed in" in text
    assert "There are no submissions to count yet." in text
    assert "1 missing" in text


def test_report_is_self_contained_and_holds_no_name_beside_an_example() -> None:
    class_ = [Verdict.model_validate_json(path.read_text(encoding="utf-8")) for path in sorted(VERDICTS.glob("*.json"))]
    for i, verdict in enumerate(class_):
        verdict.student = f"secret-{i}"
    html = report(class_, language="en")
    assert "default-src 'none'" in html
    assert "<script" not in html
    assert not re.findall(r'(?:href|src)="(?!#)', html)
    assert html.count("<svg") == 2
    assert 'aria-label="得分分布 / Scores. ' in html
    mistakes = html[html.index("Named mistakes") : html.index("Late and missing")]
    assert "secret-" not in mistakes
    assert "mask after softmax" in mistakes


def test_hostile_strings_stay_text() -> None:
    text = "<script>alert(1)</script>\u202e"
    bad = exercise(text, 5, diagnosis=named(text, text), signature=text)
    html = report(
        [submission(text, bad, notebook=text)], course=text, title=text, roster=[text], late={text: timedelta(1)}
    )
    assert "<script" not in html
    assert "\u202e" not in html
