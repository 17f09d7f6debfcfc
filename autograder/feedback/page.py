"""The feedback page of one student and notebook: one HTML file that needs no network, no server and no script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from markupsafe import Markup

from autograder.feedback import words
from autograder.feedback.render import MAX_VALUE, Bilingual, both, plain, render, seconds
from autograder.heatmap import COLUMN, MARK, ROW, heat_map
from autograder.judge.faults import Fault
from autograder.judge.verdict import CellVerdict, Example, ExerciseVerdict, LeakFinding, Outcome, Status, Value, Verdict
from autograder.text import Language, Text

DRAWN = 16  # rows and columns of a matrix that a page draws
_TELLING = 2 / 3  # share of a matrix up to which outlining its wrong cells tells something
_LISTED = 40  # entries of any one list


@dataclass(frozen=True)
class Manual:
    """What a person gave or wrote for one cell in formgrader. ``points`` is None while nobody has graded it."""

    grade_id: str
    points: float | None = None
    extra_credit: float = 0.0
    comment: str = ""


@dataclass(frozen=True)
class Late:
    """How late the submission came, and the points it lost by it."""

    by: timedelta
    penalty: float = 0.0


@dataclass(frozen=True)
class Show:
    """What a student may see; ``course.yaml`` decides."""

    hints: bool = True
    examples: bool = True
    tests: bool = True


EVERYTHING = Show()


@dataclass(frozen=True)
class Score:
    """The notebook's score: what counts is ``points``, after ``penalty``; ``waiting`` points are still to be given by a person."""

    points: float
    max_points: float
    penalty: float = 0.0
    waiting: float = 0.0

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return min(1.0, max(0.0, self.points / self.max_points)) if self.max_points > 0 else 0.0


@dataclass(frozen=True)
class Failure:
    """Hidden tests that failed with the same words."""

    about: list[Bilingual]
    message: Bilingual | None


@dataclass(frozen=True)
class Block:
    """One exercise, or one other graded cell, as the page shows it."""

    name: str
    anchor: str
    points: float | None
    max_points: float
    state: str  # full, partial, none, untouched, waiting
    exercise: ExerciseVerdict | None = None
    failures: list[Failure] = field(default_factory=list)
    passed: list[Bilingual] = field(default_factory=list)
    not_checked: int = 0
    course_faults: int = 0
    machine_faults: int = 0
    example: list[Markup] = field(default_factory=list)
    marked: bool = False  # the example as heat maps with outlined cells
    leak: Markup | None = None
    manual: Manual | None = None
    automatic: float | None = None  # the points before a person changed them

    @property
    def label(self) -> Text:
        """The state in words."""
        return {
            "full": words.FULL,
            "partial": words.PARTIAL,
            "none": words.NONE,
            "untouched": words.UNTOUCHED,
            "waiting": words.WAITING,
        }[self.state]


def page(
    verdict: Verdict,
    *,
    student_name: str = "",
    course: Bilingual | str = "",
    title: Bilingual | str = "",
    manual: Sequence[Manual] = (),
    late: Late | None = None,
    show: Show = EVERYTHING,
    language: Language = "zh",
) -> str:
    """The page as HTML text. Both languages are in it; ``language`` is the one shown first.

    ``title`` is the assignment's title, its id unless given. Everything that came from the student is escaped, shortened and freed of
    invisible characters.
    """
    by_hand = {m.grade_id: m for m in manual}
    graded = verdict.status is Status.GRADED  # otherwise there is nothing to say about single exercises
    exercises = [_exercise_block(e, by_hand.get(e.name), show) for e in verdict.exercises[:_LISTED] if graded]
    cells = [_cell_block(c, by_hand.get(c.grade_id)) for c in verdict.cells[:_LISTED] if graded]
    return render(
        "page.html.j2",
        verdict=verdict,
        student=plain(student_name or verdict.student, 100),
        course=both(course, 200),
        title=both(title or verdict.assignment, 200),
        notebook=plain(verdict.notebook, 120),
        language=language,
        score=score(verdict, manual, late),
        late=late,
        show=show,
        blocks=exercises,
        cells=[c for c in cells if c.state != "waiting" and not c.manual],
        by_hand=[c for c in cells if c.state == "waiting" or c.manual],
        banner=_BANNERS.get(verdict.status),
        problems=collapsed((problem.text, f"{problem.cell + 1}") for problem in verdict.problems),
        limits=collapsed((text, "") for text in verdict.limits_hit),
        repairs=collapsed((text, "") for text in verdict.repairs),
        late_by=seconds(late.by.total_seconds()) if late else None,
        took=seconds(verdict.seconds),
        sandboxed=verdict.sandbox != "none" or not graded,
        final=verdict.status not in (Status.SET_ASIDE, Status.MACHINE_FAULT),
    )


