"""What the documentation shows: its fenced blocks, and the commands in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_FENCE = re.compile(r"^```(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:autograder|make|nbgrader) [^`]+)`")


@dataclass(frozen=True)
class Fenced:
    """A fenced block and its language, empty for what a program prints."""

    language: str
    text: str


def blocks(page: Path) -> list[Fenced]:
    """The fenced blocks of a page in order."""
    return [Fenced(m["language"], m["text"]) for m in _FENCE.finditer(page.read_text(encoding="utf-8"))]


def commands(page: Path, program: str) -> list[list[str]]:
    """The arguments of every call of a program in the shell blocks of a page, in order."""
    found = []
    for block in blocks(page):
        for line in block.text.splitlines() if block.language == "sh" else ():
            for part in line.split("&&"):
                words = shlex.split(part, comments=True)
                if words and Path(words[0]).name == program:
                    found.append(words[1:])
    return found


def mentioned(page: Path, program: str) -> list[list[str]]:
    """The arguments of a program where it stands in backticks in running text."""
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return [shlex.split(text)[1:] for text in _INLINE.findall(prose) if text.startswith(f"{program} ")]
