"""nbgrader's configuration: all of it comes from course.yaml."""

from pathlib import Path

from autograder.grading.traits import configure

configure(get_config(), Path(__file__).parent)  # noqa: F821  (nbgrader's loader provides get_config)
