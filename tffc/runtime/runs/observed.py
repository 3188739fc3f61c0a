"""Observations of a run's rounds, which may differ when the rounds are run again.

A file with one JSON object on each line, appended after each round:

    {"round": 3, "seconds": 0.25, "evaluation": null, "workers": 2,
     "parts": {"reading data": 0.01}, "skipped": ["eve"]}

Only reports read it.  Damaged lines are ignored.  If a round was repeated, it has two lines, and
the last one counts.
"""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from tffc.runtime.engines.rounds import Round
from tffc.support.errors import DataError, reader
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import (
    NotJsonError,
    is_count,
    is_object,
    is_table,
    is_text,
    read_json,
)
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
    and the seconds that they spent in each part, if known; and the first `MOST_NAMES` clients that
    were left out.
    """

    round: int
    seconds: float
    evaluation: float | None
    workers: int | None
    parts: Mapping[str, float]
    skipped: tuple[str, ...]

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
        )

    def to_json(self) -> str:
        """Return the observations as one line of JSON."""
        return json_text(dataclasses.asdict(self)) + "\n"


def add_observed(folder: pathlib.Path, seen: Observed) -> None:
    """Append the observations of a round to the file in the folder of a run.

    Raises:
      OSError: it cannot be written.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / OBSERVED, flags, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        # End a line that was cut off, so that only that one is damaged.
        is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (is_cut * "\n" + seen.to_json()).encode())
    finally:
        os.close(descriptor)


@reader("the observations of a run", DataError)
def read_observed(folder: pathlib.Path) -> dict[int, Observed]:
    """Return the observations of each round, by its number; empty if there is no file.

    Raises:
      DataError: the file cannot be read.
    """
    file = folder / OBSERVED
    try:
        content = read_regular(file, LONGEST)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(
            "E850",
            f"cannot read {file}: {error.strerror or error}",
            help="let it be read, or remove it: the report then says nothing of times",
        ) from error
    lines = (_parsed(line) for line in content.splitlines())
    return {line.round: line for line in lines if line is not None}


def _parsed(line: bytes) -> Observed | None:
    try:
        fields = read_json(line)
    except NotJsonError:
        return None
    if not is_object(fields) or fields.keys() != SHAPES.keys():
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
}
"""The keys of a line, and the check of each value."""
