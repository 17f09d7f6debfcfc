"""YAML read as text with positions: YAML's own guesses (0123 is 83, NO is false, 23:59 is 1439) never reach an id or a date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from autograder.course.problems import CourseError, Problem
from autograder.text import Text

Loc = tuple[str | int, ...]
EMPTY = {"", "~", "null", "Null", "NULL"}


class Document:
    """A YAML file as dicts, lists and str, keys without a value left out; ``place`` tells where a key stands.

    Raises CourseError for a file that cannot be read, is no YAML, or says a key twice.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: dict[Loc, tuple[int, int]] = {(): (1, 1)}
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise CourseError.of(
                path,
                Text(
                    zh="找不到这个文件；请在课程目录里运行", en="there is no such file; run this in the course's folder"
                ),
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise CourseError.of(
                path, Text(zh=f"无法按 UTF-8 读取：{error}", en=f"cannot be read as UTF-8: {error}")
            ) from None
        try:
            node = YAML(typ="safe", pure=True).compose(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = " ".join(filter(None, (error.context, error.problem)))
            raise CourseError.of(
                path,
                Text(zh=f"不是正确的 YAML：{what}", en=f"this is not valid YAML: {what}"),
                line=mark.line + 1 if mark else 0,
                column=mark.column + 1 if mark else 0,
            ) from None
        except YAMLError as error:  # a character that YAML does not allow
            what = str(error).splitlines()[0]
            raise CourseError.of(
                path, Text(zh=f"不是正确的 YAML：{what}", en=f"this is not valid YAML: {what}")
            ) from None
        self._doubled: list[Problem] = []
        try:
            self.data: Any = self._plain(node, ()) if node is not None else {}
        except RecursionError:
            raise CourseError.of(path, Text(zh="内容引用了自身", en="a value contains itself")) from None
        if self._doubled:
            raise CourseError(self._doubled)

    def place(self, loc: Loc) -> tuple[int, int]:
        """Line and column, from 1, of the value at ``loc``, or of the nearest thing around it that is there."""
        while loc not in self._places:
            loc = loc[:-1]
        return self._places[loc]

    def problem(self, loc: Loc, text: Text) -> Problem:
        """A problem at ``loc``."""
        return Problem(self.path, *self.place(loc), written(loc), text)

    def _plain(self, node: Node, loc: Loc) -> Any:
        self._places.setdefault(loc, (node.start_mark.line + 1, node.start_mark.column + 1))
        if isinstance(node, ScalarNode):
            return None if node.style is None and node.value in EMPTY else node.value
        if not isinstance(node, MappingNode):
            return [self._plain(item, (*loc, i)) for i, item in enumerate(node.value)]
        found: dict[str, Any] = {}
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            here = (*loc, name)
            if name in seen:
                where = Problem(self.path, key.start_mark.line + 1, key.start_mark.column + 1, written(here), _TWICE)
                self._doubled.append(where)
                continue
            self._places[here] = (key.start_mark.line + 1, key.start_mark.column + 1)
            seen.add(name)
            plain = self._plain(value, here)
            if plain is not None:
                found[name] = plain
        return found


_TWICE = Text(zh="这一项写了两次，请删去一个", en="is said twice; delete one of the two")


def written(loc: Loc) -> str:
    """A place as a person writes it: ``assignments[0].due``."""
    text = ""
    for step in loc:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text
