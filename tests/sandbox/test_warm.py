"""Forked kernels: as good as fresh ones, as different from each other, and far sooner there."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from autograder.sandbox import Sandbox, WarmParent
from autograder.sandbox.warm import WarmParentError

FORKED = ["bubblewrap-warm", "landlock-warm"]
forked = pytest.mark.parametrize("way", FORKED, indirect=True)


def test_the_parent_has_one_thread_and_knows_nothing(warm_parent, monkeypatch):
    warm_parent.wait_until_ready()
    process = Path(f"/proc/{warm_parent.pid}")
    assert os.listdir(process / "task") == [str(warm_parent.pid)]
    environment = (process / "environ").read_bytes()
    assert b"JUDGES" not in environment
    assert os.readlink(process / "cwd") == "/"
    opened = {os.readlink(process / "fd" / fd).split(":")[0] for fd in os.listdir(process / "fd")}
    assert opened <= {"/dev/null", "socket"}, "no file of the judge's"


@forked
def test_a_fork_is_there_at_once(way, open_box, notebook_in, warm_parent):
    warm_parent.wait_until_ready()
    with open_box(way):
        pass  # the first one finds out what the machine can
    started = time.monotonic()
    with open_box(way) as box:
        assert notebook_in(box).value("import torch\nint(torch.ones(2).sum())") == 2
        took = time.monotonic() - started
    assert box.warm
    assert took < 1.0, "a fresh interpreter needs longer for torch alone"


@forked
def test_random_numbers_differ_between_forks(way, open_notebook):
    source = "import numpy, random, torch, uuid\n[torch.rand(1).item(), torch.initial_seed(), numpy.random.rand(), random.random(), uuid.uuid4().hex]"
    first, second = (open_notebook(way).value(source) for _ in range(2))
    assert all(a != b for a, b in zip(first, second, strict=True))


@forked
def test_parallel_loops_work_after_the_fork(fresh):
    """libgomp's threads do not survive a fork: a parent that had computed would leave children that hang."""
    source = (
        "import torch\ntorch.set_num_threads(4)\nx = torch.ones(300, 300, requires_grad=True)\n(x @ x).sum().backward()"
    )
    assert fresh.value(source + "\nx.grad[0, 0].item()") == 600.0
    assert fresh.value("import numpy\nfloat((numpy.ones((300, 300)) @ numpy.ones((300, 300)))[0, 0])") == 300.0


@forked
def test_the_number_of_threads_is_the_limits(fresh, limits):
    assert fresh.value("import torch\ntorch.get_num_threads()") == limits.threads


@pytest.mark.parametrize("way", ["bubblewrap-warm", "bubblewrap-cold"], indirect=True)
def test_worker_processes_and_temporary_files(fresh):
    source = (
        "import tempfile, torch\nfrom torch.utils.data import DataLoader\n"
        "loader = DataLoader(torch.arange(8), batch_size=2, num_workers=2)\n"
        "with tempfile.TemporaryFile() as f: pass\n[sum(b.sum().item() for b in loader), tempfile.gettempdir()]"
    )
    assert fresh.value(source) == [28, "/tmp"]


@pytest.mark.parametrize("way", ["landlock-warm", "landlock-cold"], indirect=True)
def test_no_new_processes_without_namespaces(fresh):
    for source in (
        "import os; os.fork()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.execv('/bin/true', ['true'])",
    ):
        assert fresh.run(source).startswith(("BlockingIOError", "PermissionError"))
    assert fresh.value("import tempfile, os\nos.path.dirname(tempfile.mkstemp()[1]) == os.getcwd()")


@forked
def test_modules_not_yet_imported_can_be(fresh):
    assert fresh.value("import xml.dom.minidom, statistics\nstatistics.mean([1, 3])") == 2


@forked
def test_the_collector_leaves_shared_pages_alone(fresh):
    assert fresh.value("import gc\n[gc.isenabled(), gc.get_freeze_count() > 100_000]") == [True, True]


def test_many_threads_share_one_parent(open_box, warm_parent):
    boxes = [open_box("bubblewrap-warm") for _ in range(4)]
    threads = [threading.Thread(target=box.start) for box in boxes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The threads that started them have ended; the sandboxes go on.
    assert all(box.alive() and box.warm for box in boxes)
    assert len({box.kernel_pid for box in boxes}) == 4
    for box in boxes:
        box.kill()


def test_a_module_that_starts_threads_cannot_be_forked_with(tmp_path, monkeypatch, notebook_in):
    threaded = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    (tmp_path / "starts_a_thread.py").write_text(threaded)
    monkeypatch.setattr("autograder.sandbox.bubblewrap.python_path", lambda: f"{tmp_path}:{Path.cwd()}")
    with WarmParent(preload=("starts_a_thread",)) as parent:
        with pytest.raises(WarmParentError, match="2 run"):
            parent.wait_until_ready()
        monkeypatch.undo()
        with Sandbox(warm=parent) as box:
            assert not box.warm, "a fresh interpreter instead"
            assert notebook_in(box).value("1 + 1") == 2


def test_a_module_that_cannot_be_imported_is_named():
    with WarmParent(preload=("no_such_module",)) as parent, pytest.raises(WarmParentError, match="no_such_module"):
        parent.wait_until_ready()


def test_without_its_parent_a_notebook_starts_afresh(notebook_in):
    parent = WarmParent()
    parent.close()
    parent.close()
    with Sandbox(warm=parent) as box:
        assert not box.warm
        assert notebook_in(box).value("1 + 1") == 2


@pytest.mark.parametrize("way", ["bubblewrap-warm"], indirect=True)
def test_closing_the_parent_ends_its_kernels(way, open_box):
    parent = WarmParent()
    box = open_box(way)
    box._warm_parent = parent
    box.start()
    parent.close()
    deadline = time.monotonic() + 10
    while box.alive() and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert not box.alive()
    box.kill()
