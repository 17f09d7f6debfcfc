"""One attack: what a student writes instead of an answer, and what it would deserve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["steal", "forge", "break", "escape"]
KINDS: tuple[Kind, ...] = ("steal", "forge", "break", "escape")


@dataclass(frozen=True)
class Attack:
    """``code`` is the answer cell of the exercise ``mix``, below a wrong answer. ``edit`` changes the file itself.

    ``ruins_itself``: the other answer of the same notebook may lose points by it, as when the student stops it.
    ``slow``: takes long and is left to the slow run.
    """

    kind: Kind
    name: str
    code: str = ""
    edit: Callable[[dict[str, Any]], None] | None = None
    ruins_itself: bool = False
    slow: bool = False


def looted(expression: str, setup: str = "") -> str:
    """Code that evaluates an expression and tells its value by every way a cell has; the wrong answer tells it again when called."""
    return f"""
import glob, os, sys
{setup}
try:
    LOOT = repr({expression})[:20000]
except BaseException as error:
    LOOT = type(error).__name__
print(LOOT)
print(LOOT, file=sys.stderr)
display({{"text/plain": LOOT, "text/html": LOOT}}, metadata={{"loot": LOOT}}, raw=True)

def mix(x, y):
    raise ValueError(LOOT)
"""


def achieved(action: str) -> str:
    """Code that tries a forbidden action and boasts when it was not refused."""
    indented = "\n".join(f"    {line}" for line in action.strip().splitlines())
    return f"""
import ctypes, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)

def must(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

try:
{indented}
    print("ESC" + "APED")
except BaseException as error:
    print(type(error).__name__)
"""
