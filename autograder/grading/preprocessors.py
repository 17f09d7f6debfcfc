"""nbgrader's autograde with our sandbox and our judge: an exporter, two preprocessors, no fork.

``nbgrader autograde`` makes two passes over a notebook. Ours turns the first into the release's structure, and the second into
:meth:`autograder.grading.grade.Grader.grade` on the bytes that were handed in, so that formgrader's button, ``NbGraderAPI`` and
``autograder grade`` cannot come to different scores.
"""

from __future__ import annotations

import atexit
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import HTMLExporter, NotebookExporter
from nbformat import NotebookNode
from nbgrader.preprocessors.base import NbGraderPreprocessor
from nbgrader.preprocessors.execute import Execute
from traitlets import Bool, Unicode

from autograder.course import Course, seed
from autograder.gradebook.book import Book
from autograder.grading.assignment import Assignment, empty
from autograder.grading.grade import Grader
from autograder.grading.pages import render_page
from autograder.grading.verdicts import read_verdict, verdict_path, write_verdict
from autograder.judge.session import Judge
from autograder.sandbox import Limits, WarmParent
from autograder.sandbox.manager import kernel_manager_class


class TolerantExporter(NotebookExporter):
    """Reads what is no notebook as an empty one: what was wrong with it is found, and said, when it is graded."""

    def from_file(self, file_stream: Any, resources: Any = None, **options: Any) -> Any:
        """As nbconvert's, but never fails for a student's file."""
        try:
            notebook = nbformat.read(file_stream, as_version=4)
            notebook.cells  # noqa: B018  (JSON of another kind has none)
        except Exception:
            notebook = nbformat.v4.new_notebook()
        return self.from_notebook_node(notebook, resources=resources, **options)  # type: ignore[no-untyped-call]


class ReleasedStructure(NbGraderPreprocessor):
    """First pass: the notebook as it was released; the answers are put into it when it is graded."""

    root = Unicode("", help="the folder of course.yaml").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Replace the notebook."""
        place = resources["nbgrader"]
        assignment, _ = _grading(self.root, place["assignment"])
        return empty(assignment.notebooks[place["notebook"]]), resources


class JudgeExecute(NbGraderPreprocessor):
    """Second pass: grade the bytes in ``submitted/``, write the verdict, and hand on the graded notebook."""

    root = Unicode("", help="the folder of course.yaml").tag(config=True)
    allow_unsandboxed = Bool(False, help="grade without isolation where none is possible").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Grade one submitted notebook."""
        place = resources["nbgrader"]
        student, assignment, notebook = place["student"], place["assignment"], place["notebook"]
        course = Course.load(Path(self.root))
        loaded, judge = _grading(self.root, assignment)
        grader = Grader(loaded, judge, course.limits, _warm(), self.allow_unsandboxed)
        submitted = course.folder("submitted", student, assignment) / f"{notebook}.ipynb"
        data = submitted.read_bytes() if submitted.is_file() else None
        graded = grader.grade(
            data, student=student, notebook=notebook, seed=seed(course, assignment, student, notebook)
        )
        write_verdict(course, graded.verdict)
        return graded.notebook, resources


class FeedbackExporter(HTMLExporter):
    """Writes our feedback page where ``nbgrader generate_feedback`` would write its own; that one where there is no verdict."""

    root = Unicode("", help="the folder of course.yaml").tag(config=True)

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **options: Any) -> Any:
        """The page of the notebook that nbgrader names in ``resources``, and the resources."""
        place = resources["nbgrader"]
        student, assignment = place["student"], place["assignment"]
        course = Course.load(Path(self.root))
        verdict = read_verdict(verdict_path(course, student, assignment, place["notebook"]))
        if verdict is None:
            return super().from_notebook_node(nb, resources=resources, **options)
        with Book(course) as book:
            html = render_page(course, verdict, book.row(assignment, student), book.comments(assignment, student))
        resources["output_extension"] = ".html"
        return html, resources


class SandboxExecute(Execute):
    """nbgrader's Execute with the kernel in our sandbox; for courses whose tests are nbgrader's own."""

    allow_unsandboxed = Bool(False, help="run without isolation where none is possible").tag(config=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self.kernel_manager_class = kernel_manager_class(Limits(), _warm(), self.allow_unsandboxed)


_judges: dict[str, Judge] = {}


def _grading(root: str, assignment: str) -> tuple[Assignment, Judge]:
    """The assignment as it is now, and its judge, which is kept as long as nothing has changed (formgrader's process runs for days)."""
    loaded = Assignment.load(Path(root), assignment)
    if loaded.fingerprint not in _judges:
        for judge in _judges.values():
            judge.close()
        _judges.clear()
        _judges[loaded.fingerprint] = Judge(loaded.tests, loaded.exercises)
    return loaded, _judges[loaded.fingerprint]


@lru_cache(maxsize=1)
def _warm() -> WarmParent:
    parent = WarmParent(preload=("autograder.judge.agent",))
    atexit.register(parent.close)
    return parent
