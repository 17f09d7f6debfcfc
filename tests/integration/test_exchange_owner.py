"""Whose a submission in nbgrader's exchange is: the Unix user's who wrote it, whatever its folder is called."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.course import Course
from autograder.gradebook.collect import Collected, collect

ATTEMPT = "0123+a1+2026-03-09 10:00:00 UTC+xY"


def collected(course: Path) -> Collected:
    inbound = course / "exchange"
    (inbound / ATTEMPT).mkdir(parents=True)
    shutil.copy(course / "release" / "a1" / "n1.ipynb", inbound / ATTEMPT)
    return collect(Course.load(course), "a1", inbound)


@pytest.mark.parametrize(("owner", "taken"), [("0123", True), ("mallory", False)])
def test_another_users_folder_in_a_students_name_is_refused(
    unreleased: Path, monkeypatch: pytest.MonkeyPatch, owner: str, taken: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=owner))
    done = collected(unreleased)
    assert [each.student for each in done.taken] == (["0123"] if taken else [])
    said = [(each.kind, each.text.en) for each in done.left]
    assert said == ([] if taken else [("refused", "is said to be from 0123 but belongs to mallory")])


def test_what_the_instructor_put_there_is_taken(unreleased: Path) -> None:
    assert [each.student for each in collected(unreleased).taken] == ["0123"]
