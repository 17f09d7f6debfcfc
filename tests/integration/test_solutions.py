"""The published solutions run from top to bottom, in both languages, without an error or a warning."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

from autograder.course import Course
from autograder.grading.kernel import StudentKernel
from autograder.grading.release import publish_solutions, release
from autograder.sandbox import WarmParent

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["zh", "en"])
def published(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    for name in ("source", "solutions"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "course.yaml").read_text(encoding="utf-8")
    (folder / "course.yaml").write_text(text.replace("language: zh", f"language: {request.param}"), encoding="utf-8")
    course = Course.load(folder)
    assert course.language == request.param
    release(course, "ch18")
    return course, {path.stem: nbformat.read(path, as_version=4) for path in publish_solutions(course, "ch18")}


def test_every_notebook_runs_clean(published):
    course, notebooks = published
    beside = course.folder("source", "ch18")
    files = {path.name: path.read_bytes() for path in beside.iterdir() if path.suffix in (".py", ".txt", ".json")}
    assert len(notebooks) == 4
    with WarmParent() as warm:
        for name, notebook in notebooks.items():
            with StudentKernel(notebook, course.limits, warm=warm, files=files) as kernel:
                for index, cell in enumerate(notebook.cells):
                    if cell.cell_type == "code":
                        kernel.run_cell(index)
                        bad = [o for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"]
                        assert not bad, (name, cell.source, bad)
            assert kernel.problems == {}


def test_every_answer_is_filled_in_and_one_language_is_left(published):
    course, notebooks = published
    for notebook in notebooks.values():
        tags = {tag for cell in notebook.cells for tag in cell.metadata.get("tags", []) if tag.startswith("lang-")}
        assert tags == {f"lang-{course.language}"}
        assert "NotImplementedError" not in "".join(c.source for c in notebook.cells if c.cell_type == "code")


def test_the_release_has_stubs_and_the_students_tools(published):
    course, _ = published
    folder = course.folder("release", "ch18")
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < 200_000
    for path in folder.glob("*.ipynb"):
        cells = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        assert wheel.name in cells[0]
        assert any("raise NotImplementedError" in source for source in cells)
