"""What can go wrong, sorted by whose fault it is. Only the student's fault costs points."""

from __future__ import annotations

from enum import StrEnum

from autograder.text import Text


class Fault(StrEnum):
    """The ways in which a student's answer can fail before its numbers are even compared."""

    MISSING = "missing"  # the name is not defined
    UNFINISHED = "unfinished"  # the stub is still there
    RAISED = "raised"  # an exception of the student's code
    TYPE = "type"
    SHAPE = "shape"
    DTYPE = "dtype"
    NONFINITE = "nonfinite"
    VALUE = "value"  # everything fits but the numbers
    TIMEOUT = "timeout"
    DIED = "died"  # the kernel ended during the call
    OVERSIZED = "oversized"
    MALFORMED = "malformed"  # the reply is not what our own serving code writes


class StudentFault(Exception):
    """The student's answer is at fault.

    ``kind`` says how, ``text`` says it in words, ``detail`` holds what identifies the fault between two runs (an exception's type).
    """

    def __init__(self, kind: Fault, text: Text, detail: str = "") -> None:
        super().__init__(str(text))
        self.kind = kind
        self.text = text
        self.detail = detail


class Mismatch(AssertionError):
    """A comparison in a hidden test does not hold: the student's numbers are wrong."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class MachineFault(Exception):
    """The machine failed (no memory for the judge, no sandbox): nobody loses points, the submission is graded again later."""
