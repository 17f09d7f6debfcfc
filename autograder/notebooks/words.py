"""Every sentence of this room that a student reads: why a file cannot be read, and what was mended in a notebook."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.text import Text


@dataclass(frozen=True)
class Repair:
    """Something mended before grading: ``kind`` is for counting, ``cell`` the ``grade_id`` where one is meant."""

    kind: str
    text: Text
    cell: str | None = None


@dataclass(frozen=True)
class Mended:
    """A kind of repair and the words for it; ``{name}`` is the function asked for, or the ``grade_id`` of the cell."""

    kind: str
    zh: str
    en: str

    def repair(self, cell: str | None = None, **values: object) -> Repair:
        """This repair made in one cell."""
        return Repair(self.kind, Text(zh=self.zh, en=self.en).format(**values), cell)


# Why a file holds no notebook
_AGAIN = Text(
    zh="请在 JupyterLab 里打开你的笔记本，保存后重新提交 .ipynb 文件。",
    en="Open your notebook in JupyterLab, save it and hand in the .ipynb file again.",
)


def _reason(zh: str, en: str) -> Text:
    return Text(zh=zh + _AGAIN.zh, en=f"{en} {_AGAIN.en}")


EMPTY = _reason(zh="提交的文件是空的。", en="The file you handed in is empty.")
TOO_BIG = Text(
    zh="提交的文件有 {megabytes} MB，上限是 {limit} MB。"
    "请清除所有输出（Edit → Clear Outputs of All Cells），保存后重新提交。",
    en="The file you handed in has {megabytes} MB; at most {limit} MB are read. Clear all outputs "
    "(Edit → Clear Outputs of All Cells), save and hand it in again.",
)
TOO_MANY_PARTS = Text(
    zh="提交的文件里数据太多，无法读取，多半是输出太大。请清除所有输出，保存后重新提交。",
    en="The file holds too much data to be read, most likely in its outputs. "
    "Clear all outputs, save and hand it in again.",
)
TOO_MANY_CELLS = Text(
    zh="提交的笔记本有 {cells} 个单元格，最多读取 {limit} 个。请删去多余的单元格后重新提交。",
    en="The notebook has {cells} cells; at most {limit} are read. "
    "Delete the cells that are not needed and hand it in again.",
)
TOO_MUCH_CODE = Text(
    zh="笔记本的代码单元格合计超过 {limit} 个字符。请把粘贴进来的数据删去后重新提交。",
    en="The notebook's code cells hold more than {limit} characters. Take out pasted data and hand it in again.",
)
TOO_DEEP = _reason(
    zh="文件里的数据嵌套太深，不像 Jupyter 保存的笔记本。",
    en="The file's data are nested too deeply for a notebook saved by Jupyter.",
)
NO_NOTEBOOK = _reason(
    zh="提交的文件不是 Jupyter 笔记本：里面没有单元格列表。",
    en="The file you handed in is not a Jupyter notebook: it has no list of cells.",
)
CUT_OFF = _reason(
    zh="笔记本文件不完整，结尾缺失：读到第 {line} 行第 {column} 列时无法继续。",
    en="The notebook file is incomplete, its end is missing: reading stopped at line {line}, column {column}.",
)
BROKEN = _reason(
    zh="笔记本文件已损坏：第 {line} 行第 {column} 列不是有效的 JSON。",
    en="The notebook file is damaged: line {line}, column {column} is not valid JSON.",
)
CONFLICT = _reason(
    zh="文件里有没解决的 git 合并冲突（以 <<<<<<< 开头的行）。请先解决冲突。",
    en="The file holds an unresolved git merge conflict (lines that begin with <<<<<<<). Resolve it first.",
)
_WEB_PAGE = _reason(
    zh="提交的是网页，不是笔记本：下载时可能保存了网页而不是文件本身。",
    en="This is a web page, not a notebook: the page was saved instead of the file itself.",
)
_ZIP = _reason(zh="提交的是压缩包，不是笔记本。", en="This is a zip archive, not a notebook.")
_PDF = _reason(zh="提交的是 PDF，不是笔记本。", en="This is a PDF, not a notebook.")
LOOKS_LIKE = {"<!doctype": _WEB_PAGE, "<html": _WEB_PAGE, "<?xml": _WEB_PAGE, "pk\x03\x04": _ZIP, "%pdf": _PDF}

# Mended while reading the file
NOT_UTF8 = Mended(
    "encoding",
    zh="文件不是 UTF-8 编码，已按 {encoding} 读取。",
    en="The file was not encoded in UTF-8; it was read as {encoding}.",
)
DAMAGED = Mended(
    "encoding",
    zh="文件里有少数字符已损坏，显示为 \ufffd。",
    en="A few characters of the file are damaged and appear as \ufffd.",
)
NULS = Mended(
    "nul",
    zh="已去掉单元格里的空字符（NUL）。",
    en="NUL characters were removed from the cells.",
)
NOT_CELLS = Mended(
    "not-cells",
    zh="文件里有 {count} 处不是单元格的内容，已略去。",
    en="Entries of the file that are not cells were left out: {count}.",
)

# Mended while rebuilding the notebook
STRIPPED = Mended(
    "stripped",
    zh="笔记本里的 nbgrader 信息已丢失（例如经 Colab 保存后），答案按函数名和位置认出。",
    en="The notebook had lost its nbgrader information (Colab does this); "
    "answers were recognised by function name and place.",
)
OTHER_LANGUAGE = Mended(
    "kernel",
    zh="笔记本设为 {found} 内核，评分时改用 {expected}。",
    en="The notebook was set to a {found} kernel; it is graded with {expected}.",
)
REORDERED = Mended(
    "reordered",
    zh="单元格的顺序与作业不同，已按作业的顺序放回。",
    en="Cells stood in another order than in the assignment; they were put back.",
)
RESTORED_LOCKED = Mended(
    "restored-locked",
    zh="单元格 {name} 不能修改，已恢复原样；你改过的内容保留在它前面。",
    en="Cell {name} is read-only and was restored; what you had changed it to is kept just before it.",
)
MISSING_LOCKED = Mended(
    "missing-locked",
    zh="缺少单元格 {name}，已补回。",
    en="Cell {name} was missing and was put back.",
)
DUPLICATE_LOCKED = Mended(
    "duplicate-locked",
    zh="单元格 {name} 出现多次，只保留一个。",
    en="Cell {name} appeared more than once; one was kept.",
)
MISSING_ANSWER = Mended(
    "missing-answer",
    zh="没有找到 {name} 的答案，已放回空白的题目单元格。",
    en="No answer to {name} was found; the cell was put back as it was handed out.",
)
DUPLICATE_ANSWER = Mended(
    "duplicate-answer",
    zh="{name} 的答案单元格出现多次，评分以最后一个完整的答案为准。",
    en="The answer cell of {name} appeared more than once; the last finished answer counts.",
)
RETYPED = Mended(
    "retyped",
    zh="{name} 的单元格变成了 {found} 类型，已改回 {expected}。",
    en="The cell of {name} had become a {found} cell; it was turned back into {expected}.",
)
BY_NAME = Mended(
    "found-by-name",
    zh="{name} 的答案写在另一个单元格里，已按名字认出并放到题目的位置。",
    en="The answer to {name} stood in another cell; it was recognised by its name and put in its place.",
)
BY_PLACE = Mended(
    "found-by-place",
    zh="{name} 的答案写在另一个单元格里，已按位置认出。",
    en="The answer to {name} stood in another cell; it was recognised by its place.",
)
ANSWERED_ELSEWHERE = Mended(
    "answered-elsewhere",
    zh="{name} 的答案与另一题写在同一个单元格里；它自己的单元格留空，以免覆盖答案。",
    en="The answer to {name} is in one cell with another answer; "
    "its own cell was left empty so that it does not overwrite it.",
)
TWO_DEFINITIONS = Mended(
    "two-definitions",
    zh="{name} 在不止一个单元格里定义；最后运行的那个算数。",
    en="{name} is defined in more than one cell; the one that runs last counts.",
)
JOINED = Mended(
    "joined",
    zh="有一段代码被拆成两个单元格，单独无法运行，已合并。",
    en="A piece of code had been split into two cells that cannot run alone; they were joined.",
)
