"""The course as course.yaml says it: assignments, dates, late policy, limits, and what students are shown when."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import ConfigDict, Field, PrivateAttr, ValidationError
from sqlalchemy.engine import make_url

from autograder.course import units
from autograder.course.document import Document, Loc
from autograder.course.fields import Count, Database, FolderName, LimitsField, Model, Moment, StudentId, When, Zone
from autograder.course.late import Late, contradictions
from autograder.course.problems import CourseError, Problem, words
from autograder.sandbox.limits import Limits
from autograder.text import Language, Text


class Title(Model):
    """A title in both languages."""

    zh: str
    en: str

    @property
    def text(self) -> Text:
        """As the engine's own type."""
        return Text(zh=self.zh, en=self.en)


class Show(Model):
    """When students are shown hints, counter-examples and the names of hidden tests."""

    hints: When = "now"
    examples: When = "now"
    tests: When = "now"

    def visible(self, what: Literal["hints", "examples", "tests"], now: datetime, due: datetime | None) -> bool:
        """Whether ``what`` may be on a page made at ``now`` for a student whose due date is ``due``."""
        when: When = getattr(self, what)
        return when == "now" or (when == "after_due" and (due is None or now > due))


class Group(Model):
    """Assignments counted together; the worst ``drop_lowest`` of a student are left out, those in ``never_drop`` never."""

    id: FolderName
    drop_lowest: Annotated[int, Field(ge=0)] = 0
    never_drop: tuple[str, ...] = ()


class Assignment(Model):
    """One assignment: a folder of notebooks under source/."""

    id: FolderName
    title: Title
    release: Moment | None = None
    due: Moment | None = None
    group: str | None = None
    late: Late | None = None
    """In place of the course's late policy."""
    attempts: Count | None = None
    """How many submissions count: the latest of the first so many is graded. Without it, the latest of all."""
    show: Show = Show()


class Override(Model):
    """An exception for some students. Where several match, the last one that says something holds."""

    students: Annotated[tuple[StudentId, ...], Field(min_length=1)]
    assignment: str
    due: Moment | None = None
    attempts: Count | None = None
    late: Late | None = None
    reason: str = ""


