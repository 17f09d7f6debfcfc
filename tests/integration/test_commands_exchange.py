"""`autograder publish` and `autograder lab`: nbgrader's exchange and JupyterLab, configured for a course."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from tests.browser import servers

CONFIG = """\
from pathlib import Path

from autograder.grading.traits import configure

configure(get_config(), Path(__file__).parent)
get_config().Exchange.root = str(Path(__file__).parent.parent / "exchange")
"""


@pytest.fixture
def with_exchange(course):
    (course.root / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    (course.root.parent / "exchange").mkdir(mode=0o777)
    return course


def publish(course, *options, code=0):
    arguments = ["publish", "a1", *options, "--course", str(course.root)]
    result = CliRunner().invoke(app, arguments, env={"AUTOGRADER_LANGUAGE": "en"})
    assert result.exit_code == code, result.output
    return result.output


def exchange(course, *names) -> Path:
    return course.root.parent.joinpath("exchange", course.id, *names)


def test_publish_puts_the_release_with_the_tools_into_the_exchange(with_exchange):
    said = publish(with_exchange).splitlines()
    there = sorted(path.name for path in exchange(with_exchange, "outbound", "a1").iterdir())
    assert there == said
    assert [Path(name).suffix for name in there] == [".whl", ".ipynb"]
    publish(with_exchange)  # in place of what is there


def test_publish_refuses_a_course_with_a_problem(with_exchange):
    solutions = with_exchange.folder("solutions", "a1", "double.py")
    solutions.write_text(solutions.read_text().replace("return X * X", "return 2.0 * X"))
    said = publish(with_exchange, code=1)
    assert "squared" in said
    assert "a1 was not published." in said
    assert not exchange(with_exchange, "outbound", "a1").exists()


def test_publish_hands_on_what_nbgrader_says(with_exchange):
    (with_exchange.root.parent / "exchange").rmdir()
    (with_exchange.root.parent / "exchange").write_text("a file, no folder")
    assert "nbgrader release_assignment failed" in publish(with_exchange, code=1)


def test_publish_feedback_reaches_those_who_handed_in_over_the_exchange(with_exchange):
    for student in ("right", "square"):
        folder = with_exchange.folder("feedback", student, "a1")
        folder.mkdir(parents=True)
        (folder / "n1.html").write_text(f"<p>{student}</p>")
    for name, text in (("timestamp.txt", "2026-03-09 12:00:00 UTC"), ("submission_secret.txt", "secret")):
        with_exchange.folder("feedback", "right", "a1", name).write_text(text)
    said = json.loads(publish(with_exchange, "--feedback", "--json"))
    assert said == {"published": ["right"], "left": ["square"]}
    assert [path.read_text() for path in exchange(with_exchange, "feedback").iterdir()] == ["<p>right</p>"]
    assert "- square: did not hand in over the exchange" in publish(with_exchange, "--feedback")


def test_lab_needs_the_configuration_that_its_buttons_use(course):
    result = CliRunner().invoke(app, ["lab", "--course", str(course.root)], env={"AUTOGRADER_LANGUAGE": "en"})
    assert result.exit_code == 1
    assert "has no nbgrader_config.py" in result.output


def test_lab_starts_jupyterlab_with_formgrader_for_the_course(with_exchange, tmp_path):
    home = tmp_path / "home"
    off = {"ServerApp": {"jpserver_extensions": {"nbgrader.server_extensions.formgrader": False}}}
    (home / ".jupyter").mkdir(parents=True)
    (home / ".jupyter/jupyter_server_config.json").write_text(json.dumps(off))  # `lab` switches it on all the same
    with servers.instructor(with_exchange.root, home, tmp_path / "exchange") as lab:
        address = f"{lab.partition('lab?')[0]}formgrader/api/assignments"
        request = urllib.request.Request(address, headers={"Authorization": f"token {servers.TOKEN}"})
        with urllib.request.urlopen(request, timeout=180) as answer:
            (assignment,) = json.load(answer)
    assert (assignment["name"], assignment["status"]) == ("a1", "draft")
