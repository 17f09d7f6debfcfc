"""Messages of a kernel, read as what they are: written by a student, to be believed in nothing.

The session key protects from others, not from the notebook itself, which holds it. What is not a well-formed message of
the protocol (https://jupyter-client.readthedocs.io/en/stable/messaging.html) is as if it had not been sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jupyter_client.session import Session

OUTPUTS = frozenset({"stream", "display_data", "update_display_data", "execute_result", "error"})

_DELIMITER = b"<IDS|MSG>"
_LONGEST_HEADER = 1 << 16


def read_message(session: Session, frames: list[bytes]) -> dict[str, Any] | None:
    """The message in these frames, its parts dictionaries and its text valid Unicode; None when it is malformed."""
    try:
        _, parts = session.feed_identities(frames)
        message: dict[str, Any] = session.deserialize(parts)
        if any(b"\\ud" in frame.lower() for frame in frames):
            message = _without_surrogates(message)
        if not all(isinstance(message[key], dict) for key in ("header", "parent_header", "metadata", "content")):
            return None
        return message if isinstance(message["header"]["msg_type"], str) else None
    except Exception:  # of any kind, as is what was sent
        return None


def is_output(frames: list[bytes]) -> bool:
    """Whether these frames are an output, judged by the header alone; also when there is no telling."""
    try:
        header = frames[frames.index(_DELIMITER) + 2]
        return len(header) > _LONGEST_HEADER or json.loads(header)["msg_type"] in OUTPUTS
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return True


def is_sound_output(message: dict[str, Any]) -> bool:
    """Whether a message of the output channel has the content of its kind. Widgets' messages (comm) have not: they
    would only be stored."""
    check = _CONTENTS.get(message["header"]["msg_type"])
    return check is not None and check(message["content"])


def _is_data(content: dict[str, Any]) -> bool:
    return all(isinstance(content.get(key), dict) for key in ("data", "metadata")) and all(
        isinstance(key, str) for key in content["data"]
    )


_CONTENTS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "status": lambda c: isinstance(c.get("execution_state"), str),
    "execute_input": lambda c: isinstance(c.get("execution_count"), int),
    "clear_output": lambda c: isinstance(c.get("wait"), bool),
    "iopub_welcome": lambda c: True,
    "stream": lambda c: c.get("name") in ("stdout", "stderr") and isinstance(c.get("text"), str),
    "display_data": _is_data,
    "update_display_data": _is_data,
    "execute_result": lambda c: _is_data(c) and isinstance(c.get("execution_count"), int),
    "error": lambda c: (
        isinstance(c.get("ename"), str)
        and isinstance(c.get("evalue"), str)
        and isinstance(c.get("traceback"), list)
        and all(isinstance(line, str) for line in c["traceback"])
    ),
}


def _without_surrogates(value: Any) -> Any:
    """Halves of surrogate pairs, which JSON can carry and no file can, replaced by question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value
