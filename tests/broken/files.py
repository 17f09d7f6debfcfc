"""Mishaps of the file: encodings, formats and layouts of other tools, and files that are no notebooks."""

from __future__ import annotations

import io
import json
import zipfile

from tests.broken.sheet import Case, Sheet, Table, code

FILES = case = Table()
AGAIN = "hand in the .ipynb file again"


@case()
def untouched_by_fate(sheet: Sheet) -> None:
    """Nothing happened at all."""


@case()
def utf8_byte_order_mark(sheet: Sheet) -> bytes:
    """Saved by a Windows editor with a byte order mark."""
    return sheet.bytes("utf-8-sig")


@case(told=("read as UTF-16",))
def utf16_with_mark(sheet: Sheet) -> bytes:
    """Saved as "Unicode" by Notepad."""
    return sheet.bytes("utf-16")


@case(told=("read as UTF-16-LE",))
def utf16_without_mark(sheet: Sheet) -> bytes:
    """The same, its mark lost."""
    return sheet.bytes("utf-16-le")


@case(told=("read as Latin-1",))
def latin1(sheet: Sheet) -> bytes:
    """A comment in French saved as Latin-1, in a notebook otherwise in ASCII."""
    sheet.answer(0)["source"] += "\n# précédent"
    return json.dumps(sheet.book).replace("\\u00e9", "é").encode("latin-1")


@case(told=("read as GB2312",))
def gb2312(sheet: Sheet) -> bytes:
    """Chinese comments saved by an editor set to the old Chinese encoding."""
    sheet.answer(0)["source"] += "\n# 前缀平均：每个接收位置只看过去"
    ascii_only = json.dumps(sheet.book)
    comment = json.dumps("前缀平均：每个接收位置只看过去")[1:-1]
    return ascii_only.replace(comment, "前缀平均：每个接收位置只看过去").encode("gb2312")


@case(told=("characters of the file are damaged",))
def one_damaged_byte(sheet: Sheet) -> bytes:
    """A single byte of a Chinese comment went bad on a memory stick."""
    sheet.insert(code("# 我的笔记：遮罩在 softmax 之前"), before=sheet.answer(0))
    return sheet.bytes().replace("遮罩".encode(), b"\xe9\xff" + "罩".encode())


@case()
def windows_line_ends(sheet: Sheet) -> bytes:
    """CRLF in the file and in the cells."""
    for cell in sheet.cells:
        cell["source"] = cell["source"].replace("\n", "\r\n")
    return sheet.bytes().replace(b"\n", b"\r\n")


@case()
def old_mac_line_ends(sheet: Sheet) -> None:
    """Lone carriage returns in the cells."""
    for cell in sheet.cells:
        cell["source"] = cell["source"].replace("\n", "\r")


@case()
def padded_with_nul(sheet: Sheet) -> bytes:
    """The disk was full: the file ends in NUL bytes."""
    return sheet.bytes() + b"\0" * 4096


@case(told=("NUL characters were removed",))
def nul_in_a_cell(sheet: Sheet) -> None:
    """A NUL typed by a broken keyboard layout; Python would refuse the cell."""
    sheet.answer(1)["source"] = sheet.answer(1)["source"].replace("return", "\0return", 1)


@case()
def sources_as_lists_of_lines(sheet: Sheet) -> None:
    """The layout that Jupyter itself writes."""
    for cell in sheet.cells:
        cell["source"] = cell["source"].splitlines(keepends=True)


@case()
def lone_surrogate(sheet: Sheet) -> bytes:
    """Half an emoji in a comment: no UTF-8 file can hold it."""
    sheet.answer(0)["source"] += "\n# \ud83d"
    return json.dumps(sheet.book).encode()


@case()
def emoji_and_chinese(sheet: Sheet) -> None:
    """Cells of the student's own with Chinese names and emoji."""
    sheet.insert(code("权重 = '🙂'\nprint(权重)"), before=sheet.answer(0))


def old_format(minor: int) -> Case:
    def mishap(sheet: Sheet) -> None:
        sheet.book["nbformat_minor"] = minor
        for cell in sheet.cells:
            cell.pop("id", None)

    return Case(f"nbformat_4_{minor}", f"Saved in nbformat 4.{minor}, without cell ids.", mishap)


FILES.cases += [old_format(minor) for minor in range(6)]


