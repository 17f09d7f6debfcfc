"""Measures a sandbox from outside and tells when it has passed a limit."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from autograder.sandbox.death import Cause
from autograder.sandbox.launch import Processes
from autograder.sandbox.limits import Limits

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_INODES = 5_000  # an empty file costs the kernel about a kilobyte that no size limit counts


@dataclass
class Usage:
    """What a sandbox has used, by sampling: what lived and died between two samples is missing."""

    cpu_seconds: float = 0.0
    """User and system time of all its processes."""
    peak_memory_bytes: int = 0
    """Highest sum of its processes' resident memory, shared pages counted in each: an upper bound."""


class Meter:
    """Samples one sandbox. The files in /proc belong to hostile processes but are written by the kernel."""

    def __init__(self, processes: Processes, limits: Limits, work: str | None) -> None:
        """``work``: a directory of the host's to count, where the sandbox has no tmpfs of its own."""
        self.usage = Usage()
        self._processes = processes
        self._limits = limits
        self._work = work
        self._own_proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY) if processes.proc is None else None

    def close(self) -> None:
        """Forget the handles."""
        if self._own_proc is not None:
            os.close(self._own_proc)

    def sample(self) -> Cause | None:
        """Measure once; the limit that is passed, if any."""
        pids, tasks, memory, cpu = self._pids(), 0, 0, 0.0
        for pid in pids:
            try:
                fields = self._read(f"{pid}/stat").rpartition(b")")[2].split()
            except OSError:
                continue  # it has ended
            tasks += int(fields[17])
            memory += int(fields[21]) * _PAGE
            cpu += sum(map(int, fields[11:15])) / _TICKS
        self.usage.cpu_seconds = max(self.usage.cpu_seconds, cpu)
        self.usage.peak_memory_bytes = max(self.usage.peak_memory_bytes, memory)
        allowed = self._limits.memory_bytes * 5 // 4
        if memory > allowed and self._proportional(pids) > allowed:
            return "memory"
        if tasks > self._limits.processes + 8:  # where the kernel counts them, it refuses before
            return "processes"
        return "disk" if self._disk_is_full() else None

    def _pids(self) -> list[str]:
        if self._processes.proc is None:
            return [str(self._processes.kernel_pid)]
        return [name for name in os.listdir(self._processes.proc) if name.isdigit()]

    def _proportional(self, pids: list[str]) -> int:
        """Memory with shared pages divided among those who share them; exact, but slow to ask for."""
        total = 0
        for pid in pids:
            with contextlib.suppress(OSError):
                for line in self._read(f"{pid}/smaps_rollup").splitlines():
                    if line.startswith((b"Pss:", b"SwapPss:")):
                        total += int(line.split()[1]) << 10
        return total

    def _disk_is_full(self) -> bool:
        if self._processes.tmp is not None:  # the size is the mount's own limit
            state = os.fstatvfs(self._processes.tmp)
            return state.f_files - state.f_ffree > _INODES
        if self._work is None:
            return False
        size = count = 0
        for directory, _, names in os.walk(self._work):
            count += len(names)
            if count > _INODES:
                return True
            for name in names:
                with contextlib.suppress(OSError):
                    size += os.lstat(os.path.join(directory, name)).st_blocks * 512
        return size > self._limits.disk_bytes

    def _read(self, name: str) -> bytes:
        proc = self._own_proc if self._processes.proc is None else self._processes.proc
        with open(name, "rb", opener=lambda path, flags: os.open(path, flags, dir_fd=proc)) as file:
            return file.read()
