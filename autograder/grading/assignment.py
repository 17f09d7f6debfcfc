"""What grading an assignment needs: the notebooks' structure, files, references and hidden tests. Loaded once a run."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.exercises import CourseFault, Exercise, load
from autograder.notebooks import grade_id, is_grade, is_solution
from autograder.sandbox import Limits
from autograder.text import Text


@dataclass(frozen=True)
class Assignment:
    """One assignment as the grader sees it.

    ``notebooks``: by name, with the release's cells; grade cells hold nbgrader's own hidden tests where the source has some.
    ``files``: what lies beside the notebooks in the release, copied into every sandbox.
    """

    name: str
    notebooks: dict[str, NotebookNode]
    files: dict[str, bytes]
    exercises: dict[str, Exercise]
    tests: Path
    root: Path

    @classmethod
    def load(cls, root: Path, name: str) -> Assignment:
        """Read an assignment from a course folder. Raises CourseFault when something it needs is not there."""
        release, source = root / "release" / name, root / "source" / name
        if not any(release.glob("*.ipynb")):
            raise CourseFault(
                Text(
                    zh=f"{release} 里没有笔记本：请先运行 `autograder release {name}`",
                    en=f"{release} holds no notebook: run `autograder release {name}` first",
                )
            )
        notebooks = {path.stem: _structure(path, source / path.name) for path in sorted(release.glob("*.ipynb"))}
        files = {
            str(path.relative_to(release)): path.read_bytes()
            for path in sorted(release.rglob("*"))
            if path.is_file() and path.suffix not in (".ipynb", ".whl") and not path.name.startswith(".")
        }
        return cls(name, notebooks, files, load(root / "solutions" / name), root / "tests" / "hidden" / name, root)

    def exercise_cells(self, notebook: str) -> Iterator[tuple[int, Exercise]]:
        """The grade cells of a notebook that have hidden tests: (index, exercise)."""
        for index, cell in enumerate(self.notebooks[notebook].cells):
            if is_grade(cell) and not is_solution(cell) and grade_id(cell) in self.exercises:
                yield index, self.exercises[str(grade_id(cell))]

    @cached_property
    def fingerprint(self) -> str:
        """Equal for equal notebooks, files, solutions and hidden tests: what a score depends on besides the submission."""
        digest = hashlib.sha256()
        for name, notebook in self.notebooks.items():
            digest.update(name.encode() + nbformat.writes(notebook).encode())
        for name, content in self.files.items():
            digest.update(name.encode() + content)
        for folder in (self.root / "solutions" / self.name, self.tests):
            for path in sorted(folder.rglob("*.py")):
                digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()

    def key(self, data: bytes | None, limits: Limits, seed: int) -> str:
        """Names the verdict on a submission: graded again only when something that it depends on has changed."""
        parts = (self.fingerprint, repr(limits), str(seed), hashlib.sha256(data or b"").hexdigest(), str(data is None))
        return hashlib.sha256("/".join(parts).encode()).hexdigest()[:32]


def _structure(release: Path, source: Path) -> NotebookNode:
    """The released notebook, with the hidden tests that nbgrader took out of its grade cells put back."""
    notebook = nbformat.read(release, as_version=4)
    if source.exists():
        originals = {grade_id(cell): cell for cell in nbformat.read(source, as_version=4).cells if is_grade(cell)}
        for cell in notebook.cells:
            original = originals.get(grade_id(cell)) if is_grade(cell) and not is_solution(cell) else None
            if original is not None and "HIDDEN TESTS" in original.source:
                cell.source = original.source
    return notebook


def empty(notebook: NotebookNode) -> NotebookNode:
    """A copy to be graded when there is nothing to rebuild."""
    return copy.deepcopy(notebook)
