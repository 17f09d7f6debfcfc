"""Submissions as Moodle, Canvas, nbgrader's exchange and people's folders name them; and archives made to do harm."""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.course import Course, CourseError
from autograder.gradebook.collect import Collected, collect
from autograder.notebooks.read import MAX_BYTES

ROSTER = """\
id,last_name,first_name,email,lms_user_id,login
0123,O'Neil,Ann,ann@uni.edu,5001,aoneil
20260001,张,三,zhang3@uni.edu,5002,zhang3
bo+x,Müller,Bo,bo@uni.edu,5003,bo
c d,Smith,Jo,jo1@uni.edu,5004,jo1
e,Smith,Jo,jo2@uni.edu,5005,jo2
5001,Last,Lea,lea@uni.edu,5006,lea
"""


@pytest.fixture
def course(unreleased: Path) -> Course:
    (unreleased / "roster.csv").write_text("\ufeff" + ROSTER, encoding="utf-8")
    text = (
        (unreleased / "course.yaml").read_text(encoding="utf-8").replace("timezone:", "roster: roster.csv\ntimezone:")
    )
    (unreleased / "course.yaml").write_text(text, encoding="utf-8")
    return Course.load(unreleased)


def notebook(course: Course, name: str, mark: str) -> bytes:
    """A notebook as handed in; ``mark`` tells one from another."""
    nb = json.loads((course.root / "release" / "a1" / f"{name}.ipynb").read_text())
    nb["cells"][0]["source"] = f"x = {mark!r}"
    return json.dumps(nb).encode()


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def handed_in(course: Course) -> dict[str, dict[str, str]]:
    """What lies in submitted/: per student the mark of each notebook, and the time."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(course.folder("submitted").glob("*/*/*")):
        assert path.parent.name == "a1"
        text = path.read_text(errors="replace")
        is_time = path.name == "timestamp.txt"
        found.setdefault(path.parent.parent.name, {})[path.name] = (
            text.strip() if is_time else json.loads(text)["cells"][0]["source"].removeprefix("x = ").strip("'")
        )
    return found


def left(done: Collected) -> dict[str, tuple[str, str]]:
    return {each.path: (each.kind, each.text.en) for each in done.left}


def test_canvas(course: Course, tmp_path: Path) -> None:
    """Names by Canvas: sortable name without punctuation, LATE, user, attachment; a resubmission ends in -1."""
    n1, n2 = (lambda mark: notebook(course, "n1", mark)), (lambda mark: notebook(course, "n2", mark))
    source = zipped(
        tmp_path / "canvas.zip",
        {
            "oneilann_5001_9001_n1.ipynb": n1("first"),
            "oneilann_5001_9007_n1-1.ipynb": n1("second"),
            "oneilann_5001_9002_n2.ipynb": n2("only"),
            "张三_LATE_5002_9003_n1.ipynb": n1("late"),
            "张三_LATE_5002_9004_my answers.ipynb": n2("renamed"),
            "strangerann_7777_9005_n1.ipynb": n1("stranger"),
            "smithjo_7778_9006_n1.ipynb": n1("which Jo"),
            "oneilann_5001_9010_notes.pdf": b"%PDF",
            "anon_3fGh2_9011_n1.ipynb": n1("nobody"),
        },
    )
    done = collect(course, "a1", source)
    assert handed_in(course) == {
        "0123": {"n1.ipynb": "second", "n2.ipynb": "only"},
        "20260001": {"n1.ipynb": "late", "n2.ipynb": "renamed"},
    }
    ann, zhang = done.taken
    assert [r.en for r in ann.remarks] == ["n1-1.ipynb was taken as n1"]
    assert zhang.submitted is None
    assert [r.en for r in zhang.remarks] == [
        "Canvas marks it late, but the zip does not say when it came: no penalty is taken here; write the time into "
        "timestamp.txt to have one",
        "my answers.ipynb was taken as n2",
    ]
    assert left(done) == {
        "0123/n1.ipynb": ("unmatched", "is no notebook of this assignment, or a later one took its place"),
        "strangerann_7777_9005_n1.ipynb": ("unmatched", "strangerann, 7777 is not in the roster"),
        "smithjo_7778_9006_n1.ipynb": ("ambiguous", "smithjo, 7778 may be any of: c d, e"),
        "oneilann_5001_9010_notes.pdf": ("not a notebook", "only notebooks (.ipynb) are collected"),
        "anon_3fGh2_9011_n1.ipynb": ("unmatched", "was handed in anonymously; turn that off and download again"),
    }


WORKSHEET = """\
Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission),Last modified (grade),Feedback comments
Participant 301,Ann O'Neil,0123,ann@uni.edu,Submitted for grading,,12.00,Yes,"Monday, 9 March 2026, 11:58 PM",-,
Participant 302,张三,20260001,zhang3@uni.edu,Submitted for grading,,12.00,Yes,"Tuesday, 10 March 2026, 8:30 AM",-,
Participant 303,Jo Smith,,jo2@uni.edu,Submitted for grading,,12.00,Yes,"2026年03月9日 星期一 23:10",-,
Participant 304,Bo Müller,,bo@uni.edu,No submission,,12.00,Yes,-,-,
"""


def test_moodle_with_its_worksheet(course: Course, tmp_path: Path) -> None:
    n1 = notebook(course, "n1", "a")
    (tmp_path / "sheet.csv").write_text(WORKSHEET, encoding="utf-8-sig")
    source = zipped(
        tmp_path / "moodle.zip",
        {
            "Ann O'Neil_301_assignsubmission_file_/n1.ipynb": n1,
            "Ann O'Neil_301_assignsubmission_file_/sub/n2.ipynb": notebook(course, "n2", "b"),
            "张三_302_assignsubmission_file/n1 (2).ipynb": n1,
            "Jo Smith_303_assignsubmission_file_n1.ipynb": n1,  # the flat form
            "Jo Smith_303_assignsubmission_onlinetext_/onlinetext.html": b"<p>hello</p>",
            "Bob Stranger_399_assignsubmission_file_/n1.ipynb": n1,
        },
    )
    done = collect(course, "a1", source, worksheet=tmp_path / "sheet.csv")
    assert handed_in(course) == {
        "0123": {"n1.ipynb": "a", "n2.ipynb": "b", "timestamp.txt": "2026-03-09 15:58:00.000000 UTC"},
        "20260001": {"n1.ipynb": "a", "timestamp.txt": "2026-03-10 00:30:00.000000 UTC"},
        "e": {"n1.ipynb": "a", "timestamp.txt": "2026-03-09 15:10:00.000000 UTC"},
    }
    assert left(done) == {
        "Bob Stranger_399_assignsubmission_file_/n1.ipynb": ("unmatched", "Bob Stranger is not in the roster")
    }
    assert [r.en for r in done.taken[2].remarks] == ["n2 was not handed in"]


def test_moodle_without_worksheet_goes_by_name_and_takes_no_time(course: Course, tmp_path: Path) -> None:
    n1 = notebook(course, "n1", "a")
    files = {f"{who}_301_assignsubmission_file_/n1.ipynb": n1 for who in ("Bo Müller", "Jo Smith", "Ann_O'Neil")}
    done = collect(course, "a1", zipped(tmp_path / "m.zip", files))
    assert handed_in(course) == {"0123": {"n1.ipynb": "a"}, "bo+x": {"n1.ipynb": "a"}}
    assert left(done)["Jo Smith_301_assignsubmission_file_/n1.ipynb"] == ("ambiguous", "Jo Smith may be any of: c d, e")


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def test_exchange_with_attempts(course: Course, tmp_path: Path) -> None:
    inbound = write(
        tmp_path / "inbound",
        {
            "0123+a1+2026-03-08 10:00:00.1 UTC+abcd/n1.ipynb": notebook(course, "n1", "one"),
            "0123+a1+2026-03-09 10:00:00 Asia__Shanghai+efgh/n1.ipynb": b"not a time: left alone",
            "0123+a1+2026-03-09 10:00:00 UTC+efgh/n1.ipynb": notebook(course, "n1", "two"),
            "0123+a1+2026-03-09 10:00:00 UTC+efgh/timestamp.txt": b"2026-03-09 18:00:00 Asia/Shanghai",
            "0123+a2+2026-03-11 10:00:00 UTC+abcd/n1.ipynb": notebook(course, "n1", "other assignment"),
            "bo+x+a1+2026-03-09 10:00:00 UTC/n1.ipynb": notebook(course, "n1", "plus"),
            "c d+a1+2026-03-09 10:00:00 UTC+x/n1.ipynb": notebook(course, "n1", "space"),
            "gone+a1+2026-03-09 10:00:00 UTC+x/n1.ipynb": notebook(course, "n1", "stranger"),
        },
    )
    done = collect(course, "a1", inbound)
    assert handed_in(course) == {
        "0123": {"n1.ipynb": "two", "timestamp.txt": "2026-03-09 10:00:00.000000 UTC"},
        "bo+x": {"n1.ipynb": "plus", "timestamp.txt": "2026-03-09 10:00:00.000000 UTC"},
        "c d": {"n1.ipynb": "space", "timestamp.txt": "2026-03-09 10:00:00.000000 UTC"},
    }
    assert left(done)["0123+a1+2026-03-08 10:00:00.1 UTC+abcd"] == ("older", "was followed by a later attempt")
    assert left(done)["gone+a1+2026-03-09 10:00:00 UTC+x/n1.ipynb"] == ("unmatched", "gone is not in the roster")

    text = course.path.read_text(encoding="utf-8").replace("group: work,", "group: work, attempts: 1,")
    course.path.write_text(text, encoding="utf-8")
    import shutil

    shutil.rmtree(course.folder("submitted"))
    limited = collect(Course.load(course.path), "a1", inbound)
    assert handed_in(course)["0123"] == {"n1.ipynb": "one", "timestamp.txt": "2026-03-08 10:00:00.100000 UTC"}
    assert left(limited)["0123+a1+2026-03-09 10:00:00 UTC+efgh"] == ("older", "is beyond the 1 attempts allowed")


def test_collecting_again_changes_only_what_is_new(course: Course, tmp_path: Path) -> None:
    source = tmp_path / "in"
    write(source, {"0123/a1/n1.ipynb": notebook(course, "n1", "one"), "0123/a1/timestamp.txt": b"2026-03-09 10:00 UTC"})
    write(source, {"bo+x/n1.ipynb": notebook(course, "n1", "no assignment folder")})
    write(source, {"e/a9/n1.ipynb": notebook(course, "n1", "another assignment")})
    assert [t.changed for t in collect(course, "a1", source).taken] == [True, True]
    before = handed_in(course)
    assert before["0123"]["timestamp.txt"] == "2026-03-09 10:00:00.000000 UTC"
    assert "e" not in before
    assert [t.changed for t in collect(course, "a1", source).taken] == [False, False]
    write(
        source, {"0123/a1/n1.ipynb": notebook(course, "n1", "older"), "0123/a1/timestamp.txt": b"2026-03-08 10:00 UTC"}
    )
    again = collect(course, "a1", source)
    assert handed_in(course) == before
    assert [r.en for r in again.taken[0].remarks] == ["n2 was not handed in", "submitted/ holds a newer one already"]
    write(
        source, {"0123/a1/n1.ipynb": notebook(course, "n1", "newer"), "0123/a1/timestamp.txt": b"2026-03-10 10:00 UTC"}
    )
    assert [t.changed for t in collect(course, "a1", source).taken] == [True, False]
    assert handed_in(course)["0123"] == {"n1.ipynb": "newer", "timestamp.txt": "2026-03-10 10:00:00.000000 UTC"}
    assert [path.name for path in course.folder("submitted").iterdir() if path.name.startswith(".")] == []


def test_without_a_roster_folders_count_and_lms_names_do_not(unreleased: Path, tmp_path: Path) -> None:
    course = Course.load(unreleased)
    data = notebook(course, "n1", "x")
    ids = ["0123", "Zoë 'Z' \"q\"", "学生", "a+b", "$(touch x)", "-rf"]
    source = write(tmp_path / "in", {f"{name}/n1.ipynb": data for name in ids})
    write(
        source, {".hidden/n1.ipynb": data, "st*r/n1.ipynb": data, "a\\b/n1.ipynb": data, f"{'l' * 200}/n1.ipynb": data}
    )
    done = collect(course, "a1", source)
    assert sorted(handed_in(course)) == sorted(ids)
    assert {path: kind for path, (kind, _) in left(done).items()} == {
        ".hidden/n1.ipynb": "refused",
        "st*r/n1.ipynb": "refused",
        "a\\\\b/n1.ipynb": "refused",
        f"{'l' * 200}/n1.ipynb": "refused",
    }
    done = collect(course, "a1", zipped(tmp_path / "c.zip", {"oneilann_5001_9001_n1.ipynb": data}))
    assert "name one in course.yaml (with lms_user_id or email)" in left(done)["oneilann_5001_9001_n1.ipynb"][1]


def test_unreadable_notebooks_are_collected_so_that_a_verdict_says_why(course: Course, tmp_path: Path) -> None:
    source = write(
        tmp_path / "in", {"0123/n1.ipynb": b"{broken", "0123/final.ipynb": b"", "bo+x/n1 copy.ipynb": b"\xff"}
    )
    done = collect(course, "a1", source)
    assert done.taken[0].notebooks == {"n1": "n1.ipynb", "n2": "final.ipynb"}
    assert (course.folder("submitted", "0123", "a1") / "n1.ipynb").read_bytes() == b"{broken"
    assert done.taken[1].notebooks == {"n1": "n1 copy.ipynb"}


def test_hostile_zip(course: Course, tmp_path: Path) -> None:
    good = notebook(course, "n1", "good")
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in (
            "../0123/n1.ipynb",
            "/0123/n1.ipynb",
            "0123/../../n1.ipynb",
            "0123/a1\\..\\n1.ipynb",
            "C:/0123/n1.ipynb",
            "0123/a1/\x1b[2Jn1.ipynb",
            "0123/a1/n\u202e1.ipynb",
            "0123//n1.ipynb",
            "x" * 1001 + "/n1.ipynb",
        ):
            archive.writestr(name, good)
        link = zipfile.ZipInfo("e/n1.ipynb")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("0123/n1.ipynb", good)
    done = collect(course, "a1", path)
    assert handed_in(course) == {"0123": {"n1.ipynb": "good"}}
    assert len(done.left) == 10
    assert {each.kind for each in done.left} == {"refused"}
    assert left(done)["e/n1.ipynb"][1] == "is a link or a special file"
    assert all(each.path.isprintable() for each in done.left)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["course", "evil.zip"]


def test_zip_bomb_is_cut_off(course: Course, tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("0123/n1.ipynb", "w") as file:
        for _ in range(120):
            file.write(bytes(1 << 20))
    data = path.read_bytes()
    assert len(data) < 1 << 20
    # the header may lie about the size: what is read is counted, not what is promised
    collect(course, "a1", path)
    assert (course.folder("submitted", "0123", "a1") / "n1.ipynb").stat().st_size == MAX_BYTES + 1


def test_damaged_and_encrypted_zips(course: Course, tmp_path: Path) -> None:
    good = io.BytesIO()
    with zipfile.ZipFile(good, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("0123/n1.ipynb", notebook(course, "n1", "x"))
        archive.writestr("bo+x/n1.ipynb", notebook(course, "n1", "y"))
    data = bytearray(good.getvalue())
    data[data.index(b"nbformat")] ^= 1  # the checksum does not fit any more
    (tmp_path / "damaged.zip").write_bytes(data)
    done = collect(course, "a1", tmp_path / "damaged.zip")
    assert [(each.path, each.kind) for each in done.left] == [("0123/n1.ipynb", "refused")]
    assert "is damaged in the zip" in done.left[0].text.en
    assert handed_in(course) == {"bo+x": {"n1.ipynb": "y"}}
    flagged = bytearray(good.getvalue())
    flagged[flagged.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "encrypted.zip").write_bytes(flagged)
    assert left(collect(course, "a1", tmp_path / "encrypted.zip"))["0123/n1.ipynb"] == ("refused", "is encrypted")
    (tmp_path / "no.zip").write_bytes(b"hello")
    for source in (tmp_path / "no.zip", tmp_path / "absent"):
        with pytest.raises(CourseError, match="is neither a folder nor a readable zip"):
            collect(course, "a1", source)


def test_links_and_pipes_in_a_folder(course: Course, tmp_path: Path) -> None:
    secret = tmp_path / "secret.ipynb"
    secret.write_bytes(notebook(course, "n1", "secret"))
    source = write(tmp_path / "in", {"bo+x/n1.ipynb": notebook(course, "n1", "own")})
    for student in ("0123", "e"):
        (source / student).mkdir()
    (source / "0123" / "n1.ipynb").symlink_to(secret)
    os.mkfifo(source / "e" / "n1.ipynb")
    (source / "c d").symlink_to(tmp_path)
    done = collect(course, "a1", source)
    assert handed_in(course) == {"bo+x": {"n1.ipynb": "own"}}
    assert {path: kind for path, (kind, _) in left(done).items()} == {
        "0123/n1.ipynb": "refused",
        "e/n1.ipynb": "refused",
        "c d": "refused",
    }


def test_what_is_missing_is_said(course: Course, unreleased: Path, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="there is no assignment 'a7'"):
        collect(course, "a7", tmp_path)
    (tmp_path / "sheet.csv").write_text("a,b\nc,d\n")
    with pytest.raises(CourseError, match="is no grading worksheet of Moodle"):
        collect(course, "a1", tmp_path, worksheet=tmp_path / "sheet.csv")
    (unreleased / "roster.csv").write_text("id,email\n0123,a@b\n0123,c@d\n../x,e@f\n")
    with pytest.raises(CourseError) as caught:
        collect(course, "a1", tmp_path)
    assert [str(p).rpartition("/course/")[2] for p in caught.value.problems] == [
        "roster.csv:3:1 id: 0123 is there twice",
        "roster.csv:4:1 id: '../x' cannot be a folder's name: it starts with a dot or is longer than 128 bytes",
    ]
    (unreleased / "roster.csv").write_text("name\nx\n")
    with pytest.raises(CourseError, match=r"roster\.csv:1:1: expected a column id in the first line, got: name"):
        collect(course, "a1", tmp_path)
    for path in (unreleased / "release" / "a1").iterdir():
        path.unlink()
    with pytest.raises(CourseError, match="there are no notebooks here; run autograder release first"):
        collect(course, "a1", tmp_path)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Monday, 9 March 2026, 11:58 PM", datetime(2026, 3, 9, 15, 58, tzinfo=UTC)),
        ("2026年03月9日 星期一 23:58", datetime(2026, 3, 9, 15, 58, tzinfo=UTC)),
        ("2026年3月9日 下午 11:58", datetime(2026, 3, 9, 15, 58, tzinfo=UTC)),
        ("-", None),
        ("12.00", None),
        ("2026年13月9日 23:58", None),
    ],
)
def test_moodles_dates(course: Course, text: str, want: datetime | None) -> None:
    from autograder.gradebook.worksheet import moodle_time

    assert moodle_time(text, course.zone) == want
