"""Which assignment a notebook was made from, whatever its file is called."""

from __future__ import annotations

from collections.abc import Mapping

from nbformat import NotebookNode

from autograder.notebooks.cells import asked_names, grade_id, is_grade, is_solution, names
from autograder.notebooks.read import plain


def identify(submission: NotebookNode, releases: Mapping[str, NotebookNode]) -> str | None:
    """The name of the release that a submission was made from; None when none fits, or two equally.

    It is the one that shares most answer and grade cells with the submission, then most of the functions asked for.
    """
    cells = plain(submission).cells
    ids = {grade_id(cell) for cell in cells}
    defined = frozenset[str]().union(*(names(cell.source).defined for cell in cells if cell.cell_type == "code"))

    def shared(release: NotebookNode) -> tuple[int, int]:
        scored = [cell for cell in release.cells if is_solution(cell) or is_grade(cell)]
        wanted = frozenset[str]().union(*(asked_names(cell) for cell in scored if is_solution(cell)))
        return sum(grade_id(cell) in ids for cell in scored), len(wanted & defined)

    scores = {name: shared(release) for name, release in releases.items()}
    best = max(scores.values(), default=(0, 0))
    fitting = [name for name, score in scores.items() if score == best]
    return fitting[0] if best > (0, 0) and len(fitting) == 1 else None
