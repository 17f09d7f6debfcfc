"""A large class, a twentieth of it crashing, hanging or flooding, whose run is killed three times: ``make test-many``."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from watchfiles import watch

from autograder.course import Course
from tests.integration.tinycourse import ANSWERS, gradebook, hand_in, make_course, statuses
from tests.processes import end

STUDENTS = int(os.environ.get("STUDENTS", "2000"))
SOUND = [ANSWERS[name] for name in ("right", "square", "raises", "untouched")]
HOSTILE = [
    ANSWERS["exits"],
    ANSWERS["hangs"],
    "def double(X):\n    while True:\n        print('flood' * 10_000)",
]
_DEADLINE_MS = 300_000


def _answer(number: int) -> str | None:
    return HOSTILE[number // 20 % 3] if number % 20 == 7 else SOUND[number % 4]


def _verdicts(course: Course) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in course.root.glob("verdicts/*/a1/n1.json")}


def _run(course: Course, until: int | None = None) -> float:
    """Grade with two workers, killed once there are ``until`` verdicts; the seconds it took."""
    start = time.monotonic()
    command = [sys.executable, "-m", "autograder.cli", "grade", "a1", "-C", str(course.root), "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        if until is None:
            assert run.wait() == 0
        else:
            for _ in watch(course.root, step=100, debounce=500, rust_timeout=_DEADLINE_MS, yield_on_timeout=True):
                if run.poll() is not None or len(_verdicts(course)) >= until:
                    break
            assert end(run, signal.SIGKILL) == []
    return time.monotonic() - start


@pytest.mark.slow
def test_a_large_class_whose_run_is_killed_three_times(tmp_path, capsys):
    course = make_course(tmp_path / "quiet")
    shutil.rmtree(course.folder("submitted"))
    for number in range(STUDENTS):
        hand_in(course, f"s{number:04}", _answer(number))
    killed = Course.load(Path(shutil.copytree(course.root, tmp_path / "killed")))
    quiet_seconds = _run(course)
    seconds, seen = [], dict[Path, int]()
    for quarter in (1, 2, 3):
        seconds.append(_run(killed, until=STUDENTS * quarter // 4))
        there = _verdicts(killed)
        assert len(seen) < len(there) < STUDENTS, "killed midway"
        assert seen.items() <= there.items(), "nothing is graded twice"
        seen = there
    seconds.append(_run(killed))
    there = _verdicts(killed)
    assert len(there) == STUDENTS
    assert seen.items() <= there.items()
    quiet, after = statuses(course), statuses(killed)
    assert [student for student, *_ in quiet] == [f"s{number:04}" for number in range(STUDENTS)]
    assert after == quiet
    assert gradebook(killed) == gradebook(course)
    with capsys.disabled():
        points = Counter(points for *_, points in quiet)
        print(
            f"\n{STUDENTS} students, 5 % hostile: {quiet_seconds:.0f} s undisturbed; killed three times "
            f"{' + '.join(f'{each:.0f}' for each in seconds)} s; points {dict(sorted(points.items()))}"
        )
