"""From the bytes a student handed in to a plain notebook, whatever tool wrote them and whatever befell them since.

Of a submission nothing is kept but what grading needs: each cell's type, source, ``grade_id`` and pasted images.
Outputs, other metadata and every older layout (nbformat 3, nbgrader's schemas 0 to 2) fall away here, so that nothing
after this has to know them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from autograder.notebooks import words
from autograder.notebooks.cells import grade_id, new_cell, new_notebook
from autograder.notebooks.words import Repair
from autograder.text import Text

MAX_BYTES = 50_000_000
MAX_CELLS = 2_000
MAX_SOURCE = 2_000_000  # characters in all code cells together
_MAX_TOKENS = 2_000_000  # of [ { and , : parsed, 50 MB of "[]," would take a gigabyte


@dataclass(frozen=True)
class Unreadable:
    """The submission holds no notebook; ``reason`` tells the student what came instead and what to do."""

    reason: Text


@dataclass(frozen=True)
class Submission:
    """The notebook found in a submission, with what had to be mended to read it."""

    notebook: NotebookNode
    repairs: tuple[Repair, ...] = ()


ReadResult = Submission | Unreadable


def read_submission(data: bytes) -> ReadResult:
    """Read a submitted ``.ipynb``; never raises, whatever the bytes are."""
    if len(data) > MAX_BYTES:
        return _unreadable(words.TOO_BIG, megabytes=f"{len(data) / 1e6:.0f}", limit=MAX_BYTES // 1_000_000)
    text, repairs = _decode(data)
    text = text.lstrip("\0\ufeff").rstrip("\0 \t\r\n")
    if not text:
        return Unreadable(words.EMPTY)
    has_nuls = "\0" in text
    text = text.replace("\0", "")
    if sum(map(text.count, "[{,")) > _MAX_TOKENS:
        return Unreadable(words.TOO_MANY_PARTS)
    try:
        # any number is read as a float: int() refuses numbers of thousands of digits
        document = json.loads(text, strict=False, parse_int=float)
    except json.JSONDecodeError as error:
        return _broken(text, error)
    except RecursionError:
        return Unreadable(words.TOO_DEEP)
    cells = _raw_cells(document)
    if cells is None:
        return Unreadable(words.NO_NOTEBOOK)
    if len(cells) > MAX_CELLS:
        return _unreadable(words.TOO_MANY_CELLS, cells=len(cells), limit=MAX_CELLS)
    notebook = plain(document)
    if sum(len(cell.source) for cell in notebook.cells if cell.cell_type == "code") > MAX_SOURCE:
        return _unreadable(words.TOO_MUCH_CODE, limit=MAX_SOURCE)
    if len(notebook.cells) < len(cells):
        repairs.append(words.NOT_CELLS.repair(count=len(cells) - len(notebook.cells)))
    if has_nuls or any("\0" in _text(cell) for cell in cells if isinstance(cell, Mapping)):
        repairs.append(words.NULS.repair())
    return Submission(notebook, tuple(repairs))


def plain(document: object) -> NotebookNode:
    """A notebook of nbformat 4.5 with the types, sources, ids and images of ``document``'s cells; never raises.

    What is no cell is left out. The kernel's language is kept, so that a notebook in another language can be told.
    """
    cells = [raw for raw in _raw_cells(document) or [] if isinstance(raw, Mapping)]
    language = _language(document)
    return new_notebook(
        [_plain_cell(raw, f"cell-{number}") for number, raw in enumerate(cells)],
        {"language_info": {"name": language}} if language else {},
    )


def _raw_cells(document: object) -> list[Any] | None:
    """The list of cells in nbformat 4, or in nbformat 3 and older; None when there is none."""
    if not isinstance(document, Mapping):
        return None
    sheets = document.get("worksheets")
    if "cells" not in document and isinstance(sheets, list):
        lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, Mapping)]
        return [cell for cells in lists if isinstance(cells, list) for cell in cells]
    cells = document.get("cells")
    return cells if isinstance(cells, list) else None


def _plain_cell(raw: Mapping[str, Any], cell_id: str) -> NotebookNode:
    kind, source = raw.get("cell_type"), _clean(_text(raw))
    if kind == "heading":  # nbformat 3
        level = raw.get("level")
        source = "#" * (int(level) if isinstance(level, int | float) and 1 <= level <= 6 else 1) + " " + source
    identity = grade_id(raw)
    return new_cell(
        kind if kind in ("code", "raw") else "markdown",
        source,
        cell_id,
        {"nbgrader": {"grade_id": identity}} if identity else {},
        _images(raw.get("attachments")),
    )


def _images(attachments: object) -> dict[str, dict[str, str]]:
    """The images pasted into a cell, by file name and MIME type."""
    if not isinstance(attachments, Mapping):
        return {}
    return {
        _clean(str(name)): {
            mime: _clean(_text({"source": image}))
            for mime, image in bundle.items()
            if mime in ("image/png", "image/jpeg", "image/gif", "image/svg+xml", "image/webp")
        }
        for name, bundle in attachments.items()
        if isinstance(bundle, Mapping)
    }


def _text(raw: Mapping[str, Any]) -> str:
    """A raw cell's source: one string or a list of lines; nbformat 3 calls a code cell's ``input``."""
    source = raw.get("source", raw.get("input"))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _clean(text: str) -> str:
    """With Unix line ends and without what a UTF-8 file or Python source cannot hold: lone surrogates and NUL."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text.encode("utf-8", "replace").decode()


def _language(document: object) -> str | None:
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(key) if isinstance(metadata, Mapping) else None
        language = found.get(field) if isinstance(found, Mapping) else None
        if isinstance(language, str) and language:
            return _clean(language)
    return None


def _decode(data: bytes) -> tuple[str, list[Repair]]:
    """The text in the bytes, and what to tell when it was not UTF-8.

    Of the 8-bit encodings only those are tried that never swallow an ASCII character: a wrong guess may spoil words,
    but not the JSON around them.
    """
    encoding = json.detect_encoding(data)
    if not encoding.startswith("utf-8"):
        return data.decode(encoding, "replace"), [words.NOT_UTF8.repair(encoding=encoding.upper())]
    try:
        return data.decode(encoding), []
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    if text.count("\ufffd") < beyond_ascii / 2:
        return text, [words.DAMAGED.repair()]
    try:
        return data.decode("gb2312"), [words.NOT_UTF8.repair(encoding="GB2312")]
    except UnicodeDecodeError:
        return data.decode("latin-1"), [words.NOT_UTF8.repair(encoding="Latin-1")]


def _broken(text: str, error: json.JSONDecodeError) -> Unreadable:
    start = text[:200].lstrip().lower()
    for mark, reason in words.LOOKS_LIKE.items():
        if start.startswith(mark):
            return Unreadable(reason)
    if any(line.startswith("<<<<<<<") for line in text.split("\n")):
        return Unreadable(words.CONFLICT)
    if not start.startswith("{"):
        return Unreadable(words.NO_NOTEBOOK)
    # an unfinished string is reported where it begins, so only what closes the notebook tells that the end is missing
    reason = words.CUT_OFF if not text.endswith("}") else words.BROKEN
    return _unreadable(reason, line=error.lineno, column=error.colno)


def _unreadable(reason: Text, **values: object) -> Unreadable:
    return Unreadable(reason.format(**values))
