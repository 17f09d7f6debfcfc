"""The class report of one assignment: one HTML file that shows an instructor where the class went wrong."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from markupsafe import Markup

from autograder.feedback import report_words
from autograder.feedback.page import Manual
from autograder.feedback.plots import histogram
from autograder.feedback.render import Bilingual, both, plain, render, seconds
from autograder.feedback.statistics import MIN_FOR_DISCRIMINATION, Class, summarise
from autograder.judge.verdict import Status, Verdict
from autograder.text import Language, Text

_LISTED = 30
_WEAK = 0.2  # discrimination below which an exercise is worth a look


def report(
    verdicts: Sequence[Verdict],
    *,
    course: Bilingual | str = "",
    title: Bilingual | str = "",
    roster: Iterable[str] = (),
    late: Mapping[str, timedelta] | None = None,
    manual: Mapping[tuple[str, str], Sequence[Manual]] | None = None,
    language: Language = "zh",
) -> str:
    """The report as HTML text, in both languages, ``language`` first.

    ``roster`` are the students who should have handed in, ``late`` how late each late one was, ``manual`` the points given by hand by
    (student, notebook). Examples carry no name; names stand only in the lists of late and missing students and of those to look at.
    """
    found = summarise(verdicts, roster, manual)
    return render(
        "report.html.j2",
        r=report_words,
        course=both(course, 200),
        title=both(title or (verdicts[0].assignment if verdicts else ""), 200),
        language=language,
        found=found,
        late=sorted((plain(student, 80), seconds(by.total_seconds())) for student, by in (late or {}).items()),
        missing=[plain(student, 80) for student in found.missing],
        scores=_scores(found),
        times=_times(found),
        time_summary=_time_summary(found),
        look_at=_look_at(found),
        notebooks=list(dict.fromkeys(e.notebook for e in found.exercises)),
        nobody=[(e, t) for e in found.exercises for t in e.tests if t.passed == 0],
        everybody=[(e, t) for e in found.exercises for t in e.tests if t.passed == t.run],
        enough=MIN_FOR_DISCRIMINATION,
        weak=_WEAK,
        listed=_LISTED,
    )


def _scores(found: Class) -> Markup:
    edges = [i / 10 for i in range(11)]
    labels = [f"{10 * i}%" for i in range(11)]
    return histogram(found.shares, edges, labels, report_words.SCORE_AXIS, report_words.SCORES)


def _times(found: Class) -> Markup:
    edges = [0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 1e9]
    labels = ["0", "0.5", "1", "2", "5", "10", "30", "60", "…"]
    return histogram(found.seconds, edges, labels, report_words.TIME_AXIS, report_words.TIME)


def _time_summary(found: Class) -> Text:
    times = found.seconds or [0.0]
    values = {"total": sum(times), "median": statistics.median(times), "longest": max(times)}
    texts = {name: seconds(value) for name, value in values.items()}
    words = report_words.TIME_SUMMARY
    return Text(
        zh=words.zh.format(**{name: text.zh for name, text in texts.items()}),
        en=words.en.format(**{name: text.en for name, text in texts.items()}),
    )


def _look_at(found: Class) -> list[tuple[Text, list[str]]]:
    named = {
        Status.SET_ASIDE: report_words.SET_ASIDE,
        Status.MACHINE_FAULT: report_words.MACHINE_FAULT,
        Status.UNREADABLE: report_words.UNREADABLE,
    }
    return [
        (text, [plain(who, 120) for who in found.by_status[s]]) for s, text in named.items() if s in found.by_status
    ]
