"""nbgrader's autograde with our sandbox and our judge: an exporter, two preprocessors, no fork.

``nbgrader autograde`` makes two passes over a notebook. Ours turns the first into the release's structure, and the second into
:meth:`autograder.grading.grade.Grader.grade` on the bytes that were handed in, so that formgrader's button, ``NbGraderAPI`` and
``autograder grade`` cannot come to different scores.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME, KernelSpecManager, NoSuchKernel
from nbconvert.exporters import HTMLExporter, NotebookExporter
from nbformat import NotebookNode
from nbgrader.preprocessors.base import NbGraderPreprocessor
from nbgrader.preprocessors.execute import Execute
from traitlets import Bool, Unicode

from autograder.course import Course, seed
from autograder.gradebook.book import Book
from autograder.grading.assignment import Assignment, empty
from autograder.grading.grade import Grader
from autograder.grading.kernel import warm_parent
from autograder.grading.pages import render_page
from autograder.grading.verdicts import read_verdict, verdict_path, write_verdict
from autograder.judge.session import Judge
from autograder.sandbox import Limits, WarmParent
from autograder.sandbox.manager import SandboxKernelManager, kernel_manager_class

_GRACE_SECONDS = 5.0  # nbclient interrupts a cell first, and says so in the notebook
_TOLD = ("NBGRADER_EXECUTION", "NBGRADER_VALIDATING")  # how a notebook learns that it is being graded
_COPIED_BYTES = 32 << 20


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
    """nbgrader's Execute with the kernel in our sandbox; for courses whose tests are nbgrader's own.

    Its options are Execute's. Files that the notebook makes in its directory are copied back, as far as they are new, no notebooks and fit:
    what nbgrader and the instructor have put there stays as it is.
    """

    allow_unsandboxed = Bool(False, help="run without isolation where none is possible").tag(config=True)
    warm = Bool(True, help="fork kernels from a process that has loaded torch and IPython").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any = None, km: Any = None) -> tuple[NotebookNode, Any]:
        """Run the notebook's cells. Raises NoSuchKernel, as nbgrader's own does, for a notebook that is not for Python."""
        kernel = self.kernel_name or nb.metadata.get("kernelspec", {}).get("name", NATIVE_KERNEL_NAME)
        if kernel != "python" and KernelSpecManager().get_kernel_spec(kernel).language.lower() != "python":
            raise NoSuchKernel(kernel)
        limits = Limits()
        patience = self.timeout + _GRACE_SECONDS if self.timeout else limits.notebook_seconds
        limits = replace(limits, cell_seconds=patience, notebook_seconds=limits.notebook_seconds + patience)
        env = {name: os.environ[name] for name in _TOLD if name in os.environ}
        warm = _warm() if self.warm else None
        self.kernel_manager_class = kernel_manager_class(limits, warm, self.allow_unsandboxed, env)
        return super().preprocess(nb, resources, km)

    @contextlib.contextmanager
    def setup_kernel(self, **options: Any) -> Iterator[None]:
        """As nbclient's, and copy back the files that were made."""
        with super().setup_kernel(**options):
            yield
            assert isinstance(self.km, SandboxKernelManager) and self.km.sandbox is not None
            copy_new(self.km.sandbox.read_work(_COPIED_BYTES), Path(self.resources["metadata"]["path"]))


def copy_new(files: Mapping[str, bytes], directory: Path) -> None:
    """Write files that a student's code has made into a directory of ours: none that is there, hidden, or a notebook."""
    for name, content in files.items():
        path = directory / name
        if path.suffix == ".ipynb" or any(part.startswith(".") for part in Path(name).parts):
            continue
        with contextlib.suppress(OSError):  # among them, a file that is there already
            if path.parent.resolve().is_relative_to(directory.resolve()):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    file.write(content)


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
    parent = warm_parent()
    atexit.register(parent.close)
    return parent
