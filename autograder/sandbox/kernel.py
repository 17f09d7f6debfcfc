"""The process that runs a student's notebook: an ordinary ipykernel behind :mod:`~autograder.sandbox.lockdown`.

Two ways lead here: a fresh interpreter (``python -m autograder.sandbox.kernel FD…``) or a fork of the warm parent.
Either hands over open files and nothing else: the sockets are made and listened on by the judge, outside, so that no
directory of the judge's is visible in the sandbox.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import zmq
from ipykernel.iostream import IOPubThread
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.session import Session

from autograder.sandbox import lockdown

if TYPE_CHECKING:
    from collections.abc import Sequence

AGENT_FD_VARIABLE = "AUTOGRADER_AGENT_FD"
"""Environment variable with the number of the listening socket behind ``Sandbox.agent_path``."""

CHANNELS = ("shell", "iopub", "stdin", "control")


class _CappedSession(Session):
    """Shortens a message so large that the judge would close the connection: a courtesy to honest notebooks."""

    most: int

    def serialize(self, msg: dict[str, Any], ident: Any = None) -> list[bytes]:
        parts: list[bytes] = super().serialize(msg, ident)
        if sum(map(len, parts)) > self.most:
            parts = super().serialize({**msg, "content": _shortened(msg["content"], self.most // 8)}, ident)
        return parts


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, str) and len(value) > most:
        return value[:most] + "\n[…]\n"
    if isinstance(value, dict):  # half an image is none
        return {k: _shortened(v, most) for k, v in value.items() if not (k.startswith("image/") and len(v) > most)}
    if isinstance(value, list):
        return [_shortened(item, most // 8) for item in value[:100]]
    return value


class SandboxedKernelApp(IPKernelApp):
    """ipykernel on sockets that the judge already listens on, without files of its own and without a heartbeat."""

    listeners: dict[int, int]

    def _try_bind_socket(self, s: Any, port: int) -> int:
        # libzmq then listens on this file; the address only has to be well formed.
        s.setsockopt(zmq.USE_FD, self.listeners[port])
        s.bind(f"ipc://{self.ip}-{port}")
        return port

    def init_control(self, context: Any) -> None:
        super().init_control(context)  # type: ignore[no-untyped-call]
        # The debugger's way back to the shell channel leads through a path that does not exist in here.
        self.debug_shell_socket.disconnect(self.shell_socket.getsockopt(zmq.LAST_ENDPOINT))

    def init_connection_file(self) -> None:
        """The connection comes with the spec."""

    def write_connection_file(self, **kwargs: Any) -> None:
        """No file: the judge knows the connection."""

    def init_heartbeat(self) -> None:
        """The judge watches the process itself."""

    def log_connection_info(self) -> None:
        """Nobody else is to connect."""


def run(spec_fd: int, report_fd: int, agent_fd: int, *listeners: int) -> None:
    """Confine this process, report to the judge, and serve the notebook until the kernel ends.

    ``listeners`` are the sockets of :data:`CHANNELS` in order, ports 1, 2, …
    """
    report = socket.socket(fileno=report_fd)
    try:
        spec, contents = lockdown.load(spec_fd)
        lockdown.confine(spec, contents)
    except Exception as error:  # whatever it is, the judge must hear of it, and nothing of the student's may run
        report.send(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        os._exit(1)
    os.set_inheritable(agent_fd, False)
    os.environ[AGENT_FD_VARIABLE] = str(agent_fd)
    if not spec.namespaces:
        _without_sockets()
        tempfile.tempdir = spec.work  # found by trying otherwise, and a trial that cannot be removed counts as failed
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(spec.threads)
    report.send(b"{}")
    report.close()
    _serve(spec, listeners)


def _serve(spec: lockdown.Spec, listeners: Sequence[int]) -> None:
    app = SandboxedKernelApp.instance(
        transport="ipc", ip=spec.connection["ip"], **{f"{name}_port": port for port, name in enumerate(CHANNELS, 1)}
    )
    app.listeners = dict(enumerate(listeners, 1))
    app.session = _CappedSession(parent=app, key=str(spec.connection["key"]).encode())
    app.session.most = spec.output_bytes
    app.initialize(["--HistoryManager.hist_file=:memory:", "--IPKernelApp.parent_handle=0"])  # type: ignore[no-untyped-call]
    # What lies beside the notebook can be imported, as in any Jupyter kernel: this process was started with -P, so that
    # nothing could be imported from a directory by accident before it was confined. And a module that a cell has just
    # written must be found by the next one, however soon it comes.
    sys.path.append("")
    assert app.shell is not None
    app.shell.events.register("pre_run_cell", lambda info: importlib.invalidate_caches())
    app.start()  # type: ignore[no-untyped-call]


def _without_sockets() -> None:
    """Without namespaces no socket may be made at all, and libzmq aborts when ipykernel makes one for subprocesses'
    output. There are no subprocesses then either."""

    def no_pipe(self: Any) -> None:
        self._pipe_flag = False

    IOPubThread._setup_pipe_in = no_pipe  # type: ignore[method-assign]


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
