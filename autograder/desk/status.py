"""``status()``: what is done in the notebook, what is missing, and whether the file would be accepted as it lies on the disk."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from autograder.desk.speak import Shown, say, say_html
from autograder.text import Text

MAX_BYTES = 20_000_000  # well under what grading reads, so that a file found good here is good there
_STUB = re.compile(r"^\s*raise NotImplementedError", re.MULTILINE)
_MAGIC = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"YOUR ANSWER HERE|在这里作答|Write your answer here")


@dataclass
class _State:
    """What was found in one file."""

    path: Path
    receipt: str = ""
    saved: str = ""
    problems: list[Text] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def status(notebook: str | os.PathLike[str] = "") -> None:
    """Show how far the notebook is: answered, not answered, and whether the saved file would be accepted, with its receipt (SHA-256).

    Looks at ``notebook``, else at the notebook that runs, else at every notebook in the current folder. It reads the saved file: save first.
    """
    paths = [Path(notebook)] if notebook else _candidates()
    if not paths:
        Shown(say(NO_FILE), f"<div>{say_html(NO_FILE)}</div>").show()
    for path in paths:
        state = _read(path)
        Shown(_text(state), _html(state)).show()


def _candidates() -> list[Path]:
    """The notebook that this kernel runs, as VS Code or JupyterLab tell it; else those in the folder that hold exercises."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    told = [
        str(getattr(shell, "user_ns", {}).get("__vsc_ipynb_file__", "")),
        os.environ.get("JPY_SESSION_NAME", ""),
    ]
    for name in told:
        path = Path.cwd() / Path(name).name if name else None
        if path and path.suffix == ".ipynb" and path.is_file():
            return [path]
    return [path for path in sorted(Path.cwd().glob("*.ipynb")) if b'"grade_id"' in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.stat().st_size <= MAX_BYTES else b""
    except OSError:
        return b""


def _read(path: Path) -> _State:
    state = _State(path)
    try:
        data = path.read_bytes()
        state.saved = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(path.stat().st_mtime))
    except OSError as error:
        state.problems.append(UNREADABLE.format(why=str(error.strerror)))
        return state
    state.receipt = hashlib.sha256(data).hexdigest()
    if len(data) > MAX_BYTES:
        state.problems.append(TOO_BIG.format(size=round(len(data) / 1e6), limit=MAX_BYTES // 1_000_000))
        return state
    try:
        document = json.loads(data.decode("utf-8-sig"))
        cells = [cell for cell in document["cells"] if isinstance(cell, dict)]
    except (ValueError, KeyError, TypeError, RecursionError):
        state.problems.append(NOT_A_NOTEBOOK)
        return state
    _exercises(state, cells)
    return state


def _exercises(state: _State, cells: list[dict[str, Any]]) -> None:
    """Sort the graded cells into done and missing, and say what would have to be mended."""
    found: dict[str, dict[str, Any]] = {}
    twice: list[str] = []
    for cell in cells:
        marks = _marks(cell)
        name = marks.get("grade_id")
        if isinstance(name, str) and (marks.get("grade") or marks.get("solution")):
            twice += [name] if name in found else []
            found[name] = cell
    if not found:
        state.problems.append(NO_EXERCISES)
    if twice:
        state.problems.append(TWICE.format(names=", ".join(dict.fromkeys(twice))))
    for name, cell in found.items():
        marks = _marks(cell)
        if not marks.get("solution"):
            if f"{name}_answer" not in found and any(other.endswith("_answer") for other in found):
                state.problems.append(GONE.format(name=name))
            continue
        source = _source(cell)
        answered = _answered(cell, source)
        (state.done if answered else state.missing).append(name.removesuffix("_answer"))
        if answered and cell.get("cell_type") == "code" and (line := _broken_line(source)):
            state.problems.append(SYNTAX.format(name=name.removesuffix("_answer"), line=line))


def _marks(cell: dict[str, Any]) -> dict[str, Any]:
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return marks if isinstance(marks, dict) else {}


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _answered(cell: dict[str, Any], source: str) -> bool:
    if cell.get("cell_type") == "code":
        return bool(source.strip()) and not _STUB.search(source) and not _empty(source)
    return bool(_PLACEHOLDER.sub("", source).strip(" /\n"))


def _empty(source: str) -> bool:
    """Whether the cell defines something and every definition is nothing but its docstring."""
    try:
        defined = [node for node in ast.parse(_MAGIC.sub(r"\1pass", source)).body if hasattr(node, "body")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    bodies = [[line for line in node.body if not _says_nothing(line)] for node in defined]
    return bool(bodies) and not any(bodies)


def _says_nothing(line: ast.stmt) -> bool:
    return isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))


def _broken_line(source: str) -> int | None:
    """The line that Python cannot read; IPython's own commands are left out."""
    try:
        ast.parse(_MAGIC.sub(r"\1pass", source))
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return None


def _verdict(state: _State) -> Text:
    if state.problems:
        return NOT_READY
    return READY_ALL if not state.missing else READY


def _text(state: _State) -> str:
    lines = [f"{state.path.name}: {say(_verdict(state))}"]
    lines += [f"  ! {say(problem)}" for problem in state.problems]
    if state.done:
        lines.append(f"  ✓ {say(DONE)}: {', '.join(state.done)}")
    if state.missing:
        lines.append(f"  ○ {say(MISSING)}: {', '.join(state.missing)}")
    if state.receipt:
        lines += [f"  {say(SAVED)}: {state.saved}", f"  {say(RECEIPT)}: {state.receipt}"]
    return "\n".join(lines)


def _html(state: _State) -> str:
    colour = "#c2472b" if state.problems else "#2a8a61"
    parts = [f"<div><strong>{escape(state.path.name)}</strong> &nbsp;{say_html(_verdict(state))}</div>"]
    parts += [f"<div style='color:#c2472b'>{say_html(problem)}</div>" for problem in state.problems]
    for mark, label, names in (("✓", DONE, state.done), ("○", MISSING, state.missing)):
        if names:
            listed = " ".join(f"<code>{escape(name)}</code>" for name in names)
            parts.append(f"<div style='margin-top:.3em'>{mark} {escape(say(label))}: {listed}</div>")
    if state.receipt:
        parts.append(
            f"<div style='margin-top:.4em;opacity:.8'>{escape(say(SAVED))}: {state.saved}<br>"
            f"{escape(say(RECEIPT))}: <code style='word-break:break-all'>{state.receipt}</code></div>"
        )
    return f"<div style='border-left:4px solid {colour};padding:.2em 0 .2em 1em;line-height:1.6'>{''.join(parts)}</div>"


READY_ALL = Text(zh="都答完了，可以提交", en="everything is answered; ready to be handed in")
READY = Text(zh="可以提交，但还有没作答的题", en="could be handed in, but some exercises are not answered")
NOT_READY = Text(zh="现在提交会有问题", en="there is a problem with this file")
DONE = Text(zh="已作答", en="answered")
MISSING = Text(zh="未作答", en="not answered")
SAVED = Text(zh="这份文件保存于（之后的改动不算在内）", en="file saved at (later changes are not in it)")
RECEIPT = Text(zh="回执 SHA-256", en="receipt SHA-256")
NO_FILE = Text(
    zh='这个文件夹里没有找到作业笔记本。在 Colab 里请先下载 .ipynb 文件；其他地方请用 status("文件名.ipynb")。',
    en='No assignment notebook was found in this folder. In Colab, download the .ipynb file first; elsewhere, use status("name.ipynb").',
)
UNREADABLE = Text(zh="文件读不出来：{why}。", en="The file cannot be read: {why}.")
TOO_BIG = Text(
    zh="文件有 {size} MB，请清除所有输出（Edit → Clear Outputs of All Cells）再保存，最好不超过 {limit} MB。",
    en="The file has {size} MB; clear all outputs (Edit → Clear Outputs of All Cells) and save it. It should stay under {limit} MB.",
)
NOT_A_NOTEBOOK = Text(zh="文件内容不是笔记本：请重新保存。", en="The file does not hold a notebook: save it again.")
NO_EXERCISES = Text(
    zh="笔记本里没有带标记的题目：它可能不是发下来的那一份，或者标记在别的软件里丢了。",
    en="No marked exercises in this notebook: it may not be the one handed out, or another program dropped the marks.",
)
TWICE = Text(zh="这些单元格出现了两次：{names}。", en="These cells are there twice: {names}.")
GONE = Text(zh="{name} 的作答单元格不见了。", en="The answer cell of {name} is gone.")
SYNTAX = Text(zh="{name} 的第 {line} 行有语法错误。", en="Syntax error in line {line} of {name}.")
