"""Both roles in their own JupyterLab, from the release to the feedback page, with nbgrader's buttons and nothing but them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FrameLocator, Locator, Page, expect

from tests.browser import servers

pytestmark = pytest.mark.browser

STUDENT, NOTEBOOK = "li_hua", "1_averaging"
DEADLINE = 120_000.0
WRONG_MASK = "def causal_mask(T):\n    return torch.ones(T, T, dtype=torch.bool).triu()"
RIGHT_MASK = WRONG_MASK.replace("triu", "tril")
MASK_TOO_LATE = "def masked_softmax(scores, allowed):\n    return scores.softmax(dim=-1) * allowed"
WRITTEN = "It normalises over receivers, so the rows no longer add up to 1."
COMMENT = "Rows and columns: right. 形状 (B, H, T, T) 呢？"


@pytest.fixture
def teacher_and_student(browser: Any, tmp_path: Path) -> Iterator[tuple[Page, Page]]:
    """JupyterLab of the instructor and of a student, on one exchange."""
    for name in ("course", "teacher", "student", "exchange"):
        (tmp_path / name).mkdir()
    (tmp_path / "exchange").chmod(0o777)
    course = servers.make_course(tmp_path / "course", NOTEBOOK)
    exchange = tmp_path / "exchange"
    with (
        servers.instructor(course, tmp_path / "teacher", exchange) as taught_at,
        servers.student(tmp_path / "work", tmp_path / "student", exchange, STUDENT) as learnt_at,
    ):
        pages = []
        for address in (taught_at, learnt_at):
            page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
            page.set_default_timeout(DEADLINE)
            page.goto(address)
            pages.append(page)
        yield pages[0], pages[1]
        for page in pages:
            page.context.close()


def test_from_release_to_feedback(
    teacher_and_student: tuple[Page, Page], browser: Any, pictures: Path, tmp_path: Path
) -> None:
    expect.set_options(timeout=DEADLINE)
    teacher, student = teacher_and_student
    formgrader = open_formgrader(teacher)
    for step in ("assign", "release"):
        press(formgrader, "ch18", step)
    teacher.screenshot(path=pictures / "lab-released.png")

    fetch_and_open(student)
    work_on_the_mask(student, pictures)
    leave_a_mistake_and_a_written_answer(student)
    validate(student, pictures)
    submit(student)

    press(formgrader, "ch18", "collect")
    earned = autograde(formgrader)
    teacher.screenshot(path=pictures / "lab-autograded.png")
    grade_by_hand(teacher, formgrader)
    teacher.screenshot(path=pictures / "lab-graded-by-hand.png")
    for step in ("generate-feedback", "release-feedback"):
        press(formgrader, "ch18", step)

    read_feedback(student, f"{round(earned + 4, 2):g} / 55", pictures)
    (page,) = tmp_path.glob(f"work/ch18/feedback/*/{NOTEBOOK}.html")
    command = [sys.executable, "-m", "autograder.cli", "report", "ch18", "--course", str(tmp_path / "course")]
    subprocess.run(command, check=True)
    for name, path in (("feedback", page), ("report", tmp_path / "course/report/ch18.html")):
        for width in (1400, 420):
            look_at(browser, path, width, pictures / f"class-{name}-{width}.png")


# ---- what the instructor does, in formgrader


def open_formgrader(page: Page) -> FrameLocator:
    menu(page, "nbgrader:open-formgrader")
    return page.frame_locator("#jp-main-dock-panel iframe")


def press(formgrader: FrameLocator, row: str, button: str) -> None:
    """Press a button of a row, and wait until nbgrader says that it worked."""
    formgrader.locator("tbody tr", has_text=row).locator(f".{button} a").click()
    expect(formgrader.locator(".modal.in .modal-title")).to_have_text("Success")
    formgrader.locator(".modal.in").get_by_text("OK", exact=True).click()
    expect(formgrader.locator(".modal-backdrop")).to_have_count(0)  # faded out


def autograde(formgrader: FrameLocator) -> float:
    """Autograde with formgrader's button; gives the points."""
    formgrader.locator(".num-submissions a").click()
    row = formgrader.locator("tbody tr", has_text=STUDENT)
    expect(row.locator(".status")).to_have_text("needs autograding")
    press(formgrader, STUDENT, "autograde")
    expect(row.locator(".status")).to_have_text("needs manual grading")
    points, most = row.locator(".score").inner_text().split(" / ")
    assert most == "55"
    assert 5 < float(points) < 15  # all of the mask's 5, a part of the softmax's 10
    return float(points)


def grade_by_hand(page: Page, formgrader: FrameLocator) -> None:
    formgrader.get_by_role("link", name="Manual Grading").click()
    for name in ("ch18", NOTEBOOK, "Submission #1"):
        formgrader.locator("tbody a", has_text=name).first.click()
    for field, value, kind in (("why_dim_one", "4", "grade"), ("why_dim_one-comment", COMMENT, "comment")):
        with page.expect_response(lambda r, kind=kind: f"/api/{kind}/" in r.url and r.request.method == "PUT") as saved:
            formgrader.locator(f"#{field}").fill(value)
            formgrader.locator(f"#{field}").press("Tab")
        assert saved.value.ok
    formgrader.get_by_role("link", name="Manual Grading").first.click()
    formgrader.get_by_role("link", name="Manage Assignments").click()


