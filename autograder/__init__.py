"""What a notebook imports: ``from autograder import case, check, detect_leaks, hint, show_weights, status``.

Nothing is loaded before it is used, and what is needs torch alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.desk.check import case, check
    from autograder.desk.hint import hint
    from autograder.desk.leaks import detect_leaks
    from autograder.desk.status import status
    from autograder.desk.weights import show_weights

_HOMES = {
    "case": "check",
    "check": "check",
    "detect_leaks": "leaks",
    "hint": "hint",
    "show_weights": "weights",
    "status": "status",
}
__all__ = ["case", "check", "detect_leaks", "hint", "show_weights", "status"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(
            f"module 'autograder' has no attribute {name!r}; a notebook finds {', '.join(__all__)} here"
        )
    value = getattr(import_module(f"autograder.desk.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
