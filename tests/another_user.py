"""Run a command of this checkout as another user, or as root where an ordinary user could run it too.

Root starts it in a mount namespace in which the interpreter can be read by everybody: an installation in root's home
cannot, and that would be all the command finds out.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

USER = 61234
"""An ordinary user without an account."""

# Cover the first ancestor of the interpreter that others may not enter by an empty directory with just the interpreter.
_PREPARE = """
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


def impossible() -> str:
    """Why this process cannot become another user; empty when it can."""
    if os.geteuid() != 0:
        return "only root can become another user"
    if not shutil.which("unshare") or not shutil.which("setpriv"):
        return "util-linux's unshare and setpriv are missing"
    return ""


def command(uid: int, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """The command line and environment that run ``python arguments…`` as this user."""
    prefix = Path(sys.base_prefix)
    hidden = next((str(p) for p in reversed(prefix.parents) if p.stat().st_mode & 0o005 != 0o005), "")
    become = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
    line = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _PREPARE, "sh", *become, sys.executable]
    env = {"PATH": os.environ["PATH"], "PREFIX": str(prefix), "HIDDEN": hidden, "HOME": "/var", "OMP_NUM_THREADS": "1"}
    return [*line, *arguments], env
