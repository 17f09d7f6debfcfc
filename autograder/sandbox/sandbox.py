"""One sandbox: a kernel for one notebook, with everything it may use, from start to the last trace removed."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from autograder.sandbox import bubblewrap, launch
from autograder.sandbox.death import Cause, Death
from autograder.sandbox.files import read_files
from autograder.sandbox.launch import LaunchError, Processes
from autograder.sandbox.limits import Limits
from autograder.sandbox.probe import best_tier, working_program
from autograder.sandbox.rundir import RunDir
from autograder.sandbox.spec import checked_name, make_spec
from autograder.sandbox.tiers import SandboxUnavailable, Tier
from autograder.sandbox.users import fresh_uid
from autograder.sandbox.waiting import readable
from autograder.sandbox.warm import WarmParent, WarmParentError
from autograder.sandbox.watchdog import Meter, Usage
from autograder.text import Text

if TYPE_CHECKING:
    from autograder.sandbox.manager import SandboxKernelManager

_TICK_SECONDS = 0.05
_GRACE_SECONDS = 2.0
_CHANNELS = ("shell", "iopub", "stdin", "control")  # ports 1, 2, …, as in autograder.sandbox.kernel
_LAST_WORDS = 16 << 10


class Sandbox:
    """A context manager around one sandboxed Jupyter kernel::

        with Sandbox(limits, warm=parent, files={"data.csv": b"…"}) as box:
            client = NotebookClient(notebook, km=box.kernel_manager)

    ``warm``: fork the kernel from there; when that is impossible, or None, a fresh interpreter is started.
    ``files``: copied into the notebook's directory before anything runs.
    ``env``: variables that its code sees besides the sandbox's own.
    ``tier``: the isolation to use; by default the best that holds on this machine.
    ``allow_unsandboxed``: run without isolation (tier ``"none"``) rather than not at all.

    Methods may be called from any thread. Raises ValueError for a file name that leads out of the directory and, on
    entry, SandboxUnavailable when there is no isolation.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        warm: WarmParent | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        tier: Tier | None = None,
        allow_unsandboxed: bool = False,
    ) -> None:
        self.limits = limits or Limits()
        self.died_of: Death | None = None
        """How it ended; None while it runs."""
        self.warm = warm is not None
        """Whether the kernel is a fork; becomes False when a fresh interpreter had to do."""
        self._tier, self._allow_unsandboxed = tier, allow_unsandboxed
        self._warm_parent = warm
        self._files = {checked_name(name): content for name, content in (files or {}).items()}
        self._env = dict(env or {})
        self._key = secrets.token_hex(16)
        self._run_dir: Path | None = None
        self._manager: SandboxKernelManager | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._started, self._gone = threading.Event(), threading.Event()
        self._start_error: BaseException | None = None
        self._processes: Processes | None = None
        self._meter: Meter | None = None
        self._kill_cause: Cause | None = None
        self._deadlines: dict[object, tuple[float, float]] = {}
        self._last_words = b""

    def __enter__(self) -> Sandbox:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Make the sandbox and start the kernel in it. No code of the student's has run when this returns."""
        self._tier = self._tier or best_tier(self._allow_unsandboxed)
        # The processes are children of this thread, which lives as long as they do: the operating system kills
        # a sandbox together with the thread that started it.
        self._thread = threading.Thread(target=self._live, name="sandbox", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._start_error is not None:
            self._gone.wait()
            raise self._start_error

    def alive(self) -> bool:
        """Whether the kernel's process runs."""
        with self._lock:
            return self._processes is not None and self._processes.alive()

    def interrupt(self) -> None:
        """KeyboardInterrupt in the kernel's main thread, however busy it is, unless the student has disabled it."""
        with self._lock:
            if self._processes is not None:
                self._processes.interrupt()

    def kill(self) -> None:
        """End every process of the sandbox and remove every trace of it; returns when that is done. Idempotent."""
        self._end("killed")
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._gone.wait(30.0)

    @contextlib.contextmanager
    def time_limit(self, seconds: float, grace: float = _GRACE_SECONDS) -> Iterator[None]:
        """Bound what happens in the block: interrupt the kernel after ``seconds``, kill it after ``grace`` more."""
        block = object()
        self.start_clock(block, seconds, grace)
        try:
            yield
        finally:
            self.stop_clock(block)

    def start_clock(self, key: object, seconds: float, grace: float = _GRACE_SECONDS) -> None:
        """Interrupt the kernel after ``seconds`` from now and kill it after ``grace`` more, unless stopped before."""
        now = time.monotonic()
        with self._lock:
            self._deadlines[key] = (now + seconds, now + seconds + grace)

    def stop_clock(self, key: object) -> None:
        """Stop the clock that was started with this key, if it still runs."""
        with self._lock:
            self._deadlines.pop(key, None)

    @property
    def tier(self) -> Tier:
        """The isolation in force, once started."""
        assert self._tier is not None, "the sandbox has not been started"
        return self._tier

    @property
    def run_dir(self) -> Path:
        """Directory of the sockets. The judge's alone: inside the sandbox it does not exist."""
        assert self._run_dir is not None, "the sandbox has not been started"
        return self._run_dir

    @property
    def kernel_pid(self) -> int | None:
        """The kernel's process as seen from here, for measuring; None when it has ended."""
        with self._lock:
            return self._processes.kernel_pid if self._processes is not None else None

    @property
    def agent_path(self) -> Path:
        """A Unix socket that already listens; inside, its file number is in the variable AUTOGRADER_AGENT_FD."""
        return self.run_dir / "agent.sock"

    @property
    def connection_info(self) -> dict[str, Any]:
        """What a Jupyter connection file holds."""
        ports = {f"{name}_port": port for port, name in enumerate(_CHANNELS, 1)}
        address = {"transport": "ipc", "ip": str(self.run_dir / "k"), "hb_port": 9}  # there is no heartbeat
        return {**address, **ports, "key": self._key.encode(), "signature_scheme": "hmac-sha256"}

    @property
    def kernel_manager(self) -> SandboxKernelManager:
        """For nbclient: ``NotebookClient(notebook, km=box.kernel_manager)``."""
        if self._manager is None:
            from autograder.sandbox.manager import SandboxKernelManager

            self._manager = SandboxKernelManager.of(self)
        return self._manager

    def read_work(self, most_bytes: int) -> dict[str, bytes]:
        """The regular files in the notebook's directory as they are now, by relative name, as far as they fit."""
        with self._lock:
            if self._processes is None:
                return {}
            if self._processes.tmp is not None:
                return read_files(Path(bubblewrap.WORK).name, most_bytes, self._processes.tmp)
            return read_files(self.run_dir / "work", most_bytes)

    def usage(self) -> Usage:
        """CPU time and peak memory, sampled from outside; at the end CPU time as the operating system accounted it."""
        return self._meter.usage if self._meter is not None else Usage()

    @property
    def last_words(self) -> str:
        """The end of what its processes wrote to their own standard error, as in a crash. The student's to choose."""
        return self._last_words.decode(errors="replace")

    # The thread that owns the processes.

    def _live(self) -> None:
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(self._gone.set)
            stdio, stdio_inside = os.pipe()
            cleanup.callback(os.close, stdio)
            try:
                with open(stdio_inside, "wb", buffering=0):
                    self._set_up(stdio_inside, cleanup)
            except BaseException as error:  # raised again by the thread that waits in start()
                if isinstance(error, (LaunchError, OSError, subprocess.SubprocessError)):
                    self._listen_to(stdio)
                    error = self._unavailable(error)
                self._start_error = error
                self._started.set()
                return
            self._started.set()
            self._watch(stdio)
            self._bury(stdio)

    def _set_up(self, stdio: int, cleanup: contextlib.ExitStack) -> None:
        run_dir = RunDir()
        cleanup.callback(run_dir.remove)
        self._run_dir = run_dir.path
        uid = None if self.tier == "none" else fresh_uid()
        work = bubblewrap.WORK if self.tier == "bubblewrap" else str(run_dir.make_work(uid))
        connection: dict[str, str | int] = {"ip": str(self._run_dir / "k"), "key": self._key}
        spec = make_spec(self.tier, self.limits, work, uid, connection=connection, files=self._files, env=self._env)
        with contextlib.ExitStack() as given:  # what the kernel gets, and this process then closes
            report, report_inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            cleanup.callback(report.close)
            report.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            spec_file = given.enter_context(tempfile.TemporaryFile())
            spec_file.write(spec.dump(tuple(self._files.values())))
            spec_file.flush()
            agent = _listen(self.agent_path)
            listeners = [_listen(self._run_dir / f"k-{port}") for port, _ in enumerate(_CHANNELS, 1)]
            for sock in (report_inside, agent, *listeners):
                given.enter_context(sock)
            fds = [spec_file.fileno(), *(s.fileno() for s in (report_inside, agent, *listeners))]

            def start(warm: WarmParent | None) -> Processes:
                if self.tier == "bubblewrap":
                    return launch.in_namespaces(working_program(), self.limits, spec.env, fds, stdio, report, warm)
                return launch.without_namespaces(spec.env, fds, stdio, report, warm)

            try:
                processes = start(self._warm_parent)
            except WarmParentError:
                self.warm = False
                processes = start(None)
        cleanup.callback(processes.close)
        self._meter = Meter(processes, self.limits, work if self.tier == "landlock" else None)
        cleanup.callback(self._meter.close)
        with self._lock:
            self._processes = processes
            if self._kill_cause is not None:
                processes.kill()

    def _watch(self, stdio: int) -> None:
        """Until the kernel ends, by itself or because it was killed."""
        assert self._processes
        assert self._meter
        end = time.monotonic() + self.limits.notebook_seconds
        watched = [self._processes.kernel, stdio]
        sampled = 0.0
        while True:
            ready = readable(_TICK_SECONDS, *watched)
            if self._processes.kernel in ready:
                return
            if stdio in ready and not self._listen_to(stdio):
                watched.remove(stdio)  # everybody inside has closed it
            now = time.monotonic()
            if now - sampled < _TICK_SECONDS / 2:
                continue  # woken by what it writes, not by the clock
            sampled = now
            passed = "time" if now > end or self._clocks_ran_out(now) else self._meter.sample()
            if passed is not None:
                self._end(passed)

    def _clocks_ran_out(self, now: float) -> bool:
        """Interrupt the kernel for each clock that has just run out; whether one has gone on past its grace."""
        with self._lock:
            for key, (interrupt_at, kill_at) in self._deadlines.items():
                if now > kill_at:
                    return True
                if now > interrupt_at and self._processes is not None:
                    self._deadlines[key] = (kill_at, kill_at)
                    self._processes.interrupt()
        return False

    def _end(self, cause: Cause) -> None:
        with self._lock:
            if self._processes is None or self._processes.alive():  # what has ended by itself was not killed
                self._kill_cause = self._kill_cause or cause
            if self._processes is not None:
                self._processes.kill()

    def _bury(self, stdio: int) -> None:
        assert self._processes
        assert self._meter
        returncode, cpu_seconds = self._processes.bury()
        self._meter.usage.cpu_seconds = max(self._meter.usage.cpu_seconds, cpu_seconds)
        self._listen_to(stdio)
        self.died_of = Death(self._kill_cause) if self._kill_cause else Death.of_status(returncode)
        with self._lock:
            self._processes = None

    def _listen_to(self, stdio: int) -> bytes:
        data = os.read(stdio, 1 << 16) if readable(0, stdio) else b""
        self._last_words = (self._last_words + data)[-_LAST_WORDS:]
        return data

    def _unavailable(self, error: Exception) -> SandboxUnavailable:
        reason = " ".join(f"{error} {self.last_words}".split())[-1000:]
        unavailable = SandboxUnavailable(
            Text(
                zh=f"没能启动隔离的内核({self.tier}):{reason}",
                en=f"the sandboxed kernel did not start ({self.tier}): {reason}",
            )
        )
        unavailable.__cause__ = error
        return unavailable


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)
    return listener
