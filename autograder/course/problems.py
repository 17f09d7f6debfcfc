"""What is wrong with a file of the course, and where: the course's fault, never a student's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.text import Language, Text


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. ``line`` and ``column`` count from 1; 0 where the file as a whole is meant."""

    file: Path
    line: int
    column: int
    key: str
    text: Text

    def lang(self, language: Language) -> str:
        """``file:line:column key: what is wrong``, which editors turn into a link."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else str(self.file)
        return f"{place} {self.key}: {self.text.lang(language)}" if self.key else f"{place}: {self.text.lang(language)}"

    def __str__(self) -> str:
        return self.lang("en")


class CourseError(Exception):
    """The course's own files are at fault; ``problems`` holds all that was found at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def of(cls, file: Path, text: Text, key: str = "", line: int = 0, column: int = 0) -> CourseError:
        """An error of a single problem."""
        return cls([Problem(file, line, column, key, text)])


class Wrong(ValueError):
    """A value that cannot be read, in both languages; pydantic hands it on with the place where it stands."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(en)
        self.text = Text(zh=zh, en=en)


_WORDS = {
    "missing": Text(zh="缺少这一项，请补上", en="is missing; add it"),
    "int_parsing": Text(zh="应为整数，得到的是 {input}", en="expected a whole number, got {input}"),
    "float_parsing": Text(zh="应为数字，得到的是 {input}", en="expected a number, got {input}"),
    "string_type": Text(zh="应为一段文字，得到的是 {input}", en="expected a text, got {input}"),
    "list_type": Text(
        zh="应为列表（每项以“- ”开头），得到的是 {input}", en="expected a list (items start with '- '), got {input}"
    ),
    "model_type": Text(zh="应为若干“键: 值”，得到的是 {input}", en="expected 'key: value' entries, got {input}"),
    "literal_error": Text(zh="应为 {expected} 之一，得到的是 {input}", en="expected {expected}, got {input}"),
    "greater_than": Text(zh="应大于 {gt}，得到的是 {input}", en="expected more than {gt}, got {input}"),
    "greater_than_equal": Text(zh="应不小于 {ge}，得到的是 {input}", en="expected {ge} or more, got {input}"),
    "less_than_equal": Text(zh="应不大于 {le}，得到的是 {input}", en="expected {le} or less, got {input}"),
    "too_short": Text(zh="至少要有 {min_length} 项", en="expected at least {min_length}"),
    "string_too_short": Text(zh="不能为空", en="must not be empty"),
}
_WORDS["tuple_type"] = _WORDS["list_type"]
_WORDS["model_attributes_type"] = _WORDS["dict_type"] = _WORDS["dataclass_type"] = _WORDS["model_type"]


def words(error: dict[str, Any], known: Iterable[str]) -> Text:
    """One pydantic error in plain words; ``known`` are the keys allowed at that place."""
    context = error.get("ctx", {})
    wrong = context.get("error")
    if isinstance(wrong, Wrong):
        return wrong.text
    if error["type"] == "extra_forbidden":
        key = str(error["loc"][-1])
        near = difflib.get_close_matches(key, list(known), n=1)
        if near:
            return Text(zh=f"没有这一项；是不是 {near[0]}？", en=f"there is no such key; did you mean {near[0]}?")
        every = ", ".join(known)
        return Text(zh=f"没有这一项；这里可以写 {every}", en=f"there is no such key; allowed here: {every}")
    if error["type"] in _WORDS:
        given = error["input"]
        shown = f"a {_KIND[type(given)]}" if type(given) in _KIND else "nothing" if given is None else repr(given)
        return _WORDS[error["type"]].format(**{"input": shown, **context})
    return Text(zh=error["msg"], en=error["msg"])


_KIND: dict[type, str] = {dict: "mapping (key: value)", list: "list"}
