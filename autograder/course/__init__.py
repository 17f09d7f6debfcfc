"""course.yaml: the one file an instructor edits, read into values that hold, or refused with file, line and column.

``Course.load(path)`` is the way in. Points are not here: they live in the notebooks' nbgrader metadata.
"""

from autograder.course.late import Late, LateStep
from autograder.course.model import Assignment, Course, Group, Override, Show, json_schema
from autograder.course.problems import CourseError, Problem
from autograder.course.secret import seed

__all__ = [
    "Assignment",
    "Course",
    "CourseError",
    "Group",
    "Late",
    "LateStep",
    "Override",
    "Problem",
    "Show",
    "json_schema",
    "seed",
]
