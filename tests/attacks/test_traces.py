"""That what an attack left behind would be noticed: each sort of trace, made on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.traces import orphans_adopted, traces

DAEMON = """
import os, signal
if os.fork() == 0:
    os.setsid()
    os.write(1, b"%d" % os.getpid())
    os.close(1)
    signal.pause()
"""


@pytest.fixture
def new(tmp_path: Path):
    before = traces([tmp_path])
    return lambda: [trace.split()[0] for trace in (traces([tmp_path]) - before).elements()]


def test_nothing_is_new_where_nothing_happened(new):
    assert new() == []


def test_an_orphan_is_seen_until_it_has_ended(new):
    with orphans_adopted():
        pid = int(subprocess.run([sys.executable, "-S", "-c", DAEMON], stdout=subprocess.PIPE, check=True).stdout)
        try:
            assert new() == ["process"]
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)  # ours to wait for, though another process made it
        assert new() == []


def test_files_are_seen(new, tmp_path):
    (tmp_path / "left").touch()
    assert new() == ["file"]


@pytest.mark.parametrize(
    "hold",
    [
        pytest.param(lambda: os.pidfd_open(os.getpid()), id="process"),
        pytest.param(lambda: os.open("/proc/self/ns/net", os.O_RDONLY), id="namespace"),
        pytest.param(lambda: os.open("/", os.O_RDONLY), id="folder"),
    ],
)
def test_handles_are_seen(new, hold):
    fd = hold()
    assert new() == ["handle"]
    os.close(fd)
    assert new() == []
