"""Commands about students' work: grade, regrade, feedback, demo."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.cli.console import (
    DONE,
    FAILED,
    HERE,
    AssignmentName,
    CourseFolder,
    Json,
    complain,
    errors_in_words,
    language,
    load,
    print_json,
    say,
)
from autograder.cli.progress import counted
from autograder.text import Text

if TYPE_CHECKING:
    from autograder.course import Course
    from autograder.grading.assignment import Assignment
    from autograder.grading.run import Done
    from autograder.judge.verdict import ExerciseVerdict

Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Grading processes.", show_default="one per core")]
NoSandbox = Annotated[
    bool, typer.Option("--no-sandbox", help="Run without isolation; marks every verdict NOT SANDBOXED.")
]
_FINDING, _FINDINGS = 70, 6  # what a row of the table shows; the rest is on the feedback page
CORES = os.cpu_count() or 1


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(grade)
    app.command()(regrade)
    app.command()(feedback)
    app.command()(demo)


def grade(
    assignment: AssignmentName,
    course: CourseFolder = HERE,
    student: Annotated[list[str] | None, typer.Option(help="Only this student; may be given several times.")] = None,
    jobs: Jobs = CORES,
    again: Annotated[bool, typer.Option("--again", help="Grade also what is graded and unchanged.")] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Go on: grade what comes into submitted/ or nbgrader's exchange, on arrival."),
    ] = False,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Grade on the workers of the Dask scheduler there.")
    ] = None,
    no_sandbox: NoSandbox = False,
    as_json: Json = False,
) -> None:
    """Grade what is in submitted/, each notebook in a sandbox, into the gradebook; what is graded and unchanged is skipped."""
    from autograder.grading.run import grade_class
    from autograder.grading.submissions import students

    start = time.monotonic()
    done: list[Done] = []
    with errors_in_words():
        loaded, content = load(course, assignment)
        if watch:
            if student or again or as_json:
                raise typer.BadParameter("--watch goes with --jobs, --cluster and --no-sandbox only")
            _watch(loaded, content, *_pool(jobs, cluster), no_sandbox)
            return
        chosen = student or students(loaded, assignment)
        if not chosen:
            where = loaded.folder("submitted", "*", assignment)
            complain(
                Text(
                    zh=f"没有可以评分的作业：{where} 下什么也没有。",
                    en=f"Nothing to grade: there is nothing in {where}.",
                )
            )
        make_pool, workers = _pool(jobs, cluster)
        with counted(Text(zh="评分", en="grading"), len(chosen), quiet=as_json) as step, _cluster_in_words():
            for each in grade_class(
                loaded,
                content,
                make_pool,
                workers=workers,
                only=chosen,
                again=again,
                allow_unsandboxed=no_sandbox,
            ):
                done.append(each)
                step(each.student)
    _report(done, time.monotonic() - start, as_json)


def _pool(jobs: int, cluster: str | None) -> tuple[Callable[[], Executor], int]:
    """A maker of pools of grading processes, here or on a cluster, and for how many of them submissions should be ready."""
    from autograder.grading.run import local_pool

    if cluster is None:
        return local_pool(jobs), jobs
    from autograder.grading.cluster import ClusterPool

    with _cluster_in_words():
        pool = ClusterPool(cluster)
    if not pool.connected:
        complain(
            Text(
                zh="调度器还没有工作进程；有了就开始。",
                en="The scheduler has no workers yet; grading begins when one comes.",
            )
        )
    return lambda: pool, pool.workers


@contextlib.contextmanager
def _cluster_in_words() -> Iterator[None]:
    """Words and exit code 1 when the cluster cannot do the work."""
    from autograder.grading.worker import ClusterError

    try:
        yield
    except ClusterError as error:
        complain(error.text)
        raise typer.Exit(FAILED) from None


def _watch(
    course: Course, content: Assignment, make_pool: Callable[[], Executor], workers: int, no_sandbox: bool
) -> None:
    """Print a line per student until SIGINT or SIGTERM; what is being graded then is finished first, unless the signal comes again."""
    from autograder.grading.watch import watch_class

    stop = threading.Event()

    def end(signum: int, frame: object) -> None:
        stop.set()
        signal.signal(signum, signal.SIG_DFL)

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
    graded = watch_class(
        course,
        content,
        make_pool,
        workers=workers,
        stop=stop,
        tell=lambda text: print(text.lang(language()), flush=True),
        allow_unsandboxed=no_sandbox,
    )
    with _cluster_in_words():
        for done in graded:
            earned, most = sum(v.points for v in done.verdicts), sum(v.max_points for v in done.verdicts)
            found = "; ".join(findings(done)[:_FINDINGS])
            print(f"{datetime.now():%H:%M:%S} {done.student}: {earned:g} / {most:g}  {found}".rstrip(), flush=True)


def regrade(
    assignment: AssignmentName,
    course: CourseFolder = HERE,
    student: Annotated[list[str] | None, typer.Option(help="Only this student; may be given several times.")] = None,
    jobs: Jobs = CORES,
    no_sandbox: NoSandbox = False,
    as_json: Json = False,
) -> None:
    """Grade once more what was graded, with the same hidden numbers; points and comments given by hand stay."""
    with errors_in_words():
        from autograder.grading.pages import graded_students
        from autograder.grading.submissions import students

        loaded, _ = load(course, assignment)
        there = set(students(loaded, assignment))
        graded = [each for each in graded_students(loaded, assignment) if each in there and each in (student or there)]
    if not graded:
        complain(Text(zh="没有评过的作业。", en="Nothing was graded yet."))
        raise typer.Exit(FAILED)
    grade(assignment, course, graded, jobs, again=True, no_sandbox=no_sandbox, as_json=as_json)


def _report(done: list[Done], seconds: float, as_json: bool) -> None:
    from autograder.judge.verdict import Status

    done = sorted(done, key=lambda each: each.student)
    verdicts = [verdict for each in done for verdict in each.verdicts]
    faults = sorted({fault for verdict in verdicts for fault in verdict.course_faults})
    fresh = sum(each.fresh for each in done)
    if as_json:
        print_json(
            {
                "graded": fresh,
                "unchanged": len(done) - fresh,
                "seconds": round(seconds, 2),
                "course_faults": faults,
                "students": [
                    {
                        "student": each.student,
                        "points": round(sum(v.points for v in each.verdicts), 2),
                        "max_points": sum(v.max_points for v in each.verdicts),
                        "status": sorted({v.status for v in each.verdicts}),
                    }
                    for each in done
                ],
            }
        )
    else:
        table(done)
        say(
            Text(
                zh=f"评了 {fresh} 人，{len(done) - fresh} 人没有变化，用时 {seconds:.1f} 秒。",
                en=f"{fresh} graded, {len(done) - fresh} unchanged, {seconds:.1f} s.",
            )
        )
        for fault in faults:
            complain(Text(zh=f"课程的问题（没有扣分）：{fault}", en=f"The course's fault (no points lost): {fault}"))
    broken = any(verdict.status in (Status.MACHINE_FAULT, Status.SET_ASIDE) for verdict in verdicts)
    raise typer.Exit(FAILED if faults or broken else DONE)


def table(done: list[Done]) -> None:
    """Print a row per student: points, and what was found."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text as Plain

    shown = Table(box=None, pad_edge=False)
    for title in (Text(zh="学生", en="student"), Text(zh="得分", en="score"), Text(zh="发现", en="found")):
        shown.add_column(title.lang(language()), justify="right" if title.en == "score" else "left", overflow="fold")
    for each in done:
        earned, most = sum(v.points for v in each.verdicts), sum(v.max_points for v in each.verdicts)
        shown.add_row(Plain(each.student), f"{earned:g} / {most:g}", Plain("; ".join(findings(each)[:_FINDINGS])))
    Console(soft_wrap=False).print(shown)
    if by_hand := max(
        (sum(c.max_points for v in each.verdicts for c in v.cells if c.manual) for each in done), default=0
    ):
        say(
            Text(
                zh=f"其中 {by_hand:g} 分是文字题，由人来评（在 formgrader 里），没有算进上面的得分。",
                en=f"{by_hand:g} of the points are for written answers, graded by a person in formgrader; the scores above are without them.",
            )
        )