@case()
def format_of_the_future(sheet: Sheet) -> None:
    """Saved by a Jupyter newer than the grader's."""
    sheet.book |= {"nbformat_minor": 9, "novelty": {"level": 9}, "worksheets": []}
    for cell in sheet.cells:
        cell["novelty"] = [1, 2]


@case()
def nbformat_3(sheet: Sheet) -> bytes:
    """A worksheet of the IPython notebook, with ``input`` for code."""
    return json.dumps(
        {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": _sheets(sheet)}
    ).encode()


@case()
def nbformat_3_in_two_worksheets(sheet: Sheet) -> bytes:
    """The same with a heading cell, spread over two worksheets."""
    [whole] = _sheets(sheet)
    first = {"cells": [*whole["cells"][:6], {"cell_type": "heading", "level": 2, "source": ["Notes"], "metadata": {}}]}
    return json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [first, {"cells": whole["cells"][6:]}]}).encode()


def _sheets(sheet: Sheet) -> list[dict[str, list[dict[str, object]]]]:
    for cell in sheet.cells:
        cell.pop("id", None)
        if cell["cell_type"] == "code":
            cell |= {"input": cell.pop("source"), "prompt_number": 3, "language": "python", "collapsed": False}
            del cell["execution_count"]
    return [{"cells": sheet.cells, "metadata": {}}]


@case()
def same_cell_id_everywhere(sheet: Sheet) -> None:
    """A script gave every cell the same id."""
    for cell in sheet.cells:
        cell["id"] = "cell"


@case()
def ids_with_spaces_quotes_and_plus(sheet: Sheet) -> None:
    """Ids that nbformat does not allow."""
    for number, cell in enumerate(sheet.cells):
        cell["id"] = f"a + \"b\" '{number}' é"


@case()
def metadata_is_null(sheet: Sheet) -> None:
    """The student's own cells have no metadata, the notebook has null."""
    own = code("1 + 1")
    del own["metadata"]
    sheet.insert(own, {"cell_type": "markdown", "source": None, "metadata": None}, before=sheet.check(0))
    sheet.book["metadata"] = None


@case(told=("not cells were left out: 3",))
def things_that_are_no_cells(sheet: Sheet) -> None:
    """A merge script left other values among the cells."""
    sheet.cells[2:2] = [None, 7, ["code"]]


@case()
def unknown_cell_type(sheet: Sheet) -> None:
    """A cell type that only some extension knows."""
    sheet.insert({"cell_type": "sql", "source": "select 1", "metadata": {}}, before=sheet.answer(1))


@case()
def malformed_outputs(sheet: Sheet) -> None:
    """Outputs that no schema allows; outputs are not read."""
    for cell in sheet.cells:
        if cell["cell_type"] == "code":
            cell |= {"outputs": {"a": [None]}, "execution_count": "seven"}


@case()
def endless_number(sheet: Sheet) -> bytes:
    """A number of six thousand digits in the metadata."""
    return sheet.bytes().replace(b'"nbformat": 4', b'"n": ' + b"7" * 6000 + b', "nbformat": 4')


@case()
def tabs_written_raw(sheet: Sheet) -> bytes:
    """Control characters inside strings, which strict JSON forbids."""
    sheet.answer(0)["source"] += "\n#TAB"
    return sheet.bytes().replace(b"TAB", b"\t")


def old_schema(version: int) -> Case:
    def mishap(sheet: Sheet) -> None:
        for cell in sheet.cells:
            if managed := cell["metadata"].get("nbgrader"):
                for key in ("task", "schema_version", *(["cell_type"] if version < 2 else [])):
                    managed.pop(key, None)
                if version:
                    managed["schema_version"] = version

    return Case(f"nbgrader_schema_{version}", f"Made with version {version} of nbgrader's metadata.", mishap)


FILES.cases += [old_schema(version) for version in (0, 1, 2, 99)]


@case(told=("set to a R kernel",))
def kernel_of_another_language(sheet: Sheet) -> None:
    """The notebook was switched to R by accident."""
    sheet.book["metadata"] = {
        "kernelspec": {"name": "ir", "display_name": "R", "language": "R"},
        "language_info": {"name": "R"},
    }


