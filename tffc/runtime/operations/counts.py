"""Counts of what a machine has done in federations: rounds, clients, messages, admissions.

Where the environment variable `TFFC_METRICS` names a folder, they are kept in a file there, because
Flower starts a process for each message, which could count to one only:

    {"admissions": {"admitted": 2}, "rounds": {"finished": 3}, ...}

Anything may call these functions at any time.  Where the variable is not set they do nothing, and
where the file cannot be written they say so once: counting ends no round.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import pathlib
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from tffc.support.errors import DataError, reader
from tffc.support.files.atomic import replace_file
from tffc.support.files.locks import holding
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import NotJsonError, encode_json, is_object, read_json

VARIABLE = "TFFC_METRICS"
"""The environment variable with the folder of the counts."""

FILE = "counts.json"

LONGEST = 2**20
"""The limit on the bytes of the file."""

BOUNDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
"""Seconds: how many rounds took at most so long is counted for each."""

ALL, SUM = "+Inf", "sum"
"""Of a distribution, the counts of all values, and their sum."""


class Family(NamedTuple):
    """Counts of one thing: its name, its kind, what it says, and the label that tells its counts
    apart, with a pattern of the label's values.

    The kinds are `counter`, which only grows, `gauge`, which is replaced, and `histogram`.
    """

    name: str
    kind: str
    help: str
    label: str = ""
    values: str = ""


FAMILIES = (
    Family(
        "rounds",
        "counter",
        "Rounds: those that were finished, and those that began again.",
        "outcome",
        "finished|repeated",
    ),
    Family(
        "round_seconds",
        "histogram",
        "Seconds that finished rounds took.",
        values="|".join(map(re.escape, (*map(str, BOUNDS), ALL, SUM))),
    ),
    Family("last_round", "gauge", "The number of the last finished round."),
    Family("last_round_time_seconds", "gauge", "When it was finished, in seconds since 1970."),
    Family(
        "clients",
        "counter",
        "Clients of finished rounds: those that took part, and those that were left out.",
        "outcome",
        "took_part|left_out",
    ),
    Family("refusals", "counter", "Messages that were refused.", "code", r"E\d{3}|other"),
    Family("message_bytes", "counter", "Bytes of messages.", "direction", "sent|received"),
    Family(
        "admissions",
        "counter",
        "Decisions on whether a bundle may run here.",
        "verdict",
        "admitted|refused",
    ),
)

Counts = Mapping[str, Mapping[str, float]]
"""For the name of each family, its numbers by the values of its label."""


def count_round(number: int, seconds: float, clients: int, left_out: int = 0) -> None:
    """Count a round that was finished just now."""
    passed = (str(bound) for bound in BOUNDS if seconds <= bound)
    _add(
        {
            "rounds": {"finished": 1},
            "clients": {"took_part": clients, "left_out": left_out},
            "round_seconds": {**dict.fromkeys(passed, 1), ALL: 1, SUM: seconds},
        },
        {"last_round": number, "last_round_time_seconds": round(time.time(), 3)},
    )


def count_repeat() -> None:
    """Count a round that begins again, because too few took part."""
    _add({"rounds": {"repeated": 1}})


def count_refusal(code: str) -> None:
    """Count a message that was refused with this code of an error."""
    _add({"refusals": {code if re.fullmatch(r"E\d{3}", code, re.ASCII) else "other": 1}})


def count_bytes(*, sent: int = 0, received: int = 0) -> None:
    """Count the bytes of messages."""
    _add({"message_bytes": {"sent": sent, "received": received}})


def count_admission(*, is_admitted: bool) -> None:
    """Count a decision on whether a bundle may run."""
    _add({"admissions": {"admitted" if is_admitted else "refused": 1}})


def counts_folder() -> pathlib.Path | None:
    """Return the folder of the counts, if there is one."""
    name = os.environ.get(VARIABLE)
    return pathlib.Path(name) if name else None


@reader("counts of a federation", DataError)
def read_counts(folder: pathlib.Path) -> Counts:
    """Return the counts in a folder; none if nothing has been counted.

    Raises:
      DataError: the file cannot be read, or is damaged.
    """
    path = folder / FILE
    try:
        content = read_json(read_regular(path, LONGEST))
    except FileNotFoundError:
        return {}
    except (OSError, NotJsonError) as error:
        raise _damaged(path, str(error)) from None
    if not is_object(content):
        raise _damaged(path, "it is no object")
    for name, numbers in content.items():
        family = FAMILY.get(name)
        if family is None or not is_object(numbers):
            raise _damaged(path, f"{name!r} is nothing that is counted")
        for value, number in numbers.items():
            if not re.fullmatch(family.values, value, re.ASCII) or not _is_amount(number):
                raise _damaged(path, f"{value!r} of {name!r} is no count")
    return content


FAMILY = {family.name: family for family in FAMILIES}


def _is_amount(number: Any) -> bool:
    return type(number) in (int, float) and math.isfinite(number) and number >= 0


def _damaged(path: pathlib.Path, why: str) -> DataError:
    return DataError(
        "E894",
        f"{path} does not hold counts of tffc: {why}",
        help="remove it, and counting begins at 0 again",
    )


def _add(amounts: Counts, gauges: Mapping[str, float] | None = None) -> None:
    folder = counts_folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with holding(folder / "counts.lock"):
            counts = {name: dict(numbers) for name, numbers in _counts_before(folder).items()}
            for name, numbers in amounts.items():
                own = counts.setdefault(name, {})
                for value, amount in numbers.items():
                    own[value] = own.get(value, 0) + amount
            for name, number in (gauges or {}).items():
                counts[name] = {"": number}
            replace_file(folder / FILE, encode_json(counts), is_shared=False)
    except OSError as error:
        _warn(f"{folder}: nothing is counted: {error.strerror or error}")


def _counts_before(folder: pathlib.Path) -> Counts:
    try:
        return read_counts(folder)
    except DataError as error:
        _warn(f"{error.message}; counting begins again")
        return {}


@functools.cache
def _warn(text: str) -> None:
    logging.getLogger("tffc").warning("%s", text)