def findings(done: Done) -> list[str]:
    """What was found in a submission, each in a line that is safe to print: a student may have chosen its words."""
    from autograder.feedback.render import plain
    from autograder.judge.verdict import Status

    found = []
    for verdict in done.verdicts:
        if verdict.status is not Status.GRADED:
            found.append(
                f"{verdict.notebook}: {verdict.message.text.lang(language()) if verdict.message else verdict.status}"
            )
        found += [f"{e.name}: {said}" for e in verdict.exercises if (said := _wrong(e))]
        found += [problem.text.text.lang(language()) for problem in verdict.problems]
        if verdict.sandbox == "none" and verdict.status is Status.GRADED:
            found.append("NOT SANDBOXED")
    if repairs := sum(len(verdict.repairs) for verdict in done.verdicts):
        found.append(Text(zh=f"修复 {repairs} 处", en=f"{repairs} repaired").lang(language()))
    return [plain(" ".join(each.split()), _FINDING) for each in found]


def _wrong(exercise: ExerciseVerdict) -> str | None:
    """What is wrong with an answer: the mistake's name, or else what the first failing test says."""
    if exercise.full or exercise.untouched:
        return None
    if exercise.diagnosis is not None:
        return exercise.diagnosis.name or exercise.diagnosis.hint.text.lang(language())
    failed = [test for test in exercise.tests if test.fault is not None]
    message = failed[0].message if failed else None
    return message.text.lang(language()) if message is not None else "-"


