"""course.yaml: what it says is what holds, and what is wrong is said with its place."""

from __future__ import annotations

import difflib
import itertools
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from autograder.course import Course, CourseError, Late, LateStep, json_schema, seed
from autograder.course.edit import extend
from autograder.course.units import duration, long, size
from autograder.sandbox.limits import Limits

ROOT = Path(__file__).parents[2]
BASE = """\
version: 1
id: tiny
title: {zh: 小, en: Tiny}
timezone: %s
assignments:
  - id: "0815"
    title: {zh: 一, en: One}
    due: %s
"""


def load(folder: Path, text: str) -> Course:
    path = folder / "course.yaml"
    path.write_text(text, encoding="utf-8")
    return Course.load(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(CourseError) as caught:
        load(folder, text)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def test_the_repositorys_own_course() -> None:
    course = Course.load(ROOT)
    assert course.assignment("ch18").title.zh
    assert course.limits.memory_bytes == 4 << 30
    as_an_editor_reads_it = json.loads(json.dumps(YAML(typ="safe").load(ROOT / "course.yaml"), default=str))
    jsonschema.validate(as_an_editor_reads_it, json_schema())


def test_ids_and_dates_are_what_is_written(tmp_path: Path) -> None:
    text = (
        BASE % ("Asia/Shanghai", "2026-03-09 23:59")
        + "overrides:\n  - {students: [0123, NO, 1e3, 3.10, ~x], assignment: '0815', due: 2026-03-10 23:59:30}\n"
    )
    course = load(tmp_path, text)
    assert course.overrides[0].students == ("0123", "NO", "1e3", "3.10", "~x")
    assert course.due("someone", "0815") == datetime(2026, 3, 9, 15, 59, tzinfo=UTC)
    assert course.due("0123", "0815") == datetime(2026, 3, 10, 15, 59, 30, tzinfo=UTC)
    assert course.due("123", "0815") == course.due("83", "0815") == course.assignment("0815").due
    assert course.local(course.due("x", "0815")) == "2026-03-09 23:59 CST (+08:00)"


@pytest.mark.parametrize(
    ("zone", "text", "utc"),
    [
        ("Europe/Berlin", "2026-03-29 01:59", datetime(2026, 3, 29, 0, 59, tzinfo=UTC)),
        ("Europe/Berlin", "2026-03-29 03:00", datetime(2026, 3, 29, 1, 0, tzinfo=UTC)),
        ("Europe/Berlin", "2026-10-25 02:30+02:00", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("Europe/Berlin", "2026-10-25T02:30:15 +0100", datetime(2026, 10, 25, 1, 30, 15, tzinfo=UTC)),
        ("Asia/Kolkata", "2026-01-01 00:00", datetime(2025, 12, 31, 18, 30, tzinfo=UTC)),
        ("Asia/Shanghai", "2026-03-09 23:59Z", datetime(2026, 3, 9, 23, 59, tzinfo=UTC)),
        ("Australia/Lord_Howe", "2026-10-04 02:30", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ],
)
def test_dates(tmp_path: Path, zone: str, text: str, utc: datetime) -> None:
    assert load(tmp_path, BASE % (zone, text)).due("x", "0815") == utc


@pytest.mark.parametrize(
    ("zone", "text", "words"),
    [
        (
            "Europe/Berlin",
            "2026-03-29 02:30",
            "2026-03-29 02:30 does not exist in Europe/Berlin: the clock is set forward",
        ),
        (
            "Europe/Berlin",
            "2026-10-25 02:30",
            "say which by an offset: 2026-10-25 02:30+02:00 or 2026-10-25 02:30+01:00",
        ),
        ("Australia/Lord_Howe", "2026-10-04 02:15", "does not exist"),
        ("Asia/Shanghai", "2026-03-09", "expected a date and a time such as 2026-03-09 23:59"),
        ("Asia/Shanghai", "09.03.2026 23:59", "expected a date and a time"),
        ("Asia/Shanghai", "2026-02-30 23:59", "there is no such date or time: 2026-02-30 23:59"),
        ("Asia/Shanghai", "2026-02-20 24:01", "there is no such date or time"),
        ("Asia/Shanghai", "1772000000", "expected a date and a time"),
    ],
)
def test_dates_that_cannot_be_meant(tmp_path: Path, zone: str, text: str, words: str) -> None:
    (found,) = problems(tmp_path, BASE % (zone, text))
    assert found.startswith("course.yaml:8:5 assignments[0].due: ")
    assert words in found


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("id: tiny", "id: tiny tim", "course.yaml:2:1 id: 'tiny tim' becomes a folder's name"),
        ("id: tiny", "id: ../x", "course.yaml:2:1 id: '../x' becomes a folder's name"),
        ("id: tiny", "id: tiny\nid: two", "course.yaml:3:1 id: is said twice; delete one of the two"),
        ("id: tiny", "idd: tiny", "course.yaml:2:1 idd: there is no such key; did you mean id?"),
        ("    title:", "    duo: x\n    title:", "course.yaml:7:5 assignments[0].duo: there is no such key; did you mean due?"),
        ("    title:", "    show: {hint: now}\n    title:", "course.yaml:7:12 assignments[0].show.hint: there is no such key; did you mean hints?"),
        ("    title:", "    show: {hints: soon}\n    title:", "assignments[0].show.hints: expected 'now', 'after_due' or 'never', got 'soon'"),
        ("Asia/Shanghai", "Asia/Shanghi", "course.yaml:4:1 timezone: there is no time zone 'Asia/Shanghi'"),
        ("Asia/Shanghai", "../../etc/passwd", "course.yaml:4:1 timezone: there is no time zone"),
        ("timezone: Asia/Shanghai\n", "", "course.yaml:1:1 timezone: is missing; add it"),
        ("assignments:\n", "limits: {memory_bytes: lots}\nassignments:\n", "limits.memory_bytes: expected a size such as 512MiB or 2GiB, got 'lots'"),
        ("assignments:\n", "limits: {cell_seconds: 0}\nassignments:\n", "limits.cell_seconds: expected more than 0"),
        ("assignments:\n", "limits: {memory: 2GiB}\nassignments:\n", "limits.memory: there is no such key; did you mean memory_bytes?"),
        ("assignments:\n", "database: mysql://a:secret@b/c\nassignments:\n", "database: sqlite and postgresql are supported, got mysql"),
        ("assignments:\n", "late: {grace: 1d, steps: [{within: 1h, factor: 1}]}\nassignments:\n", "late.steps[0].within: expected longer than the step or grace before it, 1d"),
        ("assignments:\n", "late: {steps: [{within: 1h, factor: 0.5}], after: 0.6}\nassignments:\n", "late.after: later must not pay: expected 0.5 or less"),
        ("assignments:\n", "groups: [{id: a, never_drop: ['0815']}]\nassignments:\n", "groups[0].never_drop[0]: there is no assignment of this group '0815'"),
        ("    title:", "    group: hw\n    title:", "assignments[0].group: there is no group 'hw'; there are: -"),
        ("    title:", "    release: 2026-03-09 23:59\n    title:", "assignments[0].due: expected a time after the release"),
        ("assignments:\n", "overrides: [{students: [a], assignment: ch1}]\nassignments:\n", "overrides[0].assignment: there is no assignment 'ch1'; there are: 0815"),
        ("assignments:\n", "overrides: [{students: [], assignment: '0815'}]\nassignments:\n", "overrides[0].students: expected at least 1"),
        ("assignments:\n", "groups: hello\nassignments:\n", "groups: expected a list (items start with '- '), got 'hello'"),
        ("title: {zh: 小, en: Tiny}", "title: Tiny", "course.yaml:3:1 title: expected 'key: value' entries, got 'Tiny'"),
        ("title: {zh: 小, en: Tiny}", "title: {zh: [小, en: Tiny}", "course.yaml:3:"),
        ("    title:", "    attempts: many\n    title:", "assignments[0].attempts: expected a whole number, got 'many'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, before: str, after: str, found: str) -> None:
    text = BASE % ("Asia/Shanghai", "2026-03-09 23:59")
    assert before in text
    said = problems(tmp_path, text.replace(before, after, 1))
    assert any(found in line for line in said), said
    assert not any("secret" in line for line in said)


def test_every_problem_is_said_at_once_in_both_languages(tmp_path: Path) -> None:
    text = (BASE % ("Asia/Shanghai", "soon")).replace("version: 1", "version: 2")
    with pytest.raises(CourseError) as caught:
        load(tmp_path, text)
    first, second = caught.value.problems
    assert str(first).endswith("course.yaml:1:1 version: expected '1', got '2'")
    assert first.lang("zh").endswith("course.yaml:1:1 version: 应为 '1' 之一，得到的是 '2'")
    assert "应为日期和时间" in second.lang("zh")


@pytest.mark.parametrize("content", ["", "- a\n", "just words\n", "a: &x [*x]\n", "\x00", "a: {b"])
def test_files_that_are_no_course(tmp_path: Path, content: str) -> None:
    assert problems(tmp_path, content)


def test_no_file_and_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"course.yaml: there is no such file"):
        Course.load(tmp_path)
    (tmp_path / "course.yaml").write_bytes("title: 中".encode("gbk"))
    with pytest.raises(CourseError, match="cannot be read as UTF-8"):
        Course.load(tmp_path)


def test_unknown_assignment(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"there is no assignment 'ch1'; course\.yaml has: 0815"):
        load(tmp_path, BASE % ("UTC", "2026-03-09 23:59")).due("x", "ch1")


@pytest.mark.parametrize(
    ("late", "kept"),
    [(0, 1), (600, 1), (601, 0.8), (86400, 0.8), (86401, 0.5), (3 * 86400, 0.5), (3 * 86400 + 1, 0.1), (10**8, 0.1)],
)
def test_late_policy(late: int, kept: float) -> None:
    steps = (LateStep(within="1d", factor=0.8), LateStep(within="3d", factor=0.5))
    assert Late(grace="10min", steps=steps, after=0.1).factor(timedelta(seconds=late)) == kept


def test_lateness_costs_nothing_unless_the_course_says_so(tmp_path: Path) -> None:
    course = load(tmp_path, BASE % ("UTC", "2026-03-09 23:59"))
    assert course.late_factor("x", "0815", datetime(2030, 1, 1, tzinfo=UTC)) == 1
    assert course.late_factor("x", "0815", None) == 1


@given(
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 1)), max_size=5),
    st.floats(0, 1),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
)
def test_coming_later_never_pays(grace: int, gaps: list[tuple[int, float]], after: float, a: int, b: int) -> None:
    times = itertools.accumulate((gap for gap, _ in gaps), initial=grace)
    factors = sorted([*(f for _, f in gaps), after], reverse=True)
    steps = [LateStep(within=t, factor=f) for t, f in zip(list(times)[1:], factors, strict=False)]
    policy = Late(grace=grace, steps=tuple(steps), after=factors[-1])
    early, late = sorted((a, b))
    assert policy.factor(timedelta(seconds=early)) >= policy.factor(timedelta(seconds=late))


