"""Times of the passes of a pipeline, as a table or as records."""

from __future__ import annotations

from typing import Any

from tffc.language.traverse import count
from tffc.passes.pipeline import Finished


class Timings:
    """An observer that records the time of each step, and the number of nodes before and after."""

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
        wide, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = ((name.ljust(wide), *map(str.rjust, numbers, widths)) for name, *numbers in rows)
        return "\n".join("  ".join(line).rstrip() for line in lines)
