"""What a submission could leave behind: processes, namespaces, mounts, files, memory segments, cgroups, open handles."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


@contextlib.contextmanager
def orphans_adopted() -> Iterator[None]:
    """While it is open, a process whose parent has ended becomes our child and not process 1's: none can slip out of sight."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def traces(folders: Iterable[Path]) -> Counter[str]:
    """All there is now that a submission can have made: below our process, in ``folders``, and in the machine's shared folders.

    A namespace lives as long as a process in it, a mount of it or a handle on it; so it is found by one of these.
    """
    found = Counter(_descendants())
    found.update(f"mount {line.split()[4]}" for line in Path("/proc/self/mountinfo").read_text().splitlines())
    found.update(f"file {path}" for folder in folders for path in folder.iterdir())
    found.update(f"file {path}" for folder in _SHARED if folder.is_dir() for path in _students(folder))
    found.update(f"cgroup {path}" for path in _cgroups())
    found.update(f"handle {name}" for name in _handles())
    return found


def _descendants() -> Iterator[str]:
    """One that ends while it is looked at has left nothing."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            with contextlib.suppress(psutil.TimeoutExpired):
                if process.status() == psutil.STATUS_ZOMBIE and process.ppid() == os.getpid():
                    process.wait(0)  # an orphan that has ended
            if process.status() != psutil.STATUS_ZOMBIE:
                yield f"process {process.pid} {process.name()}"


def _students(folder: Path) -> Iterator[Path]:
    """What belongs to a user that root lends to sandboxes; to an ordinary user all sandboxes belong."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            owner = path.lstat().st_uid
            if owner == os.geteuid() != 0 or (os.geteuid() == 0 and owner >> 8 == (1 << 30 >> 8) + os.getpid()):
                yield path


def _cgroups() -> Iterator[str]:
    """Ours and those below it."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, place = line.split(":", 2)
        for root in (f"/sys/fs/cgroup/{controllers.removeprefix('name=')}", "/sys/fs/cgroup"):
            if place != "/":  # at the root lie everybody's
                yield from (below for below, _, _ in os.walk(root + place))


def _handles() -> Iterator[str]:
    """Open files of ours that keep a sandbox's namespaces, folders or processes: by kind, since their numbers differ."""
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{fd}")
            if re.match(r"anon_inode:\[pidfd\]|(mnt|pid|net|ipc|uts|user|cgroup):|pidfd|/", target):
                yield re.sub(r"\d+", "*", target)
