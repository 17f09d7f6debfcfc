"""What a notebook may use, and what is said when it uses more."""

from __future__ import annotations

import dataclasses
import time

import pytest
from nbclient.exceptions import DeadKernelError

from autograder.sandbox import Limits

MiB = 1 << 20
IGNORING = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"


def dies(notebook, source: str) -> str:
    """What a notebook that must be killed dies of."""
    with pytest.raises(DeadKernelError):
        notebook.run(source)
    notebook.box.kill()
    return notebook.box.died_of.cause


def test_limits_must_be_positive():
    with pytest.raises(ValueError, match="memory_bytes: expected a number above zero, got 0"):
        Limits(memory_bytes=0)


def test_too_much_memory_is_an_error_in_the_cell(fresh):
    assert fresh.run("import torch; torch.ones(1 << 29)").startswith(("RuntimeError", "MemoryError"))
    assert fresh.run("x = bytearray(2 << 30)").startswith("MemoryError")
    assert fresh.value("1 + 1") == 2


def test_shared_memory_counts_too(way, open_notebook, limits):
    fresh = open_notebook(way, dataclasses.replace(limits, memory_bytes=400 * MiB))
    source = "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1"
    assert dies(fresh, source) == "memory"
    assert "memory" in fresh.box.died_of.text.en
    assert "内存" in fresh.box.died_of.text.zh


def test_a_fork_bomb_is_bounded_and_leaves_nothing(fresh):
    source = "import os, time\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept OSError: pass\nn"
    if fresh.box.tier == "landlock":
        assert fresh.value(source) == 0
    else:
        assert 10 < fresh.value(source) < 64
        assert fresh.value("1 + 1") == 2


def test_threads_are_bounded(fresh):
    source = "import threading, time\nfor _ in range(1000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    try:
        said = fresh.run(source)
    except DeadKernelError:
        fresh.box.kill()
        assert fresh.box.died_of.cause == "processes"
        assert "线程" in fresh.box.died_of.text.zh
    else:
        assert "RuntimeError: can't start new thread" in said


def test_a_file_has_a_greatest_size(fresh):
    assert "OSError: [Errno 27]" in fresh.run(
        f"open('big', 'wb', 0).write(bytes({20 * MiB})); open('big', 'ab', 0).write(b'x')"
    )


def test_all_files_together_have_a_greatest_size(fresh):
    source = f"for i in range(8): open(f'file{{i}}', 'wb').write(bytes({12 * MiB}))\nimport time; time.sleep(10)"
    if fresh.box.tier == "landlock":
        assert dies(fresh, source) == "disk"
    else:
        assert "OSError: [Errno 28]" in fresh.run(source)


def test_empty_files_are_counted(fresh):
    assert dies(fresh, "for i in range(10**7): open(f'file{i}', 'w').close()") == "disk"


def test_files_that_nobody_sees_are_impossible_or_bounded(fresh):
    """A file without a name, or removed while open, takes space that no listing shows."""
    source = f"import os\nfiles = []\nfor i in range(8):\n  f = open(f'file{{i}}', 'wb', 0); files.append(f); os.unlink(f.name); f.write(bytes({12 * MiB}))"
    expected = "PermissionError" if fresh.box.tier == "landlock" else "OSError: [Errno 28]"
    assert expected in fresh.run(source)
    if fresh.box.tier == "landlock":
        assert "PermissionError" in fresh.run("os.open('.', os.O_TMPFILE | os.O_RDWR)")
        assert "PermissionError" in fresh.run("os.mkdir('deeper')")
        assert "PermissionError" in fresh.run("os.symlink('/', 'link')")


def test_shared_memory_files_are_bounded(fresh):
    said = fresh.run(f"for i in range(8): open(f'/dev/shm/file{{i}}', 'wb').write(bytes({12 * MiB}))")
    assert ("PermissionError" if fresh.box.tier == "landlock" else "OSError: [Errno 28]") in said


def test_output_is_bounded(fresh, limits):
    """Over all cells together; what is dropped does not stop the notebook."""
    source = "import sys\nfor i in range(100): print('x' * 10_000); sys.stdout.flush()"
    printed = [len(fresh.run(source)) for _ in range(3)]
    assert printed[0] > 900_000
    assert sum(printed) <= limits.output_bytes
    assert fresh.client.kc.output_truncated
    assert fresh.run("1 / 0") == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    "source",
    [
        "print('x' * (100 << 20))",
        "raise ValueError('x' * (10 << 20))",
        "'x' * (10 << 20)",
        "from IPython.display import Image\nImage(data=bytes(10 << 20), format='png')",
    ],
)
def test_one_huge_output_does_not_stop_the_notebook(fresh, limits, source):
    started = time.monotonic()
    assert len(fresh.run(source)) <= limits.output_bytes
    assert fresh.value("1 + 1") == 2
    assert time.monotonic() - started < 3


def test_a_cell_that_ignores_interrupts_is_killed(way, open_notebook, limits):
    notebook = open_notebook(way, dataclasses.replace(limits, cell_seconds=0.5))
    started = time.monotonic()
    assert dies(notebook, IGNORING) == "time"
    assert time.monotonic() - started < 8
    assert notebook.box.died_of.text.zh == "运行时间超过了限制"


def test_a_slow_cell_is_interrupted_and_the_next_one_runs(way, open_notebook, limits):
    notebook = open_notebook(way, dataclasses.replace(limits, cell_seconds=0.5))
    assert notebook.run("while True: pass").startswith("KeyboardInterrupt")
    assert notebook.run("import time; time.sleep(60)").startswith("KeyboardInterrupt")
    assert notebook.value("1 + 1") == 2
    assert notebook.box.died_of is None


def test_a_stopped_kernel_is_killed_by_the_clock(way, open_notebook, limits):
    notebook = open_notebook(way, dataclasses.replace(limits, cell_seconds=0.5))
    stop = (
        "import ctypes; ctypes.CDLL(None).raise_(19)"
        if way.startswith("landlock")
        else "import os; os.kill(os.getpid(), 19)"
    )
    if way.startswith("landlock"):
        assert "PermissionError" in notebook.run("import os; os.kill(os.getpid(), 19)")
    else:
        assert dies(notebook, stop) == "time"


def test_the_whole_notebook_has_a_clock(way, open_notebook, limits):
    notebook = open_notebook(way, dataclasses.replace(limits, notebook_seconds=1.0))
    assert dies(notebook, "import time; time.sleep(30)") == "time"


def test_a_time_limit_of_the_judges(fresh):
    with fresh.box.time_limit(0.3):
        assert fresh.run("while True: pass").startswith("KeyboardInterrupt")
    assert fresh.value("1 + 1") == 2
    with fresh.box.time_limit(0.3, grace=0.3):
        assert dies(fresh, IGNORING) == "time"


def test_usage_is_measured(fresh):
    fresh.run(
        "import time\nend = time.process_time() + 0.5\nx = bytearray(300 << 20)\nwhile time.process_time() < end: pass"
    )
    fresh.box.kill()
    usage = fresh.box.usage()
    assert 0.5 <= usage.cpu_seconds < 10
    assert 300 * MiB < usage.peak_memory_bytes < 1200 * MiB
