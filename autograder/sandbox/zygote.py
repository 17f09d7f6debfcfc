"""The warm parent's own process: imports once, stays single-threaded, forks one child per notebook.

Started by :class:`autograder.sandbox.warm.WarmParent` as ``python -m autograder.sandbox.zygote SOCKET_FD MODULE…``
with an empty environment. It computes nothing (libgomp's threads would not survive a fork), holds nothing of the
course's, and reads from its starter alone. A request is a word and open files::

    fork    [stdio, spec, report, agent, listener…]
    join    [stdio, spec, report, agent, listener…, pidfd of the process whose namespaces to join]
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile

_libc = ctypes.CDLL(None, use_errno=True)

# What a kernel imports anyway, and what it would import at the first cell, completion or traceback.
_USUAL = (
    "IPython.core.completer",
    "IPython.core.debugger",
    "IPython.core.magics",
    "IPython.core.pylabtools",
    "autograder.sandbox.kernel",
    "ipykernel.debugger",
    "ipykernel.ipkernel",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",  # but not pyplot nor matplotlib_inline, which look for a running IPython when imported
    "numpy.random",
    "pdb",
    "pygments.formatters.terminal256",
    "pygments.styles.default",
    "sqlite3",
    "stack_data",
    "torch._dynamo",  # a second of imports, which torch puts off to the first optimizer
    "tornado.platform.asyncio",
    "zmq.asyncio",
)

# mount, cgroup, uts, ipc, pid, net; and user, but for root, whose sandboxes have none.
_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
_NAMESPACES |= 0x10000000 if os.geteuid() != 0 else 0


def main(control: socket.socket, preload: list[str]) -> None:
    """Import, say ``{"threads": n}``, then fork at each request until the other side is gone."""
    try:
        for name in preload:
            importlib.import_module(name)
    except Exception as error:  # the starter must hear of it, whatever it is
        control.send(json.dumps({"error": f"{name}: {type(error).__name__}: {error}"}).encode())
        return
    for name in _USUAL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.disable()
    gc.freeze()  # children share these objects' pages; unfreezing or collecting them would copy them all
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the terminal is the judge's
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    starter = os.getppid()
    control.send(json.dumps({"threads": len(os.listdir("/proc/self/task"))}).encode())
    while os.getppid() == starter:
        if not select.select([control], [], [], 1.0)[0]:
            continue
        request, fds, _, _ = socket.recv_fds(control, 16, 16)
        if not request:
            return
        if os.fork() == 0:
            _become_child(control, fds, fds.pop() if request == b"join" else None)
        for fd in fds:
            os.close(fd)
        control.send(b"{}")


def _become_child(control: socket.socket, fds: list[int], join: int | None) -> None:
    """In the fork: join the sandbox, fork again into its PID namespace, and run a kernel there; never returns."""
    status = 1
    try:
        control.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        _libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: nothing outlives the warm parent
        for number in (1, 2):
            os.dup2(fds[0], number)
        if join is not None:
            if _libc.setns(join, _NAMESPACES) != 0:
                raise OSError(ctypes.get_errno(), "setns refused")
            os.close(join)
        os.chdir("/")
        stdio, spec, report, *sockets = fds
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.close(stdio)
            _unlike_its_siblings()
            from autograder.sandbox import kernel

            kernel.run(spec, report, *sockets)
            status = 0
        else:
            _wait_for(child, report, [stdio, spec, *sockets])
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status & 0xFF)


def _wait_for(child: int, report: int, others: list[int]) -> None:
    """Tell the judge how the kernel ended: this process is the only one that can wait for it."""
    for fd in others:
        os.close(fd)
    _, status, usage = os.wait4(child, 0)
    ended = {"status": status, "cpu": usage.ru_utime + usage.ru_stime}
    with socket.socket(fileno=report) as sock:
        sock.send(json.dumps(ended).encode())


def _unlike_its_siblings() -> None:
    """What a fork would share with all other forks: random generators, and the cached directory for temporary files."""
    tempfile.tempdir = None
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
    gc.enable()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
