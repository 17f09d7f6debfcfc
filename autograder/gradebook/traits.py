"""course.yaml into nbgrader's traits, so that ``nbgrader …``, formgrader and ``autograder …`` see one course."""

from __future__ import annotations

from pathlib import Path

from traitlets.config import Config

from autograder.course import Course
from autograder.gradebook.book import programs_on_path


def configure(c: Config, root: Path | str) -> Course:
    """Set folder, course id, gradebook, time zone and late policy from the course.yaml in ``root``, which is returned.

    Called by nbgrader_config.py. Raises CourseError when course.yaml is wrong.
    """
    course = Course.load(Path(root))
    programs_on_path()
    c.CourseDirectory.root = str(course.root)
    c.CourseDirectory.course_id = course.id
    c.CourseDirectory.db_url = course.db_url
    c.Exchange.timezone = c.NbGraderAPI.timezone = course.timezone
    c.AssignLatePenalties.plugin_class = "autograder.gradebook.late.CourseLatePolicy"
    c.CourseLatePolicy.course_path = str(course.path)
    return course
