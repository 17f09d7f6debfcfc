"""Words that a person reads, in the two languages of the course, written side by side so that neither drifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("zh", "en")


@dataclass(frozen=True)
class Text:
    """One message in Chinese and in English."""

    zh: str
    en: str

    def format(self, **values: object) -> Text:
        """Both languages with ``{name}`` fields filled in; a value that is a Text goes in in the same language."""
        zh, en = ({k: v.lang(lang) if isinstance(v, Text) else v for k, v in values.items()} for lang in LANGUAGES)
        return Text(zh=self.zh.format(**zh), en=self.en.format(**en))

    def lang(self, language: Language) -> str:
        """The message in one language."""
        return self.zh if language == "zh" else self.en

    @classmethod
    def of_docstring(cls, docstring: str | None) -> Text:
        """Read the two languages from a docstring: Chinese paragraph, blank line, English paragraph.

        Raises ValueError when one of the two is missing.
        """
        paragraphs = [" ".join(p.split()) for p in (docstring or "").strip().split("\n\n")]
        if len(paragraphs) < 2 or not paragraphs[0] or not paragraphs[1]:
            raise ValueError(
                "expected a docstring with a Chinese paragraph, an empty line and an English paragraph, "
                f"got {docstring!r}"
            )
        return cls(zh=paragraphs[0], en=paragraphs[1])

    def __str__(self) -> str:
        return f"{self.zh} / {self.en}"


def run_on(left: str, right: str) -> str:
    """Two pieces of one Chinese sentence, with a space where a Latin letter and a Chinese one would touch."""
    return f"{left} {right}" if left[-1:].isascii() != right[:1].isascii() else left + right
