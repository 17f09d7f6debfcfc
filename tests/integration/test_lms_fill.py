"""Grades into files that Canvas, Moodle and Blackboard exported: our column and nothing else."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course import Course, CourseError
from autograder.gradebook.lms import Filled, fill
from autograder.gradebook.scores import CellScore, Row
from autograder.gradebook.table import Table

ROSTER = """\
id,last_name,first_name,email,lms_user_id
0123,O'Neil,Ann,ann@uni.edu,5001
20260001,张,三,zhang3@uni.edu,5002
bo,Müller,Bo,bo@uni.edu,
c,Smith,Jo,jo1@uni.edu,
e,Smith,Jo,jo2@uni.edu,
none,Nil,Nina,nina@uni.edu,
wait,Ting,Wei,wei@uni.edu,
gone,Away,Far,far@uni.edu,
"""


@pytest.fixture
def course(unreleased: Path) -> Course:
    (unreleased / "roster.csv").write_text(ROSTER, encoding="utf-8")
    text = (
        (unreleased / "course.yaml").read_text(encoding="utf-8").replace("timezone:", "roster: roster.csv\ntimezone:")
    )
    (unreleased / "course.yaml").write_text(text, encoding="utf-8")
    return Course.load(unreleased)


def row(student: str, points: float | None, waits: bool = False, most: float = 12.0) -> Row:
    cells = () if points is None else (CellScore("n1", "t", most, points, None, 0.0, waits),)
    when = datetime(2026, 3, 9, 12, tzinfo=UTC) if points is not None else None
    return Row("a1", student, "", "", "", "", points is not None, when, 0.0, most, cells)


ROWS = [
    row("0123", 8.25),
    row("20260001", 12),
    row("bo", 2 / 3),
    row("c", 5),
    row("e", 6),
    row("none", None),
    row("wait", 3, waits=True),
    row("gone", 1),
]


def summary(done: Filled) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    return {s.student: (s.before, s.after) for s in done.matched}, {u.who: u.kind for u in done.left}


def check_only_column(before: bytes, after: bytes, column: int, separator: str, encoding: str = "utf-8") -> None:
    """Read both with the csv module: same rows and cells but for one column."""
    old, new = (list(csv.reader(io.StringIO(data.decode(encoding)), delimiter=separator)) for data in (before, after))
    assert [[*r[:column], *r[column + 1 :]] for r in old] == [[*r[:column], *r[column + 1 :]] for r in new]
    assert len(old) == len(new)


CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,One (777),Other (778),One Current Score,Final Score\r\n"
    ",,,,,Manual Posting,,(read only),(read only)\r\n"
    '"    Points Possible",,,,,12.00,10,(read only),(read only)\r\n'
    '"O\'Neil, Ann",5001,0123,aoneil,"Sec ""A"", 1",,7,58,\r\n'
    '"三, 张",5002,,,Sec A,"11",,,\r\n'
    '"Müller, Bo",6003,,bo@uni.edu,Sec A,0.67,,,\r\n'
    '"Smith, Jo",6004,,,Sec A,,,,\r\n'
    '"Nil, Nina",6005,none,,Sec A,,,,\r\n'
    '"Ting, Wei",6006,wait,,Sec A,,,,\r\n'
    '"Smith, Jo",6007,c,,Sec A,EX,,,\r\n'
    '"Student, Test",6008,,abc123,Sec A,,,,\r\n'
)


def test_canvas(course: Course, tmp_path: Path) -> None:
    before = CANVAS.encode()
    (tmp_path / "c.csv").write_bytes(before)
    done = fill(course, "a1", ROWS, tmp_path / "c.csv")
    assert (done.platform, done.column) == ("Canvas", "One (777)")
    assert summary(done) == (
        {"0123": ("", "8.25"), "20260001": ("11", "12"), "bo": ("0.67", "0.67")},
        {"Smith, Jo, 6004": "ambiguous", "none": "missing", "wait": "ungraded", "c": "locked", "Student, Test, abc123, 6008": "unmatched"},
    )  # fmt: skip
    assert [u.text.en for u in done.left if u.kind == "ambiguous"] == ["Smith, Jo, 6004 may be any of: c, e"]
    assert done.absent == ["e", "gone"]
    assert done.data == before.replace(b'1",,7', b'1",8.25,7').replace(b'Sec A,"11"', b'Sec A,"12"')
    assert (tmp_path / "c.csv").read_bytes() == before


def test_canvas_with_semicolons_and_decimal_commas(course: Course, tmp_path: Path) -> None:
    text = CANVAS.replace('"Sec ""A"", 1"', "Sec").replace(", ", "\0").replace(",", ";").replace("\0", ", ")
    before = text.replace("12.00", "12,00").encode()
    (tmp_path / "c.csv").write_bytes(before)
    done = fill(course, "a1", ROWS, tmp_path / "c.csv")
    assert done.data == before.replace(b"Sec;;7", b"Sec;8,25;7").replace(b'A;"11"', b'A;"12"')
    check_only_column(before, done.data, 5, ";", "utf-8-sig")


MOODLE = """\
Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission),Last modified (grade),Feedback comments
Participant 301,Ann O'Neil,0123,ann@uni.edu,Submitted for grading,,12.00,Yes,"Monday, 9 March 2026, 11:58 PM",-,"a ""quoted""
comment over two lines"
Participant 302,三 张,,zhang3@uni.edu,Submitted for grading,3.00,12.00,Yes,-,-,
Participant 5001,Jo Smith,,jo2@uni.edu,Submitted for grading,4.00,12.00,No,-,-,
Participant 304,Jo Smith,,,Submitted for grading,,12.00,Yes,-,-,
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("chinese", [False, True])
def test_moodle(course: Course, tmp_path: Path, newline: str, chinese: bool) -> None:
    text = MOODLE
    if chinese:
        text = (
            text.replace("Participant ", "参与者")
            .replace("Identifier,Full name", "编号,全名")
            .replace(",Grade,", ",成绩,")
        )
    before = text.replace("\n", newline).encode("utf-8-sig")
    (tmp_path / "m.csv").write_bytes(before)
    done = fill(course, "a1", ROWS, tmp_path / "m.csv")
    assert done.platform == "Moodle"
    assert summary(done) == (
        {"0123": ("", "8.25"), "20260001": ("3.00", "12")},
        {"e": "locked", "Jo Smith": "ambiguous"},
    )
    assert done.data == before.replace(b'grading,,12.00,Yes,"Monday', b'grading,8.25,12.00,Yes,"Monday').replace(
        b"3.00,12", b"12,12"
    )