def feedback(
    assignment: AssignmentName,
    course: CourseFolder = HERE,
    student: Annotated[list[str] | None, typer.Option(help="Only this student; may be given several times.")] = None,
    as_json: Json = False,
) -> None:
    """Write the feedback pages into feedback/, from where `nbgrader release_feedback` hands them out."""
    with errors_in_words():
        from autograder.course import Course

        written = [str(path) for path in _feedback(Course.load(course), assignment, student)]
    if as_json:
        print_json({"written": written})
    else:
        say(Text(zh=f"写好 {len(written)} 页反馈。", en=f"{len(written)} feedback pages written."))


def _feedback(course: Course, assignment: str, students: list[str] | None) -> list[Path]:
    from autograder.gradebook.book import Book
    from autograder.grading.pages import write_pages

    with Book(course) as book:
        return list(write_pages(course, assignment, book, students))


def demo(
    course: CourseFolder = HERE,
    into: Annotated[Path, typer.Option(help="Folder of the scratch course; made anew.")] = Path("demo"),
    jobs: Jobs = CORES,
    as_json: Json = False,
) -> None:
    """Release, submit, grade and report a sample class in a scratch course, and compare the scores with what they should be."""
    with errors_in_words():
        from autograder.grading.demo import run_demo

        report = run_demo(course.absolute(), into.absolute(), jobs)
    if as_json:
        print_json(report.as_dict())
    else:
        table(report.done)
        page = next((page for page in report.pages if "one_mistake" in page), into)
        say(
            Text(
                zh=f"评分用时 {report.grading_seconds:.1f} 秒（{len(report.done)} 人）。请在浏览器里打开\n"
                f"  一个学生的反馈：{page}\n  全班的报告：{report.report}",
                en=f"Grading took {report.grading_seconds:.1f} s ({len(report.done)} students). Open in a browser\n"
                f"  one student's feedback: {page}\n  the class report: {report.report}",
            )
        )
        for surprise in report.surprises:
            complain(surprise)
    raise typer.Exit(FAILED if report.surprises else DONE)
