"""The socket to the agent in a student's sandbox. The judge's clock bounds every request; what comes back is hostile."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from autograder.judge.faults import Fault, StudentFault
from autograder.judge.student import Reply, Tensors, malformed
from autograder.judge.wire import Malformed, read_frame, to_frame
from autograder.sandbox import Sandbox
from autograder.sandbox.waiting import readable
from autograder.text import Text

_GRACE_SECONDS = 1.0
_LOOK_SECONDS = 0.05


class Connection:
    """A connection to the agent that serves the notebook's namespace in ``box``.

    ``ended``: whether the kernel says that it serves no more. Before the first answer nobody may ever have accepted the connection.

    Raises StudentFault when the notebook has closed the socket, and from :meth:`request` when the call runs out of time, the kernel ends, or
    the reply is malformed.
    """

    def __init__(self, box: Sandbox, ended: Callable[[], bool]) -> None:
        self._box, self._ended = box, ended
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(box.agent_path))  # the sandbox's listener queues it until the agent accepts
        except OSError:
            self.close()
            raise self._died() from None
        self._accepted = False

    def request(self, header: dict[str, Any], tensors: Tensors) -> Reply:
        """Send one request and wait for its reply."""
        try:
            if not self._accepted:  # starting to serve is no part of the first call's time: it may have to import torch
                self._exchange(to_frame({"op": "hello"}, {}), self._box.limits.cell_seconds)
                self._accepted = True
            reply = self._exchange(to_frame(header, tensors), self._box.limits.call_seconds)
        except TimeoutError:
            self._stop()
            raise StudentFault(Fault.TIMEOUT, _TOO_LONG.format(seconds=f"{self._box.limits.call_seconds:g}")) from None
        except (EOFError, OSError):
            self.close()
            raise self._died() from None
        except Malformed as error:
            self._box.kill()  # the stream cannot be read on from here
            raise malformed(error) from None
        return reply

    def close(self) -> None:
        """End the serving; the kernel goes on with the notebook."""
        self._socket.close()

    def _exchange(self, frame: bytes, seconds: float) -> Reply:
        end = time.monotonic() + seconds
        self._socket.settimeout(seconds)
        self._socket.sendall(frame)
        return read_frame(lambda n: self._receive(n, end))

    def _receive(self, n: int, end: float) -> bytes:
        data = bytearray()
        while len(data) < n:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if not self._accepted:
                self._await_answer(left)
            self._socket.settimeout(left)
            part = self._socket.recv(min(n - len(data), 1 << 20))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def _await_answer(self, seconds: float) -> None:
        """Until there is something to read. Raises EOFError when the kernel has stopped serving without an answer."""
        end = time.monotonic() + seconds
        while not readable(min(_LOOK_SECONDS, end - time.monotonic()), self._socket.fileno()):
            if time.monotonic() > end:
                raise TimeoutError
            if self._ended() and not readable(0, self._socket.fileno()):
                raise EOFError

    def _stop(self) -> None:
        """Interrupt the call that hangs; end the kernel when that does not help."""
        self._box.interrupt()
        try:
            end = time.monotonic() + _GRACE_SECONDS
            read_frame(lambda n: self._receive(n, end))
        except (TimeoutError, EOFError, OSError, Malformed):
            self._box.kill()

    def _died(self) -> StudentFault:
        self._box.kill()
        death = self._box.died_of
        if death is not None and death.cause == "memory":
            return StudentFault(Fault.DIED, _MEMORY, "memory")
        if death is not None and death.cause == "killed":
            return StudentFault(Fault.DIED, _CLOSED, "closed")
        cause = death.text if death is not None else Text(zh="", en="")
        return StudentFault(
            Fault.DIED,
            Text(zh=f"调用时内核结束了：{cause.zh}。", en=f"The kernel ended during the call: {cause.en}."),
            death.cause if death is not None else "",
        )


_TOO_LONG = Text(
    zh="调用超过 {seconds} 秒还没有结束：是不是有停不下来的循环？",
    en="The call did not end within {seconds} seconds: is there a loop that never stops?",
)
_MEMORY = Text(
    zh="调用用掉了允许的全部内存，内核被结束。",
    en="The call used up all the memory it may use, and the kernel was ended.",
)
_CLOSED = Text(zh="调用时与评分程序的连接断开了。", en="The connection to the grader was closed during the call.")