def test_moodle_in_another_language_asks_for_the_column(course: Course, tmp_path: Path) -> None:
    text = MOODLE.replace(",Grade,", ",Bewertung,").replace("12.00", '"12,00"').replace("3.00", '"3,00"')
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match="name the column that holds the grade: 'Identifier', 'Full name'"):
        fill(course, "a1", ROWS, tmp_path / "m.csv")
    done = fill(course, "a1", ROWS, tmp_path / "m.csv", column="Bewertung")
    assert summary(done)[0] == {"0123": ("", "8,25"), "20260001": ("3,00", "12")}
    assert b'grading,"8,25","12,00"' in done.data
    check_only_column(text.encode(), done.data, 5, ",")


BLACKBOARD = (
    '"Last Name"\t"First Name"\t"Username"\t"Student ID"\t"Availability"\t"One [Total Pts: 12 Score] |1281892"\t"Total [Total Pts: 12 Score] |1"\r\n'
    '"O\'Neil"\t"Ann"\t"aoneil"\t"0123"\t"Yes"\t""\t"4"\r\n'
    '"Müller"\t"Bo"\t"bo"\t""\t"Yes"\t""\t""\r\n'
    '"Müller"\t"Bo"\t"bo2"\t""\t"Yes"\t""\t""\r\n'
)


