"""Starts the processes of one sandbox: bubblewrap's first process where namespaces hold, and the kernel in it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.sandbox import bubblewrap
from autograder.sandbox.limits import Limits
from autograder.sandbox.waiting import readable
from autograder.sandbox.warm import WarmParent

_START_SECONDS = 60.0
_GOODBYE_SECONDS = 2.0


class LaunchError(RuntimeError):
    """The sandbox could not be set up; the message says which step failed."""


@dataclass
class Processes:
    """Handles of a running sandbox. All are pidfds or file descriptors: a number can be taken by somebody else."""

    kernel: int
    """The process that runs the notebook."""
    kernel_pid: int
    report: socket.socket
    """Where its parent tells how it ended, when forked."""
    forked: bool
    first: int | None = None
    """First process of the PID namespace: everything in it dies with it."""
    child: subprocess.Popen[bytes] | None = None
    """Our own child: bubblewrap, or the kernel itself."""
    proc: int | None = None
    """/proc as seen inside (directory)."""
    tmp: int | None = None
    """/tmp as seen inside (directory)."""

    def alive(self) -> bool:
        """Whether the kernel runs."""
        return not readable(0, self.kernel)

    def interrupt(self) -> None:
        """SIGINT for the kernel's main thread. Without effect when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.kernel, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL for all."""
        for pidfd in (self.first, self.kernel):
            if pidfd is not None:
                _kill(pidfd)

    def bury(self) -> tuple[int, float]:
        """After the kernel's end: kill what it has left and wait until all is gone.

        Returns how the kernel ended, as :class:`subprocess.Popen` says it, and the CPU seconds of all.
        """
        if self.forked:
            self.report.settimeout(_GOODBYE_SECONDS)
            try:
                ended = json.loads(self.report.recv(1 << 16))
                self.report.recv(1)  # its parent has closed its end: it is gone too
                returncode, cpu = os.waitstatus_to_exitcode(ended["status"]), float(ended["cpu"])
            except (OSError, ValueError):
                returncode, cpu = -signal.SIGKILL, 0.0
        elif self.first is not None:
            readable(_GOODBYE_SECONDS, self.first)  # it passes the kernel's status on and ends
        self.kill()
        if self.first is not None:
            readable(10.0, self.first)
        if self.child is not None:
            _, status, used = os.wait4(self.child.pid, 0)
            self.child.returncode = os.waitstatus_to_exitcode(status)
            if not self.forked:
                returncode, cpu = self.child.returncode, used.ru_utime + used.ru_stime
                if self.first is not None and returncode > 128:
                    returncode = 128 - returncode  # bubblewrap's way to say: killed by a signal
        return returncode, cpu

    def close(self) -> None:
        """Forget the handles."""
        for fd in (self.kernel, self.first, self.proc, self.tmp):
            if fd is not None:
                os.close(fd)
        for pipe in (self.child and self.child.stdin, self.child and self.child.stdout):
            if pipe:
                pipe.close()


