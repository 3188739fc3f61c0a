"""Metrics over rounds as an SVG picture, one panel each, for light and dark pages."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from html import escape

from tffc.engines.metrics import MetricsRow, curves
from tffc.printable import printable

WIDTH, HEIGHT = 640, 160
"""The size of the area that a curve is drawn in."""

LEFT, RIGHT, ABOVE, BELOW, TITLE = 90, 20, 30, 44, 30
"""The room around that area, and the room for the title of the picture."""

TICKS = 5
"""About how many ticks are on an axis."""

MOST_DOTS = 50
"""Of more points than this, the line alone is drawn."""

STYLE = """\
<style>
  svg { background: #ffffff; color: #24292f; }
  .grid { stroke: #d0d7de; }
  .curve { stroke: #0969da; fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; color: #e6edf3; }
    .grid { stroke: #30363d; }
    .curve { stroke: #58a6ff; fill: #58a6ff; }
  }
</style>"""

Points = Sequence[tuple[int, float]]


def plot(rows: Iterable[MetricsRow]) -> str:
    """Return the picture of the metrics in some rows, the first metric at the top."""
    panels = list(curves(rows).items())
    width, panel = LEFT + WIDTH + RIGHT, ABOVE + HEIGHT + BELOW
    height = TITLE + panel * max(1, len(panels))
    title = "Metrics by round" if panels else "No round has put out a number"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        STYLE,
        f'<text x="{LEFT + WIDTH / 2:g}" y="22" text-anchor="middle" font-size="16" '
        f'fill="currentColor">{title}</text>',
    ]
    for index, (name, points) in enumerate(panels):
        parts += _panel(name, points, TITLE + ABOVE + index * panel)
    return "\n".join([*parts, "</svg>", ""])


def _panel(name: str, points: Points, top: int) -> list[str]:
    first, last = points[0][0], points[-1][0]
    across = [tick for tick in _ticks(first, last, whole=True) if first <= tick <= last]
    up = _ticks(*_extent([value for _, value in points]))
    low, high = up[0], up[-1]

    def x_of(number: float) -> float:
        return LEFT + WIDTH * ((number - first) / (last - first) if last > first else 0.5)

    def y_of(value: float) -> float:
        # Halves, for the difference of two numbers may be more than a float holds.
        return top + HEIGHT * (1 - (value / 2 - low / 2) / (high / 2 - low / 2))

    shown = escape(printable(name))
    bottom = top + HEIGHT
    parts = [_text(LEFT, top - 9, shown, 'font-weight="bold"')]
    for value, label in zip(up, _labels(up), strict=True):
        y = y_of(value)
        parts.append(_line(LEFT, y, LEFT + WIDTH, y))
        parts.append(_text(LEFT - 8, y + 4, label, 'text-anchor="end"'))
    for number, label in zip(across, _labels(across), strict=True):
        x = x_of(number)
        parts.append(_line(x, bottom, x, bottom + 5))
        parts.append(_text(x, bottom + 18, label, 'text-anchor="middle"'))
    parts.append(_text(LEFT + WIDTH / 2, bottom + 34, "round", 'text-anchor="middle"'))
    turned = f'text-anchor="middle" transform="rotate(-90 16 {top + HEIGHT / 2:g})"'
    parts.append(_text(16, top + HEIGHT / 2, _abridged(name), turned))
    places = [(x_of(number), y_of(value)) for number, value in points]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(
        f'<polyline class="curve" points="{drawn}" style="fill: none" stroke-width="1.5"/>'
    )
    if len(points) <= MOST_DOTS:
        parts += [f'<circle class="curve" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places]
    return parts


def _abridged(name: str) -> str:
    """Return a name as the title of an axis, which is not longer than the axis."""
    seen = printable(name)
    return escape(seen if len(seen) <= 24 else f"{seen[:23]}…")


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, more: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="currentColor" {more}>{text}</text>'


def _extent(values: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest value, some way apart also where they are the same."""
    low, high = min(values), max(values)
    if low < high:
        return low, high
    apart = abs(low) / 10 or 1.0
    return max(low - apart, -sys.float_info.max), min(high + apart, sys.float_info.max)


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return nice numbers from at most `low` to at least `high`, as far from one another."""
    apart = (high / TICKS - low / TICKS) or 1.0
    power = math.floor(math.log10(apart))
    steps = [float(f"{factor}e{power}") for factor in (1, 2, 5)]
    steps.append(float(f"1e{min(power + 1, 308)}"))
    step = next((step for step in steps if 0 < apart <= step), apart)
    step = max(1.0, step) if whole else step
    begin, end = math.floor(low / step), math.ceil(high / step)
    ticks = [number * step for number in range(begin, end + 1)]
    # Near the ends of what floats hold, and where step is lost beside the numbers.
    if len(ticks) < 2 or not all(map(math.isfinite, ticks)) or ticks[0] >= ticks[-1]:
        return [low, high] if low < high else [low]
    return ticks


def _labels(ticks: Sequence[float]) -> list[str]:
    """Return numbers as texts, with as many digits as tell them apart."""
    for digits in range(4, 18):
        labels = [f"{tick + 0.0:.{digits}g}" for tick in ticks]
        if len(set(labels)) == len(set(ticks)):
            return labels
    return [repr(tick) for tick in ticks]