class Course(Model):
    """A course. Made by ``Course.load``; every date in it is UTC and aware."""

    model_config = ConfigDict(title="course.yaml")

    version: Literal["1"]
    id: FolderName
    title: Title
    timezone: Zone
    language: Language = "zh"
    """Of the released notebooks' prose; pages have both."""
    roster: str | None = None
    """A CSV file: id,last_name,first_name,email,lms_user_id and further columns."""
    database: Database = "sqlite:///gradebook.db"
    limits: LimitsField = Field(default_factory=Limits)
    late: Late = Late(after=1.0)
    """Without it, late submissions keep all their points."""
    groups: tuple[Group, ...] = ()
    assignments: Annotated[tuple[Assignment, ...], Field(min_length=1)]
    overrides: tuple[Override, ...] = ()

    _path: Path = PrivateAttr(default=Path("course.yaml"))

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a course.yaml, or the one in a folder. Raises CourseError with everything that is wrong with it."""
        path = Path(path)
        if path.is_dir():
            path = path / "course.yaml"
        document = Document(path)
        data = document.data if isinstance(document.data, dict) else {}
        try:
            zone = ZoneInfo(str(data.get("timezone")))
        except (ValueError, OSError, KeyError):
            zone = ZoneInfo("UTC")  # reported by the field itself
        try:
            course = cls.model_validate(document.data, context={"zone": zone})
        except ValidationError as error:
            raise CourseError(_problems(document, error)) from None
        problems = [document.problem(loc, text) for loc, text in course._contradictions()]
        if problems:
            raise CourseError(problems)
        course._path = path.absolute()
        return course

    @property
    def path(self) -> Path:
        """The course.yaml this was read from."""
        return self._path

    @property
    def root(self) -> Path:
        """The folder of course.yaml, with source/, release/, submitted/, autograded/, feedback/, verdicts/ in it."""
        return self._path.parent

    def folder(self, step: str, *names: str) -> Path:
        """A folder of the course: ``folder("submitted", student, assignment)``."""
        return self.root.joinpath(step, *names)

    @property
    def zone(self) -> ZoneInfo:
        """The course's time zone."""
        return ZoneInfo(self.timezone)

    @property
    def db_url(self) -> str:
        """The gradebook as SQLAlchemy opens it: SQLite files relative to the course, PostgreSQL through psycopg 3."""
        url = make_url(self.database)
        if url.get_backend_name() == "postgresql":
            return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
        if not url.database or url.database == ":memory:":
            return self.database
        return f"sqlite:///{(self.root / url.database).as_posix()}"

    def assignment(self, assignment: str) -> Assignment:
        """The assignment of that id. Raises CourseError, naming the ones there are."""
        for each in self.assignments:
            if each.id == assignment:
                return each
        known = ", ".join(each.id for each in self.assignments)
        raise CourseError.of(
            self._path,
            Text(
                zh=f"没有作业 {assignment!r}；course.yaml 里有：{known}",
                en=f"there is no assignment {assignment!r}; course.yaml has: {known}",
            ),
            key="assignments",
        )

    def due(self, student: str, assignment: str) -> datetime | None:
        """When this student's submission is due, exceptions included; None: never."""
        return self._override(student, assignment, "due") or self.assignment(assignment).due

    def attempts(self, student: str, assignment: str) -> int | None:
        """How many submissions of this student count; None: any number."""
        return self._override(student, assignment, "attempts") or self.assignment(assignment).attempts

    def late_policy(self, student: str, assignment: str) -> Late:
        """What lateness costs this student."""
        return self._override(student, assignment, "late") or self.assignment(assignment).late or self.late

    def lateness(self, student: str, assignment: str, submitted: datetime | None) -> timedelta:
        """How long after the due date a submission came; zero when in time, or when either date is unknown."""
        due = self.due(student, assignment)
        return max(timedelta(0), submitted - due) if due and submitted else timedelta(0)

    def late_factor(self, student: str, assignment: str, submitted: datetime | None) -> float:
        """The part of its points a submission keeps, 0 to 1."""
        return self.late_policy(student, assignment).factor(self.lateness(student, assignment, submitted))

    def local(self, moment: datetime) -> str:
        """A date as the course's people read it: ``2026-03-09 23:59 CST (+08:00)``."""
        there = moment.astimezone(self.zone)
        return f"{there:%Y-%m-%d %H:%M} {there:%Z} ({units.offset(there)})"

    def calendar(self) -> list[tuple[str, str, datetime]]:
        """Every date of the course in order: (assignment, what, UTC), exceptions included."""
        rows: list[tuple[str, str, datetime | None]] = []
        for each in self.assignments:
            rows += [(each.id, "release", each.release), (each.id, "due", each.due)]
            if each.due:
                late = each.late or self.late
                last = max([late.grace, *(step.within for step in late.steps)])
                if late.after < 1 and last:
                    rows.append((each.id, f"keeps {late.after:.0%} from here", each.due + last))
        for override in self.overrides:
            rows.append((override.assignment, f"due for {', '.join(override.students)}", override.due))
        return sorted(((a, what, when) for a, what, when in rows if when), key=lambda row: row[2])

    def _override(self, student: str, assignment: str, what: str) -> Any:
        said = [
            getattr(each, what)
            for each in self.overrides
            if each.assignment == assignment and student in each.students and getattr(each, what) is not None
        ]
        return said[-1] if said else None

    def _contradictions(self) -> list[tuple[Loc, Text]]:
        """What each value allows but they do not together."""
        found: list[tuple[Loc, Text]] = []
        for what, ids in (("assignments", [a.id for a in self.assignments]), ("groups", [g.id for g in self.groups])):
            for i, name in enumerate(ids):
                if name in ids[:i]:
                    found.append(((what, i, "id"), Text(zh=f"{name} 写了两次", en=f"{name} is there twice")))
        assignments, groups = {a.id: a for a in self.assignments}, {g.id for g in self.groups}
        for i, each in enumerate(self.assignments):
            if each.group is not None and each.group not in groups:
                found.append((("assignments", i, "group"), _unknown("组", "group", each.group, groups)))
            if each.release and each.due and each.release >= each.due:
                found.append(
                    (
                        ("assignments", i, "due"),
                        Text(zh="截止时间应晚于发布时间", en="expected a time after the release"),
                    )
                )
        for i, group in enumerate(self.groups):
            for j, name in enumerate(group.never_drop):
                if name not in assignments or assignments[name].group != group.id:
                    members = {a.id for a in self.assignments if a.group == group.id}
                    found.append(
                        (
                            ("groups", i, "never_drop", j),
                            _unknown("本组作业", "assignment of this group", name, members),
                        )
                    )
        for i, override in enumerate(self.overrides):
            if override.assignment not in assignments:
                found.append(
                    (("overrides", i, "assignment"), _unknown("作业", "assignment", override.assignment, assignments))
                )
        places: list[tuple[Loc, Late | None]] = [(("late",), self.late)]
        places += [(("assignments", i, "late"), a.late) for i, a in enumerate(self.assignments)]
        places += [(("overrides", i, "late"), o.late) for i, o in enumerate(self.overrides)]
        for loc, late in places:
            found += [((*loc, *rest), text) for rest, text in (contradictions(late) if late else [])]
        return found


def _unknown(zh: str, en: str, name: str, known: Any) -> Text:
    every = ", ".join(sorted(known)) or "-"
    return Text(zh=f"没有{zh} {name!r}；已有：{every}", en=f"there is no {en} {name!r}; there are: {every}")


def _problems(document: Document, error: ValidationError) -> list[Problem]:
    found, errors = [], error.errors(include_url=False)
    for each in errors:
        loc: Loc = each["loc"]
        if each["type"] == "too_short" and any(e["loc"][: len(loc)] == loc and e is not each for e in errors):
            continue  # pydantic does not count the items that are wrong themselves
        found.append(document.problem(loc, words(dict(each), _keys(loc[:-1]))))
    return sorted(found, key=lambda problem: (problem.line, problem.column))


def _keys(loc: Loc) -> list[str]:
    """The keys allowed at a place, read from the published schema."""
    schema = json_schema()

    def resolve(node: dict[str, Any]) -> dict[str, Any]:
        for option in node.get("anyOf", []):
            if "$ref" in option or "properties" in option:
                node = option
        name = node.get("$ref", "").removeprefix("#/$defs/")
        return resolve(schema["$defs"][name]) if name else node

    node = resolve(schema)
    for step in loc:
        node = resolve(node.get("items", {}) if isinstance(step, int) else node.get("properties", {}).get(step, {}))
    return list(node.get("properties", {}))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of course.yaml, with which editors complete and check it."""
    schema = Course.model_json_schema()
    schema["properties"]["version"] = {"enum": [1, "1"], "title": "Version"}  # in YAML an unquoted 1 is a number
    return schema
