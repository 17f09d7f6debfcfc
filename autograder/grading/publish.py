"""Releases and feedback into nbgrader's exchange, by nbgrader's own commands."""

from __future__ import annotations

import subprocess
import sys

from autograder.course import Course, CourseError
from autograder.feedback.write import releasable
from autograder.text import Text


def publish_release(course: Course, assignment: str) -> list[str]:
    """Put ``release/<assignment>`` into the exchange, in place of what was there, and return the names of its files.

    Raises CourseError when the students' tools are not among them, or with nbgrader's own words.
    """
    folder = course.folder("release", assignment)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    if not any(name.endswith(".whl") for name in files):
        text = Text(
            zh=f"里面没有学生用的工具；请先运行 autograder release {assignment}",
            en=f"the students' tools are not in it; run autograder release {assignment} first",
        )
        raise CourseError.of(folder, text)
    _nbgrader(course, "release_assignment", assignment, "--force")
    return files


def publish_feedback(course: Course, assignment: str) -> tuple[list[str], list[str]]:
    """Put the pages in ``feedback/`` into the exchange: (students who find theirs there, students who did not hand in over it).

    Raises CourseError with nbgrader's own words.
    """
    pages = {folder.parent.name: folder for folder in sorted(course.folder("feedback").glob(f"*/{assignment}"))}
    reached = [student for student, folder in pages.items() if releasable(folder)]
    left = [student for student in pages if student not in reached]
    if reached:
        _nbgrader(course, "release_feedback", assignment, f"--CourseDirectory.student_id_exclude={','.join(left)}")
    return reached, left


def _nbgrader(course: Course, *arguments: str) -> None:
    """Run nbgrader in the course's folder, where it reads nbgrader_config.py and with it where the exchange is."""
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True)
    if done.returncode:
        verb, said = arguments[0], done.stderr.strip()
        text = Text(zh=f"nbgrader {verb} 失败：\n{said}", en=f"nbgrader {verb} failed:\n{said}")
        raise CourseError.of(course.root / "nbgrader_config.py", text)
