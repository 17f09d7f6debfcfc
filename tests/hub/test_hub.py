"""A class on JupyterHub: handing in and reading feedback in a browser, and what a student cannot reach."""

from __future__ import annotations

import contextlib
import csv
import inspect
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hub import intrusion
from tests.hub.conftest import PASSWORD, PROJECT

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

ANSWER = """\
def prefix_mean_loop(X):
    out = torch.empty_like(X)
    for t in range(X.shape[0]):
        out[t] = X[: t + 1].mean(dim=0)
    return out
"""

# Run Python in a kernel of the page's own server and return what it prints, as a notebook in the page would.
RUN = """
async ([server, code]) => {
    const xsrf = document.cookie.split("; ").filter(one => one.startsWith("_xsrf=")).map(one => one.slice(6));
    let headers = {"X-XSRFToken": xsrf[0] ?? ""};
    const start = await fetch(server + "api/kernels", {method: "POST", headers, body: JSON.stringify({name: "python3"})});
    if (!start.ok) throw new Error(`${start.status} ${await start.text()}`);
    const kernel = await start.json();
    const socket = new WebSocket(`${server.replace("http", "ws")}api/kernels/${kernel.id}/channels`);
    let printed = "";
    try {
        await new Promise((resolve, reject) => {
            const header = {msg_id: crypto.randomUUID(), msg_type: "execute_request", session: "test", username: "", version: "5.3"};
            const content = {code, silent: false, store_history: false, user_expressions: {}, allow_stdin: false};
            const request = {header, content, channel: "shell", parent_header: {}, metadata: {}, buffers: []};
            socket.onopen = () => socket.send(JSON.stringify(request));
            socket.onerror = () => reject(new Error("no connection to the kernel"));
            socket.onmessage = ({data}) => {
                const message = JSON.parse(data);
                if (message.parent_header.msg_id !== header.msg_id) return;
                if (message.msg_type === "stream") printed += message.content.text;
                if (message.msg_type === "error") printed += message.content.traceback.join("\\n");
                if (message.msg_type === "status" && message.content.execution_state === "idle") resolve();
            };
        });
    } finally {
        socket.close();
        await fetch(server + "api/kernels/" + kernel.id, {method: "DELETE", headers});
    }
    return printed;
}
"""


