"""A real PostgreSQL server for tests, on a Unix socket, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def programs() -> Path | None:
    """Debian keeps initdb and postgres out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("postgres")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


@contextlib.contextmanager
def postgresql(*more_settings: str) -> Iterator[str]:
    """The URL of an empty database; ``more_settings`` as ``name=value``. Skips the test where there is no PostgreSQL."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql): its gradebook is NOT tested")
    pytest.importorskip("psycopg", reason="psycopg is not installed (pip install .[postgres])")
    user: dict[str, object] = {}
    if os.getuid() == 0:  # the server refuses to run as root
        try:
            who = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("there is no user postgres to run the server as: the gradebook in PostgreSQL is NOT tested")
        user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="pg") as folder:  # short: a socket's path has 107 characters
        if user:
            os.chown(folder, who.pw_uid, who.pw_gid)

        def run(program: str, *arguments: str) -> None:
            command = [found / program, "-D", f"{folder}/data", *arguments]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **user)  # type: ignore[call-overload]
            assert done.returncode == 0, done.stdout + done.stderr

        run("initdb", "-A", "trust", "-U", "grader", "-E", "UTF8", "--no-sync")
        settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", *more_settings]
        run("pg_ctl", "-w", "-l", f"{folder}/log", "-o", " ".join(f"-c {s}" for s in settings), "start")
        try:
            yield f"postgresql://grader@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
