"""Runs, rounds and states in the cells of notebooks: tables, and plots of metrics."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tffc.frontend.conversion import infer_type
from tffc.language.type_parts import leaves
from tffc.language.types import TensorType
from tffc.language.values.concrete import flatten, to_value
from tffc.runtime.data.json_values import paths
from tffc.runtime.runs.metrics import EVALUATION, MetricsRow
from tffc.runtime.runs.number_column import NumberColumn
from tffc.runtime.runs.observed import Observed
from tffc.runtime.runs.plot import PlotArea, draw_panel, panels_of
from tffc.support.cell import cell
from tffc.support.errors import TffcError
from tffc.support.printable import counted

TEMPLATE = pathlib.Path(__file__).with_suffix(".html")

AREA = PlotArea(width=220, height=110, left=70, right=10)

MOST_PANELS, MOST_ROWS, MOST_TENSORS, MOST_NAMES = 12, 100, 200, 12
"""The most plots, rounds, tensors of a state, and columns of metrics that are shown."""

LONGEST = 40
"""The most characters of a metric that is no number."""


@dataclasses.dataclass(frozen=True, slots=True)
class MetricPlot:
    """A plot of a metric, as SVG elements."""

    name: str
    drawing: Any


@dataclasses.dataclass(frozen=True, slots=True)
class TensorRow:
    """A tensor of a state: its path, its type, and its least, mean and greatest number."""

    name: str
    type: str
    figures: tuple[str, str, str]


def run_cell(
    rows: Sequence[MetricsRow], observed: Sequence[Observed], rounds: int, state: object
) -> str:
    """Return a run of some rounds as HTML: the metrics of the finished ones as plots and a table,
    and its last state, None if no round is finished."""
    left_out = sum(row.skipped for row in rows)
    spent = sum(seen.seconds for seen in observed)
    about = f"{len(rows):,} of {rounds:,} rounds finished in {spent:.1f} s"
    if left_out:
        about += f"; {counted(left_out, 'client')} left out"
    if len(rows) > MOST_ROWS:
        about += f"; the last {MOST_ROWS} are shown"
    shown = rows[-MOST_ROWS:]
    names = _names(shown)
    return cell(
        TEMPLATE,
        title="Run",
        about=about,
        panels=_plots(rows),
        width=AREA.outer_width,
        height=AREA.outer_height,
        names=names,
        rows=_table(shown, observed[-MOST_ROWS:], names),
        state_title=f"The state after round {rows[-1].round}" if rows else "",
        tensors=tensor_rows(state) if rows else [],
    )


def round_cell(number: int, about: str, values: Mapping[str, object]) -> str:
    """Return a round as HTML: what is said of it, and the tensors of its values by name."""
    tensors = [row for name, value in values.items() for row in tensor_rows(value, name)]
    return cell(
        TEMPLATE,
        title=f"Round {number}",
        about=about,
        panels=[],
        rows=[],
        state_title="Output and state",
        tensors=tensors,
    )


def tensor_rows(value: object, root: str = "") -> list[TensorRow]:
    """Return the tensors of a value of Python; none if it is no value of the language."""
    try:
        type = infer_type(value)
        parts = flatten(to_value(value, type), type)
    except TffcError:
        return []
    rows: list[TensorRow] = []
    for path, leaf, part in zip(paths(type), leaves(type), parts, strict=True):
        name = ".".join(filter(None, (root, path))) or "value"
        rows.append(TensorRow(name, str(leaf), _figures(part, leaf)))
    return rows[:MOST_TENSORS]


def _figures(part: Any, leaf: object) -> tuple[str, str, str]:
    if not isinstance(leaf, TensorType) or not np.size(part):
        return "", "", ""
    array = np.asarray(part)
    if array.dtype.kind not in "biufV":
        return "", "", ""
    numbers = array.astype(np.float64)
    least, mean, most = (f"{each:.4g}" for each in (numbers.min(), numbers.mean(), numbers.max()))
    return least, mean, most


def _names(rows: Sequence[MetricsRow]) -> list[str]:
    """Return the names of the columns of metrics."""
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(_metrics(row))
    return list(names)[:MOST_NAMES]


def _metrics(row: MetricsRow) -> dict[str, Any]:
    evaluation = {EVALUATION + name: value for name, value in row.evaluation.items()}
    return {**row.metrics, **evaluation}


def _table(
    rows: Sequence[MetricsRow], observed: Sequence[Observed], names: Sequence[str]
) -> list[list[str]]:
    columns = {name: NumberColumn() for name in names}
    for row in rows:
        for name, value in _metrics(row).items():
            if name in columns and isinstance(value, float):
                columns[name].see([value])
    table: list[list[str]] = []
    for row, seen in zip(rows, observed, strict=True):
        known = _metrics(row)
        counts = (f"{count:,}" for count in (row.round, row.clients, row.skipped))
        table.append(
            [*counts, *(_figure(known.get(n), columns[n]) for n in names), f"{seen.seconds:.2f}"]
        )
    return table


def _figure(value: Any, column: NumberColumn) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return column.text(value)
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _plots(rows: Sequence[MetricsRow]) -> Sequence[MetricPlot]:
    from markupsafe import Markup

    if len(rows) < 2:
        return []
    return [
        MetricPlot(panel.name, Markup("".join(draw_panel(panel.name, panel.series, AREA))))
        for panel in panels_of(rows)[:MOST_PANELS]
    ]
