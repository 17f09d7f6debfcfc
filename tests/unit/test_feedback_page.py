"""The feedback page: what a student reads, in which language, and that nothing a student wrote can act on it."""

from __future__ import annotations

import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from autograder.feedback.page import Late, Manual, Show, page, score
from autograder.feedback.render import plain, points
from autograder.judge import verdict as verdicts
from autograder.judge.faults import Fault
from autograder.judge.verdict import (
    CellProblem,
    Diagnosis,
    Example,
    ExerciseVerdict,
    LeakFinding,
    Outcome,
    Status,
    Value,
    Verdict,
    Words,
)
from autograder.text import Text

VERDICTS = Path(__file__).parent / "verdicts"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onmouseover='alert(3)",
    "</style></title><svg onload=alert(4)>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;",
    "`<b>bold</b>`",
    "\u202egnp.exe\u2066 \u200b\u0000\u0007\x1b[31m",
    "A" + "\u0335\u0321\u031b\u0316" * 50,
    "x" * 100_000,
]
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "input",
        "div",
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "span",
        "section",
    ),
    *(
        "article",
        "header",
        "footer",
        "label",
        "i",
        "ul",
        "li",
        "a",
        "code",
        "pre",
        "figure",
        "figcaption",
        "details",
        "summary",
    ),
    *("small", "svg", "rect", "text"),
}


class Reader(HTMLParser):
    """Collects tags, attributes and the text in one language."""

    def __init__(self, html: str, language: str = "") -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.words: list[str] = []
        self._hidden = {"zh": "en", "en": "zh-CN"}.get(language)
        self._skipping = 0
        self._open: list[bool] = []
        self.feed(html)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in ("meta", "input", "rect"):
            hidden = tag in ("style", "title") or (tag != "html" and dict(attrs).get("lang") == self._hidden)
            self._open.append(hidden)
            self._skipping += hidden

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("meta", "input", "rect"):
            self._skipping -= self._open.pop()

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.words.append(data)


def load(name: str) -> Verdict:
    return Verdict.model_validate_json((VERDICTS / f"{name}.json").read_text(encoding="utf-8"))


def hostile(text: str) -> Verdict:
    words = Words(zh=text, en=text)
    numbers = [[float("nan"), 1e308], [float("inf"), -1e308]]
    value = Value(text=text, matrix=numbers)
    test = verdicts.TestVerdict(name=text, about=words, outcome=Outcome.FAILED, weight=1, message=words)
    exercise = ExerciseVerdict(
        name=text,
        points=1,
        max_points=2,
        tests=[test] * 200,
        diagnosis=Diagnosis(name=text, hint=words),
        example=Example(
            call=text, inputs=[value] * 50, got=value, want=Value(text=text, matrix=[[0.0, 1.0], [2.0, 3.0]])
        ),
        leak=LeakFinding(verdict=text, text=words, matrix=[[0.5] * 300] * 300),
    )
    return Verdict(
        assignment=text,
        notebook=text,
        student=text,
        status=Status.GRADED,
        exercises=[exercise] * 3,
        repairs=[Words(zh=f"{i}{text}", en=text) for i in range(300)],
        problems=[CellProblem(cell=i, text=words) for i in range(300)],
        limits_hit=[words],
        message=words,
    )


def test_course_and_title_are_in_the_language_chosen() -> None:
    html = page(
        load("mistake"), course=Text(zh="因果自注意力", en="Causal"), title=Text(zh="第 18 章", en="Chapter 18")
    )
    zh, en = Reader(html, "zh").text, Reader(html, "en").text
    assert "因果自注意力 · 第 18 章" in zh
    assert "Causal" not in zh
    assert "Causal · Chapter 18" in en
    assert "第 18 章" not in en


