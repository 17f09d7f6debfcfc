"""Kernels without the wait for imports: the judge's side of the process that forks them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from types import TracebackType
from typing import Any

from autograder.sandbox import bubblewrap

_IMPORT_SECONDS = 120.0
_ANSWER_SECONDS = 10.0


class WarmParentError(RuntimeError):
    """The warm parent cannot fork (it died, or a preloaded module started threads). A fresh interpreter still can."""


class WarmParent:
    """A process that has imported torch and Jupyter once and forks a kernel per notebook in milliseconds.

    ``preload``: further modules to import before the first fork. They must not start threads or compute with torch.
    One parent serves any number of sandboxes, from any thread, one fork at a time. It starts importing at once, and
    the first fork waits for it. Use it as a context manager, or :meth:`close` it.
    """

    def __init__(self, preload: tuple[str, ...] = ()) -> None:
        self._lock = threading.Lock()
        self._ready = False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "autograder.sandbox.zygote", str(theirs.fileno()), *preload],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={
                    "PATH": "/usr/bin:/bin",
                    "LANG": "C.UTF-8",
                    "PYTHONPATH": bubblewrap.python_path(),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
                    "HOME": os.path.expanduser(
                        "~"
                    ),  # matplotlib's list of fonts, which takes seconds to make, is there
                    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
                    "OMP_NUM_THREADS": "1",
                    "OPENBLAS_NUM_THREADS": "1",  # or importing numpy starts threads
                },
            )

    @property
    def pid(self) -> int:
        """The process, for tests and for measuring."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Return once it has imported everything. Raises WarmParentError when it cannot fork."""
        with self._lock:
            self._wait_until_ready()

    def fork(self, fds: list[int], join: int | None) -> None:
        """Have a kernel forked that takes these files (see :mod:`.zygote`), in the namespaces of the process that the
        pidfd ``join`` stands for.

        Raises WarmParentError when nothing was forked.
        """
        with self._lock:
            self._wait_until_ready()
            try:
                request = (b"fork", fds) if join is None else (b"join", [*fds, join])
                socket.send_fds(self._control, [request[0]], request[1])
            except OSError as error:
                raise WarmParentError(f"the warm parent is gone: {error}") from error
            self._receive(_ANSWER_SECONDS)

    def close(self) -> None:
        """End the process and all kernels it has forked. May be called twice."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> WarmParent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _wait_until_ready(self) -> None:
        if self._ready:
            return
        threads = self._receive(_IMPORT_SECONDS).get("threads")
        if threads != 1:
            self.close()
            raise WarmParentError(f"a preloaded module has started threads ({threads} run), so nothing can be forked")
        self._ready = True

    def _receive(self, seconds: float) -> dict[str, Any]:
        try:
            self._control.settimeout(seconds)
            message = self._control.recv(1 << 16)
        except OSError as error:
            raise WarmParentError(f"the warm parent does not answer: {error}") from error
        if not message:
            raise WarmParentError(f"the warm parent died with status {self._process.poll()}")
        answer: dict[str, Any] = json.loads(message)
        if "error" in answer:
            raise WarmParentError(f"the warm parent could not import {answer['error']}")
        return answer
