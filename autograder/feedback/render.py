"""From texts and values to safe HTML: the one place where what a student wrote meets markup."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Protocol

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from autograder.feedback import words
from autograder.text import Text

MAX_TEXT = 600  # characters of any one message
MAX_VALUE = 2000  # of a value printed in full
_TEMPLATES = Path(__file__).parent / "templates"
# Characters that reorder, hide or break what stands around them: marks of direction, zero width, variation, language tags
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffc\U000e0000-\U000e0fff]"
)
# Latin, Chinese, arrows and mathematics: nearly every text, and quickly told
_ORDINARY = re.compile(
    "[\n\t -~\u00a1-\u00ac\u00ae-\u024f\u2010-\u2027\u2190-\u22ff\u3001-\u3020\u4e00-\u9fff\uff01-\uff5e]*"
)
_CODE = re.compile(r"`([^`\n]{1,200})`")


class Bilingual(Protocol):
    """Whatever has its words in Chinese and in English: a Text, or the Words of a verdict."""

    @property
    def zh(self) -> str: ...
    @property
    def en(self) -> str: ...


def plain(text: object, limit: int = MAX_TEXT) -> str:
    """Text that stays where it is put: no control or invisible characters, few stacked accents, ``limit`` characters at most.

    A character that would reorder or hide its neighbours becomes ``�``; line breaks and tabs stay.
    """
    cut = str(text)[: limit + 1]
    short = cut if len(cut) <= limit else cut[:limit].rstrip() + "…"
    if _ORDINARY.fullmatch(short):
        return short
    kept, accents = [], 0
    for char in _UNSEEN.sub("�", short.replace("\r\n", "\n")):
        category = unicodedata.category(char)
        accents = accents + 1 if category in ("Mn", "Me") else 0
        if accents > 2:
            continue
        kept.append("�" if category in ("Cc", "Cs", "Cn", "Co") and char not in "\n\t" else char)
    return "".join(kept)


def both(text: Bilingual | str, limit: int = MAX_TEXT) -> Markup:
    """A text in both languages, of which the page shows one; a plain string as it is. Words in backticks become code."""
    if isinstance(text, str):
        return _inline(text, limit)
    zh, en = _inline(text.zh, limit), _inline(text.en, limit)
    return Markup('<span lang="zh-CN">{}</span><span lang="en">{}</span>').format(zh, en)


def points(value: float) -> str:
    """Points as people write them: 7, 7.5, 3.33."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value == value and abs(value) < 1e6 else "?"


def seconds(value: float) -> Text:
    """A duration in the unit that fits."""
    if value < 90:
        return Text(zh=f"{value:.3g} 秒", en=f"{value:.3g} s")
    if value < 5400:
        return Text(zh=f"{value / 60:.0f} 分钟", en=f"{value / 60:.0f} min")
    if value < 2 * 86400:
        return Text(zh=f"{value / 3600:.0f} 小时", en=f"{value / 3600:.0f} hours")
    return Text(zh=f"{value / 86400:.0f} 天", en=f"{value / 86400:.0f} days")


def fill(text: Text, **values: Text) -> Text:
    """Fill ``{name}`` fields of a text with texts, each language with its own words."""
    return Text(
        zh=text.zh.format(**{name: value.zh for name, value in values.items()}),
        en=text.en.format(**{name: value.en for name, value in values.items()}),
    )


def render(template: str, **values: object) -> str:
    """Fill a template of this package."""
    return _environment().get_template(template).render(w=words, **values).strip() + "\n"


def _inline(text: str, limit: int) -> Markup:
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(plain(text, limit)))))


def _value(text: object) -> str:
    return plain(text, MAX_VALUE)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "both": both, "points": points, "fill": fill, "value": _value}
    environment.globals["css"] = lambda name: Markup((_TEMPLATES / name).read_text(encoding="utf-8"))
    return environment