def score(verdict: Verdict, manual: Sequence[Manual] = (), late: Late | None = None) -> Score:
    """What the notebook earned, counting a person's points where there are any, as nbgrader's gradebook does."""
    by_hand = {m.grade_id: m for m in manual}
    earned = waiting = 0.0
    automatic: list[tuple[str, float | None, float]] = [(e.name, e.points, e.max_points) for e in verdict.exercises]
    automatic += [(c.grade_id, c.points, c.max_points) for c in verdict.cells]
    for name, given, most in automatic:
        hand = by_hand.get(name)
        counts = given if hand is None or hand.points is None else hand.points
        earned += (counts or 0.0) + (hand.extra_credit if hand else 0.0)
        waiting += most if counts is None else 0.0
    penalty = late.penalty if late else 0.0
    return Score(max(0.0, earned - penalty), verdict.max_points, penalty, waiting)


def collapsed(entries: Iterable[tuple[Bilingual, str]]) -> list[tuple[Bilingual, list[str]]]:
    """Equal texts as one entry, in order, with what told them apart (a cell's number)."""
    found: dict[tuple[str, str], tuple[Bilingual, list[str]]] = {}
    for text, where in entries:
        found.setdefault((text.zh, text.en), (text, []))[1].append(where)
    return list(found.values())


_BANNERS: dict[Status, tuple[Text, Text | None]] = {
    Status.UNREADABLE: (words.UNREADABLE, None),
    Status.MISSING: (words.MISSING, None),
    Status.SET_ASIDE: (words.SET_ASIDE, words.SET_ASIDE_HELP),
    Status.MACHINE_FAULT: (words.MACHINE, words.MACHINE_HELP),
}


def _exercise_block(verdict: ExerciseVerdict, manual: Manual | None, show: Show) -> Block:
    earned = verdict.points if manual is None or manual.points is None else manual.points
    by_outcome = {o: [t for t in verdict.tests if t.outcome is o] for o in Outcome}
    failed = collapsed_failures(verdict)
    undefined = any(test.fault is Fault.MISSING for test in verdict.tests)  # then an example would tell nothing
    telling = show.examples and failed and not verdict.full and not undefined
    example = _example(verdict.example) if verdict.example and telling else []
    leak = _leak(verdict.leak) if verdict.leak and verdict.leak.matrix and show.examples else None
    return Block(
        name=plain(verdict.name, 80),
        anchor=f"exercise-{plain(verdict.name, 80)}",
        points=earned,
        max_points=verdict.max_points,
        state="untouched" if verdict.untouched else _state(earned, verdict.max_points),
        exercise=verdict,
        failures=failed,
        passed=[t.about for t in by_outcome[Outcome.PASSED][:_LISTED]],
        not_checked=len(by_outcome[Outcome.NOT_CHECKED]),
        course_faults=len(by_outcome[Outcome.COURSE_FAULT]),
        machine_faults=len(by_outcome[Outcome.MACHINE_FAULT]),
        example=example,
        marked=any("<svg" in figure and MARK in figure for figure in example),
        leak=leak,
        manual=manual,
        automatic=verdict.points if earned != verdict.points else None,
    )


def collapsed_failures(verdict: ExerciseVerdict) -> list[Failure]:
    """The failed tests, those with one and the same message together."""
    found: dict[tuple[str, str] | None, Failure] = {}
    for test in [t for t in verdict.tests if t.outcome is Outcome.FAILED][:_LISTED]:
        key = (test.message.zh, test.message.en) if test.message else None
        found.setdefault(key, Failure([], _sentence(test.message))).about.append(test.about)
    return list(found.values())


def _sentence(message: Bilingual | None) -> Bilingual | None:
    """A message with a capital letter in English, unless it begins with a name."""
    if message is None or not message.en.startswith(("the ", "a ", "an ")):
        return message
    return Text(zh=message.zh, en=message.en[0].upper() + message.en[1:])


