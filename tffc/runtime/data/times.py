"""Times and dates read as numbers: how many units since an epoch, in UTC.

That is done only where the user says the unit, and the epoch if it is not 1970-01-01: `seconds`,
`days since 2020-01-01`.  Times without a time zone count as UTC.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tffc.runtime.data.wording import Wording
from tffc.support.errors import DataError
from tffc.support.guards import Array

UNITS = {
    "nanoseconds": 1,
    "microseconds": 1_000,
    "milliseconds": 1_000_000,
    "seconds": 1_000_000_000,
    "minutes": 60_000_000_000,
    "hours": 3_600_000_000_000,
    "days": 86_400_000_000_000,
    "weeks": 604_800_000_000_000,
}
"""The nanoseconds of each unit."""

TICKS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
TICKS["D"] = UNITS["days"]
"""The nanoseconds of a unit of NumPy's times."""

DAY = UNITS["days"]

UNIT = re.compile(r"(\w+)(?: since (\d{4}-\d{2}-\d{2}))?")

TEXT = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9}))? ?(Z|[+-]\d{2}(?::?\d{2})?)?)?"
)
"""Matches a date or a time in ISO 8601: date, time, fraction of a second, and time zone."""

EPOCH = datetime.date(1970, 1, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class TimeUnit:
    """The nanoseconds of a unit, and the days from 1970-01-01 to the epoch."""

    nanoseconds: int
    epoch: int = 0

    def numbers(self, times: Array) -> Array:
        """Return NumPy times, none of which is missing, as numbers: integers if they are whole
        units."""
        tick = TICKS.get(np.datetime_data(times.dtype)[0])
        if tick is None or np.datetime_data(times.dtype)[1] != 1:
            # Years, months, weeks and multiples of units.
            times = times.astype("M8[D]") if tick is None else times.astype("M8[ns]")
            tick = TICKS[np.datetime_data(times.dtype)[0]]
        ticks = times.astype(np.int64)
        if tick >= self.nanoseconds:
            factor, offset = tick // self.nanoseconds, self.epoch * DAY // self.nanoseconds
            most = int(np.abs(ticks).max(initial=0)) * factor + abs(offset)
            if most < 2**63:
                return ticks * factor - offset
            return ticks.astype(np.float64) * factor - offset
        divisor = self.nanoseconds // tick
        # Integers wrap only where a time lies three centuries from an epoch in nanoseconds.
        whole, rest = np.divmod(ticks - self.epoch * (DAY // tick), divisor)
        return whole if not rest.any() else whole + rest / divisor


def parse_times(
    location: str, named: Sequence[tuple[str | None, str]], words: Wording
) -> dict[str | None, TimeUnit]:
    """Return the units of columns from what the user wrote for each.

    Raises:
      DataError: a unit or an epoch is not one.
    """
    units: dict[str | None, TimeUnit] = {}
    for name, text in named:
        match = UNIT.fullmatch(text.strip())
        epoch = None
        if match is not None and match[1] in UNITS:
            epoch = _day(match[2] or str(EPOCH))
        if match is None or epoch is None:
            raise DataError(
                "E639",
                f"{location}: {words.option('times', text, name)} does not say a unit of time",
                help=f"name one of {', '.join(UNITS)}, which count from 1970-01-01 in UTC, or from "
                f"another day: {words.option('times', 'days since 2020-01-01')}",
            )
        units[name] = TimeUnit(UNITS[match[1]], epoch)
    return units


def unit_of(units: Mapping[str | None, TimeUnit], name: str) -> TimeUnit | None:
    """Return the unit for a column, if any."""
    return units.get(name, units.get(None))


def times_help(name: str, words: Wording) -> str:
    """Return the help for a column of times that are to be numbers."""
    return (
        f"read times as numbers with {words.option('times', 'seconds', name)}, which counts from "
        "1970-01-01 in UTC; days, hours and other units work the same way"
    )


def durations_help(name: str) -> str:
    """Return the help for a column of durations that are to be numbers."""
    return (
        f"divide {name!r} by a unit in the table, such as numpy.timedelta64(1, 's'): durations "
        "are not read as numbers"
    )


def times_of(texts: Sequence[str]) -> Array | None:
    """Return the times written in texts, or None if one is not a time in ISO 8601."""
    nanoseconds: list[int] = []
    for text in texts:
        match = TEXT.fullmatch(text.strip())
        if match is None:
            return None
        day, clock, fraction, zone = match.groups()
        try:
            written = f"{day}T{clock or '00:00'}{(zone or 'Z')}"
            moment = datetime.datetime.fromisoformat(written)
        except ValueError:
            return None
        since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        seconds = since.days * 86400 + since.seconds
        nanoseconds.append(seconds * 10**9 + int((fraction or "0").ljust(9, "0")))
    if any(abs(number) >= 2**63 for number in nanoseconds):
        # Nanoseconds of 64 bits end in 2262.
        if any(number % 10**9 for number in nanoseconds):
            return None
        return np.array([number // 10**9 for number in nanoseconds], "M8[s]")
    return np.array(nanoseconds, np.int64).view("M8[ns]")


def is_time(text: str) -> bool:
    """Return whether a text is a time or a date in ISO 8601."""
    return times_of([text]) is not None


def is_times(stored: Any) -> bool:
    """Return whether a NumPy element type is one of times."""
    return stored.kind == "M"


def _day(text: str) -> int | None:
    """Return the days from 1970-01-01 to a date; None if there is no such date."""
    try:
        return (datetime.date.fromisoformat(text) - EPOCH).days
    except ValueError:
        return None
