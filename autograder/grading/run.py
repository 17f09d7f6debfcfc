"""Grade a class: many submissions through a pool of workers, one writer, nothing lost and nothing twice.

A submission counts as graded once its verdicts are on disk, which is the last thing written: a run that is killed anywhere and started again
grades what is missing and ends in the same gradebook.
"""

from __future__ import annotations

import itertools
import multiprocessing
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass

import nbformat

from autograder.course import Course, seed
from autograder.gradebook.book import Book
from autograder.gradebook.scores import NotebookScores, Score
from autograder.grading.assignment import Assignment
from autograder.grading.submissions import Handed, handed_in, students
from autograder.grading.verdicts import read_verdict, verdict_path, write_atomically, write_verdict
from autograder.grading.worker import Result, Setup, end_with_parent, grade_submission
from autograder.judge.verdict import Status, Verdict, Words
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
    setup = Setup(str(course.root), assignment.name, assignment.fingerprint, course.limits, allow_unsandboxed)
    with Book(course) as book:
        book.notebooks(assignment.name)  # fails before anything is graded when the assignment was never released
        waiting: list[Handed] = []
        for student in only if only is not None else students(course, assignment.name):
            handed = handed_in(course, assignment, student)
            found = None if again else _found(course, assignment, handed)
            if found is not None:
                yield Done(student, found, fresh=False)
            else:
                waiting.append(handed)
        with closing(_through_pool(course, setup, waiting, make_pool, workers)) as graded:
            for handed, results in graded:
                yield _write(course, book, assignment, handed, results)


def _through_pool(
    course: Course, setup: Setup, waiting: list[Handed], make_pool: Callable[[], Executor], workers: int
) -> Generator[tuple[Handed, tuple[Result, ...] | None], None, None]:
    """Results in order of completion; None for a submission that ended its worker twice while it was alone there.

    When a worker is lost, any of the submissions then under way may be why: they are graded once more, one at a time.
    """
    todo, suspects = iter(waiting), list[Handed]()
    strikes: dict[str, int] = {}
    pool = make_pool()
    running: dict[Future[tuple[Result, ...]], Handed] = {}
    try:
        while True:
            if suspects and not running:
                alone = suspects.pop()
                running[_submit(pool, course, setup, alone)] = alone
            elif not suspects:
                for handed in itertools.islice(todo, max(0, workers * _IN_FLIGHT - len(running))):
                    running[_submit(pool, course, setup, handed)] = handed
            if not running:
                return
            lost: list[Handed] = []
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                handed = running.pop(future)
                try:
                    yield handed, future.result()
                except BrokenExecutor:
                    lost.append(handed)
            if lost:
                alone_before = len(lost) == 1 and not running
                lost += running.values()
                running.clear()
                pool.shutdown(wait=False, cancel_futures=True)
                pool = make_pool()
                for handed in lost:
                    strikes[handed.student] = strikes.get(handed.student, 0) + alone_before
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


def _found(course: Course, assignment: Assignment, handed: Handed) -> tuple[Verdict, ...] | None:
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


def _write(
    course: Course, book: Book, assignment: Assignment, handed: Handed, results: tuple[Result, ...] | None
) -> Done:
    """Autograded notebooks, then the gradebook, then the verdicts, which make it count as graded."""
    if results is None:
        return _set_aside(course, book, assignment, handed)
    folder = course.folder("autograded", handed.student, assignment.name)
    folder.mkdir(parents=True, exist_ok=True)
    for name in _BESIDE:
        if (handed.folder / name).is_file():
            shutil.copyfile(handed.folder / name, folder / name)
    scores: dict[str, NotebookScores | None] = {}
    found = tuple(result.read() for result in results)
    for verdict, result in zip(found, results, strict=True):
        if verdict.status is Status.MISSING:
            scores[verdict.notebook] = None
            (folder / f"{verdict.notebook}.ipynb").unlink(missing_ok=True)
            continue
        write_atomically(folder / f"{verdict.notebook}.ipynb", result.notebook.encode())
        scores[verdict.notebook] = NotebookScores.of(nbformat.reads(result.notebook, as_version=4))
    book.record(handed.student, assignment.name, handed.submitted, scores)
    for verdict in found:
        write_verdict(course, verdict)
    return Done(handed.student, found, fresh=True)


def _set_aside(course: Course, book: Book, assignment: Assignment, handed: Handed) -> Done:
    verdicts = []
    scores: dict[str, NotebookScores | None] = {}
    for notebook in handed.notebooks:
        drawn = seed(course, assignment.name, handed.student, notebook.name)
        verdicts.append(
            Verdict(
                assignment=assignment.name,
                notebook=notebook.name,
                student=handed.student,
                status=Status.SET_ASIDE,
                message=Words.of(_SET_ASIDE),
                seed=drawn,
                fingerprint=assignment.key(notebook.data, course.limits, drawn),
            )
        )
        cells = book.notebooks(assignment.name)[notebook.name]
        scores[notebook.name] = NotebookScores({cell: Score(None, needs_manual=True) for cell in cells})
    book.record(handed.student, assignment.name, handed.submitted, scores)
    for verdict in verdicts:
        write_verdict(course, verdict)
    return Done(handed.student, tuple(verdicts), fresh=True)


_SET_ASIDE = Text(
    zh="评这份作业时评分进程两次意外结束：已放在一边，请老师查看。没有因此扣分。",
    en="The grading process ended twice while grading this submission: it was set aside for a person to look at. No points were taken.",
)
