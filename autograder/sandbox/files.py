"""Files out of a directory that somebody hostile may be changing at the same time."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

_DEPTH = 16


def read_files(directory: Path | str, most_bytes: int, dir_fd: int | None = None) -> dict[str, bytes]:
    """The regular files below a directory, by relative name, as far as they fit; links are left out, not followed.

    Safe while a student's processes change what is below: every step goes from an open directory to one inside it.
    """
    files: dict[str, bytes] = {}
    for place, directories, names, fd in os.fwalk(str(directory), dir_fd=dir_fd):
        below = Path(place).relative_to(directory)
        if len(below.parts) >= _DEPTH - 1:
            directories.clear()
        for name in names:
            with contextlib.suppress(OSError), _open_within(fd, name) as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and os.fstat(file.fileno()).st_size <= most_bytes:
                    content = file.read(most_bytes)
                    most_bytes -= len(content)
                    files[str(below / name)] = content
    return files


def _open_within(directory: int, name: str) -> BinaryIO:
    """Open for reading, without following a link or waiting for a pipe's other end."""
    return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory), "rb")
