"""From start to the last trace removed, however it ends."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.sandbox import Death, Sandbox, SandboxUnavailable, best_tier
from autograder.sandbox import probe as probe_module
from autograder.text import Text


def traces() -> set[str]:
    """Directories of sandboxes, and processes that have to do with them."""
    bases = {tempfile.gettempdir(), "/tmp", os.environ.get("XDG_RUNTIME_DIR", "/tmp")}
    found = {name for base in bases for name in os.listdir(base) if name.startswith("autograder-")}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"bwrap" in line or b"autograder.sandbox" in line or b"leftover" in line:
            found.add(f"{pid} {line!r}")
    return found


def mounts() -> int:
    return len(Path("/proc/self/mountinfo").read_text().splitlines())


DAEMONS = """
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600) # leftover'])
    os._exit(0)
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600) # leftover'], start_new_session=True)
print('started')
"""


def test_nothing_is_left(way, open_box: Callable, notebook_in: Callable):
    before, mounted = traces(), mounts()
    with open_box(way, files={"a/b": b"c"}) as box:
        driven = notebook_in(box)
        driven.run("open('written.txt', 'w').write('x')")
        assert driven.run(DAEMONS).startswith("started" if box.tier == "bubblewrap" else "BlockingIOError")
        assert traces() - before
    assert traces() - before == set()
    assert mounts() == mounted
    assert not box.alive()
    assert box.died_of == Death("killed")


@pytest.mark.parametrize(
    ("source", "death"),
    [
        ("import os; os._exit(3)", Death("exit", 3)),
        ("import ctypes; ctypes.string_at(0)", Death("signal", signal.SIGSEGV)),
    ],
)
def test_daemons_do_not_outlive_a_kernel_that_dies_by_itself(way, open_box, notebook_in, source, death):
    before = traces()
    with open_box(way) as box:
        driven = notebook_in(box)
        driven.run(DAEMONS)
        with pytest.raises(Exception, match="died"):
            driven.run(source)
        box.kill()
        assert box.died_of == death
        assert traces() - before == set()


def test_the_words_of_a_death():
    assert Death("exit", 3).text.en == "the notebook's kernel exited by itself (status 3)"
    assert Death("signal", 11).text == Text(
        zh="笔记本的内核崩溃了(信号 SIGSEGV)", en="the notebook's kernel crashed (signal SIGSEGV)"
    )
    assert [Death.of_status(code).returncode for code in (0, 3, -9)] == [0, 3, -9]


def test_a_directory_made_unreadable_is_removed_all_the_same(way, open_box, notebook_in):
    before = traces()
    with open_box(way, files={"a/b": b"c"}) as box:
        notebook_in(box).run("import os; os.chmod('a', 0); os.chmod('.', 0)")
    assert traces() - before == set()


def test_kill_from_any_thread_and_often(way, open_box):
    with open_box(way) as box:
        killers = [threading.Thread(target=box.kill) for _ in range(4)]
        for killer in killers:
            killer.start()
        for killer in killers:
            killer.join()
        assert not box.alive()
        box.kill()
        box.interrupt()
        assert box.died_of == Death("killed")


def test_interrupt_reaches_a_busy_main_thread(fresh):
    timer = threading.Timer(0.5, fresh.box.interrupt)
    timer.start()
    assert fresh.run("while True: pass").startswith("KeyboardInterrupt")
    timer.join()
    assert fresh.value("1 + 1") == 2


DRIVER = """
import sys, time
from autograder.sandbox import Limits, Sandbox, WarmParent
tier, kind = sys.argv[1].split("-")
warm = WarmParent() if kind == "warm" else None
box = Sandbox(Limits(processes=64), tier=tier, warm=warm)
box.start()
print(box.kernel_pid, box.run_dir, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("way", ["bubblewrap-cold", "bubblewrap-warm", "landlock-cold"], indirect=True)
def test_a_judge_killed_takes_its_sandboxes_along(way, open_box):
    open_box(way)
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, way], stdout=subprocess.PIPE, text=True)
    pid, run_dir = driver.stdout.readline().split()
    kernel = os.pidfd_open(int(pid))
    driver.kill()
    driver.wait()
    assert select.select([kernel], [], [], 10)[0], "the kernel goes on"
    os.close(kernel)
    driver.stdout.close()
    shutil.rmtree(run_dir)  # a judge that was killed cannot tidy up: its next start may


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", "a/../../x", "a\0b", "."])
def test_a_file_name_that_leads_out_is_refused(name):
    with pytest.raises(ValueError, match="inside the notebook's directory"):
        Sandbox(files={name: b""})


def test_no_isolation_no_run(monkeypatch):
    nothing = Text(zh="缺少 X", en="X is missing")
    monkeypatch.setattr(probe_module, "probe", lambda tier: probe_module.Probe(tier, False, nothing))
    with pytest.raises(SandboxUnavailable) as caught:
        Sandbox().start()
    assert "cannot isolate students' notebooks" in caught.value.text.en
    assert "X is missing" in caught.value.text.en
    assert "无法隔离" in caught.value.text.zh
    assert best_tier(allow_unsandboxed=True) == "none"


def test_without_isolation_when_that_is_allowed(monkeypatch, notebook_in):
    monkeypatch.setattr(probe_module, "probe", lambda tier: probe_module.Probe(tier, False, None))
    before = traces()
    with Sandbox(allow_unsandboxed=True, files={"a": b"1"}) as box:
        assert box.tier == "none"
        assert notebook_in(box).value("open('a').read()") == "1"
    assert traces() - before == set()


def test_a_failed_start_says_why_and_leaves_nothing(monkeypatch):
    before = traces()
    monkeypatch.setattr("autograder.sandbox.sandbox.working_program", lambda: "/bin/false")
    monkeypatch.setattr("autograder.sandbox.sandbox.best_tier", lambda allowed: "bubblewrap")
    with pytest.raises(SandboxUnavailable, match=r"did not start \(bubblewrap\): bubblewrap did not start"):
        Sandbox().start()
    assert traces() - before == set()
