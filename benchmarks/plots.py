"""Plots as SVG, the same bytes for the same figures."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Sequence

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmarks.experiments import Row

STYLES = {"tffc": ("C0", "o"), "peer": ("C3", "s"), "floor": ("0.5", "^")}
mpl.rcParams.update(
    {"backend": "svg", "svg.hashsalt": "tffc", "svg.fonttype": "none", "font.size": 9}
)


def growth(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Plot seconds against size on logarithmic axes: a panel for each case, a line for each
    side."""
    cases = list(dict.fromkeys(row.case for row in rows))
    figure, panels = plt.subplots(
        1, len(cases), figsize=(3.2 * len(cases), 3), sharey=True, squeeze=False
    )
    for panel, case in zip(panels[0], cases, strict=True):
        for side, (color, marker) in STYLES.items():
            points = [row for row in rows if row.case == case and row.side == side]
            if points:
                panel.plot(
                    [row.size for row in points],
                    [row.figure.median for row in points],
                    color=color,
                    marker=marker,
                    markersize=4,
                    label=side,
                )
        panel.set(xscale="log", yscale="log", title=case, xlabel="n")
        panel.grid(visible=True, alpha=0.3)
    panels[0][0].set_ylabel("seconds")
    panels[0][0].legend()
    save(figure, path)


def stacked(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Plot milliseconds as stacked bars: a bar for each case, a part for each stage."""
    cases = list(dict.fromkeys((row.case, row.size) for row in rows))
    stages = list(dict.fromkeys(row.side for row in rows))
    figure, panel = plt.subplots(figsize=(8, 0.45 * len(cases) + 1.2))
    labels = [f"{case}, n = {size}" for case, size in cases]
    left = [0.0] * len(cases)
    for stage in stages:
        found = {(r.case, r.size): r.figure.median * 1e3 for r in rows if r.side == stage}
        widths = [found.get(case, 0.0) for case in cases]
        panel.barh(labels, widths, left=left, label=stage)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    panel.invert_yaxis()
    panel.set_xlabel("milliseconds")
    panel.legend(fontsize=8)
    save(figure, path)


def bars(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Plot megabytes as bars side by side: a group for each case, a bar for each side."""
    cases = list(dict.fromkeys((row.case, row.size) for row in rows))
    sides = list(dict.fromkeys(row.side for row in rows))
    figure, panel = plt.subplots(figsize=(8, 3))
    width = 0.8 / len(sides)
    for number, side in enumerate(sides):
        found = {(row.case, row.size): row.figure.median for row in rows if row.side == side}
        places = [index + number * width for index in range(len(cases))]
        panel.bar(places, [found.get(case, 0.0) for case in cases], width, label=side)
    panel.set_xticks(
        [index + 0.4 - width / 2 for index in range(len(cases))],
        [f"{case}\nn = {size}" for case, size in cases],
    )
    panel.set_ylabel("megabytes")
    panel.legend()
    save(figure, path)


def save(figure: Figure, path: pathlib.Path) -> None:
    """Write a figure as SVG and close it."""
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(_stripped(lines)) + "\n", encoding="utf-8")


def _stripped(lines: Iterable[str]) -> Iterable[str]:
    return (line.rstrip() for line in lines)
