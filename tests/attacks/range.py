"""Where attacks are tried: a tiny course full of planted secrets, graded by the real pipeline."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import nbformat

from autograder.feedback.page import page
from autograder.grading.assignment import Assignment
from autograder.grading.grade import Graded, Grader
from autograder.judge.session import Judge
from autograder.notebooks import fill
from autograder.sandbox import Limits, WarmParent
from autograder.sandbox.tiers import Tier
from tests.attacks.attack import Attack
from tests.attacks.traces import orphans_adopted, traces

WRONG = "import torch\n\n\ndef mix(x, y):\n    return x.clone()\n"
RIGHT = "def running_sum(x):\n    return x.cumsum(0)\n"
LIMITS = Limits(
    cell_seconds=4,
    notebook_seconds=40,
    call_seconds=1.5,
    memory_bytes=1 << 30,
    processes=64,
    file_bytes=16 << 20,
    disk_bytes=32 << 20,
    output_bytes=1 << 20,
)
BOAST = "ESCAPED"
_PLANTED = re.compile(r"PLANTED-[0-9a-f]{16}|" + BOAST)

SOLUTIONS = '''\
"""Answers. @TOKEN@"""

from autograder.exercises import exercise


@exercise
def mix(x, y):
    """@TOKEN@"""
    return 0.25 * x + 0.75 * y


@exercise
def running_sum(x):
    return x.cumsum(0)
'''
HIDDEN = '''\
"""@TOKEN@"""

import pytest

from autograder.judge.expect import close

SECRET = "@TOKEN@"


@pytest.mark.exercise("mix")
class TestMix:
    def test_numbers(self, student, reference, draw):
        """一般的输入。

        Ordinary inputs.
        """
        x, y = draw(3, 2), draw(3, 2)
        close(student.mix(x, y), reference.mix(x, y))

    def test_another_size(self, student, reference, draw):
        """另一个大小。

        Another size.
        """
        x, y = draw(5), draw(5)
        close(student.mix(x, y), reference.mix(x, y))

    def test_gradients(self, student, reference, draw):
        """梯度。

        Gradients.
        """
        x, y, g = draw(2, 2), draw(2, 2), draw(2, 2)
        close(student.mix.gradients(x, y, cotangent=g), reference.mix.gradients(x, y, cotangent=g))


@pytest.mark.exercise("running_sum")
class TestRunningSum:
    def test_numbers(self, student, reference, draw):
        """一般的输入。

        Ordinary inputs.
        """
        x = draw(4, 3)
        close(student.running_sum(x), reference.running_sum(x))

    def test_one_row(self, student, reference, draw):
        """只有一行。

        A single row.
        """
        x = draw(1, 3)
        close(student.running_sum(x), reference.running_sum(x))
'''


@dataclass
class Found:
    """What came of one attack."""

    graded: Graded
    points: float
    other_full: bool
    leaked: set[str] = field(default_factory=set)
    left: list[str] = field(default_factory=list)
    disturbed: bool = False
    tier: str = ""

    @property
    def contained(self) -> bool:
        return not (self.points or self.leaked or self.left or self.disturbed)

    @property
    def what_happened(self) -> str:
        """What the attack achieved, for a person who looks for the hole."""
        return f"{self.points:g} points, leaked {sorted(self.leaked)}, left {self.left}, disturbed {self.disturbed}"


class Range:
    """Grades attacks one after another with one judge and one warm parent, as a grading process does."""

    def __init__(self, root: Path, grader: Grader, run_dirs: Path, temporary: Path) -> None:
        self.root, self.grader, self.run_dirs, self.temporary = root, grader, run_dirs, temporary
        self._places = {
            "@ROOT@": str(root),
            "@HOME@": str(root / "home"),
            "@RUN@": str(run_dirs),
            "@JUDGE@": str(os.getpid()),
        }
        self.honest = self.alone()
        self._course, self._resting = self._state(), traces(self._folders)

    def alone(self) -> str:
        """The verdict on an honest notebook, byte for byte, without how long it took."""
        patient = replace(self.grader, limits=replace(LIMITS, call_seconds=60, cell_seconds=60, notebook_seconds=600))
        data = notebook_of(self.grader.assignment, WRONG)
        graded = patient.grade(data, student="s", notebook="n", seed=5)  # a busy machine is no disturbance
        return graded.verdict.model_dump_json(exclude={"seconds"})

    def grade(self, data: bytes) -> Graded:
        return self.grader.grade(data, student="s", notebook="n", seed=5)

    def try_(self, attack: Attack, *, then_honest: bool = True) -> Found:
        """Grade the attack, then look at everything it must not have touched; ``then_honest``: and grade an honest notebook after it."""
        code = WRONG + attack.code
        for place, path in self._places.items():
            code = code.replace(place, path)
        data = notebook_of(self.grader.assignment, code)
        if attack.edit is not None:
            document = json.loads(data)
            attack.edit(document)
            data = json.dumps(document).encode()
        graded = self.grade(data)
        earned = {e.name: e for e in graded.verdict.exercises}
        found = Found(graded, earned["mix"].points, earned["running_sum"].full, tier=graded.verdict.sandbox)
        found.leaked = set(_PLANTED.findall(everything_shown(graded)))
        found.left = self._left()
        found.disturbed = not self._untouched() or (then_honest and self.alone() != self.honest)
        return found

    def _left(self) -> list[str]:
        """What is there between two submissions and was not at the beginning; what has been killed gets the time to be cleared away."""
        deadline = time.monotonic() + 2
        while left := list((traces(self._folders) - self._resting).elements()):
            if time.monotonic() > deadline:
                return left
            time.sleep(0.02)
        return []

    def _untouched(self) -> bool:
        return self._state() == self._course

    @property
    def _folders(self) -> tuple[Path, ...]:
        return self.run_dirs, self.temporary

    def _state(self) -> dict[Path, object]:
        """Every file of the course: who may use it, since when it is as it is, and what is in it."""
        stats = {path: path.stat() for path in self.root.rglob("*")}
        return {
            path: (s.st_mode, s.st_mtime_ns, path.is_file() and os.access(path, os.R_OK) and path.read_bytes())
            for path, s in stats.items()
        }


def everything_shown(graded: Graded) -> str:
    """All that leaves the grader: verdict, graded notebook, feedback page."""
    return graded.verdict.model_dump_json() + nbformat.writes(graded.notebook) + page(graded.verdict)


def notebook_of(assignment: Assignment, mix: str) -> bytes:
    """A notebook with this answer to ``mix`` and the right one to ``running_sum``."""
    return nbformat.writes(fill(assignment.notebooks["n"], {"mix": mix, "running_sum": RIGHT})).encode()


@contextlib.contextmanager
def opened(tier: Tier | None = None) -> Iterator[Range]:
    """A range in a folder of its own; ``tier`` as Sandbox would choose unless given."""
    with contextlib.ExitStack() as stack:
        base = Path(tempfile.mkdtemp(prefix="range-", dir="/tmp"))
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        root, run_dirs, temporary = base / "course", base / "run", base / "tmp"
        run_dirs.mkdir(mode=0o711)
        temporary.mkdir()
        base.chmod(0o755)  # nothing but the sandbox stands between a student's code and the course
        _plant(root)
        changed = {"HOME": str(root / "home"), "XDG_RUNTIME_DIR": str(run_dirs), "COURSE_SECRET": _token()}
        stack.enter_context(mock.patch.dict(os.environ, changed))
        stack.enter_context(mock.patch("tempfile.tempdir", str(temporary)))
        stack.enter_context(orphans_adopted())
        if tier is not None:
            stack.enter_context(mock.patch("autograder.sandbox.sandbox.best_tier", return_value=tier))
        assignment = Assignment.load(root, "a")
        judge = stack.enter_context(Judge(assignment.tests, assignment.exercises))
        warm = stack.enter_context(WarmParent(("autograder.judge.agent",)))
        yield Range(root, Grader(assignment, judge, LIMITS, warm, tier == "none"), run_dirs, temporary)


def _plant(root: Path) -> None:
    files = {
        "solutions/a/answers.py": SOLUTIONS,
        "tests/hidden/a/test_answers.py": HIDDEN,
        "submitted/other/a/n.ipynb": "@TOKEN@",
        "home/note.txt": "@TOKEN@",
        "home/.ssh/id_ed25519": "@TOKEN@",
        "course.secret": "@TOKEN@",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(re.sub("@TOKEN@", lambda _: _token(), text), encoding="utf-8")
    (root / "release" / "a").mkdir(parents=True)
    nbformat.write(_release(), root / "release" / "a" / "n.ipynb")
    with contextlib.closing(sqlite3.connect(root / "gradebook.db")) as book:
        book.execute("create table grade (student text, score real)")
        book.execute("insert into grade values (?, 1.0)", [_token()])
        book.commit()


def _release() -> nbformat.NotebookNode:
    def meta(grade_id: str, **flags: object) -> dict[str, object]:
        roles = {"grade": False, "solution": False, "locked": False, "task": False}
        return {"nbgrader": {"grade_id": grade_id, "schema_version": 3, "cell_type": "code", **roles, **flags}}

    cells = []
    for name, arguments in (("mix", "x, y"), ("running_sum", "x")):
        stub = f"def {name}({arguments}):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
        cells.append(nbformat.v4.new_code_cell(stub, metadata=meta(f"{name}_answer", solution=True)))
        cells.append(nbformat.v4.new_code_cell(f"{name}", metadata=meta(name, grade=True, locked=True, points=10)))
    for number, cell in enumerate(cells):
        cell.id = f"given-{number}"
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": python})


def _token() -> str:
    return f"PLANTED-{secrets.token_hex(8)}"
