"""A matrix as a picture: inline SVG in the cividis colours, readable in print, by the colour-blind and by a screen reader.

Plain Python, so that a notebook, a feedback page and a leak report draw the same picture. A cell that is exactly 0 stays white, which
makes a causal triangle visible at a glance and the smallest leak a coloured cell outside of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from html import escape

from autograder.text import Text

MAX_SIZE = 64  # rows and columns drawn; more could not be told apart
# The cividis colours at 0.0, 0.1 … 1.0 (Nuñez, Anderton and Renslow 2018, https://doi.org/10.1371/journal.pone.0199239)
_CIVIDIS = "00224e08337035456c4f576c6669707d7c78948e77aea371c8b866e5cf52fee838"
_ANCHORS = [tuple(bytes.fromhex(_CIVIDIS[i : i + 6])) for i in range(0, len(_CIVIDIS), 6)]  # (red, green, blue)
_FONT = "font-family='ui-sans-serif,system-ui,sans-serif'"
MARK = "#d1361b"  # outlines a cell that should not be as it is

RECEIVER = Text(zh="接收位置 t", en="receiver t")
SOURCE = Text(zh="来源 j", en="source j")
ROW = Text(zh="行", en="row")
COLUMN = Text(zh="列", en="column")


def heat_map(
    matrix: Sequence[Sequence[float]],
    *,
    title: str,
    row_name: Text = RECEIVER,
    column_name: Text = SOURCE,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
    span: tuple[float, float] | None = None,
    log: bool = False,
    marked: Collection[tuple[int, int]] = (),
    both_languages: bool = False,
) -> str:
    """Draw ``matrix`` (rows of equal length) as one ``<svg>`` element whose text alternative is ``title``.

    ``rows`` and ``columns`` label the axes, 0, 1, … unless given. ``span`` fixes the values of the darkest and the lightest colour, so that
    two pictures can be compared; ``log`` colours by order of magnitude. ``marked`` cells get a red outline. An axis name shows both
    languages, each in an element of its own ``lang``, or both in one text with ``both_languages``.

    Raises ValueError when there is nothing to draw or the rows differ in length.
    """
    if not matrix or not matrix[0] or any(len(row) != len(matrix[0]) for row in matrix):
        raise ValueError(f"expected a matrix with rows of equal length, got {len(matrix)} rows")
    grid = [list(row[:MAX_SIZE]) for row in matrix[:MAX_SIZE]]
    row_labels = [str(label) for label in (rows if rows is not None else range(len(grid)))]
    column_labels = [str(label) for label in (columns if columns is not None else range(len(grid[0])))]
    side = 36 if len(grid[0]) <= 8 else 22 if len(grid[0]) <= 16 else 9
    left = 30 + 7 * min(12, max(map(len, row_labels)))
    width, height = left + side * len(grid[0]) + 2, 40 + side * len(grid) + 2
    shades = _shades(grid, span, log)

    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label='{escape(title, quote=True)}' "
        f"viewBox='0 0 {width} {height}' width='{width}' height='{height}' style='max-width:100%;height:auto'>"
        f"<title>{escape(title)}</title>",
        _axis_name(column_name, left + side * len(grid[0]) / 2, 12, "", both_languages),
        _axis_name(
            row_name, 0, 0, f" transform='translate(12 {40 + side * len(grid) / 2}) rotate(-90)'", both_languages
        ),
    ]
    for j in range(0, len(grid[0]), _step(column_labels, side)):
        parts.append(_label(column_labels[j], left + side * (j + 0.5), 32, "middle"))
    for t in range(0, len(grid), 1 if side > 12 else 4):
        parts.append(_label(row_labels[t], left - 6, 40 + side * (t + 0.5) + 4, "end"))
    for t, row in enumerate(grid):
        for first, length in _runs(shades[t], alone=side > 9):
            parts.append(_cell(row[first], shades[t][first], left + side * first, 40 + side * t, side, length))
    for t, j in marked:
        if t < len(grid) and j < len(grid[0]):
            parts.append(
                f"<rect x='{left + side * j + 1.5}' y='{40 + side * t + 1.5}' width='{side - 3}' height='{side - 3}' "
                f"fill='none' stroke='{MARK}' stroke-width='{3 if side > 9 else 2}'/>"
            )
    return "".join([*parts, "</svg>"])


def number(value: float) -> str:
    """A value in at most five characters, exact zeros told apart from small numbers: 0, .25, -1.5, 6e-9."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) and abs(value) < 10_000:
        return str(int(value))
    if 0.01 <= abs(value) < 1:
        return f"{value:.2f}".replace("0.", ".", 1)
    if 1 <= abs(value) < 1000:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _shades(grid: list[list[float]], span: tuple[float, float] | None, log: bool) -> list[list[float | None]]:
    """Each value's place on the colour scale, 0 to 1; None for exact zeros and for what is no number."""

    def place(value: float) -> float:
        return math.log10(abs(value)) if log else value

    drawn = [place(v) for row in grid for v in row if math.isfinite(v) and v != 0]
    low, high = span or (min(0.0, *drawn, 0.0) if not log else min(drawn, default=0.0), max(drawn, default=1.0))
    reach = high - low

    def shade(value: float) -> float | None:
        if value == 0 or math.isnan(value):
            return None
        if math.isinf(value):
            return 1.0 if value > 0 or log else 0.0
        return min(1.0, max(0.0, (place(value) - low) / reach)) if reach > 0 else 1.0

    return [[shade(value) for value in row] for row in grid]