def test_blackboard_in_utf16(course: Course, tmp_path: Path) -> None:
    before = BLACKBOARD.encode("utf-16-le")
    (tmp_path / "b.xls").write_bytes(b"\xff\xfe" + before)
    done = fill(course, "a1", ROWS, tmp_path / "b.xls")
    assert (done.platform, done.column) == ("Blackboard", "One [Total Pts: 12 Score] |1281892")
    assert summary(done) == ({"0123": ("", "8.25")}, {"bo": "ambiguous"})
    assert {u.text.en for u in done.left} == {"several rows of the file are this student"}
    assert done.data == b"\xff\xfe" + BLACKBOARD.replace('"Yes"\t""\t"4"', '"Yes"\t"8.25"\t"4"').encode("utf-16-le")


@pytest.mark.parametrize(
    ("change", "column", "words"),
    [
        (("One (777)", "One"), None, "no column is this assignment's; name one of: 'Other (778)'"),
        (("Other (778)", "一 (778)"), None, "several columns fit; name one of them: 'One (777)', '一 (778)'"),
        (("One (777)", "X (777)"), "999", "no column is this assignment's; name one of: 'X (777)', 'Other (778)'"),
        (("12.00", "100"), None, "One (777): the column counts to 100, the assignment to 12; make them equal"),
        (("Section", "Sektion"), None, "is not recognised: expected a gradebook exported from Canvas, Moodle"),
    ],
)
def test_refused(course: Course, tmp_path: Path, change: tuple[str, str], column: str | None, words: str) -> None:
    (tmp_path / "c.csv").write_text(CANVAS.replace(*change), encoding="utf-8")
    with pytest.raises(CourseError, match=re.escape(words)):
        fill(course, "a1", ROWS, tmp_path / "c.csv", column)


def test_a_column_named_by_its_number(course: Course, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(CANVAS.replace("One (777)", "X (777)"), encoding="utf-8")
    assert fill(course, "a1", ROWS, tmp_path / "c.csv", "777").column == "X (777)"


def test_no_file_and_an_empty_one(course: Course, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="cannot be read"):
        fill(course, "a1", ROWS, tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(CourseError, match="is empty or too large"):
        fill(course, "a1", ROWS, tmp_path / "empty.csv")


def test_bytes_in_another_encoding_come_out_as_they_went_in(course: Course, tmp_path: Path) -> None:
    before = CANVAS.removeprefix("\ufeff").replace("三, 张", "X").encode("latin-1")
    (tmp_path / "c.csv").write_bytes(before)
    done = fill(course, "a1", ROWS, tmp_path / "c.csv")
    assert done.data == before.replace(b'1",,7', b'1",8.25,7').replace(b'Sec A,"11"', b'Sec A,"12"')


cell = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=6)


@given(st.lists(st.lists(cell, min_size=2, max_size=5), min_size=1, max_size=6), st.sampled_from("\t;,"), st.booleans())
def test_a_table_reads_as_the_csv_module_does_and_keeps_its_bytes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], separator: str, quote_all: bool
) -> None:
    rows = [["h" + separator * 9, "i"], *rows]  # a first line that shows the separator
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    csv.writer(out, delimiter=separator, quoting=quoting).writerows(rows)
    path = tmp_path_factory.getbasetemp() / "table.csv"
    path.write_bytes(out.getvalue().encode())
    table = Table(path)
    assert [[c.value for c in r] for r in table.rows] == rows
    assert table.with_cells({}) == path.read_bytes()
    path.write_bytes(table.with_cells({(len(rows) - 1, 1): f'new{separator}"\n'}))
    rows[-1][1] = f'new{separator}"\n'
    assert [[c.value for c in r] for r in Table(path).rows] == rows
