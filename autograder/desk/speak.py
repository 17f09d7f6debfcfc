"""In which language, and where, the student's tools speak: rich in a notebook, plain in a terminal."""

from __future__ import annotations

import os
import sys
from html import escape

from autograder.text import LANGUAGES, Language, Text


def languages() -> tuple[Language, ...]:
    """The one that the environment variable AUTOGRADER_LANGUAGE names ("zh" or "en"), else both."""
    asked = os.environ.get("AUTOGRADER_LANGUAGE", "")
    return tuple(language for language in LANGUAGES if asked.lower().startswith(language)) or LANGUAGES


def say(text: Text, between: str = " / ") -> str:
    """A text in the student's language, or in both."""
    return between.join(dict.fromkeys(text.lang(language) for language in languages()))


def say_html(text: Text) -> str:
    """The same as HTML: one language a line, so that each is read on its own."""
    parts = dict.fromkeys((text.lang(language), language) for language in languages())
    return "<br>".join(f'<span lang="{language}">{escape(words)}</span>' for words, language in parts)


class Shown:
    """Something to show: HTML for notebooks, text for terminals and for screen readers of plain output."""

    def __init__(self, text: str, html: str) -> None:
        self.text = text
        self.html = html

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html

    def show(self) -> None:
        """As a rich output in a Jupyter kernel (JupyterLab, VS Code, Colab), else printed."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython else None
        if shell is not None and hasattr(shell, "kernel"):
            from IPython.display import display

            display(self)  # type: ignore[no-untyped-call]
        else:
            print(self.text)