def _runs(shades: list[float | None], alone: bool) -> list[tuple[int, int]]:
    """Neighbours of one colour as (first, length): a large matrix that is mostly zero stays a small picture."""
    runs: list[tuple[int, int]] = []
    for j, shade in enumerate(shades):
        if runs and not alone and shades[runs[-1][0]] == shade:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((j, 1))
    return runs


def _cell(value: float, shade: float | None, x: float, y: float, side: int, length: int) -> str:
    fill, ink = ("#ffffff", "#4a5260") if shade is None else _colours(shade)
    edge = " stroke='#c3c9d2' stroke-width='.5'" if side > 9 or shade is None else ""
    rect = f"<rect x='{x:g}' y='{y:g}' width='{side * length}' height='{side}' fill='{fill}'{edge}/>"
    if side < 36:
        return rect
    return rect + (
        f"<text x='{x + side / 2:g}' y='{y + side / 2 + 4:g}' text-anchor='middle' {_FONT} font-size='11.5' "
        f"fill='{ink}'>{number(value)}</text>"
    )


def _colours(shade: float) -> tuple[str, str]:
    """Fill, and an ink that can be read on it."""
    at = shade * (len(_ANCHORS) - 1)
    k = min(int(at), len(_ANCHORS) - 2)
    rgb = [round(a + (b - a) * (at - k)) for a, b in zip(_ANCHORS[k], _ANCHORS[k + 1], strict=True)]
    return "#" + "".join(f"{c:02x}" for c in rgb), "#ffffff" if shade < 0.45 else "#10141c"


def _step(labels: list[str], side: int) -> int:
    widest = max(map(len, labels)) * 7 + 4
    return max(1, math.ceil(widest / side), 1 if side > 9 else 4)


def _label(text: str, x: float, y: float, anchor: str) -> str:
    short = text if len(text) <= 12 else text[:11] + "…"
    return (
        f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' {_FONT} font-size='11' fill='currentColor'>"
        f"{escape(short)}</text>"
    )


def _axis_name(name: Text, x: float, y: float, transform: str, both: bool) -> str:
    def text(words: str, lang: str) -> str:
        return (
            f"<text x='{x:g}' y='{y:g}' text-anchor='middle' {_FONT} font-size='12' fill='currentColor'"
            f"{transform}{lang}>{escape(words)}</text>"
        )

    if both:
        return text(f"{name.zh} / {name.en}", "")
    return text(name.zh, " lang='zh-CN'") + text(name.en, " lang='en'")
