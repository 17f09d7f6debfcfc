"""The course's secret, from which the inputs of hidden tests are drawn: unknown to students, equal on every regrade."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course.problems import CourseError
from autograder.text import Text

if TYPE_CHECKING:
    from autograder.course.model import Course

NAME = ".course-secret"


def read_secret(root: Path) -> bytes:
    """The secret beside course.yaml, made (readable by its owner alone) when there is none yet.

    Raises CourseError when the file is there but holds no secret.
    """
    path = root / NAME
    with contextlib.suppress(FileNotFoundError):
        return _parse(path)
    # Written aside and linked into place, so that of two processes that start at once both read the same one.
    handle, name = tempfile.mkstemp(dir=root, prefix=NAME)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
    return _parse(path)


def _parse(path: Path) -> bytes:
    text = path.read_text(encoding="ascii", errors="replace").strip()
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) < 16:
        raise CourseError.of(
            path,
            Text(
                zh="应有至少 32 位十六进制数字；请从备份恢复，或删去它（之后重新评分会用新的输入）",
                en="expected at least 32 hexadecimal digits; restore it from a backup, or delete it "
                "(regrading then draws new inputs)",
            ),
        )
    return secret


def seed(course: Course, assignment: str, student: str, notebook: str) -> int:
    """The seed of one submitted notebook: a non-negative 63-bit int, the same on every run of this course."""
    names = "\0".join((course.id, assignment, student, notebook)).encode()
    digest = hmac.new(read_secret(course.root), names, hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") >> 1
