"""Metrics over rounds as an SVG picture with one panel each, for light and dark pages."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from tffc.runtime.runs.metrics import EVALUATION, MetricsRow, curves
from tffc.runtime.runs.number_column import NumberColumn
from tffc.support.printable import printable

TITLE = 30
"""The height of the title of a picture with many panels."""

TICKS = 5
"""About how many ticks an axis has."""

KEY = 22
"""The height of the key of a panel with two curves."""

MOST_DOTS = 50
"""With more points than this, only the line is drawn."""

STYLE = f"<style>\n{pathlib.Path(__file__).with_suffix('.css').read_text()}</style>"

Points = Sequence[tuple[int, float]]


@dataclasses.dataclass(frozen=True, slots=True)
class PlotArea:
    """The size of the area that curves are drawn in, and its margins."""

    width: int = 640
    height: int = 160
    left: int = 90
    right: int = 20
    above: int = 30
    below: int = 44
    names_axis: bool = True
    """Whether the name of a metric stands beside its axis too."""

    @property
    def outer_width(self) -> int:
        """The width including margins."""
        return self.left + self.width + self.right

    @property
    def outer_height(self) -> int:
        """The height including margins."""
        return self.above + self.height + self.below


WIDE = PlotArea()


class Panel(NamedTuple):
    """The curve of a metric, and that of the evaluation's result of the same name, if any."""

    name: str
    points: Points
    evaluated: Points = ()

    @property
    def series(self) -> list[Points]:
        """The curves."""
        return [self.points, *([self.evaluated] if self.evaluated else [])]

    def height(self, area: PlotArea) -> int:
        """Return the height of the panel, with the key of two curves."""
        return area.outer_height + (KEY if self.evaluated else 0)


def panels_of(rows: Iterable[MetricsRow]) -> list[Panel]:
    """Return the panels of the metrics in some rows; results of evaluations that are no metrics too
    have their own."""
    metrics = curves(rows)
    panels: list[Panel] = []
    for name, points in metrics.items():
        inner = name.removeprefix(EVALUATION)
        if not name.startswith(EVALUATION) or inner not in metrics:
            panels.append(Panel(name, points, metrics.get(EVALUATION + name, ())))
    return panels


def plot(rows: Iterable[MetricsRow]) -> str:
    """Return the picture of the metrics in some rows, the first metric at the top."""
    panels = panels_of(rows)
    width = WIDE.outer_width
    height = TITLE + (sum(panel.height(WIDE) for panel in panels) or WIDE.outer_height)
    title = "Metrics by round" if panels else "No round has put out a number"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        STYLE,
        f'<text x="{WIDE.left + WIDE.width / 2:g}" y="22" text-anchor="middle" font-size="16" '
        f'fill="currentColor">{title}</text>',
    ]
    top = TITLE
    for panel in panels:
        parts += draw_panel(panel.name, panel.series, WIDE, top)
        top += panel.height(WIDE)
    return "\n".join([*parts, "</svg>", ""])


def draw_panel(name: str, series: Sequence[Points], area: PlotArea, top: int = 0) -> list[str]:
    """Return SVG elements for the curves of a metric over rounds, placed below `top`.

    Curve n, counted from 0, has the classes `curve` and `curve-n`, and its dots `dot` and `dot-n`.
    """
    top += area.above
    rounds = [number for points in series for number, _ in points]
    first, last = min(rounds), max(rounds)
    across = [tick for tick in _ticks(first, last, whole=True) if first <= tick <= last]
    up = _ticks(*_extent([value for points in series for _, value in points]))
    low, high = up[0], up[-1]

    def x_of(number: float) -> float:
        return area.left + area.width * ((number - first) / (last - first) if last > first else 0.5)

    def y_of(value: float) -> float:
        # Halve both, because the difference of two floats may overflow.
        return top + area.height * (1 - (value / 2 - low / 2) / (high / 2 - low / 2))

    shown = escape(printable(name))
    bottom, right = top + area.height, area.left + area.width
    parts = [_text(area.left, top - 9, shown, 'font-weight="bold"')]
    for value, label in zip(up, _labels(up), strict=True):
        y = y_of(value)
        parts.append(_line(area.left, y, right, y))
        parts.append(_text(area.left - 8, y + 4, label, 'text-anchor="end"'))
    for number, label in zip(across, _labels(across), strict=True):
        x = x_of(number)
        parts.append(_line(x, bottom, x, bottom + 5))
        parts.append(_text(x, bottom + 18, label, 'text-anchor="middle"'))
    middle = top + area.height / 2
    parts.append(_text(area.left + area.width / 2, bottom + 34, "round", 'text-anchor="middle"'))
    if area.names_axis:
        turned = f'text-anchor="middle" transform="rotate(-90 16 {middle:g})"'
        parts.append(_text(16, middle, _abridged(name), turned))
    for index, points in enumerate(series):
        parts += _curve([(x_of(number), y_of(value)) for number, value in points], index)
    return parts if len(series) < 2 else [*parts, *_key(area, bottom + area.below)]


