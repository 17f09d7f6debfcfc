"""What a process does to itself before it runs a student's code: limits, an unprivileged user, Landlock, seccomp.

Runs inside the sandbox, in a process that is still single-threaded, and needs nothing but the standard library, so
that it can also be run as a program: ``python lockdown.py SPEC_FD REPORT_FD`` confines itself and then reports what
it could still reach (see :mod:`autograder.sandbox.probe`).

Landlock: https://docs.kernel.org/userspace-api/landlock.html, seccomp: seccomp(2), capabilities(7).
"""

from __future__ import annotations

import base64
import ctypes
import errno
import json
import os
import resource
import signal
import socket
import struct
import sys
from dataclasses import asdict, dataclass, field

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_SECCOMP_MODE_FILTER = 2
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture

# Landlock's rights on files, by bit.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_REG, _TRUNCATE, _IOCTL_DEV = 1 << 8, 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


@dataclass(frozen=True)
class Spec:
    """All that a sandboxed process is told. Written by the judge, read once before anything of the student's runs."""

    work: str
    """Directory of the notebook; made here when it is not there yet."""
    env: dict[str, str]
    """The whole environment."""
    rlimits: dict[str, int]
    """``{"DATA": bytes, …}``, set as soft and hard limit."""
    uid: int | None = None
    """User and group to become, when started by root; None keeps the user."""
    read: tuple[str, ...] = ()
    """What Landlock lets be read and executed; empty for no Landlock."""
    write: tuple[str, ...] = ()
    """What Landlock lets be changed."""
    namespaces: bool = True
    """Whether namespaces part the process from all others. Without them it may start no program and no process, and in
    its work directory it may make files but never remove, rename or nest them, so that the judge can count them."""
    bpf: str = ""
    """The seccomp filter (base64); empty for none."""
    threads: int = 1
    output_bytes: int = 1 << 20
    connection: dict[str, str | int] = field(default_factory=dict)
    """What a Jupyter connection file holds."""
    files: tuple[tuple[str, int], ...] = ()
    """Name and size of the files whose bytes follow."""
    canary: tuple[str, int, int] = ("", 0, 0)
    """For the self-test: a file, a TCP port and a process of the judge's that must be out of reach."""

    def dump(self, contents: tuple[bytes, ...] = ()) -> bytes:
        """This and the contents of the files, as :func:`load` reads it."""
        return b"".join([json.dumps(asdict(self)).encode(), b"\n", *contents])


def load(fd: int) -> tuple[Spec, list[bytes]]:
    """Read what :meth:`Spec.dump` wrote, from the start of an open file, and close it."""
    with open(fd, "rb") as file:
        file.seek(0)
        spec = Spec(**json.loads(file.readline()))
        return spec, [file.read(size) for _, size in spec.files]


def confine(spec: Spec, contents: list[bytes]) -> None:
    """Give up everything the spec does not leave. There is no way back. Raises OSError when a step is refused."""
    os.environ.clear()
    os.environ.update(spec.env)
    os.umask(0o077)
    os.nice(5)  # the judge keeps its clock also beside a student's busy loop
    _write("/proc/self/oom_score_adj", "1000")  # when memory runs out this goes first
    for name, value in spec.rlimits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))
    _drop_privileges(spec.uid)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    os.makedirs(spec.work, mode=0o700, exist_ok=True)
    os.chdir(spec.work)
    for (name, _), content in zip(spec.files, contents, strict=True):
        if os.path.dirname(name):
            os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as file:
            file.write(content)
    if not spec.namespaces:
        _make_directories(spec.env["IPYTHONDIR"], spec.env["MPLCONFIGDIR"])
    if spec.read:
        landlock(spec)
    if spec.bpf:
        _seccomp(base64.b64decode(spec.bpf))


def landlock_abi() -> int:
    """Landlock's version in this kernel, 0 where there is none."""
    return max(0, int(_libc.syscall(_SYS_LANDLOCK_CREATE, None, 0, 1)))


