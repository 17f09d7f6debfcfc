"""The same tests as an ordinary user, and as root where only Landlock holds.

Root starts them in a mount namespace in which the interpreter can be read by everybody: an installation in root's home
cannot, and that would be all these tests find out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
USER = 61234
MOST = "(landlock-warm and (isolation or limits)) or (bubblewrap-warm and (isolation or left or daemons))"

# Cover the first ancestor of the interpreter that others may not enter by an empty directory with just the interpreter.
PREPARE = """
set -e
if [ -n "$HIDDEN" ]; then
    aside=$(mktemp -d)
    mount --bind "$PREFIX" "$aside"
    mount -t tmpfs -o mode=755 tmpfs "$HIDDEN"
    mkdir -p "$PREFIX"
    mount --move "$aside" "$PREFIX"
    rmdir "$aside"
fi
exec "$@"
"""


def run_tests(uid: int, selection: str, markers: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED HERE: only root can become another user")
    if not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("NOT TESTED HERE: util-linux's unshare and setpriv are missing")
    prefix = Path(sys.base_prefix)
    hidden = next((str(p) for p in reversed(prefix.parents) if p.stat().st_mode & 0o005 != 0o005), "")
    become = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
    tests = [sys.executable, "-m", "pytest", str(HERE), "-q", "-p", "no:cacheprovider", "-k", selection, "-m", markers]
    with tempfile.TemporaryDirectory(prefix="ag-", dir="/tmp") as temporary:
        os.chmod(temporary, 0o777)
        basetemp = f"--basetemp={temporary}/pytest"
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", PREPARE, "sh", *become, *tests, basetemp],
            env={"PATH": os.environ["PATH"], "PREFIX": str(prefix), "HIDDEN": hidden, "HOME": "/var"},
            cwd=HERE.parents[1],
            capture_output=True,
            text=True,
        )


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