def _key(area: PlotArea, top: int) -> Iterator[str]:
    """Yield the names of two curves, below a panel."""
    middle = area.left + area.width // 2
    for index, (label, x) in enumerate((("rounds", area.left), ("evaluation", middle))):
        yield (
            f'<line class="key key-{index}" stroke-width="2" x1="{x}" y1="{top + 8}" '
            f'x2="{x + 24}" y2="{top + 8}"/>'
        )
        yield _text(x + 30, top + 12, label, "")


def _curve(places: Sequence[tuple[float, float]], index: int) -> list[str]:
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    kind = f'class="curve curve-{index}" fill="none" stroke-width="1.5"'
    parts = [f'<polyline {kind} points="{drawn}"/>']
    if len(places) <= MOST_DOTS:
        kind = f'class="dot dot-{index}"'
        parts += [f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places]
    return parts


def _abridged(name: str) -> str:
    """Return a name as the title of an axis, no longer than the axis."""
    seen = printable(name)
    return escape(seen if len(seen) <= 24 else f"{seen[:23]}…")


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, more: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="currentColor"{" " * bool(more)}{more}>{text}</text>'
    )


def _extent(values: Sequence[float]) -> tuple[float, float]:
    """Return the smallest and largest value, spread apart if they are equal."""
    low, high = min(values), max(values)
    if low < high:
        return low, high
    apart = abs(low) / 10 or 1.0
    return max(low - apart, -sys.float_info.max), min(high + apart, sys.float_info.max)


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return round, equidistant numbers from at most `low` to at least `high`."""
    apart = (high / TICKS - low / TICKS) or 1.0
    power = math.floor(math.log10(apart))
    steps = [float(f"{factor}e{power}") for factor in (1, 2, 5)]
    steps.append(float(f"1e{min(power + 1, 308)}"))
    step = next((step for step in steps if 0 < apart <= step), apart)
    step = max(1.0, step) if whole else step
    begin, end = math.floor(low / step), math.ceil(high / step)
    ticks = [number * step for number in range(begin, end + 1)]
    # This happens near the limits of floats, or if the step is lost in rounding.
    if len(ticks) < 2 or not all(map(math.isfinite, ticks)) or ticks[0] >= ticks[-1]:
        return [low, high] if low < high else [low]
    return ticks


def _labels(ticks: Sequence[float]) -> list[str]:
    """Return numbers as texts, with as many digits as needed to tell them apart."""
    column = NumberColumn()
    column.see(ticks)
    for digits in range(4, 18):
        labels = [_label(tick + 0.0, digits, column.has_exponents) for tick in ticks]
        if len(set(labels)) == len(set(ticks)):
            return labels
    return [repr(tick) for tick in ticks]


def _label(tick: float, digits: int, has_exponent: bool) -> str:
    """Return a tick as a text without zeros at its end."""
    if tick == 0:
        return "0"
    if has_exponent:
        mantissa, _, power = f"{tick:.{digits - 1}e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{power}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(tick))))
    text = f"{tick:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