def landlock(spec: Spec) -> None:
    """Leave this process and its children the paths of the spec; no other file, no TCP, no signal to others."""
    abi = landlock_abi()
    if not abi:
        return
    handled = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        handled |= right if abi >= since else 0
    attributes = [handled]
    if abi >= 4:
        # In a network namespace of its own a process may use its loopback; without one, no TCP at all.
        attributes.append(0 if spec.namespaces else 0b11)
    if abi >= 6:
        attributes.append(0b11)  # scope: no abstract socket and no signal leaves the sandbox
    packed = struct.pack(f"{len(attributes)}Q", *attributes)
    ruleset = _check(_libc.syscall(_SYS_LANDLOCK_CREATE, packed, len(packed), 0), "landlock_create_ruleset")
    read = _READ_FILE | _READ_DIR | (_EXECUTE if spec.namespaces else 0)
    work = handled if spec.namespaces else _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _MAKE_REG
    for paths, rights in ((spec.read, read), ((spec.work,), work), (spec.write, handled)):
        for path in paths:
            try:
                parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            allowed = rights & handled & (~0 if os.path.isdir(path) else _ON_FILES)
            rule = struct.pack("=Qi", allowed, parent)
            _check(_libc.syscall(_SYS_LANDLOCK_ADD, ruleset, 1, rule, 0), f"landlock_add_rule {path}")
            os.close(parent)
    _check(_libc.syscall(_SYS_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def reachable(spec: Spec) -> list[str]:
    """Self-test of a confined process: which of the judge's things it can still reach, by name. Empty is good."""
    path, port, pid = spec.canary
    found = []
    if os.getuid() == 0:
        found.append("root")
    for name, target, mode in (("files", path, "r"), ("kernel settings", "/proc/sys/kernel/core_pattern", "a")):
        try:
            open(target, mode).close()
            found.append(name)
        except OSError:
            pass
    try:
        os.chmod(path, 0)
        if not os.stat(path).st_mode & 0o777:
            found.append("rights to files")
    except OSError:
        pass
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        found.append("network")
    except OSError:
        pass
    try:
        if not spec.namespaces:  # in a PID namespace of its own the number means nobody, or somebody of its own
            os.kill(pid, 0)
            found.append("processes")
    except OSError:
        pass
    if not spec.namespaces:
        try:
            if os.fork() == 0:
                os._exit(0)
            found.append("new processes")
        except OSError:
            pass
    return found


def _drop_privileges(uid: int | None) -> None:
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused where there is nothing to drop
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, none = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", *[0] * 6)
    _check(_libc.capset(header, none), "capset")
    _prctl(_PR_SET_DUMPABLE, 1)  # cleared by the change of user, and /proc/self is unreadable without


def _make_directories(ipythondir: str, matplotlib: str) -> None:
    """IPython and matplotlib make these when they start, which a process that may not make directories cannot."""
    os.makedirs(matplotlib, exist_ok=True)
    for name in ("log", "startup", "pid", "security", "db"):
        os.makedirs(os.path.join(ipythondir, "profile_default", name), exist_ok=True)
    for name in ("nbextensions", "extensions"):
        os.makedirs(os.path.join(ipythondir, name), exist_ok=True)


def _seccomp(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(Program(len(program) // 8, program)))


def _prctl(option: int, *arguments: object) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    _check(_libc.prctl(option, *(ctypes.c_ulong(a) if isinstance(a, int) else a for a in padded)), f"prctl {option}")


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EACCES, errno.EPERM):
            raise


def _main(spec_fd: int, report_fd: int) -> None:
    spec, contents = load(spec_fd)
    try:
        confine(spec, contents)
        report: dict[str, object] = {"reachable": reachable(spec), "landlock": landlock_abi()}
    except OSError as error:
        report = {"error": str(error), "errno": error.errno}
    os.write(report_fd, json.dumps(report).encode())


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
