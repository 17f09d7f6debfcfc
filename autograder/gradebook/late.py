"""Late penalties by course.yaml, through nbgrader's own plugin point."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from nbgrader.api import MissingEntry
from nbgrader.plugins.base import BasePlugin
from traitlets import Unicode

from autograder.course import Course


def penalty(course: Course, student: str, assignment: str, submitted: datetime | None, score: float) -> float | None:
    """The points a notebook of ``score`` points loses for the time it was ``submitted``; None when it loses none."""
    return score * (1.0 - course.late_factor(student, assignment, submitted)) or None


class CourseLatePolicy(BasePlugin):
    """Set as ``c.AssignLatePenalties.plugin_class``: grace, steps and exceptions as course.yaml has them.

    nbgrader tells a plugin the student, the score and the seconds, but not which assignment. It makes the plugin with
    the AssignLatePenalties preprocessor as ``parent``, and that one knows the assignment at hand and holds the
    gradebook open; from there come the assignment and the time of submission, and course.yaml says the rest.
    """

    course_path = Unicode("course.yaml", help="The course.yaml whose late policy holds.").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points lost, or None. ``total_seconds_late`` goes by the gradebook's dates; course.yaml's win."""
        step: Any = self.parent
        assignment = step.assignment_id
        course = Course.load(self.course_path)
        try:
            naive = step.gradebook.find_submission(assignment, student_id).timestamp
        except MissingEntry:
            return None
        return penalty(course, student_id, assignment, naive and naive.replace(tzinfo=UTC), score)