def test_mistake_is_named_with_its_hint_in_the_language_chosen() -> None:
    html = page(load("mistake"), student_name="李明", course="Deep Learning", title="Chapter 18")
    zh, en = Reader(html, "zh").text, Reader(html, "en").text
    assert "看看这里 留下的权重加起来不到 1" in zh
    assert "Look here What is left of a row adds up to less than 1" in en
    assert "Every row of weights adds up to 1." in en
    assert "Every row of weights" not in zh
    assert "权重" not in en
    assert "31 / 40" in zh
    assert "6 / 10" in zh
    assert "Another 5 points are still to be graded by hand." in en
    assert "1 more not checked" in en
    for text in (zh, en):
        assert "李明" in text
        assert "Deep Learning" in text
    assert "<code>softmax</code>" in html


@pytest.mark.parametrize("language", ["zh", "en"])
def test_language_shown_first_is_the_one_asked_for(language: Any) -> None:
    html = page(load("full"), language=language)
    assert f'id="pick-{language}" autocomplete="off" checked' in html
    assert html.count(" checked") == 1
    assert html.startswith("<!DOCTYPE html>\n" + f'<html lang="{"zh-CN" if language == "zh" else "en"}">')


def test_output_stands_beside_the_expected_one_as_heat_maps_with_words() -> None:
    html = page(load("mistake"))
    assert html.count("<svg") == 2
    assert "aria-label='你的输出 / your output 4 × 4 (6 格与应有的不同 / 6 cells are not as expected)'" in html
    assert "aria-label='应有的输出 / expected output 4 × 4'" in html
    assert html.count("stroke='#d1361b'") == 6


def test_leak_matrix_names_receiver_and_source_and_marks_the_future() -> None:
    html = page(load("several"))
    assert "receiver t" in html
    assert "接收位置 t" in html
    assert "来源 j" in html
    assert "3 cells on the side of the future are not 0, the largest is 6.0e-09 at receiver 2, source 3" in html


def test_equal_messages_are_written_once() -> None:
    english = Reader(page(load("several")), "en").text
    assert english.count("got (2, 5) float64.") == 1
    assert english.count("It did not finish within 2 s") == 1
    assert "A cell was there twice; the later one was used. (3 times)" in english
    assert english.count("NameError") == 1
    assert "Cell 12 , Cell 14" in english


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("full", "35 / 40"),
        ("empty", "The function is still as it was handed out"),
        ("unreadable", "This submission could not be graded The file you handed in is no notebook"),
        ("set_aside", "Your instructor will look at this submission"),
        ("several", "NOT SANDBOXED"),
        ("several", "went wrong by their own fault. They do not count"),
        ("several", "Limits that were hit More than 1 MB was printed"),
        ("several", "averaging_matrix not answered 0 / 5"),
    ],
)
def test_every_kind_of_verdict_is_said_in_words(name: str, says: str) -> None:
    assert says in Reader(page(load(name)), "en").text


def test_score_that_is_not_final_is_not_shown() -> None:
    text = Reader(page(load("set_aside")), "en").text
    assert "Score – / 40" in text
    assert "masked_softmax" not in text
    assert "Score 0 / 40" in Reader(page(load("unreadable")), "en").text


def test_sandboxed_verdict_bears_no_mark() -> None:
    assert "NOT SANDBOXED" not in page(load("full"))


def test_points_and_comments_given_by_hand_count_and_appear() -> None:
    manual = [
        Manual("why_dim_one", 4, 0.5, "Nice.\nSay more <about> heads."),
        Manual("prefix_mean", 2.5, comment="只差一个轴。"),
    ]
    verdict = load("several")
    html = page(verdict, manual=manual)
    english = Reader(html, "en").text
    assert "why_dim_one partly right 4 / 5 extra credit 0.5 Comment Nice. Say more <about> heads." in english
    assert "prefix_mean partly right 2.5 / 5" in english
    assert "adjusted by hand (automatic score 1.25)" in english
    assert "只差一个轴。" in english
    assert score(verdict, manual).points == pytest.approx(score(verdict).points + 4.5 + 1.25)
    assert (score(verdict).waiting, score(verdict, manual).waiting) == (5.0, 0.0)


