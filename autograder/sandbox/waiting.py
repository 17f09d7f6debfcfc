"""Waiting for files by poll(2): select(2) fails once a process has more than a thousand of them open."""

from __future__ import annotations

import select


def readable(seconds: float, *fds: int) -> list[int]:
    """Those of the files that can be read, have been hung up or, for pidfds, ended, within this time."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)]
