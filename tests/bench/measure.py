"""What a command costs, with everything it starts: wall time, CPU time and memory, by looking at its processes while it runs."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_LOOK_SECONDS = 0.1
_EVERY = 10  # reading the memory of a process is slow: at each tenth look


@dataclass(frozen=True)
class Cost:
    """``peak``: proportional set size of all its processes at the worst moment looked at; ``parent``: of the first one alone. In bytes."""

    seconds: float
    cpu_seconds: float
    peak: int
    parent: int
    stdout: str


def run(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> Cost:
    """Run a command to its end. Raises RuntimeError with what it wrote when it fails.

    CPU time is that of each process as last seen, so what it did in the last tenth of a second before its end is missing.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=err)
        cpu: dict[tuple[int, float], float] = {}
        peak = parent = looks = 0
        try:
            while process.poll() is None:
                sizes = _look(process.pid, cpu, with_memory=looks % _EVERY == 0)
                peak, parent = max(peak, sum(sizes)), max([parent, *sizes[:1]])
                looks += 1
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_SECONDS)
        finally:
            process.kill()
        seconds = time.monotonic() - start
        out.seek(0), err.seek(0)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{err.read()[-3000:]}")
        return Cost(seconds, sum(cpu.values()), peak, parent, out.read())


def _look(pid: int, cpu: dict[tuple[int, float], float], *, with_memory: bool) -> list[int]:
    """Note the CPU time of a process and of all below it; their memory, the first one's first."""
    sizes = []
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                times = process.cpu_times()
                cpu[process.pid, process.create_time()] = times.user + times.system
                if with_memory:
                    sizes.append(process.memory_full_info().pss)
    return sizes
