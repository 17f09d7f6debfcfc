"""Feedback page and class report as a browser shows them: both languages, both widths, keyboard, print, accessibility."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from autograder.feedback.page import Late, Manual, page
from autograder.feedback.report import report
from autograder.judge.verdict import Verdict

pytestmark = pytest.mark.browser

VERDICTS = {
    path.stem: Verdict.model_validate_json(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent.parent / "unit" / "verdicts").glob("*.json"))
}
ABOUT = {"student_name": "李明 Li Ming", "course": "深度学习 Deep Learning", "title": "第 18 章 Chapter 18"}
WIDTHS = [1400, 420]


def feedback(name: str, **more: Any) -> str:
    return page(VERDICTS[name], **{**ABOUT, **more})


def class_report() -> str:
    late = {"s01": timedelta(hours=3)}
    return report(list(VERDICTS.values()), course="Deep Learning", title="ch18", roster=["s01", "s99"], late=late)


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open HTML text as a file in a fresh page without JavaScript; a request or an error in the console fails the test."""
    contexts, troubles = [], []

    def open_page(html: str, width: int = 1400, **options: Any) -> Any:
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, **{"java_script_enabled": False, **options}
        )
        contexts.append(context)
        opened = context.new_page()
        opened.on("request", lambda r: troubles.append(r.url) if not r.url.endswith("/page.html") else None)
        opened.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        opened.goto((tmp_path / "page.html").as_uri())
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def test_language_switches_by_mouse_without_javascript(show: Callable[..., Any]) -> None:
    opened = show(feedback("mistake"))
    hint = opened.get_by_text("What is left of a row adds up to less than 1")
    assert not hint.is_visible()
    assert opened.get_by_text("留下的权重加起来不到 1").is_visible()
    opened.get_by_text("English", exact=True).click()
    assert hint.is_visible()
    assert not opened.get_by_text("留下的权重加起来不到 1").is_visible()
    drawn = opened.locator("svg text:visible").all_text_contents()
    assert "row" in drawn
    assert "行" not in drawn


def test_language_switches_by_keyboard(show: Callable[..., Any]) -> None:
    opened = show(feedback("mistake"))
    opened.keyboard.press("Tab")
    opened.keyboard.press("ArrowRight")
    assert opened.get_by_text("What is left of a row adds up to less than 1").is_visible()
    assert opened.get_by_role("radio", name="English").is_checked()


def test_passed_checks_unfold_and_contents_lead_to_the_exercise(show: Callable[..., Any]) -> None:
    opened = show(feedback("mistake", language="en"))
    exercise = opened.locator("#exercise-masked_softmax")
    check = exercise.get_by_text("A blocked source gets weight exactly 0.")
    assert not check.is_visible()
    exercise.locator("summary").click()
    assert check.is_visible()
    opened.get_by_role("link", name="attend_row").click()
    assert opened.url.endswith("#exercise-attend_row")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_page_fits_its_width(name: str, width: int, show: Callable[..., Any], pictures: Path) -> None:
    manual = [Manual("why_dim_one", 4, 0.5, "说清楚了行和列。\nNice.")] if name == "several" else []
    late = Late(timedelta(hours=5), 2) if name == "several" else None
    opened = show(feedback(name, manual=manual, late=late), width)
    assert _overflow(opened) == 0
    opened.screenshot(path=pictures / f"feedback-{name}-{width}.png", full_page=True)


@pytest.mark.parametrize("width", WIDTHS)
def test_report_fits_its_width(width: int, show: Callable[..., Any], pictures: Path) -> None:
    opened = show(class_report(), width)
    assert _overflow(opened) == 0
    opened.screenshot(path=pictures / f"report-{width}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*sorted(VERDICTS), "report"])
def test_axe_finds_nothing_to_complain_about(name: str, scheme: str, show: Callable[..., Any]) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    html = class_report() if name == "report" else feedback(name, manual=[Manual("why_dim_one", 4, 0.5, "Nice.")])
    opened = show(html, java_script_enabled=True, bypass_csp=True, color_scheme=scheme)
    for language in ("中文", "English"):
        opened.get_by_text(language, exact=True).click()
        opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found = axe.Axe().run(opened).response["violations"]
        assert [(v["id"], [n["html"][:150] for n in v["nodes"]]) for v in found] == []


def test_print_hides_the_switch_and_keeps_the_heat_map(show: Callable[..., Any]) -> None:
    opened = show(feedback("mistake"))
    opened.emulate_media(media="print")
    assert not opened.get_by_text("English", exact=True).is_visible()
    assert opened.locator("svg").first.is_visible()


def _overflow(opened: Any) -> int:
    """By how many pixels the widest thing on the page reaches beyond the window. Scripts of the page are off, the driver's are not."""
    return int(opened.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
