"""The table of a device: rounds of tffc beside those of JAX on it, on the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from benchmarks.rounds.rows import RoundRow
from benchmarks.rounds.workloads import WORKLOADS

WAYS: Mapping[str, Mapping[str, str]] = {
    "tffc": {"memory": " ".join(WORKLOADS)},
    "jax": {"vmap": " ".join(WORKLOADS), "scan": " ".join(WORKLOADS)},
}
"""The ways to compute a round that are measured on a device, and for which workloads."""


def table_of(device: str, rows: Sequence[RoundRow]) -> Table:
    """Return the milliseconds of a round of each side, and their ratio to tffc's."""
    table = Table(title=f"rounds on the {device}")
    for head in ("workload", "clients", "side", "ms a round", "ratio", "difference"):
        table.add_column(head, justify="left" if head in ("workload", "side") else "right")
    base = {row.workload: row.clock.median for row in rows if row.side == "tffc"}
    for row in rows:
        workload = WORKLOADS[row.workload]
        first = base.get(row.workload)
        table.add_row(
            f"{row.workload}: {workload.title}",
            f"{workload.clients:,}",
            row.name,
            f"{1e3 * row.clock.median:,.4g}",
            f"{row.clock.median / first:.2f}" if first else "",
            row.difference,
        )
    return table
