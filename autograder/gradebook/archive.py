"""The files of a folder or zip that came from outside: hostile until shown otherwise, never unpacked by name."""

from __future__ import annotations

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autograder.course import CourseError
from autograder.text import Text

MAX_FILES = 50_000
MAX_PATH = 1_000  # characters


@dataclass(frozen=True)
class Member:
    """One file, by its ``/`` path inside; ``read(limit)`` gives at most so many bytes, whatever a header claims.

    ``read`` raises Refused for a file that cannot be read.
    """

    path: str
    read: Callable[[int], bytes]
    owner: int | None = None
    """The Unix user it belongs to; None in a zip."""


@dataclass(frozen=True)
class Refused(Exception):
    """A file that is not touched, and why."""

    path: str
    text: Text


@contextmanager
def opened(source: Path, only: Collection[str] | None = None) -> Iterator[tuple[list[Member], list[Refused]]]:
    """The files in a folder or zip, ordered by path, and those that are refused. ``only`` names the folders in it to look into.

    Links, devices, encrypted entries, and names that lead out of the archive or hold control characters are refused.
    Raises CourseError when there is no such folder or zip, or it has more than 50 000 files.
    """
    if source.is_dir():
        yield _folder(source, only)
        return
    try:
        archive = zipfile.ZipFile(source)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise CourseError.of(
            source,
            Text(zh=f"既不是文件夹，也不是能读的 zip：{error}", en=f"is neither a folder nor a readable zip: {error}"),
        ) from None
    with archive:
        yield _zip(source, archive)


def _sorted(source: Path, members: list[Member], refused: list[Refused]) -> tuple[list[Member], list[Refused]]:
    if len(members) + len(refused) > MAX_FILES:
        raise CourseError.of(
            source, Text(zh=f"文件多于 {MAX_FILES} 个", en=f"holds more than {MAX_FILES} files; is it the right one?")
        )
    return sorted(members, key=lambda member: member.path), refused


def _folder(root: Path, only: Collection[str] | None) -> tuple[list[Member], list[Refused]]:
    members: list[Member] = []
    refused: list[Refused] = []
    for folder, names, files in os.walk(root, followlinks=False):
        if only is not None and folder == os.fspath(root):
            names[:], files = [name for name in names if name in only], []
        for name in [*files, *(n for n in names if os.path.islink(os.path.join(folder, n)))]:
            full = os.path.join(folder, name)
            path = os.path.relpath(full, root).replace(os.sep, "/")
            there = os.lstat(full)
            if fault := _path_fault(path) or (None if stat.S_ISREG(there.st_mode) else _LINK):
                refused.append(Refused(_shown(path), fault))
            else:
                members.append(Member(path, _file_reader(full, path), there.st_uid))
        if len(members) + len(refused) > MAX_FILES:
            break
    return _sorted(root, members, refused)


def _file_reader(full: str, path: str) -> Callable[[int], bytes]:
    def read(limit: int) -> bytes:
        try:
            # O_NOFOLLOW: the file may have become a link since it was listed
            with os.fdopen(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                return file.read(limit)
        except OSError as error:
            raise Refused(
                path, Text(zh=f"无法读取：{error.strerror}", en=f"cannot be read: {error.strerror}")
            ) from None

    return read


def _zip(source: Path, archive: zipfile.ZipFile) -> tuple[list[Member], list[Refused]]:
    members: list[Member] = []
    refused: list[Refused] = []
    seen: set[str] = set()
    for info in archive.infolist()[: MAX_FILES + 1]:
        # zipfile turns "\" into "/" on Windows only, and cuts at NUL: judge the name as it stands in the file
        path = info.filename
        kind = stat.S_IFMT(info.external_attr >> 16)
        fault = _path_fault(info.orig_filename) or _path_fault(path)
        if not fault and kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            fault = _LINK
        if not fault and info.flag_bits & 1:
            fault = Text(zh="已加密", en="is encrypted")
        if not fault and path in seen:
            fault = Text(zh="同名文件出现两次", en="there are two files of this name")
        seen.add(path)
        if fault:
            refused.append(Refused(_shown(info.orig_filename), fault))
        elif not info.is_dir():
            members.append(Member(path, _zip_reader(archive, info)))
    return _sorted(source, members, refused)


def _zip_reader(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[int], bytes]:
    def read(limit: int) -> bytes:
        try:
            with archive.open(info) as file:
                return file.read(limit)  # decompresses no more than that
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            raise Refused(
                info.filename, Text(zh=f"zip 已损坏：{error}", en=f"is damaged in the zip: {error}")
            ) from None

    return read


_LINK = Text(zh="是链接或特殊文件", en="is a link or a special file")


def _path_fault(path: str) -> Text | None:
    parts = path.rstrip("/").split("/")
    if not path or len(path) > MAX_PATH or any(not char.isprintable() for char in path):
        return Text(zh="文件名为空、过长或含控制字符", en="has an empty or overlong name or control characters in it")
    if "\\" in path or re.match(r"[A-Za-z]:", path) or path.startswith("/") or any(p in ("", ".", "..") for p in parts):
        return Text(zh="路径指向压缩包之外", en="has a path that leads out of the archive")
    return None


def _shown(path: str) -> str:
    return repr(path)[1:-1][:200]
