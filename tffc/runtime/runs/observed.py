"""Observations of a run's rounds, which may differ when the rounds are run again.

A file with one JSON object on each line, appended after each round:

    {"round": 3, "seconds": 0.25, "evaluation": null, "workers": 2,
     "parts": {"reading data": 0.01}, "skipped": ["eve"], "at": "2026-11-28T09:30:00Z"}

Only reports read it.  Damaged lines are ignored.  If a round was repeated, it has two lines, and
the last one counts.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from tffc.runtime.engines.rounds import Round
from tffc.runtime.runs.command_record import is_time, time_now
from tffc.runtime.runs.json_lines import append_line, read_lines
from tffc.support.errors import DataError, reader
from tffc.support.files.strict_json import is_count, is_table, is_text
from tffc.support.guards import is_list
from tffc.support.printable import json_text

OBSERVED = "observed.jsonl"

LONGEST = 2**28
"""The limit on the bytes of a file."""

MOST_NAMES = 100
"""The most left-out clients that are named for a round."""


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """The observations of a round.

    These are the seconds that it took, and those of its evaluation, if any; the number of workers
    and the seconds that they spent in each part, if known; the first `MOST_NAMES` clients that were
    left out; and when the round was finished, if known.
    """

    round: int
    seconds: float
    evaluation: float | None
    workers: int | None
    parts: Mapping[str, float]
    skipped: tuple[str, ...]
    at: str | None = None

    @classmethod
    def of(cls, finished: Round) -> Observed:
        """Return the observations of a round that has just finished."""
        spent = finished.spent
        return cls(
            finished.number,
            round(spent.seconds, 6),
            None if spent.evaluation is None else round(spent.evaluation, 6),
            spent.workers,
            {part: round(seconds, 6) for part, seconds in spent.parts.items()},
            finished.skipped[:MOST_NAMES],
            time_now(),
        )

    def to_json(self) -> str:
        """Return the observations as one line of JSON."""
        return json_text(dataclasses.asdict(self)) + "\n"


def add_observed(folder: pathlib.Path, seen: Observed) -> None:
    """Append the observations of a round to the file in the folder of a run.

    Raises:
      OSError: it cannot be written.
    """
    append_line(folder / OBSERVED, seen.to_json())


@reader("the observations of a run", DataError)
def read_observed(folder: pathlib.Path) -> dict[int, Observed]:
    """Return the observations of each round, by its number; empty if there is no file.

    Raises:
      DataError: the file cannot be read.
    """
    lines = read_lines(folder / OBSERVED, LONGEST, "the report then says nothing of times")
    seen = (_parsed(fields) for fields in lines)
    return {round.round: round for round in seen if round is not None}


def _parsed(fields: dict[str, Any]) -> Observed | None:
    # Lines of earlier versions do not say when the round ended.
    fields = {"at": None, **fields}
    if fields.keys() != SHAPES.keys():
        return None
    if not all(is_right(fields[name]) for name, is_right in SHAPES.items()):
        return None
    fields["skipped"] = tuple(fields["skipped"])
    return Observed(**fields)


def _is_time(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1e12 and math.isfinite(value)


SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "round": is_count,
    "seconds": _is_time,
    "evaluation": lambda value: value is None or _is_time(value),
    "workers": lambda value: value is None or (is_count(value) and value > 0),
    "parts": lambda value: is_table(value, _is_time),
    "skipped": lambda value: is_list(value) and all(map(is_text, value)),
    "at": lambda value: value is None or is_time(value),
}
"""The keys of a line, and the check of each value."""