class Person:
    """Somebody signed in, with JupyterLab open."""

    def __init__(self, browser: Any, hub: str, name: str) -> None:
        self.name, self.server = name, f"{hub}/user/{name}/"
        self.page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        self.page.set_default_timeout(120_000)
        self.page.goto(f"{hub}/hub/login")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{self.server}lab**")
        self.menu("Nbgrader")
        self.page.keyboard.press("Escape")

    def menu(self, *names: str) -> None:
        """Choose from the menu."""
        for name in names:
            self.page.get_by_role("menuitem", name=name, exact=True).click()

    def run(self, code: str) -> str:
        """What Python code prints in a kernel of this person's server."""
        return str(self.page.evaluate(RUN, [self.server, code]))

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of tests/hub/intrusion.py returns in such a kernel."""
        code = f"{inspect.getsource(intrusion)}\nprint(json.dumps({function.__name__}(*{arguments!r})))"
        printed = self.run(code)
        try:
            return json.loads(printed)
        except ValueError:
            raise AssertionError(printed) from None


@pytest.fixture(scope="module")
def instructor(hub: str, browser: Any) -> Person:
    """The instructor."""
    return Person(browser, hub, "instructor")


@pytest.fixture(scope="module")
def handed_in(hub: str, browser: Any, pictures: Path) -> Person:
    """A student who has fetched the assignment, answered an exercise, handed in and opened the feedback page."""
    student = Person(browser, hub, "li_hua")
    page = student.page
    student.menu("Nbgrader")
    page.get_by_role("menuitem", name="Assignment List").wait_for()
    assert page.get_by_role("menuitem", name="Formgrader").count() == 0
    student.menu("Assignment List")
    page.get_by_role("button", name="Fetch").click()
    page.get_by_role("button", name="Submit").wait_for()
    page.get_by_text("ch18", exact=True).click()
    page.get_by_text("1_averaging", exact=True).click()

    cell = page.locator(".jp-CodeCell", has_text="def prefix_mean_loop(X)").first
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(ANSWER)
    student.menu("Run", "Run All Cells")
    page.get_by_text("2 个例子全部通过").first.wait_for()
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "1_averaging" in answer.url):
        page.keyboard.press("Control+S")

    page.get_by_role("tab", name="Assignments").click()
    page.get_by_role("button", name="Submit").click()
    start = time.monotonic()
    page.get_by_role("button", name="Fetch Feedback").wait_for()
    available = page.get_by_text("(feedback available to fetch)")
    while not available.is_visible():
        assert time.monotonic() - start < 300, "no feedback within five minutes"
        page.locator("#refresh_assignments_list").click()
        with contextlib.suppress(playwright.TimeoutError):
            available.wait_for(timeout=2000)
    print(f"feedback {time.monotonic() - start:.1f} s after handing in")
    page.screenshot(path=pictures / "hub-assignments.png")
    page.get_by_role("button", name="Fetch Feedback").click()
    page.get_by_text("(view feedback)").click()
    page.get_by_role("listitem", name="1_averaging.html").dblclick()
    return student


def test_feedback_is_in_the_students_own_jupyterlab(handed_in: Person, pictures: Path) -> None:
    feedback = handed_in.page.frame_locator(".jp-HTMLViewer iframe")
    feedback.get_by_role("heading", name="1_averaging").wait_for()
    handed_in.page.screenshot(path=pictures / "hub-feedback.png")
    assert "li_hua" in feedback.locator("body").inner_text()
    assert "5 / 55" in " ".join(feedback.locator("body").inner_text().split())


def test_the_score_is_in_postgresql(handed_in: Person, instructor: Person) -> None:
    code, said = instructor.call(intrusion.shell, "cd /srv/course; test ! -e gradebook.db; autograder export ch18")
    assert code == 0, said
    [row] = csv.DictReader(said.splitlines())
    assert (row["student_id"], float(row["score"])) == ("li_hua", 5)
    assert instructor.call(intrusion.connect, "") == "connected"


OPEN_TO_THEIR_OWNER_ALONE = {
    "instructor": (
        "/home/instructor",
        "/srv/course",
        "/srv/course/course.yaml",
        "/srv/course/.course-secret",
        "/srv/course/solutions/ch18/averaging.py",
        "/srv/course/tests/hidden/ch18/test_averaging.py",
        "/srv/course/submitted/li_hua/ch18/1_averaging.ipynb",
        "/srv/course/autograded/li_hua/ch18/1_averaging.ipynb",
        "/srv/course/verdicts/li_hua/ch18/1_averaging.json",
        "/srv/course/feedback/li_hua/ch18/1_averaging.html",
        "/srv/exchange/causal-attention/inbound",
        "/srv/exchange/causal-attention/feedback",
    ),
    "li_hua": (
        "/home/li_hua",
        "/home/li_hua/ch18/1_averaging.ipynb",
        "/home/li_hua/.local/share/jupyter/nbgrader_cache",
    ),
    "root": ("/etc/shadow", "/srv/jupyterhub", "/srv/jupyterhub/jupyterhub.sqlite", "/srv/jupyterhub/cookie_secret"),
}


@pytest.fixture(scope="module")
def stranger(hub: str, browser: Any, handed_in: Person) -> Person:
    """Another student."""
    return Person(browser, hub, "wang_wei")


def test_no_student_reads_what_is_not_theirs(stranger: Person, handed_in: Person, instructor: Person) -> None:
    for owner in (instructor, handed_in):  # the files are there
        paths = OPEN_TO_THEIR_OWNER_ALONE[owner.name]
        assert owner.call(intrusion.read, paths) == dict.fromkeys(paths, "read")
    paths = [path for each in OPEN_TO_THEIR_OWNER_ALONE.values() for path in each]
    assert stranger.call(intrusion.read, paths) == dict.fromkeys(paths, "PermissionError")
    assert stranger.call(intrusion.read, [f"{PROJECT}/solutions"]) == {f"{PROJECT}/solutions": "FileNotFoundError"}


def test_no_student_opens_the_gradebook(stranger: Person) -> None:
    for user in ("", "instructor", "postgres"):
        assert stranger.call(intrusion.connect, user) == "OperationalError"


def test_no_student_changes_the_exchange(stranger: Person) -> None:
    assert stranger.call(intrusion.disturb_exchange) == {
        "write in the assignment": "PermissionError",
        "add to the assignment": "PermissionError",
        "move the course away": "PermissionError",
        "put a page among the feedback": "PermissionError",
    }


def test_no_student_hands_in_for_another(stranger: Person, instructor: Person) -> None:
    kept = "cd /srv/course; cat submitted/li_hua/ch18/*"
    before = instructor.call(intrusion.shell, kept)
    stranger.call(intrusion.hand_in_as, "li_hua")
    collect = "cd /srv/course; AUTOGRADER_LANGUAGE=en autograder collect ch18 /srv/exchange/causal-attention/inbound"
    code, said = instructor.call(intrusion.shell, collect)
    assert code == 1
    assert "is said to be from li_hua but belongs to wang_wei" in " ".join(said.split())
    assert instructor.call(intrusion.shell, kept) == before


def test_no_student_reaches_the_processes_of_others(stranger: Person, handed_in: Person) -> None:
    found = stranger.call(intrusion.processes)
    assert found["others"] > 3
    assert found["environments read"] == found["signals sent"] == 0


def test_no_student_uses_the_server_of_another(stranger: Person, handed_in: Person, hub: str) -> None:
    answer = stranger.page.request.get(f"{hub}/user/li_hua/api/contents", max_redirects=0)
    assert answer.status in (302, 403)
    # Straight to its ports, past the proxy. A kernel has one that takes output of its own children; of those by which
    # it would publish what a notebook runs and prints (ROUTER, PUB) there is none.
    assert set(stranger.call(intrusion.ports_of, "li_hua", "/user/li_hua/api/contents")) == {403, "PULL"}
