"""The floor: the same cells and the same hidden tests in warm processes, one submission after another, with nothing between them.

python -m tests.bench.floor COURSE PROCESSES STUDENT …    prints the points of each student as JSON
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import types
from pathlib import Path

import nbformat
import torch

from autograder.notebooks import grade_id, is_grade, is_solution, points
from tests.bench import checks


def main() -> None:
    """Grade the students given on the command line."""
    course, processes, *students = sys.argv[1:]
    beside = Path(course) / "release" / "ch18"
    with multiprocessing.get_context("spawn").Pool(int(processes), _warm, (beside,)) as pool:
        earned = pool.map(_grade, [Path(course) / "submitted" / student / "ch18" for student in students], chunksize=1)
    print(json.dumps(dict(zip(students, earned, strict=True))))


def _warm(beside: Path) -> None:
    torch.set_num_threads(1)
    here = tempfile.mkdtemp()
    for path in beside.iterdir():
        if path.suffix not in (".ipynb", ".whl"):
            shutil.copy(path, here)
    os.chdir(here)
    sys.path.insert(0, here)


def _grade(submission: Path) -> float:
    return sum(_notebook(path) for path in sorted(submission.glob("*.ipynb")))


def _notebook(path: Path) -> float:
    notebook = nbformat.read(path, as_version=4)
    module = types.ModuleType("student")  # not "__main__": the pool's own
    sys.modules["student"], earned = module, 0.0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            exec(compile(cell.source, str(grade_id(cell)), "exec"), module.__dict__)
        if is_grade(cell) and not is_solution(cell):
            earned += round(points(cell) * checks.share(str(grade_id(cell)), module.__dict__), 2)
    return earned


if __name__ == "__main__":
    main()
