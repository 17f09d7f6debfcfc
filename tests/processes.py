"""Processes that a test has started, seen from outside."""

from __future__ import annotations

import contextlib
import signal
import subprocess

import psutil


def end(run: subprocess.Popen, by: signal.Signals) -> list[str]:
    """End ``run`` by a signal, and name the processes below it that have not ended a minute later.

    A process may end at any moment while it is looked at; one that waits to be reaped has ended.
    """
    kin = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(by)
    run.wait(60)
    _, left = psutil.wait_procs(kin, timeout=60)
    alive = []
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(f"{process.pid} {process.name()}")
    return alive


__all__ = ["end"]
