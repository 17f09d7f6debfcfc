"""Score a grade cell that has no hidden tests by its outputs, as nbgrader does, without the readings that give points away."""

from __future__ import annotations

import re

from nbformat import NotebookNode
from nbgrader.utils import compute_checksum

from autograder.notebooks import is_solution, points

_WRAPPED = re.compile(r"np\.\w+\((.*)\)")  # how numpy 2 prints its scalars


def points_from_outputs(cell: NotebookNode) -> float | None:
    """Points for one grade cell: None waits for a person, 0 for an untouched answer or an error.

    nbgrader (``utils.determine_grade``) gives full points when the printed partial credit is no float, negative or NaN, and none when
    anything was written to stderr, a warning included. Here the number is clipped to 0 … points and warnings cost nothing.
    """
    most = points(cell)
    if is_solution(cell):
        return 0.0 if cell.metadata.nbgrader.get("checksum") == compute_checksum(cell) else None
    if cell.cell_type != "code":
        return None
    for output in cell.outputs:
        if output.output_type == "error":
            return 0.0
        if output.output_type == "execute_result":
            return _partial(str(output.get("data", {}).get("text/plain", "")), most)
    return most


def settle_outputs(cell: NotebookNode, earned: float | None) -> None:
    """Make nbgrader, which reads scores from outputs alone, read the points that were earned."""
    if earned is None or cell.cell_type != "code":
        return
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name = "stdout"
        elif output.output_type == "execute_result" and "text/plain" in output.data and earned != points(cell):
            output.data["text/plain"] = repr(float(earned))


def _partial(text: str, most: float) -> float:
    wrapped = _WRAPPED.fullmatch(text.strip())
    try:
        number = float(wrapped[1] if wrapped else text)
    except ValueError:
        return most  # a cell that ends in some other value has run without an error
    return min(max(number, 0.0), most) if number == number else 0.0
