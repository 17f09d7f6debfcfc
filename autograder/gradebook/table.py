"""A CSV file that somebody exported, edited cell by cell: every byte outside the cells we set stays as it was."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from autograder.course import CourseError
from autograder.text import Text

MAX_BYTES = 50_000_000
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class Cell:
    """A cell: its value, and where it stands in the text, quotes included."""

    value: str
    start: int
    end: int


class Table:
    """Rows of cells with their places; separated by tab, semicolon or comma, whichever the first line has most of.

    Raises CourseError for a file that cannot be read or holds no line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CourseError.of(path, Text(zh=f"无法读取：{error}", en=f"cannot be read: {error}")) from None
        self._bom, self._encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", "utf-8"))
        # surrogateescape: a file in another encoding still comes out as it went in
        self.text = data[len(self._bom) :].decode(
            self._encoding, "surrogateescape" if "8" in self._encoding else "strict"
        )
        first = self.text.partition("\n")[0]
        self.separator = max("\t;,", key=first.count)
        self.rows = _rows(self.text, self.separator)
        if len(data) > MAX_BYTES or not self.rows:
            raise CourseError.of(path, Text(zh="文件是空的或过大", en="is empty or too large"))

    @property
    def header(self) -> list[str]:
        """The first row."""
        return [cell.value.strip() for cell in self.rows[0]]

    def with_cells(self, values: dict[tuple[int, int], str]) -> bytes:
        """The file with some cells, given by (row, column), set to new values."""
        parts, at = [], 0
        for row, column in sorted(values):
            cell, new = self.rows[row][column], values[row, column]
            quoted = self.text[cell.start : cell.end].startswith('"')
            if quoted or any(char in new for char in (self.separator, '"', "\n", "\r")):
                new = '"' + new.replace('"', '""') + '"'
            parts += [self.text[at : cell.start], new]
            at = cell.end
        text = "".join([*parts, self.text[at:]])
        return self._bom + text.encode(self._encoding, "surrogateescape" if "8" in self._encoding else "strict")


def _rows(text: str, separator: str) -> list[list[Cell]]:
    """RFC 4180, with positions: the csv module reads the same values but does not say where they stood."""
    rows: list[list[Cell]] = []
    row: list[Cell] = []
    at, end = 0, len(text)
    while at < end:
        start = at
        if text[at] == '"':
            parts, at = [], at + 1
            while True:
                close = text.find('"', at)
                close = end if close < 0 else close
                parts.append(text[at:close])
                at = min(close + 1, end)
                if at < end and text[at] == '"':
                    parts.append('"')
                    at += 1
                else:
                    break
            value = "".join(parts)
        else:
            value = ""
        tail = at
        while at < end and text[at] not in (separator, "\n", "\r"):
            at += 1
        row.append(Cell(value + text[tail:at], start, at))
        if at < end and text[at] == separator:
            at += 1
            if at == end or text[at] in "\r\n":
                row.append(Cell("", at, at))
            else:
                continue
        if at < end:
            at += 2 if text.startswith("\r\n", at) else 1
        rows.append(row)
        row = []
    if row:
        rows.append(row)
    return rows