@pytest.mark.parametrize(
    ("text", "want"),
    [("90", 90), ("90s", 90), ("10min", 600), ("1h 30min", 5400), ("1.5h", 5400), ("2d", 172800), ("1w", 604800)],
)
def test_durations(text: str, want: float) -> None:
    assert duration(text).total_seconds() == want


@given(st.integers(0, 10**8))
def test_a_duration_reads_back(n: int) -> None:
    assert duration(long(timedelta(seconds=n))) == timedelta(seconds=n)


@pytest.mark.parametrize("text", ["", "d", "1 fortnight", "-1d", "1h30", "nan", "1e3s", "10 min ago", "[]"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 60s"):
        duration(text)


def test_sizes() -> None:
    assert [size(t) for t in ("2GiB", "512 MiB", "1.5kB", "100", "8GB")] == [2 << 30, 512 << 20, 1500, 100, 8 * 10**9]


def test_limits_are_the_sandboxs_own(tmp_path: Path) -> None:
    text = BASE % ("UTC", "2026-03-09 23:59") + "limits: {cell_seconds: 2min, file_bytes: 1MiB, processes: 7}\n"
    assert load(tmp_path, text).limits == Limits(cell_seconds=120, file_bytes=1 << 20, processes=7)
    assert load(tmp_path, BASE % ("UTC", "2026-03-09 23:59")).limits == Limits()


def test_databases(tmp_path: Path) -> None:
    text = BASE % ("UTC", "2026-03-09 23:59")
    assert load(tmp_path, text).db_url == f"sqlite:///{tmp_path}/gradebook.db"
    assert load(tmp_path, text + "database: postgresql://g@db/c\n").db_url == "postgresql+psycopg://g@db/c"
    assert load(tmp_path, text + "database: sqlite:////var/x.db\n").db_url == "sqlite:////var/x.db"


def test_visibility(tmp_path: Path) -> None:
    text = (BASE % ("UTC", "2026-03-09 23:59")) + "    show: {tests: after_due, examples: never}\n"
    course = load(tmp_path, text)
    show, due = course.assignment("0815").show, course.due("x", "0815")
    assert due is not None
    for moment, want in ((due, (True, False, False)), (due + timedelta(seconds=1), (True, False, True))):
        assert tuple(show.visible(what, moment, due) for what in ("hints", "examples", "tests")) == want


def test_seeds_are_secret_and_stay(tmp_path: Path) -> None:
    course = load(tmp_path, BASE % ("UTC", "2026-03-09 23:59"))
    first = seed(course, "0815", "ann", "n1")
    assert 0 <= first < 2**63
    assert seed(Course.load(tmp_path), "0815", "ann", "n1") == first
    assert stat.S_IMODE((tmp_path / ".course-secret").stat().st_mode) == 0o600
    others = {seed(course, *names) for names in (("0815", "bo", "n1"), ("0815", "ann", "n2"), ("08", "15ann", "n1"))}
    assert len(others | {first}) == 4
    (tmp_path / ".course-secret").unlink()
    assert seed(course, "0815", "ann", "n1") != first
    (tmp_path / ".course-secret").write_text("abc")
    with pytest.raises(CourseError, match=r"\.course-secret: expected at least 32 hexadecimal digits"):
        seed(course, "0815", "ann", "n1")


def _changed(before: str, after: str) -> list[str]:
    return [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[:2] in ("- ", "+ ")]


def test_extend_changes_one_line_and_keeps_comments(tmp_path: Path) -> None:
    before = (ROOT / "course.yaml").read_text(encoding="utf-8")
    course = load(tmp_path, before)
    done = extend(course, "0123", "ch18", "+2d", reason="illness")
    assert done.after - done.before == timedelta(days=2)
    after = (tmp_path / "course.yaml").read_text(encoding="utf-8")
    assert _changed(before, after) == [
        "- overrides: []",
        "+ overrides:",
        '+   - {students: ["0123"], assignment: ch18, due: 2027-03-17 23:59:59, reason: "illness"}',
    ]
    again = extend(Course.load(tmp_path), "0123", "ch18", "12h")
    assert again.before == done.after
    extend(Course.load(tmp_path), 'O\'Neil "x": 学', "ch18", "1d")
    assert _changed(after, (tmp_path / "course.yaml").read_text(encoding="utf-8")) == [
        '+   - {students: ["0123"], assignment: ch18, due: 2027-03-18 11:59:59}',
        '+   - {students: ["O\'Neil \\"x\\": 学"], assignment: ch18, due: 2027-03-16 23:59:59}',
    ]
    course = Course.load(tmp_path)
    assert course.due('O\'Neil "x": 学', "ch18") == done.before + timedelta(days=1)
    assert course.due("0123", "ch18") == done.before + timedelta(days=2.5)
    assert course.due("else", "ch18") == done.before


@pytest.mark.parametrize(
    "overrides",
    [
        "",
        "overrides:\nroster: r.csv   # kept\n",
        "overrides:   # none yet\n",
        "overrides: []   # none yet\nroster: r.csv\n",
        "overrides: [{students: [a], assignment: '0815', due: 2026-11-01 10:00}]  # one\nroster: r.csv\n",
        "overrides:\n- students:\n  - 0123   # ill\n  assignment: 0815\n  due: 2026-11-01 10:00  # late\n\n# next\nroster: r.csv\n",
        "overrides:\r\n    -   {students: [a], assignment: '0815'}\r\n\r\n# end",
    ],
)
def test_extend_adds_one_entry_wherever_overrides_stand(tmp_path: Path, overrides: str) -> None:
    before = (BASE % ("Asia/Shanghai", "2026-10-24 02:30")).replace("小", "0123").replace("Tiny", "NO") + overrides
    course = load(tmp_path, before)
    extend(course, "9", "0815", "1d")
    after = (tmp_path / "course.yaml").read_bytes().decode()
    again = Course.load(tmp_path)
    assert again.overrides[:-1] == course.overrides
    assert again.due("9", "0815") == course.assignment("0815").due + timedelta(days=1)
    assert again.model_copy(update={"overrides": ()}) == course.model_copy(update={"overrides": ()})
    gone = [line for line in _changed(before, after) if line.startswith("- ")]
    assert all("overrides:" in line for line in gone)
    assert all(
        comment in after
        for comment in ("# kept", "# none yet", "# one", "# ill", "# late", "# next")
        if comment in before
    )


def test_extend_into_an_hour_that_comes_twice(tmp_path: Path) -> None:
    before = BASE % ("Europe/Berlin", "2026-10-24 02:30")
    course = load(tmp_path, before)
    extend(course, "9", "0815", "1d")
    assert _changed(before, (tmp_path / "course.yaml").read_text()) == [
        "+ ",
        "+ overrides:",
        '+   - {students: ["9"], assignment: 0815, due: 2026-10-25 02:30+02:00}',
    ]


def test_extend_refuses_in_words(tmp_path: Path) -> None:
    course = load(tmp_path, BASE % ("UTC", "2026-03-09 23:59"))
    before = course.path.read_text()
    with pytest.raises(CourseError, match="extend: expected a duration such as 60s"):
        extend(course, "a", "0815", "tomorrow")
    with pytest.raises(CourseError, match="there is no assignment 'x'"):
        extend(course, "a", "x", "1d")
    assert course.path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["course.yaml"]
