"""Grade a class: many submissions through a pool of workers, one writer, nothing lost and nothing twice.

A submission counts as graded once its verdicts are on disk, which is the last thing written: a run that is killed anywhere and started again
grades what is missing and ends in the same gradebook.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import nbformat

from autograder.course import Course, seed
from autograder.gradebook.book import Book
from autograder.gradebook.scores import NotebookScores, Score
from autograder.grading.assignment import Assignment
from autograder.grading.submissions import Handed, handed_in, students
from autograder.grading.verdicts import read_verdict, verdict_path, write_atomically, write_verdict
from autograder.grading.worker import Result, Setup, WorkerLost, end_with_parent, grade_submission, not_graded
from autograder.judge.verdict import Status, Verdict
from autograder.text import Text

_IN_FLIGHT = 2  # submissions per worker that wait with their bytes in memory
_STRIKES = 2
_BESIDE = ("timestamp.txt", "submission_secret.txt")


@dataclass(frozen=True)
class Done:
    """One student's submission, graded in this run or (``fresh`` is False) found graded."""

    student: str
    verdicts: tuple[Verdict, ...]
    fresh: bool


def local_pool(jobs: int) -> Callable[[], Executor]:
    """A maker of pools of ``jobs`` grading processes on this machine."""
    return lambda: ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=end_with_parent)


class Arrivals(Protocol):
    """Where submissions come from: a list, or a folder that is watched. Nothing more is taken once it has ``stopped``."""

    stopped: bool

    def take(self) -> Handed | None:
        """The next submission; None when there is none at present."""

    def more(self) -> Future[None] | None:
        """Done once there may be another one that ``take`` did not have when this was called; None when there will be none."""


class _Listed:
    """Submissions that are there already, read when their turn comes."""

    stopped = False

    def __init__(self, submissions: Iterator[Handed]) -> None:
        self._submissions = submissions

    def take(self) -> Handed | None:
        return next(self._submissions, None)

    def more(self) -> None:
        return None


def grade_class(
    course: Course,
    assignment: Assignment,
    make_pool: Callable[[], Executor],
    *,
    workers: int,
    only: Iterable[str] | None = None,
    again: bool = False,
    allow_unsandboxed: bool = False,
) -> Iterator[Done]:
    """Grade the submissions of an assignment and yield each as it is done: found ones first, then in order of completion.

    ``again`` grades also what is graded already. Raises SandboxUnavailable, CourseFault and CourseError, which no student is to blame for.
    """
    with Book(course) as book:
        book.notebooks(assignment.name)  # fails before anything is graded when the assignment was never released
        waiting: list[str] = []
        for student in only if only is not None else students(course, assignment.name):
            found = None if again else find(course, assignment, handed_in(course, assignment, student))
            if found is not None:
                yield Done(student, found, fresh=False)
            else:
                waiting.append(student)
        listed = _Listed(handed_in(course, assignment, student) for student in waiting)
        yield from grade_arrivals(book, assignment, listed, make_pool, workers, allow_unsandboxed)


def grade_arrivals(
    book: Book,
    assignment: Assignment,
    arrivals: Arrivals,
    make_pool: Callable[[], Executor],
    workers: int,
    allow_unsandboxed: bool = False,
) -> Iterator[Done]:
    """Grade submissions as they come, and yield each once its verdicts are on disk."""
    course = book.course
    setup = Setup(str(course.root), assignment.name, assignment.fingerprint, course.limits, allow_unsandboxed)
    with closing(_through_pool(course, setup, arrivals, make_pool, workers)) as graded:
        for handed, results in graded:
            yield _write(book, assignment, handed, results or _set_aside(course, assignment, handed))