def test_late_submission_says_how_late_and_what_it_cost() -> None:
    verdict = load("full")
    late = page(verdict, late=Late(timedelta(hours=5), 2.0))
    assert "Handed in 5 hours late: 2 points off. 35 before the deduction" in Reader(late, "en").text
    assert "33 / 40" in Reader(late, "en").text
    assert "迟交 5 小时，扣 2 分。" in Reader(late, "zh").text
    forgiven = Reader(page(verdict, late=Late(timedelta(minutes=3))), "en").text
    assert "Handed in 3 min late; no points were taken off." in forgiven
    assert score(verdict, late=Late(timedelta(days=9), 99)).points == 0


def test_what_the_course_does_not_show_is_not_in_the_page() -> None:
    html = page(load("mistake"), show=Show(hints=False, examples=False, tests=False))
    assert "denominator" not in html
    assert "<svg" not in html
    assert "Every row of weights" not in html
    assert "2 of the checks failed." in Reader(html, "en").text


def test_example_is_not_shown_for_an_exercise_with_full_marks() -> None:
    verdict = load("mistake")
    for exercise in verdict.exercises:
        exercise.points = exercise.max_points
    assert "<svg" not in page(verdict)


def test_example_is_not_shown_where_the_function_is_not_defined() -> None:
    verdict = load("mistake")
    for test in verdict.exercises[4].tests:
        if test.outcome is Outcome.FAILED:
            test.fault = Fault.MISSING
    assert "<svg" not in page(verdict)


def test_cells_are_not_outlined_where_nearly_all_differ() -> None:
    verdict = load("mistake")
    example = verdict.exercises[4].example
    assert example
    assert example.got
    example.got.matrix = [[9.0] * 4] * 4
    assert "#d1361b" not in page(verdict)
    assert "Red outline" not in page(verdict)


def test_english_message_begins_like_a_sentence_unless_with_a_name() -> None:
    text = Reader(page(load("mistake")), "en").text
    assert "The row sums: 9 of 12 elements are not as expected" in text
    verdict = load("mistake")
    message = verdict.exercises[4].tests[0].message
    assert message
    message.en = "causal_mask is not defined."
    assert "causal_mask is not defined." in Reader(page(verdict), "en").text


def test_page_loads_nothing_and_runs_nothing() -> None:
    reader = Reader(html := page(load("several")))
    assert "default-src 'none'" in html
    assert reader.tags <= ALLOWED
    for _, name, value in reader.attributes:
        assert not name.startswith("on")
        assert name != "src"
        assert name != "href" or (value or "").startswith("#")
    assert "@import" not in html
    assert "url(" not in html


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_a_student_wrote_acts_on_the_page(text: str) -> None:
    html = page(
        hostile(text),
        student_name=text,
        course=text,
        title=text,
        manual=[Manual(text, 1, 0, text)],
        late=Late(timedelta(1), 1),
    )
    reader = Reader(html)
    assert reader.tags <= ALLOWED
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]
    assert not re.search("[\u0000-\u0008\u000b-\u001f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", html)
    assert "49" not in reader.text or "7 * 7" not in text
    assert len(html) < 1_000_000


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("abc\u202edef", "abc�def"),
        ("a\u0000b\nc\td", "a�b\nc\td"),
        ("é\u0301", "é\u0301"),
        ("Z" + "\u0335" * 30, "Z\u0335\u0335"),
        ("中文，√d ≤ ½", "中文，√d ≤ ½"),
        ("\ud800", "�"),
    ],
)
def test_plain_keeps_words_and_drops_what_hides(given: str, kept: str) -> None:
    assert plain(given) == kept


def test_plain_shortens() -> None:
    assert plain("x" * 50, 10) == "x" * 10 + "…"


@pytest.mark.parametrize(
    ("value", "written"), [(7, "7"), (7.5, "7.5"), (10 / 3, "3.33"), (0, "0"), (100, "100"), (float("nan"), "?")]
)
def test_points_are_written_as_people_do(value: float, written: str) -> None:
    assert points(value) == written
