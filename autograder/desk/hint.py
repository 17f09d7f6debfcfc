"""``hint(fn)``: one hint at a time, from gentle to concrete."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from autograder.desk.speak import Shown, say, say_html
from autograder.text import Text

_given: dict[str, int] = {}


def hint(exercise: str | Callable[..., Any] = "") -> None:
    """Show the next hint for an exercise, named by its function or by its name; the last one stays once all were given."""
    name = exercise if isinstance(exercise, str) else getattr(exercise, "__name__", "")
    hints = _hints()
    if name not in hints:
        _unknown(name, list(hints))
        return
    level = min(_given.get(name, 0), len(hints[name]) - 1)
    _given[name] = level + 1
    text, left = hints[name][level], len(hints[name]) - 1 - level
    more = MORE.format(left=left) if left else LAST
    Shown(
        f"{name} {level + 1}/{len(hints[name])}: {say(text)}\n({say(more)})",
        f"<div style='border-left:4px solid #c79a00;padding:.2em 0 .2em 1em;line-height:1.6;max-width:52em'>"
        f"<div style='opacity:.75'><code>{escape(name)}</code> {level + 1}/{len(hints[name])}</div>"
        f"<div>{say_html(text)}</div><div style='opacity:.75'>{escape(say(more))}</div></div>",
    ).show()


def _unknown(name: str, known: list[str]) -> None:
    text = NOTHING_FOUND if not known else UNKNOWN.format(name=name or "…", known=", ".join(known))
    Shown(say(text), f"<div>{say_html(text)}</div>").show()


def _packed() -> bytes:
    """Those in the students' wheel, which need not be unpacked."""
    return pkgutil.get_data("autograder.desk", "hints.json") or b""


def _hints() -> dict[str, list[Text]]:
    """The hints beside the notebook, or those that came with the package; none when neither can be read."""
    for read in (Path("hints.json").read_bytes, _packed):
        try:
            raw = json.loads(read())
            return {name: [Text(zh=h["zh"], en=h["en"]) for h in hints] for name, hints in raw.items() if hints}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    return {}


MORE = Text(zh="还有 {left} 条提示，再运行一次就能看到", en="{left} more: run it again")
LAST = Text(zh="这是最后一条提示", en="this was the last hint")
UNKNOWN = Text(
    zh="没有“{name}”的提示。有提示的题目：{known}。", en='There is no hint for "{name}". There are hints for: {known}.'
)
NOTHING_FOUND = Text(
    zh="找不到提示：hints.json 应当和笔记本放在同一个文件夹里。",
    en="No hints found: hints.json belongs into the folder of the notebook.",
)