def _through_pool(
    course: Course, setup: Setup, arrivals: Arrivals, make_pool: Callable[[], Executor], workers: int
) -> Generator[tuple[Handed, tuple[Result, ...] | None], None, None]:
    """Results in order of completion; None for a submission that ended its worker twice.

    When a pool says which submission a lost worker had (WorkerLost), that one is graded elsewhere. When it does not, any of those then
    under way may be why: they are graded once more, one at a time, and only what breaks the pool alone is blamed.
    """
    suspects, again = list[Handed](), list[Handed]()
    strikes: Counter[str] = Counter()
    pool = make_pool()
    running: dict[Future[tuple[Result, ...]], Handed] = {}
    try:
        while True:
            more = None if suspects else arrivals.more()
            if suspects and not running:
                alone = suspects.pop()
                running[_submit(pool, course, setup, alone)] = alone
            elif not suspects:
                while len(running) < workers * _IN_FLIGHT:
                    handed = again.pop() if again else arrivals.take()
                    if handed is None:
                        break
                    running[_submit(pool, course, setup, handed)] = handed
            if arrivals.stopped:
                for future in running:
                    future.cancel()  # what has begun is finished and written
            if not running and more is None:
                return
            waited: list[Future[Any]] = [*running, *([more] if more is not None else [])]
            lost: list[Handed] = []
            for future in wait(waited, return_when=FIRST_COMPLETED).done - {more}:
                handed = running.pop(future)
                try:
                    yield handed, future.result()
                except CancelledError:
                    continue
                except WorkerLost:
                    strikes[handed.student] += 1
                    if strikes[handed.student] >= _STRIKES:
                        yield handed, None
                    else:
                        again.append(handed)
                except BrokenExecutor:
                    lost.append(handed)
            if lost and arrivals.stopped:
                return
            if lost:
                alone_before = len(lost) == 1 and not running
                lost += running.values()
                running.clear()
                pool.shutdown(wait=False, cancel_futures=True)
                pool = make_pool()
                for handed in lost:
                    strikes[handed.student] += alone_before
                    if strikes[handed.student] >= _STRIKES:
                        yield handed, None
                    else:
                        suspects.append(handed)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: Executor, course: Course, setup: Setup, handed: Handed) -> Future[tuple[Result, ...]]:
    notebooks = tuple((n, seed(course, setup.assignment, handed.student, n.name)) for n in handed.notebooks)
    try:
        return pool.submit(grade_submission, setup, handed.student, notebooks)
    except BrokenExecutor as error:  # a worker was lost meanwhile
        lost: Future[tuple[Result, ...]] = Future()
        lost.set_exception(error)
        return lost


def find(course: Course, assignment: Assignment, handed: Handed) -> tuple[Verdict, ...] | None:
    """The verdicts on exactly this submission, if all of them are there."""
    found = []
    for notebook in handed.notebooks:
        verdict = read_verdict(verdict_path(course, handed.student, assignment.name, notebook.name))
        drawn = seed(course, assignment.name, handed.student, notebook.name)
        if (
            verdict is None
            or verdict.status is Status.MACHINE_FAULT
            or verdict.fingerprint != assignment.key(notebook.data, course.limits, drawn)
        ):
            return None
        found.append(verdict)
    return tuple(found)


def _write(book: Book, assignment: Assignment, handed: Handed, results: tuple[Result, ...]) -> Done:
    """Autograded notebooks, then the gradebook, then the verdicts, which make it count as graded."""
    folder = book.course.folder("autograded", handed.student, assignment.name)
    folder.mkdir(parents=True, exist_ok=True)
    for name in _BESIDE:
        if (handed.folder / name).is_file():
            shutil.copyfile(handed.folder / name, folder / name)
    scores: dict[str, NotebookScores | None] = {}
    found = tuple(result.read() for result in results)
    for verdict, result in zip(found, results, strict=True):
        notebook = folder / f"{verdict.notebook}.ipynb"
        if verdict.status is Status.MISSING:
            scores[verdict.notebook] = None
            notebook.unlink(missing_ok=True)
        elif result.notebook is None:
            cells = book.notebooks(assignment.name)[verdict.notebook]
            scores[verdict.notebook] = NotebookScores({cell: Score(None, needs_manual=True) for cell in cells})
            notebook.unlink(missing_ok=True)  # one of an earlier submission would be taken for this
        else:
            write_atomically(notebook, result.notebook.encode())
            scores[verdict.notebook] = NotebookScores.of(nbformat.reads(result.notebook, as_version=4))
    book.record(handed.student, assignment.name, handed.submitted, scores)
    for verdict in found:
        write_verdict(book.course, verdict)
    return Done(handed.student, found, fresh=True)


def _set_aside(course: Course, assignment: Assignment, handed: Handed) -> tuple[Result, ...]:
    return tuple(
        not_graded(
            assignment,
            course.limits,
            handed.student,
            notebook,
            seed(course, assignment.name, handed.student, notebook.name),
            Status.SET_ASIDE,
            _SET_ASIDE,
        )
        for notebook in handed.notebooks
    )


_SET_ASIDE = Text(
    zh="评这份作业时评分进程两次意外结束：已放在一边，请老师查看。没有因此扣分。",
    en="The grading process ended twice while grading this submission: it was set aside for a person to look at. No points were taken.",
)
