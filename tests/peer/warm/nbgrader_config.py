"""Any nbgrader course with its kernels in our sandbox, forked from a warm process."""

from autograder.grading.traits import configure_executor

configure_executor(get_config())  # noqa: F821  (nbgrader's loader provides get_config)
