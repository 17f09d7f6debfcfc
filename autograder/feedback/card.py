"""A card per exercise, put as an output into the autograded notebook, where formgrader and nbgrader's own feedback show it.

It has to survive nbconvert's ``sanitize_html``, which lets only a few tags and no ``style`` through: the card reads well without any
style, and looks well where styles are kept.
"""

from __future__ import annotations

from html import escape

from autograder.feedback import words
from autograder.feedback.page import EVERYTHING, Show, collapsed_failures
from autograder.feedback.render import Bilingual, plain, points
from autograder.judge.verdict import ExerciseVerdict, Outcome
from autograder.text import LANGUAGES, Language, Text

_COLOURS = {"full": "#1e6b4a", "partial": "#c79a00", "none": "#a2341a"}
_MAX_TEXT = 600
_MAX_FAILURES = 12


def card(
    verdict: ExerciseVerdict, *, show: Show = EVERYTHING, languages: tuple[Language, ...] = LANGUAGES
) -> dict[str, str]:
    """The data of a ``display_data`` output: ``text/html`` and ``text/plain``, in the languages asked for."""
    lines = _lines(verdict, show)
    colour = _COLOURS["full" if verdict.full else "partial" if verdict.points > 0 else "none"]
    score = f"{points(verdict.points)} / {points(verdict.max_points)}"
    name = plain(verdict.name, 80)
    body = "".join(_html(kind, _joined(text, languages)) for kind, text in lines)
    return {
        "text/html": (
            f"<div style='border-left:4px solid {colour};padding:4px 14px;line-height:1.5'>"
            f"<div><strong><code>{escape(name)}</code> · {score}</strong></div>{body}</div>"
        ),
        "text/plain": "\n".join(
            [f"{name}  {score}", *(_PREFIX[kind] + _joined(text, languages) for kind, text in lines)]
        ),
    }


_PREFIX = {"hint": "→ ", "about": "✗ ", "message": "  ", "note": "  "}


def _lines(verdict: ExerciseVerdict, show: Show) -> list[tuple[str, Bilingual]]:
    """What the card says, line by line."""
    if verdict.untouched:
        return [("note", words.UNTOUCHED_HELP)]
    lines: list[tuple[str, Bilingual]] = []
    failures = collapsed_failures(verdict)
    if failures and verdict.diagnosis and show.hints:
        lines.append(("hint", verdict.diagnosis.hint))
    if failures and not show.tests:
        lines.append(("note", words.HIDDEN_FAILURES.format(n=sum(len(f.about) for f in failures))))
    for failure in failures[:_MAX_FAILURES] if show.tests else ():
        lines += [("about", about) for about in failure.about]
        lines += [("message", failure.message)] if failure.message else []
    if len(failures) > _MAX_FAILURES and show.tests:
        lines.append(("note", words.MORE.format(n=len(failures) - _MAX_FAILURES)))
    count = {outcome: sum(t.outcome is outcome for t in verdict.tests) for outcome in Outcome}
    if verdict.tests and count[Outcome.PASSED] == len(verdict.tests):
        lines.append(("note", words.ALL_PASSED.format(n=len(verdict.tests))))
    for outcome, text in (
        (Outcome.NOT_CHECKED, words.NOT_CHECKED),
        (Outcome.COURSE_FAULT, words.COURSE_FAULT),
        (Outcome.MACHINE_FAULT, words.MACHINE_FAULT),
    ):
        if count[outcome]:
            lines.append(("note", text.format(n=count[outcome])))
    return lines


def _html(kind: str, text: str) -> str:
    words_ = escape(text)
    if kind == "hint":
        return f"<blockquote style='margin:6px 0;font-size:105%'><strong>{words_}</strong></blockquote>"
    if kind == "about":
        return f"<div><span style='color:#a2341a'>✗</span> {words_}</div>"
    style = "margin-left:1.2em;opacity:.85" if kind == "message" else "opacity:.75"
    return f"<div style='{style}'>{words_}</div>"


def _joined(text: Bilingual, languages: tuple[Language, ...]) -> str:
    both = Text(zh=plain(text.zh, _MAX_TEXT), en=plain(text.en, _MAX_TEXT))
    parts = [both.lang(language) for language in languages]
    return " / ".join(dict.fromkeys(parts)).replace("\n", " ")
