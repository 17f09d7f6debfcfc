"""What the class report counts: plain numbers from a list of verdicts, without any page around them."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.feedback.page import Manual, collapsed_failures, score
from autograder.feedback.render import Bilingual
from autograder.judge.verdict import Diagnosis, Example, ExerciseVerdict, Outcome, Status, Verdict

MIN_FOR_DISCRIMINATION = 8  # answers; with fewer a correlation says nothing
_NOT_TRIED = (Outcome.NOT_CHECKED, Outcome.COURSE_FAULT, Outcome.MACHINE_FAULT)

Key = tuple[str, str]  # (notebook, exercise)


@dataclass(frozen=True)
class Mistake:
    """Answers that failed alike: by a named mistake, or (``name`` None) by equal outputs. ``example`` is one of them."""

    notebook: str
    exercise: str
    name: str | None
    count: int
    diagnosis: Diagnosis | None
    example: Example | None
    failures: list[Bilingual]


@dataclass(frozen=True)
class Test:
    """A hidden test: how many of those whom it was run on passed."""

    name: str
    about: Bilingual
    passed: int
    run: int

    @property
    def share(self) -> float:
        """Of those it was run on."""
        return self.passed / self.run


@dataclass(frozen=True)
class Exercise:
    """One exercise over the class. ``mean`` is the share of its points earned, ``discrimination`` the correlation between this share and
    the points earned in everything else (None where it cannot be told); both as in classical test theory."""

    notebook: str
    name: str
    max_points: float
    answers: int
    untouched: int
    full: int
    mean: float
    discrimination: float | None
    tests: list[Test]


@dataclass
class Class:
    """Everything the report shows. ``shares`` are the students' total scores between 0 and 1, of the points that are no longer waiting for a
    person; submissions that could not be graded by the machine's or the grader's fault are left out of them."""

    students: int = 0
    shares: list[float] = field(default_factory=list)
    max_points: float = 0.0
    exercises: list[Exercise] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    unlisted: list[Mistake] = field(default_factory=list)
    course_faults: list[tuple[str, int]] = field(default_factory=list)
    limits: list[tuple[Bilingual, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    by_status: dict[Status, list[str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unsandboxed: int = 0

    @property
    def mean(self) -> float:
        """Mean share of the points."""
        return statistics.fmean(self.shares) if self.shares else 0.0

    @property
    def median(self) -> float:
        """Median share of the points."""
        return statistics.median(self.shares) if self.shares else 0.0


def summarise(
    verdicts: Sequence[Verdict],
    roster: Iterable[str] = (),
    manual: Mapping[tuple[str, str], Sequence[Manual]] | None = None,
) -> Class:
    """Count. ``roster`` are the students who should have handed in, ``manual`` the points given by hand by (student, notebook)."""
    by_hand = manual or {}
    handed_in = [v for v in verdicts if v.status is not Status.MISSING]
    graded = [v for v in verdicts if v.status is Status.GRADED]
    scored = [v for v in handed_in if v.status in (Status.GRADED, Status.UNREADABLE)]
    earned: dict[str, float] = defaultdict(float)
    waiting: dict[str, float] = defaultdict(float)
    largest: dict[str, float] = {}
    for verdict in scored:
        result = score(verdict, by_hand.get((verdict.student, verdict.notebook), ()))
        earned[verdict.student] += result.points
        waiting[verdict.student] += result.waiting
        largest[verdict.notebook] = max(largest.get(verdict.notebook, 0.0), verdict.max_points)
    most = sum(largest.values())
    can_be_had = {student: most - waiting[student] for student in earned}
    by_status: dict[Status, list[str]] = defaultdict(list)
    for verdict in handed_in:
        if verdict.status is not Status.GRADED:
            by_status[verdict.status].append(f"{verdict.student} ({verdict.notebook})")
    return Class(
        students=len({v.student for v in handed_in}),
        shares=[min(1.0, points / can_be_had[s]) for s, points in earned.items() if can_be_had[s] > 0],
        max_points=most,
        exercises=_exercises(graded, earned),
        mistakes=_mistakes(graded, named=True),
        unlisted=_mistakes(graded, named=False),
        course_faults=Counter(fault for v in verdicts for fault in v.course_faults).most_common(),
        limits=_limits(handed_in),
        seconds=sorted(v.seconds for v in handed_in),
        by_status=dict(by_status),
        missing=sorted(
            {*roster, *(v.student for v in verdicts if v.status is Status.MISSING)} - {v.student for v in handed_in}
        ),
        unsandboxed=sum(v.sandbox == "none" for v in graded),
    )


def _answers(graded: Iterable[Verdict]) -> dict[Key, list[tuple[str, ExerciseVerdict]]]:
    """The answers to each exercise, in the order of the notebooks."""
    found: dict[Key, list[tuple[str, ExerciseVerdict]]] = defaultdict(list)
    for verdict in sorted(graded, key=lambda v: v.notebook):
        for exercise in verdict.exercises:
            found[verdict.notebook, exercise.name].append((verdict.student, exercise))
    return found


def _exercises(graded: Sequence[Verdict], earned: Mapping[str, float]) -> list[Exercise]:
    return [
        Exercise(
            notebook=notebook,
            name=name,
            max_points=max(e.max_points for _, e in answers),
            answers=len(answers),
            untouched=sum(e.untouched for _, e in answers),
            full=sum(e.full for _, e in answers),
            mean=statistics.fmean(_share(e) for _, e in answers),
            discrimination=_discrimination(answers, earned),
            tests=_tests([e for _, e in answers]),
        )
        for (notebook, name), answers in _answers(graded).items()
    ]


def _share(exercise: ExerciseVerdict) -> float:
    return exercise.points / exercise.max_points if exercise.max_points else 1.0


def _discrimination(answers: list[tuple[str, ExerciseVerdict]], earned: Mapping[str, float]) -> float | None:
    if len(answers) < MIN_FOR_DISCRIMINATION:
        return None
    here = [_share(e) for _, e in answers]
    elsewhere = [earned[student] - e.points for student, e in answers]
    try:
        return statistics.correlation(here, elsewhere)
    except statistics.StatisticsError:  # everyone alike
        return None


def _tests(answers: Iterable[ExerciseVerdict]) -> list[Test]:
    found: dict[str, Test] = {}
    for answer in answers:
        for test in answer.tests if not answer.untouched else ():
            if test.outcome in _NOT_TRIED:
                continue
            before = found.get(test.name, Test(test.name, test.about, 0, 0))
            passed = before.passed + (test.outcome is Outcome.PASSED)
            found[test.name] = Test(test.name, test.about, passed, before.run + 1)
    return list(found.values())


def _mistakes(graded: Iterable[Verdict], named: bool) -> list[Mistake]:
    """Answers that failed alike, the most frequent first."""
    alike: dict[tuple[str, str, str], list[ExerciseVerdict]] = defaultdict(list)
    for (notebook, name), answers in _answers(graded).items():
        for _, answer in answers:
            known = answer.diagnosis.name if answer.diagnosis else None
            if answer.untouched or not any(t.outcome is Outcome.FAILED for t in answer.tests):
                continue
            key = known if named else None if known else answer.signature
            if key:
                alike[notebook, name, key].append(answer)
    mistakes = [
        Mistake(
            notebook,
            exercise,
            key if named else None,
            len(answers),
            answers[0].diagnosis,
            next((a.example for a in answers if a.example), None),
            [failure.message or failure.about[0] for failure in collapsed_failures(answers[0])][:3],
        )
        for (notebook, exercise, key), answers in alike.items()
    ]
    return sorted(mistakes, key=lambda m: -m.count)


def _limits(verdicts: Iterable[Verdict]) -> list[tuple[Bilingual, int]]:
    """Each limit with the number of notebooks that hit it, the most frequent first."""
    counted: Counter[tuple[str, str]] = Counter()
    texts: dict[tuple[str, str], Bilingual] = {}
    for verdict in verdicts:
        for key, text in {(t.zh, t.en): t for t in verdict.limits_hit}.items():
            counted[key] += 1
            texts[key] = text
    return [(texts[key], count) for key, count in counted.most_common()]
