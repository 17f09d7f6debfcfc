"""The whole way: a Canvas zip is collected, its scores are recorded, and filled into Canvas' exported gradebook."""

from __future__ import annotations

import zipfile
from pathlib import Path

from autograder.course import Course
from autograder.course.edit import extend
from autograder.gradebook.book import Book
from autograder.gradebook.collect import collect
from autograder.gradebook.export import scores_csv
from autograder.gradebook.lms import fill
from autograder.gradebook.roster import Roster
from autograder.gradebook.scores import NotebookScores, Score


def test_from_zip_to_filled_gradebook(released: Path, tmp_path: Path) -> None:
    (released / "roster.csv").write_text(
        "id,last_name,first_name,email,lms_user_id\nann1,O'Neil,Ann,ann@uni.edu,5001\n20260001,张,三,z@uni.edu,5002\n",
        encoding="utf-8",
    )
    path = released / "course.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("timezone:", "roster: roster.csv\ntimezone:"), encoding="utf-8"
    )
    course = Course.load(released)
    data = (released / "release" / "a1" / "n1.ipynb").read_bytes()
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("oneilann_5001_1_n1.ipynb", data)
        archive.writestr("张三_LATE_5002_2_n1.ipynb", data)
    (released / "submitted" / "20260001" / "a1").mkdir(parents=True)
    done = collect(course, "a1", tmp_path / "submissions.zip")
    assert [(taken.student, list(taken.notebooks)) for taken in done.taken] == [("20260001", ["n1"]), ("ann1", ["n1"])]

    late = course.due("20260001", "a1")
    assert late is not None
    with Book(course) as book:
        book.enroll(Roster.of(course).people.values())
        for student, days in (("ann1", 0), ("20260001", 2)):
            scores = NotebookScores({"n1_test1": Score(2), "n1_test2": Score(1), "n1_text": Score(3)})
            when = late.replace(day=late.day + days)
            book.record(student, "a1", when, {"n1": scores, "n2": None})
        exported = tmp_path / "canvas.csv"
        exported.write_text(
            "Student,ID,SIS Login ID,Section,One (77)\n    Points Possible,,,,12\n"
            '"O\'Neil, Ann",5001,,A,\n"三, 张",5002,,A,\n',
            encoding="utf-8",
        )
        filled = fill(course, "a1", book.rows("a1"), exported).data.decode()
        assert filled == exported.read_text(encoding="utf-8").replace("5001,,A,", "5001,,A,6").replace(
            "5002,,A,", "5002,,A,3"
        )

        extend(course, "20260001", "a1", "+36h", reason="病假")
        book.course = Course.load(released)
        settled = book.settle("a1")
        assert (settled.dates, settled.penalties) == (["20260001"], ["20260001"])
        filled = fill(book.course, "a1", book.rows("a1"), exported).data.decode()
        assert "5002,,A,4.8\n" in filled  # half a day late now
        assert (
            "a1,2026-03-11T11:59:00+08:00,2026-03-11T23:59:00+08:00,20260001,张,三,z@uni.edu,6,1.2,4.8,12"
            in scores_csv(book.course, book.rows("a1"))
        )
