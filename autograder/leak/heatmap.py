"""The report in a notebook: three lines and the matrix as an inline SVG, readable without colour and without sight."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from autograder.text import Language, Text

if TYPE_CHECKING:
    from autograder.leak.report import Report

CIVIDIS = (  # ten steps of matplotlib's cividis, made for colour-blind readers
    *("#00224e", "#123570", "#3b496c", "#575d6d", "#707173"),
    *("#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"),
)
STILL = "#f4f4f4"  # a cell that did not move at all
MOST = 48  # rows and columns drawn; longer sequences are pooled by their maximum
SIDE = 336  # pixels

TITLE = Text(
    zh="第 t 行（接收位置）随第 j 个来源位置变化了多少", en="How far row t (receiver) moves with position j (source)"
)
SOURCE = Text(zh="来源 j", en="source j")
RECEIVER = Text(zh="接收 t", en="receiver t")
LEGEND = Text(
    zh="浅灰：不变。深蓝到黄：变化 {low:.2g} 到 {high:.2g}（对数）。折线右上方都该是浅灰，× 标出泄漏。",
    en="Light grey: no change. Dark blue to yellow: {low:.2g} to {high:.2g} (log scale). "
    "Above the stepped line all should be grey; a cross marks a leak.",
)
NOTHING = Text(zh="没有一格有变化。", en="No cell moved.")
NO_LEAKS = Text(zh="折线右上方没有变化。", en="Nothing above the stepped line moved.")
LEAKS = Text(zh="泄漏的格子（t←j：大小）：{cells}{more}", en="Leaking cells (t<-j: size): {cells}{more}")


def page(report: Report) -> str:
    """The report as a fragment of HTML."""
    language = report.language
    lines = "".join(f"<div>{escape(line)}</div>" for line in report.text(language).splitlines())
    style = "font-family:system-ui,sans-serif;line-height:1.5;max-width:46em;color:#1a1a1a;background:#fff;padding:.6em"
    svg = figure(report.matrix, report.leaks, report.allowed, language) if report.matrix.numel() else ""
    return f'<div lang="{language}" style="{style}">{lines}{svg}</div>'


def figure(matrix: Tensor, leaks: Tensor | None, allowed: Tensor | None, language: Language) -> str:
    """The matrix (T_out, L) as an SVG with a title and a description in words.

    ``leaks`` are the sizes that ought to be 0 (None: no contract), ``allowed`` the cells left of the stepped line.
    """
    if leaks is None or leaks.shape != matrix.shape:
        leaks = torch.zeros_like(matrix)
    alternative = describe(matrix, leaks, language)
    step_t, step_j = (math.ceil(n / MOST) for n in matrix.shape)
    sizes, leaking = _pool(matrix, step_t, step_j), _pool(leaks, step_t, step_j) > 0
    rows, columns = sizes.shape
    side = SIDE / max(rows, columns)
    low, high = _range(sizes)
    parts = []
    for t in range(rows):
        for j in range(columns):
            x, y, value = j * side, t * side, float(sizes[t, j])
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" '
                f'fill="{_colour(value, low, high)}"><title>t={t * step_t}, j={j * step_j}: {value:.3g}</title></rect>'
            )
            if leaking[t, j]:
                a, b, c, d = x + side * 0.25, y + side * 0.25, x + side * 0.75, y + side * 0.75
                cross = f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}M{c:.1f} {b:.1f}L{a:.1f} {d:.1f}"
                parts += [
                    f'<path d="{cross}" stroke="{colour}" stroke-width="{width:.1f}" fill="none"/>'
                    for colour, width in (("#fff", max(1.2, side / 6)), ("#000", max(0.6, side / 14)))
                ]
    line = "" if allowed is None else _staircase(_pool(allowed.double(), step_t, step_j) > 0, side)
    legend = NOTHING if high == 0 else LEGEND.format(low=low, high=high)
    return (
        f'<svg role="img" xmlns="http://www.w3.org/2000/svg" viewBox="-26 -26 {columns * side + 34:.0f} '
        f'{rows * side + 34:.0f}" width="{columns * side + 34:.0f}" style="display:block;max-width:100%;margin-top:.5em">'
        f"<title>{escape(TITLE.lang(language))}</title><desc>{escape(alternative)}</desc>"
        f'<g shape-rendering="crispEdges" stroke="#fff" stroke-width="{0.5 if side > 6 else 0}">{"".join(parts)}</g>'
        f'<path d="{line}" stroke="#fff" stroke-width="4" fill="none"/><path d="{line}" stroke="#000" stroke-width="2" fill="none"/>'
        f'<g font-size="12" font-family="sans-serif" fill="#1a1a1a"><text x="0" y="-8">{escape(SOURCE.lang(language))} →</text>'
        f'<text transform="translate(-8 {rows * side:.0f}) rotate(-90)">← {escape(RECEIVER.lang(language))}</text></g></svg>'
        f'<div style="font-size:.85em">{escape(TITLE.lang(language))}. {escape(legend.lang(language))}</div>'
        f'<details style="font-size:.85em"><summary>{"文字说明" if language == "zh" else "In words"}</summary>'
        f"{escape(alternative)}</details>"
    )


def describe(matrix: Tensor, leaks: Tensor, language: Language, most: int = 20) -> str:
    """The leaking cells in words, largest first."""
    count = int((leaks > 0).sum())
    if not count:
        return (NO_LEAKS if matrix.any() else NOTHING).lang(language)
    order = leaks.flatten().argsort(descending=True)[: min(count, most)].tolist()
    arrow = "←" if language == "zh" else "<-"
    cells = [f"{i // leaks.size(1)}{arrow}{i % leaks.size(1)}: {float(leaks.flatten()[i]):.3g}" for i in order]
    more = "" if count <= most else f" … (+{count - most})"
    return LEAKS.format(cells=", ".join(cells), more=more).lang(language)


def _pool(matrix: Tensor, step_t: int, step_j: int) -> Tensor:
    """The maximum of every block of step_t rows and step_j columns."""
    rows = torch.stack([matrix[t : t + step_t].amax(0) for t in range(0, matrix.size(0), step_t)])
    return torch.stack([rows[:, j : j + step_j].amax(1) for j in range(0, matrix.size(1), step_j)], dim=1)


def _range(sizes: Tensor) -> tuple[float, float]:
    moved = sizes[(sizes > 0) & sizes.isfinite()]
    return (float(moved.min()), float(moved.max())) if moved.numel() else (0.0, 0.0)


def _colour(value: float, low: float, high: float) -> str:
    if value == 0:
        return STILL
    if not math.isfinite(value) or high <= low:
        return CIVIDIS[-1]
    share = math.log(value / low) / math.log(high / low)
    return CIVIDIS[min(len(CIVIDIS) - 1, int(share * len(CIVIDIS)))]


def _staircase(allowed: Tensor, side: float) -> str:
    """The border between what a row may see and what it must not."""
    path = ""
    for t, row in enumerate(allowed.tolist()):
        x = (len(row) - row[::-1].index(True) if True in row else 0) * side
        path += f"{'L' if path else 'M'}{x:.1f} {t * side:.1f}L{x:.1f} {(t + 1) * side:.1f}"
    return path
