"""The card in the autograded notebook, and the page in the place where nbgrader releases feedback from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default.release_feedback import ExchangeReleaseFeedback
from nbgrader.utils import notebook_hash
from traitlets.config import Config

from autograder.feedback.card import card
from autograder.feedback.page import Show
from autograder.feedback.write import releasable, write_feedback
from autograder.judge.verdict import ExerciseVerdict, Verdict

VERDICTS = Path(__file__).parent / "verdicts"


def exercise(verdict: str, name: str) -> ExerciseVerdict:
    found = Verdict.model_validate_json((VERDICTS / f"{verdict}.json").read_text(encoding="utf-8"))
    return next(e for e in found.exercises if e.name == name)


def test_card_says_score_hint_and_failed_checks_in_both_languages() -> None:
    text = card(exercise("mistake", "masked_softmax"))["text/plain"]
    assert text.splitlines()[0] == "masked_softmax  6 / 10"
    assert text.splitlines()[1].startswith("→ 留下的权重加起来不到 1")
    assert "/ What is left of a row adds up to less than 1" in text
    assert "✗ 每一行的权重加起来是 1。 / Every row of weights adds up to 1." in text
    assert "1 more not checked" in text
    assert card(exercise("mistake", "causal_mask"), languages=("en",))["text/plain"] == (
        "causal_mask  5 / 5\n  All 2 checks passed."
    )


def test_card_of_an_untouched_stub() -> None:
    assert card(exercise("several", "averaging_matrix"), languages=("en",))["text/plain"].endswith(
        "The function is still as it was handed out, so nothing was checked."
    )


def test_card_hides_what_the_course_does_not_show() -> None:
    data = card(exercise("mistake", "masked_softmax"), show=Show(hints=False, tests=False), languages=("en",))
    assert "denominator" not in data["text/html"] + data["text/plain"]
    assert "Every row" not in data["text/html"] + data["text/plain"]
    assert "2 of the checks failed." in data["text/plain"]


@pytest.mark.parametrize("sanitize", [False, True])
def test_card_survives_nbconvert(sanitize: bool) -> None:
    output = new_output("display_data", data=card(exercise("mistake", "masked_softmax")))
    notebook = new_notebook(cells=[new_code_cell("check(masked_softmax)", outputs=[output])])
    html, _ = HTMLExporter(sanitize_html=sanitize, template_name="classic").from_notebook_node(notebook)
    shown = html[html.index("<body") :]
    assert "<strong><code>masked_softmax</code> · 6 / 10</strong>" in shown
    assert "&lt;div" not in shown
    assert ("border-left:4px" in shown) is not sanitize


def test_nothing_a_student_wrote_acts_in_the_card() -> None:
    verdict = exercise("mistake", "masked_softmax")
    hostile = "<script>alert(1)</script>'\"><img src=x onerror=alert(2)>\u202e\u0000"
    verdict.name = hostile
    for test in verdict.tests:
        test.about.zh = test.about.en = hostile
        if test.message:
            test.message.zh = test.message.en = hostile * 1000
    assert verdict.diagnosis
    verdict.diagnosis.hint.en = hostile
    html = card(verdict)["text/html"]
    assert set(re.findall(r"<(\w+)", html)) <= {"div", "strong", "code", "blockquote", "span"}
    assert "\u202e" not in html
    assert len(html) < 20_000


def test_page_is_released_by_nbgrader(tmp_path: Path) -> None:
    submission = tmp_path / "submitted/s01/ch18"
    submission.mkdir(parents=True)
    (submission / "timestamp.txt").write_text("2026-03-01 10:00:00 UTC")
    (submission / "submission_secret.txt").write_text("a secret")
    folder = tmp_path / "feedback/s01/ch18"
    for html in ("<p>old</p>", "<p>你好</p>"):
        written = write_feedback(html, folder=folder, notebook="1_averaging", submission=submission)
    assert written == folder / "1_averaging.html"
    assert sorted(p.name for p in folder.iterdir()) == ["1_averaging.html", "submission_secret.txt", "timestamp.txt"]
    assert releasable(folder)

    config = Config()
    config.CourseDirectory.root = str(tmp_path)
    config.CourseDirectory.course_id = "course"
    config.CourseDirectory.assignment_id = "ch18"
    config.Exchange.root = str(tmp_path / "exchange")
    (tmp_path / "exchange/course").mkdir(parents=True)
    ExchangeReleaseFeedback(coursedir=CourseDirectory(config=config), config=config).start()
    name = notebook_hash(secret="a secret", notebook_id="1_averaging")
    assert (tmp_path / f"exchange/course/feedback/{name}.html").read_text(encoding="utf-8") == "<p>你好</p>"


def test_submission_that_came_another_way_is_not_releasable(tmp_path: Path) -> None:
    write_feedback("<p></p>", folder=tmp_path / "feedback", notebook="n", submission=tmp_path)
    assert not releasable(tmp_path / "feedback")
