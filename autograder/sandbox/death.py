"""Why a sandbox ended, in words."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

from autograder.text import Text

Cause = Literal["exit", "signal", "time", "memory", "disk", "processes", "killed"]

_TEXTS: dict[Cause, Text] = {
    "exit": Text(
        zh="笔记本的内核自己退出了(退出码 {status})", en="the notebook's kernel exited by itself (status {status})"
    ),
    "signal": Text(zh="笔记本的内核崩溃了(信号 {name})", en="the notebook's kernel crashed (signal {name})"),
    "time": Text(zh="运行时间超过了限制", en="it ran longer than allowed"),
    "memory": Text(zh="使用的内存超过了限制", en="it used more memory than allowed"),
    "disk": Text(zh="写入的文件超过了限制", en="it wrote more files than allowed"),
    "processes": Text(zh="进程或线程的数目超过了限制", en="it ran more processes or threads than allowed"),
    "killed": Text(zh="评分程序结束了它", en="the grader ended it"),
}


@dataclass(frozen=True)
class Death:
    """How a sandbox ended: by itself (``exit``, ``signal``), by a limit, or at the judge's wish (``killed``)."""

    cause: Cause
    status: int | None = None
    """Exit code for ``exit``, signal number for ``signal``."""

    @classmethod
    def of_status(cls, returncode: int) -> Death:
        """From a return code as :class:`subprocess.Popen` gives it: negative for a signal."""
        return cls("exit", returncode) if returncode >= 0 else cls("signal", -returncode)

    @property
    def returncode(self) -> int | None:
        """The inverse of :meth:`of_status`."""
        return -self.status if self.cause == "signal" and self.status else self.status

    @property
    def text(self) -> Text:
        """A sentence for the report."""
        name: object = self.status
        if self.cause == "signal" and self.status in set(signal.Signals):
            name = signal.Signals(self.status).name
        return _TEXTS[self.cause].format(status=self.status, name=name)
