"""The server's state between rounds: an `.npz` file with its origin.

The arrays are named like those of clients' data.  In addition the member `state.json` holds the
type of the state, the SHA-256 of the program that made it, and the number of rounds.  A file
without that member, written by hand, is read as a state before the first round.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, NamedTuple

from tffc.language.assignability import difference_notes
from tffc.language.notation.type_parser import parse_type
from tffc.language.notation.typed_text import type_text
from tffc.language.types import Type
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.npz import encode_npz, read_arrays, read_text
from tffc.support.errors import DataError, reader
from tffc.support.files import atomic
from tffc.support.files.strict_json import NotJsonError, encode_json, is_count, is_object, read_json

MEMBER = "state.json"

FORMAT = "1.0"


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """A state, the digest of its program, and the number of rounds before it."""

    value: Any
    program: str
    rounds: int


def write_state(path: pathlib.Path, state: State, type: Type) -> None:
    """Replace the file at `path` by one that holds the state.

    Raises:
      DataError: the file cannot be written; an earlier file is unchanged.
    """
    content = encode_state(state, type, str(path))
    try:
        atomic.write_file(path, content)
    except OSError as error:
        raise DataError(
            "E600",
            f"cannot write the state {path}: {error.strerror}",
            notes=("what was there before is as it was",),
            help="give the path of a file, in a folder that exists and can be written, on a disk "
            "with space left",
        ) from error


def encode_state(state: State, type: Type, file: str) -> bytes:
    """Return the content of a file with the state; `file` names it in messages.

    Raises:
      DataError: the state cannot be stored in a file.
    """
    about = {
        "format_version": FORMAT,
        "type": type_text(type),
        "program": state.program,
        "rounds": state.rounds,
    }
    return encode_npz(
        ArrayLayout(type).encode(state.value, file), {MEMBER: encode_json(about).decode()}
    )


@reader("a state", DataError)
def read_state(path: pathlib.Path, type: Type, program: str) -> State:
    """Return the state in the file at `path`; unless `program` made it, its number of rounds is 0.

    Raises:
      DataError: the file cannot be read or does not hold a state of this type.
    """
    return read_saved_state(path, type, program).state


class SavedState(NamedTuple):
    """A state as a program takes it, and what its file says about it, if anything."""

    state: State
    about: About | None


@reader("a state", DataError)
def read_saved_state(path: pathlib.Path, type: Type, program: str) -> SavedState:
    """Return the state in the file at `path` as `read_state` does, with the file's header.

    Raises:
      DataError: the file cannot be read or does not hold a state of this type.
    """
    text = read_text(path, MEMBER)
    said = _stated_type(path, text)
    if said is not None and said != type_text(type):
        raise DataError(
            "E651",
            f"{path} holds a state of type `{said}`",
            notes=(
                f"the bundle's state is of type `{type}`",
                *difference_notes(type, parse_type(said, f"{path}: {MEMBER}")),
            ),
            help="give a state of this program, or start without one",
        )
    about = about_state(path, text)
    rounds = about.rounds if about is not None and about.program == program else 0
    layout = ArrayLayout(type)
    value = layout.decode(read_arrays(path, layout), str(path))
    return SavedState(State(value, program, rounds), about)


@reader("a state", DataError)
def read_type(path: pathlib.Path) -> Type:
    """Return the type that a state file states, which has no Python containers.

    Raises:
      DataError: the file cannot be read, or does not state a type.
      NotationError: the stated type is not valid.
    """
    text = _stated_type(path, read_text(path, MEMBER))
    if text is None:
        raise DataError(
            "E871",
            f"{path} does not say which type its state is of",
            notes=(f"states that a run saves say it in their member {MEMBER}",),
            help="give the type, or a state that a run has saved",
        )
    return parse_type(text, f"{path}: {MEMBER}")


class About(NamedTuple):
    """The header of a state file: the type, the digest of the program, and the rounds."""

    type: str
    program: str
    rounds: int


@reader("a state", DataError)
def about_state(path: pathlib.Path, text: str | None) -> About | None:
    """Parse the member `state.json` of a file; return None if there is none.

    Raises:
      DataError: the member is malformed, or of another format version.
    """
    about = _read_about(path, text)
    if about is None:
        return None
    if about.get("format_version") != FORMAT:
        raise DataError(
            "E942",
            f"{path}: its member {MEMBER} is of another format than {FORMAT}",
            notes=("in another format, it says in another way which program the state is of",),
            help="use the version of tffc that saved it; or start again from its arrays, in a file "
            f"without {MEMBER}",
        )
    type, program, rounds = (about.get(key) for key in About._fields)
    if not isinstance(type, str) or not isinstance(program, str) or not is_count(rounds):
        raise _malformed(path)
    return About(type, program, about["rounds"])


def _read_about(path: pathlib.Path, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        about = read_json(text)
    except NotJsonError:
        about = None
    if not is_object(about):
        raise _malformed(path)
    return about


def _stated_type(path: pathlib.Path, text: str | None) -> str | None:
    type = (_read_about(path, text) or {}).get("type")
    return type if isinstance(type, str) else None


def _malformed(path: pathlib.Path) -> DataError:
    return DataError(
        "E627",
        f"{path}: its member {MEMBER} is not what tffc writes",
        help="give a file of state that tffc wrote, or start without one",
    )
