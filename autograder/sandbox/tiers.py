"""The kinds of isolation, and what is said where none holds."""

from __future__ import annotations

from typing import Literal

from autograder.text import Text

Tier = Literal["bubblewrap", "landlock", "none"]
"""``bubblewrap``: own namespaces, Landlock, seccomp, limits. ``landlock``: the last three alone, no new processes.
``none``: only limits."""


class SandboxUnavailable(RuntimeError):
    """This machine cannot isolate a notebook: the machine's fault, never a student's. ``text`` says what is missing."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)  # the argument itself: it is made anew from it where a worker raised it
        self.text = text

    def __str__(self) -> str:
        return self.text.en
