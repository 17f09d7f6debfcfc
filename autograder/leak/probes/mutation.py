"""Edited inputs: does a call write into the tensors it was given?"""

from __future__ import annotations

from autograder.leak.bench import Bench
from autograder.leak.compare import distance
from autograder.leak.setting import Finding, Setting, Witness
from autograder.leak.subject import Failed
from autograder.text import Text

SEEN = Text(
    zh="调用之后，传入的 {name} 被改动了 {size:.3g}。",
    en="After the call the caller's {name} had changed by {size:.3g}.",
)
MEANING = Text(
    zh="常见原因：原地运算（x += …、masked_fill_）写到了调用者的张量上；先复制，或用不带下划线的版本。",
    en="Usual cause: an in-place operation (x += ..., masked_fill_) on the caller's tensor; "
    "use the version without the underscore.",
)


def edited_inputs(bench: Bench) -> list[Finding]:
    """Report the inputs that some call so far has changed (every call gets copies, and the copies are compared)."""
    findings = []
    for name, (setting, before, after) in bench.subject.mutations.items():

        def again(smaller: Setting, name: str = name) -> Finding | None:
            bench.subject.mutations.clear()
            try:
                bench.stage(smaller).base()
            except Failed:
                return None
            return next((f for f in edited_inputs(bench) if f.input == name), None)

        size = distance(before[name], after[name])
        findings.append(
            Finding(
                "mutates-input",
                setting,
                SEEN.format(name=name, size=size),
                input=name,
                size=size,
                meaning=MEANING,
                witness=Witness(before, after, None, None),
                again=again,
            )
        )
    return findings