# ---- what the student does


def fetch_and_open(page: Page) -> None:
    menu(page, "nbgrader:open-assignment-list")
    page.locator("#released_assignments_list").get_by_role("button", name="Fetch").click()
    fetched = page.locator("#fetched_assignments_list")
    fetched.get_by_text("ch18").click()
    fetched.get_by_text(NOTEBOOK).click()
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle")


def work_on_the_mask(page: Page, pictures: Path) -> None:
    answer, check = cell(page, "def causal_mask"), cell(page, "check(", "causal_mask,")
    run(page, cell(page, "from autograder import"))
    run(page, answer, WRONG_MASK)
    run(page, check)
    expect(check).to_contain_text("1 of 1 examples fail")
    expect(check).to_contain_text("6 of 9 numbers of the result are wrong, the first in row 0.")
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    run(page, page.locator(".jp-Notebook .jp-Cell.jp-mod-active"), 'hint("causal_mask")')
    expect(cell(page, 'hint("causal_mask")')).to_contain_text("how many entries of row t are True")
    answer.scroll_into_view_if_needed()
    page.screenshot(path=pictures / "lab-check-fails.png")
    run(page, answer, RIGHT_MASK)
    run(page, check)
    expect(check).to_contain_text("all 1 examples pass")


def leave_a_mistake_and_a_written_answer(page: Page) -> None:
    run(page, cell(page, "def masked_softmax"), MASK_TOO_LATE)
    written = cell(page, "YOUR ANSWER HERE")
    written.dblclick()
    write(page, written, WRITTEN)
    page.keyboard.press("Control+Enter")


def validate(page: Page, pictures: Path) -> None:
    page.locator(".jp-NotebookPanel .validate-button").click()  # saves first
    said = page.locator(".jp-Dialog", has=page.locator("#validation-message"))
    expect(said).to_contain_text("CheckFailed: masked_softmax: 3 个例子中有 3 个没有通过 / 3 of 3 examples fail")
    expect(said).to_contain_text("CheckFailed: attend_row: 还没有作答 / not answered yet")
    expect(said).not_to_contain_text("causal_mask,")
    page.screenshot(path=pictures / "lab-validated.png")
    said.get_by_role("button").click()


def submit(page: Page) -> None:
    page.get_by_role("tab", name="Assignments").click()
    page.locator("#fetched_assignments_list").get_by_role("button", name="Submit").click()
    expect(page.locator("#submitted_assignments_list")).to_contain_text("ch18")


def read_feedback(page: Page, score: str, pictures: Path) -> None:
    """Open the page as JupyterLab shows it, without scripts, and in both languages."""
    page.locator("#refresh_assignments_list").click()
    page.get_by_role("button", name="Fetch Feedback").click()
    page.get_by_text("(view feedback)").click()
    page.locator(".jp-DirListing-item", has_text=f"{NOTEBOOK}.html").dblclick()
    feedback = page.frame_locator(".jp-HTMLViewer iframe")
    answer = feedback.locator("#exercise-masked_softmax")
    expect(answer.get_by_text("被遮住的位置还在分母里")).to_be_visible()
    feedback.get_by_text("English", exact=True).click()
    hint = answer.get_by_text("Some rows add up to less than 1: blocked positions were still in the denominator.")
    expect(hint).to_be_visible()
    expect(answer.get_by_text("被遮住的位置还在分母里")).not_to_be_visible()
    expect(feedback.get_by_text(score).filter(visible=True).first).to_be_visible()  # with the 4 points given by hand
    expect(feedback.get_by_text(COMMENT).filter(visible=True)).to_have_count(1)
    heat_map = answer.locator("svg:visible").first
    expect(heat_map).to_contain_text(".33")
    heat_map.scroll_into_view_if_needed()
    page.screenshot(path=pictures / "lab-feedback-1400.png")


def look_at(browser: Any, path: Path, width: int, picture: Path) -> None:
    """A page by itself: it fits the window, and axe finds nothing serious."""
    page = browser.new_context(viewport={"width": width, "height": 900}, bypass_csp=True).new_page()
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.screenshot(path=picture, full_page=True)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    page.context.close()


# ---- JupyterLab


def menu(page: Page, command: str) -> None:
    page.locator("#jp-menu-panel").get_by_text("Nbgrader", exact=True).click()
    page.locator(f'#jp-mainmenu-nbgrader li[data-command="{command}"]').click()


def cell(page: Page, *texts: str) -> Locator:
    """The notebook's first cell that holds all these texts."""
    found = page.locator(".jp-Notebook .jp-Cell")
    for text in texts:
        found = found.filter(has_text=text)
    return found.first


def write(page: Page, into: Locator, source: str) -> None:
    into.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def run(page: Page, chosen: Locator, source: str | None = None) -> None:
    """Run a cell, with other source if given, and wait until the kernel has."""
    prompt = chosen.locator(".jp-InputArea-prompt")
    if source is None:
        chosen.locator(".cm-content").click()
    else:
        write(page, chosen, source)
    before = prompt.inner_text()
    page.keyboard.press("Control+Enter")
    expect(prompt).not_to_have_text(before)
    expect(prompt).to_have_text(re.compile(r"^\[\d+\]:$"))
