"""The plots of the class report: inline SVG with a text alternative, in both languages, readable in print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from autograder.text import Text

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 220, 32, 32, 22, 46


def histogram(
    values: Sequence[float], edges: Sequence[float], labels: Sequence[str], axis: Text, title: Text
) -> Markup:
    """How many of ``values`` lie between neighbouring ``edges``; the last bin includes its right edge. ``labels`` name the edges."""
    counts = [0] * (len(edges) - 1)
    for value in values:
        place = next((i for i, edge in enumerate(edges[1:]) if value < edge), len(counts) - 1)
        counts[place] += 1
    told = "; ".join(f"{labels[i]}–{labels[i + 1]}: {count}" for i, count in enumerate(counts) if count)
    high = max([1, *counts])
    step = (_WIDTH - _LEFT - _RIGHT) / len(counts)
    floor = _HEIGHT - _BOTTOM
    bars = []
    for i, count in enumerate(counts):
        tall = (floor - _TOP) * count / high
        x = _LEFT + i * step
        if count:
            bars.append(
                f'<rect x="{x + 2:.1f}" y="{floor - tall:.1f}" width="{step - 4:.1f}" height="{tall:.1f}" rx="2" fill="var(--scale)"/>'
                f'<text x="{x + step / 2:.1f}" y="{floor - tall - 5:.1f}" class="n" text-anchor="middle">{count}</text>'
            )
    ticks = "".join(
        f'<text x="{_LEFT + i * step:.1f}" y="{floor + 16}" class="t" text-anchor="middle">{escape(label)}</text>'
        for i, label in enumerate(labels)
    )
    names = "".join(
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" class="t" text-anchor="middle" lang="{lang}">{escape(words)}</text>'
        for lang, words in (("zh-CN", axis.zh), ("en", axis.en))
    )
    alternative = escape(f"{title}. {told}", quote=True)
    return Markup(
        f'<svg class="plot" role="img" aria-label="{alternative}" viewBox="0 0 {_WIDTH} {_HEIGHT}"><title>{alternative}</title>'
        f'<path d="M{_LEFT} {floor + 0.5}H{_WIDTH - _RIGHT}" stroke="var(--soft)" fill="none"/>{"".join(bars)}<g class="ticks">{ticks}</g>{names}</svg>'
    )
