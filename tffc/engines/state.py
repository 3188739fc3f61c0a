"""The server's state between rounds: an `.npz` file that also says how it came about.

The arrays are named as clients' data is.  Beside them the member `state.json` holds the type of
the state, a digest of the program that made it and the number of rounds it has gone through.  A
file without that member, written by hand, is read as a state before any round.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

from tffc.backends import atomic
from tffc.backends.manifest import encode_json
from tffc.data.arrays import Layout
from tffc.data.npz import encode_npz, read_arrays, read_text
from tffc.errors import DataError
from tffc.ir.types import Type

MEMBER = "state.json"


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """A state, the digest of the program it belongs to, and how many of its rounds it has seen."""

    value: Any
    program: str
    rounds: int


def write_state(path: pathlib.Path, state: State, type: Type) -> None:
    """Replaces the file at `path` by one that holds the state.

    Raises:
      DataError: the file can not be written; what was there is as it was.
    """
    about = {"type": str(type), "program": state.program, "rounds": state.rounds}
    content = encode_npz(
        Layout(type).encode(state.value, str(path)), {MEMBER: encode_json(about).decode()}
    )
    try:
        atomic.write_file(path, content)
    except OSError as error:
        raise DataError(
            "E650",
            f"can not write the state {path}: {error.strerror}",
            notes=("what was there before is as it was",),
        ) from error


def read_state(path: pathlib.Path, type: Type, program: str) -> State:
    """The state in the file at `path`; rounds of another program than `program` do not count.

    Raises:
      DataError: the file can not be read or holds no state of this type.
    """
    about = _about(path)
    if about.get("type", str(type)) != str(type):
        raise DataError(
            "E651",
            f"{path} holds a state of type `{about['type']}`",
            notes=(f"the bundle's state is of type `{type}`",),
        )
    layout = Layout(type)
    value = layout.decode(read_arrays(path, layout), str(path))
    rounds = about.get("rounds", 0) if about.get("program") == program else 0
    return State(value, program, rounds)


def _about(path: pathlib.Path) -> dict[str, Any]:
    text = read_text(path, MEMBER)
    if text is None:
        return {}
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or not isinstance(about.get("rounds", 0), int):
        raise DataError("E652", f"{path}: its member {MEMBER} is not what tffc writes")
    return about
