"""Scores into nbgrader's gradebook and out of it: one gradebook open per run, one transaction per submission."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from nbgrader import api
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import selectinload

from autograder.course import Course, CourseError
from autograder.gradebook.late import penalty
from autograder.gradebook.roster import Person
from autograder.gradebook.scores import CellScore, NotebookScores, Row, Settled
from autograder.text import Text

NO_RESPONSE = "No response."  # nbgrader's own words: formgrader and its users know them


def programs_on_path() -> None:
    """Let nbgrader find ``alembic``, which it starts by name, when the environment's bin folder is not on PATH."""
    if shutil.which("alembic") is None:
        os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])


class Book:
    """The gradebook of a course, open until ``close``. A context manager. Dates and late policy are course.yaml's."""

    def __init__(self, course: Course) -> None:
        self.course = course
        programs_on_path()
        url = make_url(course.db_url)
        if url.get_backend_name() == "sqlite":  # formgrader may be writing: wait for it rather than fail
            url = url.update_query_dict({"timeout": "60"})
        self.gradebook: Any = api.Gradebook(url.render_as_string(hide_password=False), course.id)
        self.db = self.gradebook.db

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.gradebook.close()

    # ---- the released assignment

    def notebooks(self, assignment: str) -> dict[str, dict[str, float]]:
        """The released notebooks, each with its grade cells and their points.

        Raises CourseError when the assignment has never been released into this gradebook.
        """
        found = self._assignment(assignment)
        return {
            notebook.name: {cell.name: cell.max_score for cell in (*notebook.grade_cells, *notebook.task_cells)}
            for notebook in found.notebooks
        }

    def _assignment(self, assignment: str) -> Any:
        found = self.db.execute(select(api.Assignment).where(api.Assignment.name == assignment)).scalar_one_or_none()
        if found is None or not found.notebooks:
            raise self._not_released(assignment)
        return found

    def _not_released(self, what: str) -> CourseError:
        return CourseError.of(
            self.course.path,
            Text(
                zh=f"成绩册里没有 {what}；请先运行 autograder release",
                en=f"{what} is not in the gradebook; run autograder release first",
            ),
        )

    # ---- writing

    def record(
        self,
        student: str,
        assignment: str,
        submitted: datetime | None,
        notebooks: Mapping[str, NotebookScores | None],
    ) -> None:
        """Write one graded submission in one transaction, as nbgrader's Autograde would.

        ``submitted`` is aware, or None when unknown. A notebook of None was not handed in: its cells get zero.
        Notebooks not named stay as they are. Scores and comments given by hand survive. The student is added when new.
        Raises CourseError, and writes nothing, for a notebook or cell that was never released.
        """
        for attempts_left in (2, 1, 0):
            try:
                self._record(student, assignment, submitted, notebooks)
                self.db.commit()
                return
            except (IntegrityError, OperationalError):
                # Another grader added the same student or submission first: on the next attempt theirs is there.
                self.db.rollback()
                if not attempts_left:
                    raise
            except BaseException:
                self.db.rollback()
                raise

    def _record(
        self,
        student: str,
        assignment: str,
        submitted: datetime | None,
        notebooks: Mapping[str, NotebookScores | None],
    ) -> None:
        submission = self._submission(assignment, student)
        if submitted is not None:
            submission.timestamp = submitted.astimezone(UTC).replace(tzinfo=None)
        there = {notebook.notebook.name: notebook for notebook in submission.notebooks}
        for name, scores in notebooks.items():
            if name not in there:
                raise self._not_released(f"{assignment}/{name}")
            self._score(there[name], scores)
        self._settle(submission)

    def _submission(self, assignment: str, student: str) -> Any:
        """The student's submission with a row for each released notebook, grade cell and answer."""
        source = self._assignment(assignment)
        person = self.db.get(api.Student, student)
        if person is None:
            self.db.add(api.Student(id=student))
            self.db.flush()
        found = self._find_submission(assignment, student)
        if found is None:
            found = api.SubmittedAssignment(assignment_id=source.id, student_id=student)
            self.db.add(found)
            self.db.flush()
        there = {notebook.notebook_id: notebook for notebook in found.notebooks}
        for notebook in source.notebooks:
            mirror = there.get(notebook.id)
            if mirror is None:
                mirror = api.SubmittedNotebook(notebook_id=notebook.id, assignment_id=found.id)
                self.db.add(mirror)
                self.db.flush()
            graded, commented = {g.cell_id for g in mirror.grades}, {c.cell_id for c in mirror.comments}
            tasks = notebook.task_cells
            for kind, cells, has in (
                (api.Grade, (*notebook.grade_cells, *tasks), graded),
                (api.Comment, (*notebook.solution_cells, *tasks), commented),
            ):
                self.db.add_all(kind(cell_id=cell.id, notebook_id=mirror.id) for cell in cells if cell.id not in has)
        self.db.flush()
        self.db.expire_all()  # the collections were read before their rows were there
        return found

    def _find_submission(self, assignment: str, student: str) -> Any:
        return self.db.execute(
            select(api.SubmittedAssignment)
            .join(api.SubmittedAssignment.assignment)
            .where(api.Assignment.name == assignment, api.SubmittedAssignment.student_id == student)
        ).scalar_one_or_none()

    def _score(self, notebook: Any, given: NotebookScores | None) -> None:
        grades = {grade.cell.name: grade for grade in notebook.grades}
        if given is None:
            for grade in grades.values():
                grade.auto_score, grade.needs_manual_grade = 0.0, False
            return
        for name, score in given.scores.items():
            if name not in grades:
                raise self._not_released(f"{notebook.notebook.name}/{name}")
            grade = grades[name]
            grade.auto_score = score.points
            # A score given by hand may be out of date now: nbgrader asks for a second look.
            grade.needs_manual_grade = score.needs_manual or score.points is None or grade.manual_score is not None
        for comment in notebook.comments:
            comment.auto_comment = NO_RESPONSE if comment.cell.name in given.untouched else None

    def _settle(self, submission: Any) -> tuple[bool, bool]:
        """Bring due date, extension and penalties of a submission in line with course.yaml: (dates, penalties) changed."""
        student, assignment = submission.student.id, submission.assignment.name
        usual, own = self.course.assignment(assignment).due, self.course.due(student, assignment)
        due = usual and usual.replace(tzinfo=None)
        extension = own - usual if own and usual and own != usual else None
        dates = (submission.assignment.duedate, submission.extension) != (due, extension)
        submission.assignment.duedate, submission.extension = due, extension
        submitted = submission.timestamp and submission.timestamp.replace(tzinfo=UTC)
        changed = False
        for notebook in submission.notebooks:
            score = sum(_cell(grade).points for grade in notebook.grades)
            lost = penalty(self.course, student, assignment, submitted, score)
            changed |= notebook.late_submission_penalty != lost
            notebook.late_submission_penalty = lost
        return dates, changed

    def settle(self, assignment: str) -> Settled:
        """Bring dates, extensions and penalties of an assignment in line with course.yaml and the scores of now.

        nbgrader works a penalty out once, when it autogrades; run this after points were given by hand, after an
        extension, and before an export. Also sets the due date that formgrader shows.
        """
        found, done = self._assignment(assignment), Settled()
        try:
            due = self.course.assignment(assignment).due
            found.duedate = due and due.replace(tzinfo=None)
            for submission in self._submissions(assignment):
                dates, penalties = self._settle(submission)
                done.dates += [submission.student.id] if dates else []
                done.penalties += [submission.student.id] if penalties else []
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise
        return done

    def enroll(self, people: Iterable[Person]) -> None:
        """Add the roster's students, and bring names, addresses and LMS ids of known ones up to date."""
        try:
            for person in people:
                student = self.db.get(api.Student, person.id) or api.Student(id=person.id)
                self.db.add(student)
                for what in ("first_name", "last_name", "email", "lms_user_id"):
                    if given := getattr(person, what):
                        setattr(student, what, given)
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise

    # ---- reading

    def rows(self, assignment: str, students: Iterable[str] = ()) -> list[Row]:
        """A row per student of the gradebook, and per further student named, ordered by id; cells in notebook order."""
        released = self.notebooks(assignment)
        most = sum(sum(cells.values()) for cells in released.values())
        order = {(n, c): i for i, (n, c) in enumerate((n, c) for n, cells in released.items() for c in cells)}
        submissions = {submission.student.id: submission for submission in self._submissions(assignment)}
        people: dict[str, Any] = {str(person.id): person for person in self.db.execute(select(api.Student)).scalars()}
        found = []
        for student in sorted({*people, *students}):
            person, submission = people.get(student), submissions.get(student)
            cells = [
                _cell(grade) for notebook in (submission.notebooks if submission else ()) for grade in notebook.grades
            ]
            found.append(
                Row(
                    assignment=assignment,
                    student=student,
                    first_name=_text(person, "first_name"),
                    last_name=_text(person, "last_name"),
                    email=_text(person, "email"),
                    lms_user_id=_text(person, "lms_user_id"),
                    has_submission=submission is not None,
                    submitted=submission and submission.timestamp and submission.timestamp.replace(tzinfo=UTC),
                    penalty=sum(n.late_submission_penalty or 0.0 for n in submission.notebooks) if submission else 0.0,
                    max_points=most,
                    cells=tuple(sorted(cells, key=lambda cell: order.get((cell.notebook, cell.grade_id), len(order)))),
                )
            )
        return found

    def row(self, assignment: str, student: str) -> Row:
        """One student's row."""
        return next(row for row in self.rows(assignment, [student]) if row.student == student)

    def comments(self, assignment: str, student: str) -> dict[tuple[str, str], str]:
        """The comments a person wrote, by (notebook, grade_id), for the feedback page."""
        submission = self._find_submission(assignment, student)
        return {
            (notebook.notebook.name, comment.cell.name): comment.manual_comment
            for notebook in (submission.notebooks if submission else ())
            for comment in notebook.comments
            if comment.manual_comment
        }

    def _submissions(self, assignment: str) -> list[Any]:
        notebooks = selectinload(api.SubmittedAssignment.notebooks)
        return list(
            self.db.execute(
                select(api.SubmittedAssignment)
                .join(api.SubmittedAssignment.assignment)
                .where(api.Assignment.name == assignment)
                .order_by(api.SubmittedAssignment.student_id)
                .options(
                    notebooks.selectinload(api.SubmittedNotebook.grades).selectinload(api.Grade.cell),
                    notebooks.selectinload(api.SubmittedNotebook.notebook),
                    selectinload(api.SubmittedAssignment.student),
                )
            ).scalars()
        )


def _text(person: Any, what: str) -> str:
    return getattr(person, what, None) or ""


def _cell(grade: Any) -> CellScore:
    return CellScore(
        grade.notebook.notebook.name,
        grade.cell.name,
        grade.cell.max_score,
        grade.auto_score,
        grade.manual_score,
        grade.extra_credit or 0.0,
        bool(grade.needs_manual_grade),
    )
