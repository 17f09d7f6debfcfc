"""From the bytes a student submitted to a notebook with exactly the release's structure: pure functions, no files."""

from autograder.notebooks.cells import defined_names, fill, grade_id, is_grade, is_solution, points
from autograder.notebooks.identify import identify
from autograder.notebooks.read import ReadResult, Submission, Unreadable, read_submission
from autograder.notebooks.rebuild import Rebuilt, rebuild
from autograder.notebooks.words import Repair

__all__ = [
    "ReadResult",
    "Rebuilt",
    "Repair",
    "Submission",
    "Unreadable",
    "defined_names",
    "fill",
    "grade_id",
    "identify",
    "is_grade",
    "is_solution",
    "points",
    "read_submission",
    "rebuild",
]
