"""Coverage-guided search for a reply of a student's process that the judge trips over.

An input is what is asked (one byte), the length of the reply's header (two) and the reply without its lengths, which a mutation would
otherwise nearly always break. Where the first byte is 255 the rest is the whole reply.

Run it with ``python tests/fuzz/fuzz_wire.py -max_total_time=60`` where atheris is installed; it stops at the first exception that is no
StudentFault, and libFuzzer writes the reply that raised it to a file.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["autograder.judge"]):
    from autograder.judge.faults import StudentFault
    from autograder.judge.student import Direct, Reply, Student, Tensors, malformed
    from autograder.judge.wire import LENGTHS, Malformed, Packer, is_finite, read_frame, to_frame

X = torch.arange(6.0).reshape(2, 3)
REFERENCE = Direct({"mix": lambda x: x + 1, "table": lambda x: {"a": [x], "b": (1, None)}, "model": torch.nn.Linear})


class Replying:
    """A channel that answers everything with the same bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def request(self, header: dict[str, Any], tensors: Tensors) -> Reply:
        left = memoryview(self._data)

        def receive(n: int) -> bytes:
            nonlocal left
            if len(left) < n:
                raise EOFError
            part, left = bytes(left[:n]), left[n:]
            return part

        try:
            return read_frame(receive)
        except Malformed as error:
            raise malformed(error) from None


ASKED: tuple[Callable[[Student], Any], ...] = (
    lambda student: student.mix(X),
    lambda student: student.table(X),
    lambda student: student.mix.loosely(X),
    lambda student: student.mix.error(X),
    lambda student: student.mix.inputs_after(X),
    lambda student: student.mix.gradients(X, cotangent=X),
    lambda student: student.model(3, 3),
)


def judge(data: bytes) -> None:
    """One reply: it must be understood, or be the student's fault, in words that a file can hold."""
    asked, head, body = data[:1], int.from_bytes(data[1:3], "big"), data[3:]
    lengths = LENGTHS.pack(min(head, len(body)), max(0, len(body) - head))
    reply = data[1:] if asked == b"\xff" else lengths + body
    try:
        is_finite(ASKED[sum(asked) % len(ASKED)](Student(Replying(reply), REFERENCE, 0)))
    except StudentFault as fault:
        str(fault.text.zh + fault.text.en).encode()
    except EOFError:
        pass


def replies() -> list[bytes]:
    """Sound replies of each sort, and errors, to begin from."""
    values = [None, True, 7, -0.5, "text", torch.float32, X, X.bool(), [X, (X, None)], {"a": [X], "b": (1, None)}]
    values += [torch.nn.Linear(1, 1), object(), {"inputs": [X], "parameters": {"w": X}}]
    frames = [to_frame({"error": {"type": "ValueError", "message": "m", "line": 3, "missing": False}}, {})]
    frames += [to_frame({"error": {"type": "Oversized", "oversized": True}}, {})]
    for value in values:
        packer = Packer(handle=lambda value: (0, "Linear") if callable(value) else None)
        frames.append(to_frame({"value": packer.pack(value)}, packer.tensors))
    inputs = [bytes([n % len(ASKED)]) + f[2:4] + f[LENGTHS.size :] for n, f in enumerate(frames * len(ASKED))]
    return [*inputs, b"\xff" + frames[-1]]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(replies()):
            Path(corpus, str(number)).write_bytes(data)
        atheris.Setup([*sys.argv, corpus], judge)
        atheris.Fuzz()
