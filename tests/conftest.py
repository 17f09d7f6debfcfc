"""Small courses for tests of the gradebook."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")

COURSE = """\
version: 1
id: tiny
title: {zh: 小课程, en: A tiny course}
timezone: Asia/Shanghai
late: {grace: 10min, steps: [{within: 1d, factor: 0.8}, {within: 3d, factor: 0.5}], after: 0}
groups: [{id: work}]
assignments:
  - {id: a1, title: {zh: 一, en: One}, group: work, due: 2026-03-09 23:59}
overrides:
  - {students: ["0123"], assignment: a1, due: 2026-03-12 23:59, reason: illness}
"""


def _notebook(name: str):
    """Two graded code cells (2 and 1 points), a written answer (3 points), a free answer without points."""
    from nbformat import v4

    def meta(grade_id: str, *, grade=False, solution=False, locked=False, points=None):
        return {
            "nbgrader": {
                "grade": grade, "solution": solution, "locked": locked, "task": False, "grade_id": grade_id,
                "schema_version": 3, **({"points": points} if points is not None else {}),
            }
        }  # fmt: skip

    return v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        cells=[
            v4.new_code_cell(
                "### BEGIN SOLUTION\nx = 1\n### END SOLUTION", metadata=meta(f"{name}_answer", solution=True)
            ),
            v4.new_code_cell("1.5", metadata=meta(f"{name}_test1", grade=True, locked=True, points=2)),
            v4.new_code_cell("assert x == 1", metadata=meta(f"{name}_test2", grade=True, locked=True, points=1)),
            v4.new_markdown_cell("Write here.", metadata=meta(f"{name}_text", grade=True, solution=True, points=3)),
        ],
    )


@pytest.fixture(scope="session")
def _released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import nbformat
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    from autograder.gradebook.traits import configure

    root = tmp_path_factory.mktemp("released")
    (root / "course.yaml").write_text(COURSE, encoding="utf-8")
    (root / "source" / "a1").mkdir(parents=True)
    for name in ("n1", "n2"):
        nbformat.write(_notebook(name), root / "source" / "a1" / f"{name}.ipynb")
    config = Config()
    configure(config, root)
    outcome = NbGraderAPI(config=config).generate_assignment("a1")
    assert outcome["success"], outcome.get("log")
    return root


@pytest.fixture
def released(_released: Path, tmp_path: Path) -> Path:
    """The root of a course whose assignment a1 (notebooks n1, n2; 6 points each) was released by nbgrader itself."""
    return Path(shutil.copytree(_released, tmp_path / "course"))


@pytest.fixture
def unreleased(tmp_path: Path) -> Path:
    """The same course without a gradebook: course.yaml and release/a1 with n1 and n2."""
    import nbformat

    root = tmp_path / "course"
    (root / "release" / "a1").mkdir(parents=True)
    (root / "course.yaml").write_text(COURSE, encoding="utf-8")
    for name in ("n1", "n2"):
        nbformat.write(_notebook(name), root / "release" / "a1" / f"{name}.ipynb")
    return root
