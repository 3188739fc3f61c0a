"""What trackers have of a run, so that a run that is resumed continues there.

A file with one JSON object on each line, appended after each round that a tracker has got:

    {"tracker": "mlflow", "run": "0d8ba26df0bc446dbf3c5d27ab388fbe", "round": 3}

The last line of each tracker counts.  Damaged lines are ignored.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import Any

from tffc.runtime.runs.json_lines import append_line, read_lines
from tffc.support.errors import DataError, reader
from tffc.support.files.strict_json import is_count, is_text
from tffc.support.printable import json_text

TRACKED = "tracked.jsonl"

LONGEST = 2**28
"""The limit on the bytes of a file."""

RUN_NAME = re.compile(r"[A-Za-z0-9_.-]{0,128}")
"""Matches what trackers call a run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tracked:
    """What a tracker has of a run: the tracker's name, its name for the run, and the last round."""

    tracker: str
    run: str
    round: int


def add_tracked(folder: pathlib.Path, tracked: Tracked) -> None:
    """Append what a tracker has to the file in the folder of a run.

    Raises:
      OSError: it cannot be written.
    """
    append_line(folder / TRACKED, json_text(dataclasses.asdict(tracked)) + "\n")


@reader("what trackers have of a run", DataError)
def read_tracked(folder: pathlib.Path) -> dict[str, Tracked]:
    """Return what each tracker has of the run in a folder, by the tracker's name.

    Raises:
      DataError: the file cannot be read.
    """
    lines = read_lines(folder / TRACKED, LONGEST, "trackers then get all rounds as a new run")
    return {fields["tracker"]: Tracked(**fields) for fields in lines if _is_tracked(fields)}


def _is_tracked(fields: dict[str, Any]) -> bool:
    return (
        fields.keys() == {"tracker", "run", "round"}
        and is_text(fields["tracker"])
        and is_text(fields["run"])
        and RUN_NAME.fullmatch(fields["run"]) is not None
        and is_count(fields["round"])
    )
