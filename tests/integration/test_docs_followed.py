"""The docs followed to the letter: an exercise and a chapter are added by them alone, and the first course goes as the page shows it."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from typer.testing import CliRunner

from autograder.cli import app
from autograder.exercises import load
from autograder.exercises.source import answer
from autograder.notebooks import fill, grade_id
from autograder.text import Language
from tests.integration.docpages import ROOT, Fenced, blocks, commands

NAME = "own_weights"


def page(name: str, language: Language) -> Path:
    return ROOT / "docs" / (f"{name}.md" if language == "en" else f"{name}.zh.md")


def run(*words: str, code: int | None = None) -> str:
    """The output of a command in the current folder."""
    done = CliRunner().invoke(app, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert code is None or done.exit_code == code, done.output
    return done.output


def problems() -> list[str]:
    """What `autograder check ch18` says, its last lines (counts and dates) aside."""
    lines = run("check", "ch18").splitlines()
    return lines[: next(i for i, line in enumerate(lines) if line.startswith(("ch18:", "ch18："))) + 1]


def make_course(folder: Path) -> None:
    """The course's first notebook with its exercises taken out, so that a check takes no time."""
    for name in ("source", "solutions", "tests/hidden"):
        (folder / name / "ch18").mkdir(parents=True)
    notebook = nbformat.read(ROOT / "source" / "ch18" / "1_averaging.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if not grade_id(cell)]
    nbformat.write(notebook, folder / "source" / "ch18" / "1_averaging.ipynb")
    for name, ends in (
        ("solutions/ch18/averaging.py", "\n# ---"),
        ("tests/hidden/ch18/test_averaging.py", "\n@pytest.mark.exercise"),
    ):
        (folder / name).write_text((ROOT / name).read_text().split(ends)[0])
    for name in ("course.yaml", "nbgrader_config.py"):
        shutil.copy(ROOT / name, folder)


def add_cells(notebook: Path, answer_cell: str, grade_cell: str) -> None:
    """What an author does in JupyterLab with the Create Assignment panel."""
    content = nbformat.read(notebook, as_version=4)
    common = {"schema_version": 3, "task": False}
    solution = {"grade": False, "grade_id": f"{NAME}_answer", "locked": False, "solution": True, **common}
    grade = {"grade": True, "grade_id": NAME, "locked": True, "points": 2, "solution": False, **common}
    content.cells[-1:-1] = [_cell(answer_cell, solution), _cell(grade_cell, grade)]
    nbformat.write(content, notebook)


def _cell(source: str, nbgrader: dict[str, Any]) -> NotebookNode:
    return new_code_cell(source.rstrip("\n"), metadata={"nbgrader": nbgrader})


def add_exercise(folder: Path, language: Language) -> list[tuple[str, list[str]]]:
    """Follow the page step by step; after each step, what the page shows and what check says."""
    found: list[tuple[str, list[str]]] = []
    section = [each for each in blocks(page("adding", language)) if each.language in ("python", "")]
    solutions = folder / "solutions" / "ch18" / "averaging.py"
    hidden = folder / "tests" / "hidden" / "ch18" / "test_averaging.py"

    def append(path: Path, *code: Fenced) -> None:
        path.write_text("\n\n".join([path.read_text().rstrip("\n"), *(each.text for each in code)]), encoding="utf-8")

    run("release", "ch18", code=0)
    answer_cell, grade_cell, said, reference, said_2, mistakes, test, said_3, test_2, alternative, said_4 = section[:11]
    add_cells(folder / "source" / "ch18" / "1_averaging.ipynb", answer_cell.text, grade_cell.text)
    found.append((said.text, problems()))
    append(solutions, reference)
    run("release", "ch18", code=0)
    found.append((said_2.text, problems()))
    append(solutions, mistakes)
    append(hidden, test)
    found.append((said_3.text, problems()))
    append(hidden, test_2)
    append(solutions, alternative)
    found.append((said_4.text, problems()))
    return found


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_course(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def follow(course: Path, language: Language) -> None:
    *steps, (shown, said) = add_exercise(course, language)
    for shown_there, said_there in steps:
        assert said_there[:-1] == shown_there.splitlines()
    assert said[:-1] == []
    assert said[-1].endswith(shown.strip())


def test_an_exercise_is_added_by_the_chinese_page_alone(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRADER_LANGUAGE", "zh")
    follow(course, "zh")


def test_an_exercise_is_added_by_the_page_alone_and_the_first_course_goes_as_shown(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOGRADER_LANGUAGE", "en")
    follow(course, "en")
    for words in commands(page("instructors", "en"), "autograder"):
        if words[0] == "collect":
            hand_in(course, words[2])
        run(*words, code=0)
    verdict = json.loads((course / "verdicts" / "li_hua" / "ch18" / "1_averaging.json").read_text())
    assert [(e["name"], e["points"]) for e in verdict["exercises"]] == [(NAME, 2.0)]
    with (course / "scores.csv").open() as file:
        assert [row["student_id"] for row in csv.DictReader(file)] == ["li_hua"]
    assert (course / "feedback" / "li_hua" / "ch18" / "1_averaging.html").exists()
    assert (course / "report" / "ch18.html").exists()
    assert "torch.diagonal(A)" in (course / "solution" / "ch18" / "1_averaging.ipynb").read_text()
    assert "li_hua" in (course / "course.yaml").read_text()


def test_a_chapter_is_added_by_the_page_alone(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRADER_LANGUAGE", "en")
    section = blocks(page("adding", "en"))
    start = next(i for i, each in enumerate(section) if each.language == "yaml")
    entry, said, first_cell, last_cell, head, hidden_head = section[start : start + 6]
    text = (course / "course.yaml").read_text()
    (course / "course.yaml").write_text(re.sub(r"(?=^# Exceptions)", entry.text, text, flags=re.MULTILINE))
    assert run("check", "ch19", code=1).splitlines()[:3] == said.text.splitlines()
    with monkeypatch.context() as chinese:
        chinese.setenv("AUTOGRADER_LANGUAGE", "zh")
        shown_there = next(each for each in blocks(page("adding", "zh")) if "source/ch19" in each.text)
        assert run("check", "ch19", code=1).splitlines()[:3] == shown_there.text.splitlines()
    for name in ("source", "solutions", "tests/hidden"):
        (course / name / "ch19").mkdir()
    assert said.text.splitlines()[0] in run("release", "ch19", code=1)

    exercise = [each.text for each in section if each.language == "python"]
    notebook = new_notebook(cells=[new_code_cell(first_cell.text.strip()), new_code_cell(last_cell.text.strip())])
    nbformat.write(notebook, course / "source" / "ch19" / "1_topic.ipynb")
    add_cells(course / "source" / "ch19" / "1_topic.ipynb", *exercise[:2])
    solutions = [head.text, exercise[2], exercise[3], exercise[6]]
    (course / "solutions" / "ch19" / "topic.py").write_text("\n\n".join(solutions), encoding="utf-8")
    (course / "tests" / "hidden" / "ch19" / "test_topic.py").write_text(
        f'{hidden_head.text}\n\n@pytest.mark.exercise("{NAME}")\nclass TestOwnWeights:\n{exercise[5]}', encoding="utf-8"
    )
    shown = [words for words in commands(page("adding", "en"), "autograder") if "ch19" in words]
    assert [words[0] for words in shown] == ["release", "check"]
    for words in shown:
        output = run(*words, code=0)
    assert "0 problems" in output
    assert any((course / "release" / "ch19").glob("*.whl"))


def hand_in(course: Path, inbox: str) -> None:
    """A student's folder in the inbox, with the right answer."""
    released = nbformat.read(course / "release" / "ch18" / "1_averaging.ipynb", as_version=4)
    reference = load(course / "solutions" / "ch18")[NAME].reference
    folder = course / inbox / "li_hua"
    folder.mkdir(parents=True)
    nbformat.write(fill(released, {NAME: answer(reference, NAME)}), folder / "1_averaging.ipynb")