@case()
def kernel_of_the_students_own(sheet: Sheet) -> None:
    """A conda environment's kernel, which the grader does not have."""
    sheet.book["metadata"]["kernelspec"] = {"name": "conda-env-torch-py", "display_name": "Python [conda env:torch]"}


@case()
def widgets_and_colab_in_the_notebook_metadata(sheet: Sheet) -> None:
    """Notebook metadata of other tools."""
    sheet.book["metadata"] |= {"widgets": {"application/vnd": {"state": {}}}, "colab": {"provenance": []}}


# --- files that hold no notebook -------------------------------------------------------------------------------------


@case(lost=("all",), told=("its end is missing", "line ", "column ", AGAIN), unreadable=True)
def unfinished(sheet: Sheet) -> bytes:
    """The upload broke off."""
    return sheet.bytes()[:-700]


@case(lost=("all",), told=("line 2, column 16 is not valid JSON", AGAIN), unreadable=True)
def damaged_json(sheet: Sheet) -> bytes:
    """A comma lost while editing by hand."""
    return b'{\n "nbformat": 4 "cells": []\n}'


@case(lost=("all",), told=("unresolved git merge conflict",), unreadable=True)
def merge_conflict(sheet: Sheet) -> bytes:
    """Committed with git's conflict marks."""
    return sheet.bytes().replace(b' "cells": [', b'<<<<<<< HEAD\n "cells": [\n=======\n>>>>>>> mine', 1)


@case(lost=("all",), told=("is empty", AGAIN), unreadable=True)
def empty_file(sheet: Sheet) -> bytes:
    """No byte was uploaded."""
    return b"\n \0"


@case(lost=("all",), told=("not a Jupyter notebook",), unreadable=True)
def python_script(sheet: Sheet) -> bytes:
    """A .py file renamed to .ipynb."""
    return "\n".join(sheet.answers.values()).encode()


@case(lost=("all",), told=("a web page, not a notebook",), unreadable=True)
def web_page(sheet: Sheet) -> bytes:
    """The page that shows the notebook was saved."""
    return b"\n<!DOCTYPE html>\n<html><body>notebook</body></html>"


@case(lost=("all",), told=("a zip archive",), unreadable=True)
def zip_archive(sheet: Sheet) -> bytes:
    """A zip renamed to .ipynb."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("notebook.ipynb", sheet.bytes())
    return held.getvalue()


@case(lost=("all",), told=("This is a PDF",), unreadable=True)
def pdf(sheet: Sheet) -> bytes:
    """A print-out."""
    return b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"


@case(lost=("all",), told=("has no list of cells",), unreadable=True)
def list_of_cells_only(sheet: Sheet) -> bytes:
    """JSON, but only the inner part of a notebook."""
    return json.dumps(sheet.cells).encode()


@case(lost=("all",), told=("has no list of cells",), unreadable=True)
def cells_as_a_table(sheet: Sheet) -> bytes:
    """JSON whose cells are no list."""
    return json.dumps({"nbformat": 4, "cells": {str(n): cell for n, cell in enumerate(sheet.cells)}}).encode()


@case(lost=("all",), told=("nested too deeply",), unreadable=True)
def nested_too_deeply(sheet: Sheet) -> bytes:
    """A hundred thousand brackets."""
    return b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@case(lost=("all",), told=("at most 50 MB are read", "Clear all outputs"), unreadable=True)
def fifty_one_megabytes(sheet: Sheet) -> bytes:
    """A plot in every cell, a hundred times."""
    return sheet.bytes() + b" " * 51_000_000


@case(lost=("all",), told=("2001 cells; at most 2000",), unreadable=True)
def two_thousand_cells(sheet: Sheet) -> bytes:
    """A paste key that stuck."""
    return json.dumps({"nbformat": 4, "cells": [code("x")] * 2001}).encode()


@case(lost=("all",), told=("Take out pasted data",), unreadable=True)
def megabytes_of_code(sheet: Sheet) -> None:
    """A data set pasted into a cell."""
    sheet.insert(code("data = '" + "0" * 2_000_000 + "'"), before=sheet.answer(0))


@case(lost=("all",), told=("too much data",), unreadable=True)
def millions_of_numbers(sheet: Sheet) -> bytes:
    """Outputs that would fill the grader's memory."""
    return b'{"cells": [' + b"[]," * 3_000_000 + b"[]]}"
