"""The row of a round, for the page and for tables."""

from __future__ import annotations

import dataclasses

from benchmarks.sides import Figure


@dataclasses.dataclass(frozen=True, slots=True)
class RoundRow:
    """A round of a workload in one way: processor time and time on the clock, and how far weights
    are from tffc's."""

    workload: str
    side: str
    way: str
    processor: Figure
    clock: Figure
    difference: str

    @property
    def name(self) -> str:
        """Return the side and the way, as the page names them."""
        if self.way in ("pfl", "fedjax"):
            return self.way
        return f"{self.side}, {self.way}"

    def __str__(self) -> str:
        return (
            f"{self.workload} {self.name}: {shown(self.processor)}, "
            f"{shown(self.clock)} on the clock"
        )


def shown(figure: Figure) -> str:
    """Return the median of a figure in seconds or milliseconds, and its least and largest."""
    unit, scale = ("s", 1.0) if figure.median >= 1 else ("ms", 1e3)
    low, median, high = (scale * each for each in (figure.low, figure.median, figure.high))
    return f"{median:.3g} {unit} ({low:.3g}–{high:.3g})"