def _cell_block(cell: CellVerdict, manual: Manual | None) -> Block:
    earned = cell.points if manual is None or manual.points is None else manual.points
    return Block(
        name=plain(cell.grade_id, 80),
        anchor=f"cell-{plain(cell.grade_id, 80)}",
        points=earned,
        max_points=cell.max_points,
        state="waiting" if earned is None else _state(earned, cell.max_points),
        manual=manual or (Manual(cell.grade_id) if cell.manual else None),
        automatic=cell.points if cell.points != earned else None,
    )


def _state(earned: float, most: float) -> str:
    return "full" if earned >= most else "partial" if earned > 0 else "none"


def _example(example: Example) -> list[Markup]:
    """The values got and expected, as heat maps side by side where both are matrices of one shape, else as text."""
    got, want = example.got, example.want
    if (
        got
        and want
        and got.matrix
        and want.matrix
        and _drawable(got.matrix)
        and _shape(got.matrix) == _shape(want.matrix)
    ):
        pair = _crop(got.matrix), _crop(want.matrix)
        span = _span(pair)
        off = [(t, j) for t, row in enumerate(pair[0]) for j, x in enumerate(row) if not _near(x, pair[1][t][j])]
        telling = off if len(off) <= _TELLING * len(pair[0]) * len(pair[0][0]) else ()
        return [_figure(words.GOT, pair[0], span, telling), _figure(words.WANT, pair[1], span, ())]
    return [_text_value(words.GOT, got), _text_value(words.WANT, want)]


def _figure(what: Text, matrix: list[list[float]], span: tuple[float, float], off: Sequence[tuple[int, int]]) -> Markup:
    title = f"{what} {len(matrix)} × {len(matrix[0])}"
    if off:
        title += f" ({words.MATRIX_DIFFERS.format(n=len(off))})"
    drawing = heat_map(matrix, title=title, row_name=ROW, column_name=COLUMN, span=span, marked=off)
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(both(what), Markup(drawing))


def _text_value(what: Text, value: Value | None) -> Markup:
    if value is None:
        return Markup("")
    return Markup('<figure><figcaption>{}</figcaption><pre tabindex="0">{}</pre></figure>').format(
        both(what), plain(value.text, MAX_VALUE)
    )


def _leak(leak: LeakFinding) -> Markup | None:
    if leak.matrix is None or not _drawable(leak.matrix, least=1):
        return None
    matrix = _crop(leak.matrix)
    future = [(t, j) for t, row in enumerate(matrix) for j, x in enumerate(row) if j > t and x != 0]
    if future:
        t, j = max(future, key=lambda at: _size(matrix[at[0]][at[1]]))
        title = words.LEAK_TITLE.format(
            rows=len(matrix), columns=len(matrix[0]), n=len(future), largest=f"{matrix[t][j]:.1e}", t=t, j=j
        )
    else:
        title = words.NO_LEAK_TITLE.format(rows=len(matrix), columns=len(matrix[0]))
    drawing = Markup(heat_map(matrix, title=str(title), log=True, marked=future))
    cropped = both(words.CROPPED.format(limit=DRAWN)) if len(leak.matrix) > DRAWN else Markup("")
    return Markup("<figure>{}<figcaption>{} {}</figcaption></figure>").format(drawing, both(words.LEAK_LEGEND), cropped)


def _drawable(matrix: list[list[float]], least: int = 2) -> bool:
    """A picture tells more than numbers only for a matrix that deserves the name."""
    return len(matrix) >= least and len(matrix[0]) >= least and all(len(row) == len(matrix[0]) for row in matrix)


def _crop(matrix: list[list[float]]) -> list[list[float]]:
    return [row[:DRAWN] for row in matrix[:DRAWN]]


def _shape(matrix: list[list[float]]) -> tuple[int, int]:
    return len(matrix), len(matrix[0])


def _span(matrices: Iterable[list[list[float]]]) -> tuple[float, float]:
    finite = [x for matrix in matrices for row in matrix for x in row if math.isfinite(x)]
    return min(0.0, *finite, 0.0), max(finite, default=1.0)


def _near(a: float, b: float) -> bool:
    return (a == 0) == (b == 0) and (math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) or (a != a and b != b))


def _size(value: float) -> float:
    return abs(value) if value == value else math.inf
