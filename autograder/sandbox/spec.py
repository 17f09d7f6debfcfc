"""What a sandboxed process is told, by tier: the judge's side of :mod:`~autograder.sandbox.lockdown`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import PurePosixPath

from autograder.sandbox import bubblewrap, seccomp
from autograder.sandbox.limits import Limits
from autograder.sandbox.lockdown import Spec
from autograder.sandbox.tiers import Tier

_OPEN_FILES = 512
# Without a PID namespace, /proc would show every process of the machine; these are what numerical libraries ask for.
_HARDWARE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/sys/devices/system/cpu")


def make_spec(
    tier: Tier,
    limits: Limits,
    work: str,
    uid: int | None,
    *,
    connection: Mapping[str, str | int] | None = None,
    files: Mapping[str, bytes] | None = None,
    env: Mapping[str, str] | None = None,
    canary: tuple[str, int, int] = ("", 0, 0),
) -> Spec:
    """The confinement of one process in ``work``; ``uid`` as from :func:`~autograder.sandbox.users.fresh_uid`."""
    temporary = "/tmp" if tier == "bubblewrap" else work
    rlimits = {
        "DATA": limits.memory_bytes,
        "FSIZE": min(limits.file_bytes, limits.disk_bytes),
        "CORE": 0,
        "NOFILE": _OPEN_FILES,
        "MEMLOCK": 64 << 10,
        "MSGQUEUE": 0,
        "SIGPENDING": 1024,
    }
    if tier == "bubblewrap" or (tier == "landlock" and uid is not None):
        rlimits["NPROC"] = limits.processes  # counted per user: elsewhere the user's other processes would count too
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    if tier == "bubblewrap":
        read, write = (*bubblewrap.readable(), "/proc"), ("/tmp", "/dev/shm", *bubblewrap.DEVICES)
    elif tier == "landlock":
        read, write = (*bubblewrap.readable(), *_HARDWARE), ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
    return Spec(
        work=work,
        env=_environment(work, temporary, limits.threads) | dict(env or {}),
        rlimits=rlimits,
        uid=uid,
        read=read,
        write=write,
        namespaces=tier != "landlock",
        bpf="" if tier == "none" else seccomp.program(tier == "bubblewrap"),
        threads=limits.threads,
        output_bytes=limits.output_bytes,
        connection=dict(connection or {}),
        files=tuple((checked_name(name), len(content)) for name, content in (files or {}).items()),
        canary=canary,
    )


def checked_name(name: str) -> str:
    """A relative path that stays in the notebook's directory. Raises ValueError for any other."""
    path = PurePosixPath(name)
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"expected the name of a file inside the notebook's directory, got {name!r}")
    return str(path)


def _environment(work: str, temporary: str, threads: int) -> dict[str, str]:
    return {
        "PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin",
        "HOME": work,
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "TMPDIR": temporary,
        "IPYTHONDIR": f"{temporary}/.ipython",
        "MPLCONFIGDIR": f"{temporary}/.matplotlib",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONPATH": bubblewrap.python_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
    }
