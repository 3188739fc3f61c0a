"""Timing the passes of a pipeline, as a table or as records."""

from __future__ import annotations

from typing import Any

from tffc.ir.traverse import count
from tffc.passes.pipeline import Finished


class Timings:
    """How long each step took, and the numbers of nodes before and after it."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def __call__(self, finished: Finished) -> None:
        self.steps.append(
            {
                "pass": finished.step.each.name,
                "options": dict(finished.step.options),
                "seconds": round(finished.seconds, 6),
                "nodes_before": count(finished.before),
                "nodes_after": count(finished.after),
            }
        )

    def table(self) -> str:
        """Return one line for each step, and one for the total."""
        total = sum(step["seconds"] for step in self.steps)
        rows: list[tuple[str, ...]] = [("pass", "seconds", "nodes before", "nodes after")]
        for step in self.steps:
            numbers = (f"{step['seconds']:.6f}", step["nodes_before"], step["nodes_after"])
            rows.append((step["pass"], *map(str, numbers)))
        rows.append(("all", f"{total:.6f}", "", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(_row(row, widths) for row in rows)


def _row(row: tuple[str, ...], widths: list[int]) -> str:
    name, *numbers = row
    cells = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
    return "  ".join((name.ljust(widths[0]), *cells)).rstrip()
