"""The same tests as an ordinary user, and as root where only Landlock holds."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.another_user import USER, command, impossible

HERE = Path(__file__).parent
MOST = "(landlock-warm and (isolation or limits)) or (bubblewrap-warm and (isolation or left or daemons))"


def run_tests(uid: int, selection: str, markers: str) -> subprocess.CompletedProcess[str]:
    if reason := impossible():
        pytest.skip(f"NOT TESTED HERE: {reason}")
    with tempfile.TemporaryDirectory(prefix="ag-", dir="/tmp") as temporary:
        os.chmod(temporary, 0o777)
        tests = ["-m", "pytest", str(HERE), "-q", "-p", "no:cacheprovider", "-k", selection, "-m", markers]
        line, env = command(uid, *tests, f"--basetemp={temporary}/pytest")
        return subprocess.run(line, env=env, cwd=HERE.parents[1], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("uid", "selection", "markers"),
    [
        pytest.param(USER, MOST, "not slow", id="user"),
        pytest.param(USER, "not another_user", "slow or not slow", id="user-all", marks=pytest.mark.slow),
        pytest.param(0, "landlock", "slow or not slow", id="root-landlock", marks=pytest.mark.slow),
    ],
)
def test_as(uid: int, selection: str, markers: str) -> None:
    result = run_tests(uid, selection, markers)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    assert "skipped" not in result.stdout
    assert "failed" not in result.stdout
