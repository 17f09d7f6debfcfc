"""``show_weights(A)``: an attention matrix as a picture; rows receive, columns provide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from autograder.desk.speak import Shown, languages, say
from autograder.heatmap import MAX_SIZE, RECEIVER, SOURCE, heat_map, number
from autograder.text import Text

_PRINTED = 16  # rows and columns that a terminal shows


def show_weights(A: Any, rows: Sequence[object] | None = None, cols: Sequence[object] | None = None) -> None:
    """Show ``A`` (T_q, T_k) as a heat map, in a terminal as numbers. ``rows`` and ``cols`` label receivers and sources (a string: its
    characters). Leading axes of size 1 are dropped; a cell that is exactly 0 stays white.

    Raises ValueError for anything that is no matrix, or labels that do not fit.
    """
    weights = torch.as_tensor(A).detach().cpu()
    while weights.ndim > 2 and weights.shape[0] == 1:
        weights = weights[0]
    if weights.ndim != 2 or 0 in weights.shape or weights.is_complex():
        raise ValueError(say(NO_MATRIX.format(shape=tuple(weights.shape))))
    names = [_labels(labels, size) for labels, size in zip((rows, cols), weights.shape, strict=True)]
    values = weights.double().tolist()
    Shown(_text(values, *names), _html(values, *names)).show()


def _labels(labels: Sequence[object] | None, size: int) -> list[str]:
    if labels is None:
        return [str(i) for i in range(size)]
    if len(labels) != size:
        raise ValueError(say(WRONG_LABELS.format(size=size, count=len(labels))))
    return [_visible(str(label)) for label in labels]


def _visible(label: str) -> str:
    """A character or word as a label; what cannot be seen by a name or its code."""
    if label == " ":
        return "␣"
    return label if label.isprintable() else repr(label)[1:-1]


def _text(values: list[list[float]], rows: list[str], cols: list[str]) -> str:
    wide = max([5, *(len(c) for c in cols[:_PRINTED])])
    margin = max(len(r) for r in rows[:_PRINTED])
    cut = "" if len(cols) <= _PRINTED else " …"
    lines = [f"{say(ROWS_AND_COLUMNS)}", " " * margin + "".join(f" {c:>{wide}}" for c in cols[:_PRINTED]) + cut]
    for label, row in zip(rows[:_PRINTED], values, strict=False):
        lines.append(f"{label:>{margin}}" + "".join(f" {number(x):>{wide}}" for x in row[:_PRINTED]) + cut)
    return "\n".join([*lines, *(["…"] if len(rows) > _PRINTED else [])])


def _html(values: list[list[float]], rows: list[str], cols: list[str]) -> str:
    drawing = heat_map(values, title=_alternative(values, rows, cols), rows=rows, columns=cols, both_languages=True)
    if len(languages()) == 1:
        for name in (RECEIVER, SOURCE):
            drawing = drawing.replace(f"{name.zh} / {name.en}", name.lang(languages()[0]))
    cropped = max(len(rows), len(cols)) > MAX_SIZE
    return f"<div>{drawing}{f'<div>{say(CROPPED)}</div>' if cropped else ''}</div>"


def _alternative(values: list[list[float]], rows: list[str], cols: list[str]) -> str:
    """What the picture shows, for those who hear it: each receiver's strongest source."""
    strongest = [
        max(range(len(row)), key=lambda j: row[j] if row[j] == row[j] else float("-inf")) for row in values[:_PRINTED]
    ]
    told = "; ".join(f"{rows[t]} → {cols[j]} ({number(values[t][j])})" for t, j in enumerate(strongest))
    return f"{say(WEIGHTS)} {len(rows)} × {len(cols)}. {say(STRONGEST)}: {told}"


WEIGHTS = Text(zh="权重", en="weights")
STRONGEST = Text(zh="每个接收位置权重最大的来源", en="strongest source of each receiver")
ROWS_AND_COLUMNS = Text(zh="行：接收位置；列：来源", en="rows: receivers; columns: sources")
NO_MATRIX = Text(
    zh="show_weights 画的是一个矩阵 (T, T)，得到的形状是 {shape}：请先选定一条序列和一个头，例如 A[0]。",
    en="show_weights draws one matrix (T, T), got shape {shape}: pick one sequence and one head first, as in A[0].",
)
WRONG_LABELS = Text(
    zh="这根轴有 {size} 个位置，却给了 {count} 个标签。",
    en="This axis has {size} positions, but {count} labels were given.",
)
CROPPED = Text(
    zh=f"只画出前 {MAX_SIZE} 行和前 {MAX_SIZE} 列。", en=f"Only the first {MAX_SIZE} rows and columns are drawn."
)
