"""Commands about who hands in what and where grades go: collect, extend, status, export, totals, report."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autograder.cli.console import (
    DONE,
    FAILED,
    HERE,
    WRONG_USE,
    AssignmentName,
    CourseFolder,
    Json,
    complain,
    errors_in_words,
    language,
    print_json,
    say,
)
from autograder.text import Text

if TYPE_CHECKING:
    from autograder.course import Course

Out = Annotated[Path | None, typer.Option("--out", "-o", help="File to write; printed unless given.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (collect, extend, status, export, totals, report):
        app.command()(command)


def collect(
    assignment: AssignmentName,
    source: Annotated[Path, typer.Argument(help="A folder, nbgrader's inbound folder, a Moodle zip or a Canvas zip.")],
    worksheet: Annotated[
        Path | None, typer.Option(help="Moodle's grading worksheet (CSV): who is who, and when.")
    ] = None,
    course: CourseFolder = HERE,
    as_json: Json = False,
) -> None:
    """Bring submissions into submitted/, the latest attempt that counts of each student."""
    with errors_in_words():
        from autograder.course import Course
        from autograder.gradebook.collect import collect as bring

        found = bring(Course.load(course), assignment, source, worksheet)
    if as_json:
        print_json(
            {
                "taken": {each.student: dict(each.notebooks) for each in found.taken},
                "left": [{"path": each.path, "kind": each.kind, "why": each.text.en} for each in found.left],
            }
        )
    else:
        for each in found.taken:
            remarks = " ".join(remark.lang(language()) for remark in each.remarks)
            say(f"{each.student}: {', '.join(each.notebooks.values())}  {remarks}".rstrip())
        for left in found.left:
            say(f"- {left.path}: {left.text.lang(language())}")
        say(
            Text(
                zh=f"收下 {len(found.taken)} 份，留下 {len(found.left)} 个文件没有收。",
                en=f"{len(found.taken)} submissions collected, {len(found.left)} files left.",
            )
        )
    wrong = [each for each in found.left if each.kind in ("unmatched", "ambiguous", "refused")]
    raise typer.Exit(FAILED if wrong else DONE)


def extend(
    student: Annotated[str, typer.Argument(help="The student's id.")],
    assignment: AssignmentName,
    by: Annotated[str, typer.Argument(help="How much longer: +2d, +12h.")],
    reason: Annotated[str, typer.Option(help="Noted in course.yaml.")] = "",
    course: CourseFolder = HERE,
) -> None:
    """Give a student more time: an entry under overrides in course.yaml, and the same in the gradebook."""
    with errors_in_words():
        from autograder.course import Course
        from autograder.course.edit import extend as move
        from autograder.gradebook.book import Book

        moved = move(Course.load(course), student, assignment, by, reason)
        loaded = Course.load(course)
        with Book(loaded) as book:
            book.settle(assignment)
    say(f"{student}: {assignment}: {loaded.local(moved.before)} → {loaded.local(moved.after)}")


def status(course: CourseFolder = HERE, as_json: Json = False) -> None:
    """How far each assignment is: released, handed in, graded, waiting for a person, with feedback."""
    from ruamel.yaml import YAML  # not the whole model of the course: this command answers at once

    root = course if course.is_dir() else course.parent
    try:
        names = [str(each["id"]) for each in YAML(typ="safe").load(root / "course.yaml")["assignments"]]
    except (OSError, KeyError, TypeError, ValueError):
        complain(
            Text(
                zh=f"{root} 里没有可读的 course.yaml；`autograder check` 说明哪里不对。",
                en=f"{root} has no course.yaml that can be read; `autograder check` says what is wrong.",
            )
        )
        raise typer.Exit(WRONG_USE) from None
    rows = {
        name: {
            "released": len(list((root / "release" / name).glob("*.ipynb"))),
            "submitted": len(list((root / "submitted").glob(f"*/{name}"))),
            "graded": len(list((root / "verdicts").glob(f"*/{name}"))),
            "waiting": 0,
            "feedback": len(list((root / "feedback").glob(f"*/{name}"))),
        }
        for name in names
    }
    if any(row["graded"] for row in rows.values()):
        with errors_in_words():
            from autograder.course import Course
            from autograder.gradebook.waiting import waiting

            for name, count in waiting(Course.load(root)).items():
                rows.get(name, {})["waiting"] = count
    if as_json:
        print_json(rows)
        return
    for name, row in rows.items():
        say(
            Text(
                zh="{name}：发布 {released} 个笔记本，交来 {submitted} 人，评完 {graded} 人，待人工评分 {waiting} 人，有反馈 {feedback} 人",
                en="{name}: {released} notebooks released, {submitted} students handed in, {graded} graded, "
                "{waiting} wait for a person, {feedback} with feedback",
            ).format(name=name, **row)
        )


def export(
    assignment: AssignmentName,
    into: Annotated[
        Path | None,
        typer.Option(help="A gradebook file exported from Canvas, Moodle or Blackboard; only our column is filled."),
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column to fill, when it cannot be told.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be filled, write nothing.")] = False,
    gradescope: Annotated[
        str, typer.Option(metavar="STUDENT", help="Write Gradescope's results.json of one student instead.")
    ] = "",
    out: Out = None,
    course: CourseFolder = HERE,
) -> None:
    """Scores as CSV, or into a file that Canvas, Moodle or Blackboard exported."""
    with errors_in_words():
        from autograder.course import Course
        from autograder.gradebook.book import Book
        from autograder.gradebook.export import scores_csv
        from autograder.gradebook.lms import fill

        loaded = Course.load(course)
        if gradescope:
            _write(json.dumps(_gradescope(loaded, assignment, gradescope), ensure_ascii=False, indent=1), out)
            return
        with Book(loaded) as book:
            book.settle(assignment)
            rows = book.rows(assignment)
        if into is None:
            _write(scores_csv(loaded, rows), out, "utf-8-sig")  # with the mark by which spreadsheets know UTF-8
            return
        filled = fill(loaded, assignment, rows, into, column)
    for each in filled.left:
        say(f"- {each.who}: {each.text.lang(language())}")
    for student in filled.absent:
        say(Text(zh=f"- {student}：文件里没有这一行", en=f"- {student}: has no row in the file"))
    say(
        Text(
            zh=f"{filled.platform}：“{filled.column}”填了 {len(filled.matched)} 行，{len(filled.left)} 行没有动。",
            en=f"{filled.platform}: {len(filled.matched)} rows of '{filled.column}' filled, {len(filled.left)} left as they are.",
        )
    )
    if not dry_run:
        (out or into).write_bytes(filled.data)
    raise typer.Exit(FAILED if filled.absent or any(each.kind == "ambiguous" for each in filled.left) else DONE)


def _write(text: str, out: Path | None, encoding: str = "utf-8") -> None:
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        out.write_text(text, encoding=encoding)


def totals(out: Out = None, course: CourseFolder = HERE) -> None:
    """Points per student and group of assignments as CSV: what is graded so far, the worst left out as course.yaml's groups say."""
    with errors_in_words():
        from autograder.course import Course
        from autograder.gradebook.book import Book
        from autograder.gradebook.export import totals_csv
        from autograder.gradebook.totals import totals as add_up

        loaded = Course.load(course)
        rows = {}
        with Book(loaded) as book:
            for each in loaded.assignments:
                if each.group and loaded.folder("release", each.id).is_dir():
                    book.settle(each.id)
                    rows[each.id] = book.rows(each.id)
        graded = {name: each for name, each in rows.items() if any(row.has_submission for row in each)}
    _write(totals_csv(add_up(loaded, graded)), out, "utf-8-sig")


def _gradescope(course: Course, assignment: str, student: str) -> dict[str, Any]:
    from autograder.gradebook.export import gradescope
    from autograder.grading.verdicts import verdicts

    return gradescope((v for v in verdicts(course, assignment) if v.student == student), course.language)


def report(assignment: AssignmentName, out: Out = None, course: CourseFolder = HERE, as_json: Json = False) -> None:
    """One page about the class: scores, difficulty, who made which mistakes, what nobody has named yet."""
    with errors_in_words():
        from autograder.course import Course
        from autograder.gradebook.book import Book
        from autograder.grading.pages import write_report
        from autograder.grading.verdicts import verdicts

        loaded = Course.load(course)
        with Book(loaded) as book:
            target = write_report(loaded, assignment, book, out)
    exercises = [e for v in verdicts(loaded, assignment) for e in v.exercises]
    named = Counter(f"{e.name}: {e.diagnosis.name}" for e in exercises if e.diagnosis and e.diagnosis.name)
    if as_json:
        print_json({"report": str(target), "mistakes": dict(named.most_common())})
    else:
        say(str(target))
