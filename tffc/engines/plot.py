"""Metrics over rounds as an SVG picture, one panel each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tffc.engines.metrics import Row, curves
from tffc.printable import printable

WIDTH, HEIGHT, LEFT, MARGIN = 640, 160, 80, 30
"""The size of a panel, the room for its scale, and the room around it."""

Points = Sequence[tuple[int, float]]


def plot(rows: Iterable[Row]) -> str:
    """The picture of the metrics in some rows, the first metric at the top."""
    panels = list(curves(rows).items())
    height = (HEIGHT + MARGIN) * max(1, len(panels)) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + LEFT + MARGIN}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for index, (name, points) in enumerate(panels):
        parts += _panel(name, points, MARGIN + index * (HEIGHT + MARGIN))
    return "\n".join([*parts, "</svg>", ""])


def _panel(name: str, points: Points, top: int) -> list[str]:
    first, last = points[0][0], points[-1][0]
    values = [value for _, value in points]
    low, high = min(values), max(values)

    def place(point: tuple[int, float]) -> tuple[float, float]:
        x = (point[0] - first) / ((last - first) or 1)
        y = (point[1] - low) / ((high - low) or 1)
        return LEFT + x * WIDTH, top + (1 - y) * HEIGHT

    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, points))
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in map(place, points)]
    right = f'x="{LEFT - 6}" text-anchor="end"'
    return [
        f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#ccc"/>',
        f'<text x="{LEFT}" y="{top - 6}">{escape(printable(name))}</text>',
        f'<text {right} y="{top + 10}">{high:.4g}</text>',
        f'<text {right} y="{top + HEIGHT}">{low:.4g}</text>',
        f'<text x="{LEFT}" y="{top + HEIGHT + 14}">{first}</text>',
        f'<text x="{LEFT + WIDTH}" y="{top + HEIGHT + 14}" text-anchor="end">{last}</text>',
        f'<polyline points="{line}" fill="none" stroke="#1f77b4"/>',
        *(dots if len(points) <= 50 else ()),
    ]
