"""Submissions from wherever they lie into submitted/{student}/{assignment}/, as nbgrader expects them there."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from nbformat import NotebookNode

from autograder.course import Course, CourseError
from autograder.gradebook.archive import Member, Refused, opened
from autograder.gradebook.naming import Named, parse, timestamp
from autograder.gradebook.roster import Person, Roster, folder_fault
from autograder.gradebook.worksheet import Participant, read_participants
from autograder.notebooks import Submission, identify, read_submission
from autograder.notebooks.read import MAX_BYTES
from autograder.text import Text

TIMESTAMP = "timestamp.txt"
SECRET = "submission_secret.txt"  # nbgrader's: names the feedback page that only its owner can find
MAX_NOTEBOOKS = 50  # in one submission

Kind = Literal["unmatched", "ambiguous", "refused", "older", "not a notebook"]


@dataclass(frozen=True)
class Taken:
    """One submission in submitted/: its files by notebook, with the names they came under."""

    student: str
    notebooks: Mapping[str, str]
    submitted: datetime | None
    changed: bool
    remarks: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Left:
    """Something that was not collected, and why."""

    path: str
    kind: Kind
    text: Text


@dataclass
class Collected:
    """What came of a collection."""

    assignment: str
    taken: list[Taken] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


@dataclass
class _Attempt:
    named: Named
    files: list[tuple[Named, Member]] = field(default_factory=list)
    stated: datetime | None = None  # by its timestamp.txt or the worksheet
    secret: str = ""

    @property
    def submitted(self) -> datetime | None:
        return self.stated or self.named.submitted


def collect(
    course: Course,
    assignment: str,
    source: Path,
    worksheet: Path | None = None,
    only: Collection[str] | None = None,
) -> Collected:
    """Collect the submissions of an assignment from a folder, nbgrader's inbound folder, or a Moodle or Canvas zip.

    ``only`` names the folders of ``source`` to look into.

    Of several attempts the latest counts, or the latest of the first so many where course.yaml limits them. What is in
    submitted/ already stays when it is the same, or newer. A time of submission is only ever taken from where one is
    written (timestamp.txt, the exchange, Moodle's grading ``worksheet``), because a wrong one would cost points.
    With a roster in course.yaml, submissions of others are left and listed.
    Raises CourseError when the assignment has no notebooks, or the source or worksheet cannot be read.
    """
    course.assignment(assignment)
    releases = _releases(course, assignment)
    roster = Roster.of(course)
    participants = read_participants(worksheet, course.zone) if worksheet else {}
    done = Collected(assignment)
    with opened(source, only) as (members, refused):
        done.left += [Left(each.path, "refused", each.text) for each in refused]
        for student, attempts in _sorted_out(members, assignment, roster, participants, done).items():
            chosen, remarks = _choose(course, student, assignment, attempts, done)
            done.taken.append(_store(course, student, assignment, chosen, releases, remarks, done))
    done.taken.sort(key=lambda taken: taken.student)
    return done


def _releases(course: Course, assignment: str) -> dict[str, NotebookNode]:
    """The notebooks that students were given."""
    found = {}
    for path in sorted(course.folder("release", assignment).glob("*.ipynb")):
        read = read_submission(path.read_bytes())
        if isinstance(read, Submission):
            found[path.stem] = read.notebook
    if not found:
        raise CourseError.of(
            course.folder("release", assignment),
            Text(
                zh="这里没有笔记本；请先运行 autograder release",
                en="there are no notebooks here; run autograder release first",
            ),
        )
    return found


def _sorted_out(
    members: Sequence[Member],
    assignment: str,
    roster: Roster,
    participants: Mapping[str, Participant],
    done: Collected,
) -> dict[str, list[_Attempt]]:
    """The attempts of each student; whatever belongs to nobody is noted in ``done``."""
    found: dict[str, dict[object, _Attempt]] = defaultdict(dict)
    for member in members:
        named = parse(member.path, assignment)
        if named is None:
            continue
        if named.attempt and (forged := _forged(member, named.student)):
            done.left.append(Left(member.path, "refused", forged))
            continue
        beside = named.file in (TIMESTAMP, SECRET)
        if not beside and not named.file.endswith(".ipynb"):
            text = Text(zh="只收笔记本（.ipynb）", en="only notebooks (.ipynb) are collected")
            done.left.append(Left(member.path, "not a notebook", text))
            continue
        student, submitted = _who(member, named, roster, participants, done)
        if student is None:
            continue
        attempt = found[student].setdefault(named.attempt, _Attempt(named))
        if beside:
            with contextlib.suppress(Refused):
                said = member.read(1_000).decode("utf-8", "replace")
                if named.file == TIMESTAMP:
                    attempt.stated = timestamp(said)
                else:
                    attempt.secret = said
        else:
            attempt.stated = attempt.stated or submitted
            attempt.files.append((named, member))
    with_files = {
        student: [attempt for attempt in attempts.values() if attempt.files] for student, attempts in found.items()
    }
    return {student: attempts for student, attempts in with_files.items() if attempts}


def _forged(member: Member, student: str) -> Text | None:
    """Why a file in the exchange is not from the student its folder names: whoever has an account can make a folder of any name there.

    What belongs to the collecting user was put there by them; an account of another machine cannot be told.
    """
    if member.owner is None or member.owner == os.geteuid():
        return None
    try:
        owner = pwd.getpwuid(member.owner).pw_name
    except KeyError:
        return None
    if owner == student:
        return None
    return Text(
        zh=f"写着是 {student} 交的，却属于用户 {owner}", en=f"is said to be from {student} but belongs to {owner}"
    )


def _who(
    member: Member, named: Named, roster: Roster, participants: Mapping[str, Participant], done: Collected
) -> tuple[str | None, datetime | None]:
    """The student a file is from, and the time Moodle's worksheet states; a note instead when nobody is found."""
    person: Person | None = None
    submitted = None
    kind: Kind = "unmatched"
    if named.student and not roster:
        person, reason = Person(named.student), _ANONYMOUS
    elif named.name == "anon":
        reason = _ANONYMOUS
    elif not roster:
        reason = _NO_ROSTER
    else:
        keys: tuple[str, ...] = (named.student,)
        name = named.name
        if participant := participants.get(named.participant):
            keys, name, submitted = participant.keys, participant.name, participant.submitted
        match = roster.find(keys, name, named.lms_user_id)
        person, reason, kind = match.person, match.reason, "ambiguous" if match.ambiguous else "unmatched"
    fault = folder_fault(person.id) if person else None
    if person is None or fault:
        done.left.append(Left(member.path, "refused" if fault else kind, fault or reason))
        return None, None
    return person.id, submitted


_ANONYMOUS = Text(
    zh="是匿名提交；请关闭匿名评分后重新下载", en="was handed in anonymously; turn that off and download again"
)
_NO_ROSTER = Text(
    zh="没有名册可查；请在 course.yaml 里写 roster（含 lms_user_id 或 email）",
    en="there is no roster to find the student in: name one in course.yaml (with lms_user_id or email)",
)


def _choose(
    course: Course, student: str, assignment: str, attempts: list[_Attempt], done: Collected
) -> tuple[_Attempt, list[Text]]:
    """The attempt that counts."""
    never = datetime.min.replace(tzinfo=UTC)
    attempts = sorted(attempts, key=lambda attempt: (attempt.submitted or never, attempt.named.attempt))
    allowed = course.attempts(student, assignment)
    counted = attempts[:allowed] if allowed else attempts
    chosen = counted[-1]
    for attempt in attempts:
        if attempt is chosen:
            continue
        beyond = attempt not in counted
        why = (
            Text(zh=f"超出允许的 {allowed} 次提交", en=f"is beyond the {allowed} attempts allowed")
            if beyond
            else Text(zh="之后又提交了一次", en="was followed by a later attempt")
        )
        done.left.append(Left(attempt.named.attempt, "older", why))
    remarks = []
    if chosen.named.late and chosen.submitted is None:
        remarks.append(
            Text(
                zh="Canvas 标为迟交，但 zip 里没有时间，这里不扣分；可把时间写进 timestamp.txt",
                en="Canvas marks it late, but the zip does not say when it came: no penalty is taken here; "
                "write the time into timestamp.txt to have one",
            )
        )
    return chosen, remarks


def _store(
    course: Course,
    student: str,
    assignment: str,
    attempt: _Attempt,
    releases: Mapping[str, NotebookNode],
    remarks: list[Text],
    done: Collected,
) -> Taken:
    files: dict[str, bytes] = {}
    # Later uploads come last, and of equal ones the one that has a notebook's very name: it takes the place.
    uploads = sorted(
        attempt.files, key=lambda upload: (upload[0].upload, upload[0].file.removesuffix(".ipynb") in releases)
    )
    for named, member in uploads[:MAX_NOTEBOOKS]:
        name = named.file if named.file not in files else f"{named.file.removesuffix('.ipynb')}-{len(files)}.ipynb"
        try:
            files[name] = member.read(
                MAX_BYTES + 1
            )  # a byte too many: the judge sees that it is too large, and says so
        except Refused as refused:
            done.left.append(Left(refused.path, "refused", refused.text))
    placed = _place(files, releases)
    for name in sorted(files.keys() - set(placed.values())):
        text = Text(
            zh="不是本次作业的笔记本，或已有更晚的一份",
            en="is no notebook of this assignment, or a later one took its place",
        )
        done.left.append(Left(f"{student}/{name}", "unmatched", text))
    for notebook, name in placed.items():
        if name != f"{notebook}.ipynb":
            remarks.append(Text(zh=f"{name} 认作 {notebook}", en=f"{name} was taken as {notebook}"))
    for notebook in sorted(releases.keys() - placed.keys()):
        remarks.append(Text(zh=f"没有交 {notebook}", en=f"{notebook} was not handed in"))
    kept = {f"{notebook}.ipynb": files[name] for notebook, name in placed.items()}
    folder = course.folder("submitted", student, assignment)
    before = {path.name: path.read_bytes() for path in folder.glob("*.ipynb") if path.is_file()}
    there = timestamp(_text(folder / TIMESTAMP))
    older = bool(there and attempt.submitted and attempt.submitted < there)
    if older:
        remarks.append(Text(zh="submitted/ 里已有更新的一份", en="submitted/ holds a newer one already"))
    same = before == kept and attempt.submitted in (None, there) and attempt.secret in ("", _text(folder / SECRET))
    if not kept or older or same:
        return Taken(student, placed, there, False, tuple(remarks))
    _write(folder, kept, attempt.submitted, attempt.secret)
    return Taken(student, placed, attempt.submitted, True, tuple(remarks))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _place(files: Mapping[str, bytes], releases: Mapping[str, NotebookNode]) -> dict[str, str]:
    """Which file is which notebook: by its name, by its name without a platform's or browser's addition, by its cells.

    A single file that is left over, unreadable perhaps, is the single notebook that is missing.
    """
    placed: dict[str, str] = {}
    called = {notebook.casefold(): notebook for notebook in releases}
    for name in files:  # of two, the later takes the place
        stem = name.removesuffix(".ipynb").casefold()
        notebook = called.get(stem) or called.get(re.sub(r"([-_ ]*(\(\d+\)|copy\d*)|-\d+)+$", "", stem))
        if notebook:
            placed[notebook] = name
    for name, data in files.items():
        if name in placed.values():
            continue
        read = read_submission(data)
        free = {notebook: release for notebook, release in releases.items() if notebook not in placed}
        if isinstance(read, Submission) and (made_from := identify(read.notebook, free)):
            placed[made_from] = name
    files_left = [name for name in files if name not in placed.values()]
    missing = [notebook for notebook in releases if notebook not in placed]
    if len(files_left) == len(missing) == 1:
        placed[missing[0]] = files_left[0]
    return placed


def _write(folder: Path, files: Mapping[str, bytes], submitted: datetime | None, secret: str) -> None:
    """Put a submission in place as a whole: a reader sees the old one or the new one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=folder.parent.parent, prefix=".collecting-"))  # "*" does not match it
    try:
        new, old = aside / "new", aside / "old"
        new.mkdir()
        for name, data in files.items():
            (new / name).write_bytes(data)
        if submitted is not None:
            (new / TIMESTAMP).write_text(f"{submitted.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC\n", encoding="ascii")
        if secret:
            (new / SECRET).write_text(secret, encoding="utf-8")
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