def in_namespaces(
    program: str,
    limits: Limits,
    env: dict[str, str],
    fds: Sequence[int],
    stdio: int,
    report: socket.socket,
    warm: WarmParent | None,
) -> Processes:
    """Start a kernel under bubblewrap: forked from ``warm``, which then may raise WarmParentError, or afresh.

    ``fds``: spec, report, agent and the listeners, see :func:`autograder.sandbox.kernel.run`. ``report`` is our side
    of the second. Raises LaunchError when bubblewrap or the kernel refuses.
    """
    info_read, info_write = os.pipe()
    arguments = [*bubblewrap.command(program, limits, may_change_user=warm is None), "--info-fd", str(info_write)]
    if warm is None:
        for name, value in env.items():
            arguments += ["--setenv", name, value]
        arguments += ["--", *_fresh_interpreter(fds)]
    else:
        arguments += ["--", "cat"]
    child = subprocess.Popen(
        arguments,
        pass_fds=[info_write, *(fds if warm is None else ())],
        stdin=subprocess.PIPE if warm else subprocess.DEVNULL,
        stdout=subprocess.PIPE if warm else stdio,
        stderr=stdio,
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
    )
    os.close(info_write)
    with contextlib.ExitStack() as undo:
        undo.callback(child.wait)
        undo.callback(child.kill)
        with open(info_read, "rb") as info:
            text = info.read()
        if not text:
            raise LaunchError("bubblewrap did not start")
        first_pid = int(json.loads(text)["child-pid"])
        first = os.pidfd_open(first_pid)
        undo.callback(os.close, first)
        # Killed before it has let its own child go on, bubblewrap leaves that waiting for ever: this one goes first.
        undo.callback(_kill, first)
        if warm is not None:
            # bubblewrap names its first process before it has mounted anything; an echo proves that all is in place.
            assert child.stdin
            assert child.stdout
            os.write(child.stdin.fileno(), b"\n")
            echo = child.stdout.fileno()
            if not readable(_START_SECONDS, echo) or not os.read(echo, 1):
                raise LaunchError("bubblewrap did not finish its set-up")
            warm.fork([stdio, *fds], join=first)
        pid = _await_kernel(report, first)
        undo.pop_all()
    root = f"/proc/{first_pid}/root"
    return Processes(
        kernel=os.pidfd_open(pid),
        kernel_pid=pid,
        report=report,
        forked=warm is not None,
        first=first,
        child=child,
        proc=os.open(f"{root}/proc", os.O_RDONLY | os.O_DIRECTORY),
        tmp=os.open(f"{root}/tmp", os.O_RDONLY | os.O_DIRECTORY),
    )


def without_namespaces(
    env: dict[str, str], fds: Sequence[int], stdio: int, report: socket.socket, warm: WarmParent | None
) -> Processes:
    """Start a kernel that only confines itself. Otherwise like :func:`in_namespaces`."""
    child = None
    if warm is not None:
        warm.fork([stdio, *fds], join=None)
    else:
        child = subprocess.Popen(
            _fresh_interpreter(fds),
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=stdio,
            stderr=stdio,
            env=env,
            cwd="/",
            start_new_session=True,
        )
    with contextlib.ExitStack() as undo:
        pidfd = None
        if child is not None:
            undo.callback(child.wait)
            undo.callback(child.kill)
            pidfd = os.pidfd_open(child.pid)
            undo.callback(os.close, pidfd)
        pid = _await_kernel(report, pidfd)
        undo.pop_all()
    return Processes(
        kernel=pidfd or os.pidfd_open(pid), kernel_pid=pid, report=report, forked=warm is not None, child=child
    )


def _kill(pidfd: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def _fresh_interpreter(fds: Sequence[int]) -> list[str]:
    return [sys.executable, "-P", "-m", "autograder.sandbox.kernel", *map(str, fds)]


def _await_kernel(report: socket.socket, process: int | None) -> int:
    """The pid, as this process sees it, of the kernel that has confined itself.

    The kernel's side of a socket cannot lie about that: its credentials come from the operating system.
    """
    deadline = time.monotonic() + _START_SECONDS
    credentials = struct.Struct("3i")
    watched = [report.fileno()] if process is None else [report.fileno(), process]
    while True:
        ready = readable(deadline - time.monotonic(), *watched)
        if report.fileno() in ready:
            message, ancillary, _, _ = report.recvmsg(1 << 16, socket.CMSG_SPACE(credentials.size))
            answer = json.loads(message or b"null")
            if answer == {}:
                for level, kind, data in ancillary:
                    if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                        return int(credentials.unpack(data[: credentials.size])[0])
            raise LaunchError(answer["error"] if answer and "error" in answer else "the kernel ended at its start")
        raise LaunchError("the kernel ended at its start" if ready else f"no kernel within {_START_SECONDS:g} s")
