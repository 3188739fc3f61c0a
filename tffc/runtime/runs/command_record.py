"""The commands that wrote to the folder of a run, which differ when the run is run again.

A file with one JSON object on each line, appended after the first round that a command finishes:

    {"at": "2026-11-28T09:30:00Z", "version": "0.1.0", "program": "line.py:training",
     "command": "tffc run line.py:training --data points --rounds 5 --out run"}

Only reports read it.  Damaged lines are ignored.
"""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import re
from typing import Any

from tffc.runtime.runs.json_lines import append_line, read_lines
from tffc.support.errors import DataError, reader
from tffc.support.files.strict_json import is_text
from tffc.support.printable import json_text
from tffc.support.version import VERSION

COMMANDS = "commands.jsonl"

LONGEST = 2**24
"""The limit on the bytes of a file."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclasses.dataclass(frozen=True, slots=True)
class CommandRecord:
    """A command that ran rounds: when it began, tffc's version, the program, and the command
    line."""

    at: str
    version: str
    program: str
    command: str

    @classmethod
    def of_now(cls, program: str, command: str) -> CommandRecord:
        """Return the record of a command that begins now."""
        return cls(time_now(), VERSION, program, command)


def time_now() -> str:
    """Return the time in UTC, to the second."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def is_time(value: object) -> bool:
    """Return whether a JSON value is a time as `time_now` writes it."""
    return isinstance(value, str) and TIME.fullmatch(value) is not None


def add_command(folder: pathlib.Path, command: CommandRecord) -> None:
    """Append a command to the file in the folder of a run.

    Raises:
      OSError: it cannot be written.
    """
    append_line(folder / COMMANDS, json_text(dataclasses.asdict(command)) + "\n")


@reader("the commands of a run", DataError)
def read_commands(folder: pathlib.Path) -> tuple[CommandRecord, ...]:
    """Return the commands that wrote to a folder; none if there is no file.

    Raises:
      DataError: the file cannot be read.
    """
    without = "the report then does not name commands and dates"
    lines = read_lines(folder / COMMANDS, LONGEST, without)
    return tuple(CommandRecord(**fields) for fields in lines if _is_command(fields))


def _is_command(fields: dict[str, Any]) -> bool:
    names = {field.name for field in dataclasses.fields(CommandRecord)}
    return fields.keys() == names and all(map(is_text, fields.values())) and is_time(fields["at"])
