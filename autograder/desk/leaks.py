"""``detect_leaks(fn, inputs=...)``: the mask-leak detector as a check in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from autograder.desk.check import CheckFailed
from autograder.desk.speak import Shown, languages
from autograder.leak import detect
from autograder.leak.report import Report


class LeakFound(CheckFailed):
    """The function is not causal. ``report`` is what the detector found."""

    def __init__(self, report: Report) -> None:
        super().__init__("\n".join(report.text(language).splitlines()[0] for language in languages()))
        self.report = report


def detect_leaks(fn: Callable[..., Any], inputs: Callable[..., dict[str, Any]], **options: Any) -> None:
    """Replace the inputs after every position, show whether an earlier output moved, and raise LeakFound when one did.

    ``inputs(B, T, rng)`` returns fresh inputs by name; options are those of :func:`autograder.leak.detect`, which gives the report itself.
    """
    first, *others = languages()
    report = detect(fn, inputs, **{"effort": "quick", "language": first, **options})
    texts = [report.text(language) for language in others]
    more = "".join(
        f"<p lang='{language}' style='white-space:pre-line'>{escape(text)}</p>"
        for language, text in zip(others, texts, strict=True)
    )
    Shown("\n\n".join([report.text(first), *texts]), report._repr_html_() + more).show()
    if not report.ok:
        raise LeakFound(report)
