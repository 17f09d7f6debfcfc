"""What we put in place of nbgrader's own steps, as traits: the one place where its pipelines are named."""

from __future__ import annotations

from pathlib import Path

from traitlets.config import Config

from autograder.course import Course
from autograder.gradebook.traits import configure as configure_course

_OURS = "autograder.grading."
_STUB = "# 在这里写代码 / YOUR CODE HERE\nraise NotImplementedError()"


def configure(c: Config, root: Path | str) -> Course:
    """Configure nbgrader for the course in ``root``: its course.yaml, our release steps, sandbox, judge and feedback page.

    Called by nbgrader_config.py, so that ``nbgrader …`` and formgrader's buttons do what ``autograder …`` does.
    Raises CourseError when course.yaml is wrong.
    """
    course = configure_course(c, root)
    c.PickLanguage.language = course.language
    c.ClearSolutions.code_stub = {"python": _STUB}
    c.GenerateAssignment.preprocessors = [
        _OURS + "release.PickLanguage",
        _OURS + "release.ShipTools",
        *(
            f"nbgrader.preprocessors.{step}"
            for step in (
                "IncludeHeaderFooter",
                "LockCells",
                "ClearSolutions",
                "ClearOutput",
                "CheckCellMetadata",
                "ComputeChecksums",
                "SaveCells",
                "ClearHiddenTests",
                "ClearMarkScheme",
                "ComputeChecksums",
                "CheckCellMetadata",
            )
        ),
    ]
    c.GenerateSolution.preprocessors = [
        _OURS + "release.PickLanguage",
        _OURS + "release.FillReference",
        *(f"nbgrader.preprocessors.{step}" for step in ("LockCells", "ClearHiddenTests", "ClearMarkScheme")),
    ]
    c.Autograde.exporter_class = _OURS + "preprocessors.TolerantExporter"
    c.Autograde.sanitize_preprocessors = [_OURS + "preprocessors.ReleasedStructure"]
    c.Autograde.autograde_preprocessors = [
        _OURS + "preprocessors.JudgeExecute",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.GenerateFeedback.exporter_class = _OURS + "preprocessors.FeedbackExporter"
    c.FeedbackExporter.root = str(course.root)
    c.JudgeExecute.root = str(course.root)
    c.ReleasedStructure.root = str(course.root)
    return course


def configure_executor(c: Config) -> None:
    """Configure any nbgrader course to run its notebooks in our sandbox, and nothing else: ``c = get_config(); configure_executor(c)``."""
    c.Autograde.autograde_preprocessors = [
        _OURS + "preprocessors.SandboxExecute",
        "nbgrader.preprocessors.IgnorePattern",
        "nbconvert.preprocessors.ClearMetadataPreprocessor",
        *(
            f"nbgrader.preprocessors.{step}"
            for step in ("LimitOutput", "SaveAutoGrades", "AssignLatePenalties", "CheckCellMetadata")
        ),
    ]
