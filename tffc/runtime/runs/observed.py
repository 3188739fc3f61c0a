"""Observations of a run's rounds, which may differ when the rounds are run again.

A file with one JSON object on each line, appended after each round:

    {"round": 3, "seconds": 0.25, "evaluation": null, "workers": 2,
     "parts": {"reading data": 0.01}, "skipped": ["eve"], "at": "2026-11-28T09:30:00Z"}

A round on a federation, whose clients are nodes, also has what was exchanged with them, the bytes
in all attempts, and the clients of each node that took part:

    "exchange": {"attempts": 1, "sent": 4096, "received": 2048, "clients": {"silo-0": 12},
                 "left_out": {"silo-1": "it did not answer in time"}}

Only reports read it.  Damaged lines are ignored.  If a round was repeated, it has two lines, and
the last one counts.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from tffc.runtime.engines.rounds import Exchange, Round
from tffc.runtime.runs.command_record import is_time, time_now
from tffc.runtime.runs.json_lines import append_line, read_lines
from tffc.support.errors import DataError, reader
from tffc.support.files.strict_json import is_count, is_object, is_table, is_text
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
    left out; when the round was finished, if known; and what was exchanged with nodes.
    """

    round: int
    seconds: float
    evaluation: float | None
    workers: int | None
    parts: Mapping[str, float]
    skipped: tuple[str, ...]
    at: str | None = None
    exchange: Exchange | None = None

    @property
    def is_timed(self) -> bool:
        """Whether it is known how long the round took: earlier versions wrote zero on Flower."""
        return self.seconds > 0

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
            finished.exchange,
        )

    def to_json(self) -> str:
        """Return the observations as one line of JSON."""
        fields = dataclasses.asdict(self)
        if self.exchange is None:
            del fields["exchange"]
        return json_text(fields) + "\n"


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
    # Lines of earlier versions do not say when the round ended, and most have no exchange.
    fields = {"at": None, "exchange": None, **fields}
    if fields.keys() != SHAPES.keys():
        return None
    if not all(is_right(fields[name]) for name, is_right in SHAPES.items()):
        return None
    fields["skipped"] = tuple(fields["skipped"])
    if fields["exchange"] is not None:
        fields["exchange"] = Exchange(**fields["exchange"])
    return Observed(**fields)


def _is_time(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1e12 and math.isfinite(value)


def _is_exchange(value: object) -> bool:
    if not is_object(value) or value.keys() != _EXCHANGE.keys():
        return False
    return all(is_right(value[name]) for name, is_right in _EXCHANGE.items())


_EXCHANGE: Mapping[str, Callable[[Any], bool]] = {
    "attempts": is_count,
    "sent": is_count,
    "received": is_count,
    "clients": lambda value: is_table(value, is_count),
    "left_out": lambda value: is_table(value, is_text),
}

SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "round": is_count,
    "seconds": _is_time,
    "evaluation": lambda value: value is None or _is_time(value),
    "workers": lambda value: value is None or (is_count(value) and value > 0),
    "parts": lambda value: is_table(value, _is_time),
    "skipped": lambda value: is_list(value) and all(map(is_text, value)),
    "at": lambda value: value is None or is_time(value),
    "exchange": lambda value: value is None or _is_exchange(value),
}
"""The keys of a line, and the check of each value."""
