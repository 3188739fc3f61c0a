"""The table of a setting: a row for each side."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from rich.table import Table

from benchmarks.field.settings import Setting


@dataclasses.dataclass(frozen=True, slots=True)
class FieldRow:
    """What a side took: the seconds until the end of the first round, and those of each other one.

    `difference` is how far its weights are from the first side's, if it is to be the same.
    """

    side: str
    setup: float
    seconds: tuple[float, ...]
    accuracy: float
    difference: float | None = None

    @property
    def median(self) -> float:
        """Return the seconds of a round."""
        return statistics.median(self.seconds)

    @property
    def total(self) -> float:
        """Return the seconds of all rounds, with what is done before them."""
        return self.setup + sum(self.seconds)


def table_of(name: str, setting: Setting, rows: Sequence[FieldRow], missing: Mapping[str, str]):
    """Return the table of the sides that were measured, and of the others why not."""
    title = (
        f"{name}: {setting.workload.title}, {setting.workload.clients:,} clients, "
        f"{setting.cohort} a round, {setting.rounds:,} rounds"
    )
    table = Table(title=title)
    heads = ("setup s", "ms a round", "clients/s", "total s", "ratio", "accuracy", "difference")
    table.add_column("side")
    for head in heads:
        table.add_column(head, justify="right")
    best = min((row.median for row in rows), default=1.0)
    for row in rows:
        difference = "" if row.difference is None else f"{row.difference:.0e}"
        table.add_row(
            row.side,
            f"{row.setup:.1f}",
            f"{1e3 * row.median:,.4g}",
            f"{setting.cohort / row.median:,.0f}",
            f"{row.total:.1f}",
            f"{row.median / best:.2f}",
            f"{row.accuracy:.3f}",
            difference,
        )
    for side, why in missing.items():
        table.add_row(side, f"left out: {why}", *[""] * (len(heads) - 1))
    return table
