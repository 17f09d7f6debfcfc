"""What jupyter_client and nbclient see of a sandbox: a kernel manager, its provisioner, and a client that is bounded.

nbclient and nbgrader use it without a change, by traits alone::

    NotebookClient(notebook, km=box.kernel_manager)                                     # a sandbox already started
    NotebookClient(notebook, kernel_manager_class=kernel_manager_class(limits, warm))   # one that it starts itself

No kernelspec needs to be installed, and the one a notebook names does not matter: what runs is our own ipykernel.
"""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from queue import Empty
from typing import Any, cast

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from nbclient.exceptions import DeadKernelError
from traitlets import Bool, Dict, DottedObjectName, Instance, Type

from autograder.sandbox.files import read_files
from autograder.sandbox.limits import Limits
from autograder.sandbox.messages import OUTPUTS, is_output, is_sound_output, read_message
from autograder.sandbox.sandbox import Sandbox
from autograder.sandbox.warm import WarmParent

_READY_SECONDS = 60.0
_POLL_SECONDS = 0.01
_LOOK_SECONDS = 0.05
_QUEUED_MESSAGES = 64


class _Channel(AsyncZMQSocketChannel):
    """A channel whose messages a student writes."""

    async def get_msg(self, timeout: float | None = None) -> dict[str, Any]:  # type: ignore[override]
        """The next well-formed message. Raises Empty when there is none in time."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            if await self.socket.poll(int(min(left, _LOOK_SECONDS) * 1000)):
                message = self._read(await self.socket.recv_multipart())
                if message is not None:
                    return message
            elif left <= _LOOK_SECONDS:
                raise Empty
            else:
                self._look()

    def _read(self, frames: list[bytes]) -> dict[str, Any] | None:
        return read_message(self.session, frames)

    def _look(self) -> None:
        """Called now and then while nothing comes."""


class _ShellChannel(_Channel):
    """Stops the cell's clock at its reply, and notices at once, where nbclient looks once a second, that none can come
    any more."""

    client: SandboxClient

    def _read(self, frames: list[bytes]) -> dict[str, Any] | None:
        message = super()._read(frames)
        if message is not None and message["header"]["msg_type"] == "execute_reply":
            self.client.sandbox.stop_clock(self.client)
        return message

    def _look(self) -> None:
        if not self.client.sandbox.alive():
            raise DeadKernelError("Kernel died")


class _OutputChannel(_Channel):
    """Drops outputs, unread, once a notebook has sent more than it may."""

    allowance: int
    truncated = False

    def _read(self, frames: list[bytes]) -> dict[str, Any] | None:
        size = sum(map(len, frames))
        if size > self.allowance and is_output(frames):
            self.truncated = True
            return None
        message = super()._read(frames)
        if message is None or not is_sound_output(message):
            return None
        if message["header"]["msg_type"] in OUTPUTS:
            self.allowance -= size
        return message


class SandboxClient(AsyncKernelClient):
    """A client without jupyter_client's fixed waits, with bounded messages and a clock on every cell.

    The clock: a cell that has not ended after ``limits.cell_seconds`` is interrupted, and the sandbox killed if that
    does not help, whatever timeout the caller uses. Requests marked ``silent``, the judge's own, have no clock.
    """

    shell_channel_class = Type(_ShellChannel)
    stdin_channel_class = Type(_Channel)
    control_channel_class = Type(_Channel)
    iopub_channel_class = Type(_OutputChannel)

    sandbox = Instance(Sandbox)

    @property
    def output_truncated(self) -> bool:
        """Whether outputs were dropped because the notebook had used up ``limits.output_bytes``."""
        return self.iopub_channel.truncated

    def start_channels(
        self, shell: bool = True, iopub: bool = True, stdin: bool = True, hb: bool = False, control: bool = True
    ) -> None:
        """Open the channels; never the heartbeat, since the sandbox watches the process itself."""
        super().start_channels(shell, iopub, stdin, False, control)

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Return as soon as the kernel has answered. Raises RuntimeError when it dies or does not in time."""
        end = time.monotonic() + (timeout or _READY_SECONDS)
        while time.monotonic() < end:
            if not self.sandbox.alive():
                raise RuntimeError(f"Kernel died before replying to kernel_info: {self.sandbox.last_words}")
            self.kernel_info()
            try:
                reply = await self.shell_channel.get_msg(timeout=1)
                if reply["header"]["msg_type"] == "kernel_info_reply":
                    await self.iopub_channel.get_msg(timeout=0.2)  # proves that this channel is open too
                    self._handle_kernel_info_reply(reply)
                    return
            except Empty:
                pass
        raise RuntimeError("Kernel didn't respond in time")

    def execute(self, code: str, silent: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Send a cell's code; its clock runs until the kernel has answered, or until the next cell."""
        if not silent:
            self.sandbox.start_clock(self, self.sandbox.limits.cell_seconds)
        return super().execute(code, silent=silent, **options)

    def has_answered(self, request: str) -> bool:
        """Whether the reply to this request has come, without waiting for it. To be asked while no cell runs: what came before is dropped."""
        channel: zmq.Socket[bytes] = zmq.Socket.shadow(self.shell_channel.socket)  # the same without asyncio
        for _ in range(_QUEUED_MESSAGES):  # a kernel may send without end: the rest can wait for the next look
            if not channel.poll(0):
                break
            message = read_message(self.session, channel.recv_multipart(zmq.NOBLOCK))
            if message is not None and message["parent_header"].get("msg_id") == request:
                return True
        return False

    def stop_channels(self) -> None:
        """Close the channels."""
        self.sandbox.stop_clock(self)
        super().stop_channels()

    @property
    def shell_channel(self) -> _ShellChannel:
        """The channel of requests and replies."""
        channel: _ShellChannel = super().shell_channel
        channel.client = self
        return channel

    @property
    def iopub_channel(self) -> _OutputChannel:
        """The channel of outputs."""
        channel: _OutputChannel = super().iopub_channel
        if not hasattr(channel, "allowance"):
            channel.allowance = self.sandbox.limits.output_bytes
        return channel

    def _context_default(self) -> zmq.asyncio.Context:
        context = super()._context_default()
        # Bounds what a flood can pile up here before anybody reads it.
        context.setsockopt(zmq.MAXMSGSIZE, 2 * self.sandbox.limits.output_bytes)
        context.setsockopt(zmq.RCVHWM, _QUEUED_MESSAGES)
        return context


class SandboxProvisioner(KernelProvisionerBase):
    """jupyter_client's handle on the processes of a sandbox."""

    sandbox = Instance(Sandbox, allow_none=True)

    @property
    def has_process(self) -> bool:
        """Whether there is a sandbox that has not been waited for."""
        return self.sandbox is not None

    async def poll(self) -> int | None:
        """None while the kernel runs, else its return code."""
        if self.sandbox is None:
            return 0
        if self.sandbox.alive():
            return None
        death = self.sandbox.died_of
        return -signal.SIGKILL if death is None or death.status is None else death.returncode

    async def wait(self) -> int | None:
        """Wait for the end of the kernel; the sandbox is then gone."""
        while (returncode := await self.poll()) is None:
            await asyncio.sleep(_POLL_SECONDS)
        await self.kill()
        self.sandbox = None
        return returncode

    async def send_signal(self, signum: int) -> None:
        """An interrupt reaches the kernel; any other signal ends the sandbox."""
        if self.sandbox is None:
            return
        if signum == signal.SIGINT:
            self.sandbox.interrupt()
        elif signum != 0:
            await self.kill()

    async def kill(self, restart: bool = False) -> None:
        """End the sandbox."""
        if self.sandbox is not None:
            self.sandbox.kill()  # takes some 10 ms; and at the interpreter's exit no thread can be started

    async def terminate(self, restart: bool = False) -> None:
        """End the sandbox: there is nothing a kernel might have to save."""
        await self.kill()

    async def cleanup(self, restart: bool = False) -> None:
        """End the sandbox, also when the kernel has died by itself and nobody has killed it."""
        await self.kill()

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        """Never called: the manager starts the sandbox, which needs no command."""
        raise NotImplementedError


class SandboxKernelManager(AsyncKernelManager):
    """A kernel manager whose kernel is a :class:`~autograder.sandbox.Sandbox`."""

    client_class = DottedObjectName("autograder.sandbox.manager.SandboxClient")
    client_factory = Type(klass=SandboxClient, default_value=SandboxClient)

    limits = Instance(Limits, args=())
    warm = Instance(WarmParent, allow_none=True)
    allow_unsandboxed = Bool(False, config=True, help="Run notebooks without isolation where none is possible.")
    env = Dict(help="Variables that the notebook's code sees besides the sandbox's own.")
    sandbox = Instance(Sandbox, allow_none=True)

    @classmethod
    def of(cls, sandbox: Sandbox) -> SandboxKernelManager:
        """A manager of a sandbox that runs already."""
        manager = cls(limits=sandbox.limits)
        manager._attach(sandbox)
        return manager

    @property
    def kernel_spec(self) -> KernelSpec:
        """Always the same, whatever is installed and whatever the notebook names."""
        return KernelSpec(display_name="Python 3", language="python", interrupt_mode="signal")

    async def start_kernel(self, *, cwd: str | None = None, **_: Any) -> None:  # type: ignore[override]
        """Start a sandbox with a copy of the files in ``cwd``. Raises SandboxUnavailable."""
        files = read_files(Path(cwd), self.limits.disk_bytes) if cwd else {}
        sandbox = Sandbox(
            self.limits, warm=self.warm, files=files, env=self.env, allow_unsandboxed=self.allow_unsandboxed
        )
        await asyncio.to_thread(sandbox.start)
        self._attach(sandbox)

    _async_start_kernel = start_kernel  # by which name a restart calls it

    def client(self, **options: Any) -> AsyncKernelClient:  # type: ignore[override]
        """A :class:`SandboxClient`, not yet connected."""
        return super().client(sandbox=self.sandbox, **options)

    def _attach(self, sandbox: Sandbox) -> None:
        self._attempted_start = True
        self._launch_args = {}
        self.shutting_down = False
        self.sandbox = sandbox
        self.kernel_id = self.kernel_id or sandbox.run_dir.name
        self.provisioner = SandboxProvisioner(
            parent=self, kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, sandbox=sandbox
        )
        self.session.key = b""
        self.load_connection_info(cast(KernelConnectionInfo, sandbox.connection_info))

    async def _async_wait(self, pollinterval: float = _POLL_SECONDS) -> None:
        while await self._async_is_alive():
            await asyncio.sleep(_POLL_SECONDS)


def kernel_manager_class(
    limits: Limits,
    warm: WarmParent | None = None,
    allow_unsandboxed: bool = False,
    env: Mapping[str, str] | None = None,
) -> type[SandboxKernelManager]:
    """A class to set as ``kernel_manager_class`` of nbclient's NotebookClient or nbgrader's Execute."""

    class ConfiguredKernelManager(SandboxKernelManager):
        def __init__(self, **options: Any) -> None:
            fixed = {"limits": limits, "warm": warm, "allow_unsandboxed": allow_unsandboxed, "env": dict(env or {})}
            super().__init__(**fixed, **options)

    return ConfiguredKernelManager
