"""The directory of one sandbox on the host, removed at its end, or by the next judge when its own was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

_PREFIX = "autograder-"
_LOCK = "lock"
_LONGEST_BASE = 60  # a socket's address has 108 bytes


class RunDir:
    """A private directory, locked as long as this process lives. Made at once, and gone after :meth:`remove`."""

    def __init__(self) -> None:
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        if not os.access(base, os.W_OK | os.X_OK) or len(base) > _LONGEST_BASE:
            base = "/tmp"
        _sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        self._lock = os.open(self.path / "locking", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.rename(self.path / "locking", self.path / _LOCK)  # never seen unlocked while it is ours

    def make_work(self, uid: int | None) -> Path:
        """A directory in it for a notebook, owned by the notebook's user."""
        work = self.path / "work"
        work.mkdir(0o700)
        if uid is not None:
            os.chown(work, uid, uid)
            self.path.chmod(0o711)
        return work

    def remove(self) -> None:
        """Remove it and all that is in it."""
        _remove(self.path)
        os.close(self._lock)


@cache
def _sweep(base: str) -> None:
    """Remove what judges have left that were killed: directories of ours that nobody holds the lock of any more."""
    for path in Path(base).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == os.geteuid() and not path.is_symlink():
                with open(path / _LOCK) as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path)


def _remove(path: Path) -> None:
    """Remove a tree whose owner may have taken away even its own right to look into it."""
    for directory, names, _ in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):  # among them, for links
                fd = os.open(os.path.join(directory, name), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
                os.chmod(f"/proc/self/fd/{fd}", 0o700)
                os.close(fd)
    shutil.rmtree(path, ignore_errors=True)
