"""Any nbgrader course with its kernels in our sandbox, each in an interpreter of its own."""

from autograder.grading.traits import configure_executor

c = get_config()  # noqa: F821  (nbgrader's loader provides get_config)
configure_executor(c)
c.SandboxExecute.warm = False
