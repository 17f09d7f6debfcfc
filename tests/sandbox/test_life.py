"""From start to the last trace removed, however it ends."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from autograder.sandbox import Death, Sandbox, SandboxUnavailable, best_tier, rundir
from autograder.sandbox import probe as probe_module
from autograder.text import Text

TAG = f"leftover-{os.getpid()}"
DAEMONS = f"""
import os, subprocess, sys
command = [sys.executable, '-c', 'import time; time.sleep(600) # {TAG}']
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, command)
    os._exit(0)
subprocess.Popen(command, start_new_session=True)
print('started')
"""


@pytest.fixture
def traces(monkeypatch, warm_parent) -> Iterator[Callable[[], list[str]]]:
    """What sandboxes have left: files, our own descendants, and daemons wherever they have gone."""
    warm_parent.wait_until_ready()
    known = {process.pid for process in psutil.Process().children(recursive=True)}
    base = tempfile.mkdtemp(prefix="ag-", dir="/tmp")
    os.chmod(base, 0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", base)
    monkeypatch.setattr(tempfile, "tempdir", base)

    def look() -> list[str]:
        family = [process for process in psutil.Process().children(recursive=True) if process.pid not in known]
        daemons = [p for p in psutil.process_iter(["cmdline"]) if any(TAG in word for word in p.info["cmdline"] or ())]
        _, alive = psutil.wait_procs([*family, *daemons], timeout=1)  # the last is just being reaped
        return [*os.listdir(base), *map(str, alive)]

    yield look
    os.rmdir(base)


def mounts() -> int:
    return len(Path("/proc/self/mountinfo").read_text().splitlines())


def test_nothing_is_left(way, open_box, notebook_in, traces):
    mounted = mounts()
    with open_box(way, files={"a/b": b"c"}) as box:
        driven = notebook_in(box)
        driven.run("open('written.txt', 'w').write('x')")
        assert driven.run(DAEMONS).startswith("started" if box.tier == "bubblewrap" else "BlockingIOError")
        assert traces() != []
    assert traces() == []
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
def test_daemons_do_not_outlive_a_kernel_that_dies_by_itself(way, open_box, notebook_in, traces, source, death):
    with open_box(way) as box:
        driven = notebook_in(box)
        driven.run(DAEMONS)
        with pytest.raises(Exception, match="died"):
            driven.run(source)
        box.kill()
        assert box.died_of == death
        assert traces() == []


def test_no_open_file_is_left(way, open_box, notebook_in):
    def opened() -> set[tuple[str, str]]:
        gc.collect()  # what earlier tests still hold may be closed at any time
        return {(fd, os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd") if _is_open(fd)}

    with open_box(way):
        pass
    before = opened()
    with open_box(way):
        assert opened() - before != set()
    assert opened() - before == set()


def _is_open(fd: str) -> bool:
    """Listing a folder opens it, for as long as it takes."""
    return os.path.lexists(f"/proc/self/fd/{fd}")


def test_a_judge_with_many_open_files(way, open_box, notebook_in):
    """select(2) knows the first 1024 only."""
    with open(os.devnull) as file:
        copies = [os.dup(file.fileno()) for _ in range(1100)]
        try:
            with open_box(way) as box:
                assert notebook_in(box).value("1 + 1") == 2
        finally:
            for copy in copies:
                os.close(copy)


def test_the_words_of_a_death():
    assert Death("exit", 3).text.en == "the notebook's kernel exited by itself (status 3)"
    assert Death("signal", 11).text == Text(
        zh="笔记本的内核崩溃了(信号 SIGSEGV)", en="the notebook's kernel crashed (signal SIGSEGV)"
    )
    assert [Death.of_status(code).returncode for code in (0, 3, -9)] == [0, 3, -9]


def test_a_directory_made_unreadable_is_removed_all_the_same(way, open_box, notebook_in, traces):
    with open_box(way, files={"a/b": b"c"}) as box:
        notebook_in(box).run("import os; os.chmod('a', 0); os.chmod('.', 0)")
    assert traces() == []


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
def test_a_judge_killed_takes_its_sandboxes_along(way, open_box, traces):
    open_box(way)
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, way], stdout=subprocess.PIPE, text=True)
    pid, run_dir = driver.stdout.readline().split()
    kernel = os.pidfd_open(int(pid))
    driver.kill()
    driver.wait()
    assert select.select([kernel], [], [], 10)[0], "the kernel goes on"
    os.close(kernel)
    driver.stdout.close()
    rundir._sweep.cache_clear()
    with open_box(way) as box:
        assert os.listdir(os.path.dirname(run_dir)) == [box.run_dir.name], "the next judge tidies up"


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


def test_without_isolation_when_that_is_allowed(monkeypatch, notebook_in, traces):
    monkeypatch.setattr(probe_module, "probe", lambda tier: probe_module.Probe(tier, False, None))
    with Sandbox(allow_unsandboxed=True, files={"a": b"1"}) as box:
        assert box.tier == "none"
        assert notebook_in(box).value("open('a').read()") == "1"
    assert traces() == []


def test_tidying_up_follows_no_link(notebook_in, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(0o755)
    (outside / "kept.txt").write_text("kept")
    with Sandbox(tier="none") as box:
        notebook_in(box).run(f"import os; os.symlink({str(outside)!r}, 'link')")
        assert (box.run_dir / "work" / "link").is_symlink()
    assert not box.run_dir.exists()
    assert outside.stat().st_mode & 0o777 == 0o755
    assert (outside / "kept.txt").read_text() == "kept"


def test_a_failed_start_says_why_and_leaves_nothing(monkeypatch, traces):
    monkeypatch.setattr("autograder.sandbox.sandbox.working_program", lambda: "/bin/false")
    monkeypatch.setattr("autograder.sandbox.sandbox.best_tier", lambda allowed: "bubblewrap")
    with pytest.raises(SandboxUnavailable, match=r"did not start \(bubblewrap\): bubblewrap did not start"):
        Sandbox().start()
    assert traces() == []
