"""Texts that a student chooses, on the feedback page and in the verdict: exception messages, type names, cell errors, values."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import nbformat
import pytest

from autograder.cli.grading import findings
from autograder.feedback.page import page
from autograder.grading.run import Done
from autograder.judge.verdict import Verdict
from tests.attacks.range import WRONG, notebook_of, opened

TEXTS = {
    "a script": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "an end of everything": "</span></li></main></body></html>\"'><svg onload=alert(1)>",
    "a comment": "<!-- ]]> --!> -->",
    "a style": "</style><style>body{display:none}</style><link rel=stylesheet href=//evil.example/x>",
    "a frame": "<iframe srcdoc='<script>1</script>'></iframe><base href=//evil.example>",
    "a template": "{{ 7 * 7 }}{% include 'x' %}${7*7}",
    "markdown": "[x](javascript:alert(1)) `<b>` ![](http://evil.example/x.png)",
    "text that runs the other way": "\u202e evil \u2066 \u200f \u200b \ufeff",
    "terminal colours": "\x1b[2J\x1b]0;title\x07\x1b[31mred\x08\x08",
    "stacked accents": "a" + "\u0301" * 5000,
    "nulls": "a\x00b\x01c",
    "half surrogates": "\ud800\udfff\udc00",
    "a huge word": "W" * 200_000,
    "a million lines": "\n" * 1_000_000,
    "NaN as JSON": '"}], "points": NaN, "status": "graded',
}


class Page(HTMLParser):
    """Collects what could act or load."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.acts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "base", "link", "img", "form", "template"):
            self.acts.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("srcdoc", "src", "action", "formaction"):
                self.acts.append(f"{tag} {name}")
            if name in ("href", "xlink:href") and not (value or "").startswith("#"):
                self.acts.append(f"{tag} {name}={value}")


@pytest.fixture(scope="module")
def attacked():
    with opened() as place:
        yield place


def literal(text: str) -> str:
    """Python code for a text; short, for the file itself may not be huge."""
    return f"{text[0]!r} * {len(text)}" if len(set(text)) == 1 else repr(text)


def as_message(text: str) -> str:
    return f"def mix(x, y):\n    raise ValueError({literal(text)})"


def as_type(text: str) -> str:
    name = text.replace("\0", "").encode("utf-8", "replace").decode()  # what Python takes as a name of a type
    return f"def mix(x, y):\n    raise type({literal(name)}, (Exception,), {{}})"


def as_result(text: str) -> str:
    return f"def mix(x, y):\n    return {literal(text)}"


def as_cell_error(text: str) -> str:
    return f"raise ValueError({literal(text)})"


@pytest.mark.parametrize("way", [as_message, as_type, as_result, as_cell_error], ids=lambda way: way.__name__)
def test_no_text_acts_or_hides(attacked, way):
    for name, text in TEXTS.items():
        graded = attacked.grade(notebook_of(attacked.grader.assignment, WRONG + way(text)))
        assert graded.verdict.exercises[0].points == 0, name
        assert graded.verdict.exercises[1].full, name
        html = page(graded.verdict, student_name=text, title=text)
        assert Page(html).acts == [], name
        assert not {c for c in html if c in "\u202e\u2066\u200f\u200b\ufeff\x1b\x00\x01\x07\x08"}, name
        assert len(html) < 200_000, name
        assert html.encode()
        said = findings(Done("s", (graded.verdict,), fresh=True))
        assert said, name
        assert all(each.isprintable() and len(each) < 100 for each in said), name
        written = graded.verdict.model_dump_json()
        assert len(written) < 100_000, name
        assert Verdict.model_validate_json(written) == graded.verdict, name
        json.loads(written, parse_constant=pytest.fail)
        nbformat.validate(graded.notebook)
        nbformat.writes(graded.notebook).encode()
