"""nbgrader's exchange as this site has configured it: where submissions come in, and how feedback goes back."""

from __future__ import annotations

from pathlib import Path

from nbgrader.apps import NbGraderAPI
from nbgrader.apps.baseapp import NbGrader
from traitlets.config import Application

from autograder.course import Course
from autograder.grading.traits import configure
from autograder.text import Text


class Exchange:
    """nbgrader's own exchange, with its configuration files and the course's.

    ``works`` is whether feedback can be released there; ``inbound`` is None where submissions do not come into a folder.
    """

    def __init__(self, course: Course) -> None:
        app = NbGrader()
        app.load_cwd_config = False  # the course's is loaded wherever this runs
        app.load_config_file()  # the site's and the user's, as `nbgrader` finds them
        Application.load_config_file(app, "nbgrader_config", path=str(course.root))
        configure(app.config, course.root)
        self._api = NbGraderAPI(config=app.config)
        self.works = bool(self._api.exchange_is_functional)
        inbound = Path(self._api.exchange_root, course.id, "inbound") if self._api.exchange_root else None
        self.inbound = inbound if self.works and inbound is not None and inbound.is_dir() else None

    def release_feedback(self, assignment: str, student: str) -> Text | None:
        """What ``nbgrader release_feedback`` does, for one student; words when it fails."""
        result = self._api.release_feedback(assignment, student)
        if result["success"]:
            return None
        said = str(result.get("log") or result.get("error")).strip().splitlines()[-1]
        return Text(
            zh=f"{student}：反馈没有放进 nbgrader 的交换目录：{said}",
            en=f"{student}: the feedback could not be put into nbgrader's exchange: {said}",
        )
