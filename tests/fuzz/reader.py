"""What the fuzzers know about a reader."""

from __future__ import annotations

import atexit
import functools
import os
import pathlib
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.fuzz.mutations import damaged_bytes, damaged_text
from tffc.language import Type
from tffc.runtime.data.location import open_data
from tffc.support.errors import TffcError


class Reader(NamedTuple):
    """What reads bytes or refuses them; whole inputs, changes that fit their format, and the kinds
    of input, as boundaries of tffc name them, that it reads."""

    read: Callable[[bytes], bool]
    seeds: Callable[[], list[bytes]]
    damage: Callable[[random.Random, bytes], bytes]
    kinds: tuple[str, ...]


def damage_bytes(generator: random.Random, data: bytes) -> bytes:
    """Change bytes, or the fields of the message that they are."""
    return damaged_bytes(generator, [data])


def damage_rest(generator: random.Random, data: bytes) -> bytes:
    """Change all but the first byte, which chooses."""
    return data[:1] + damaged_bytes(generator, [data[1:]])


def damage_text(generator: random.Random, data: bytes) -> bytes:
    """Change words."""
    return damaged_text(generator, [data.decode(errors="replace")]).encode(errors="replace")


def damage_file(texts: bytes) -> Callable[[random.Random, bytes], bytes]:
    """Return what changes one of several files: all but the first byte, which chooses the file and
    is in `texts` if that is a text."""

    def damage(generator: random.Random, data: bytes) -> bytes:
        change = damage_text if data[:1] and data[0] in texts else damage_bytes
        return data[:1] + change(generator, data[1:])

    return damage


def read_any(locations: Iterable[str], types: Iterable[Type]) -> bool:
    """Read every client of data, opened in each way, as a value of each type; return whether all
    of one way and type were read."""
    types = list(types)
    return True in [_is_read(location, type) for location in locations for type in types]


def _is_read(location: str, type: Type) -> bool:
    try:
        data = open_data(location)
        data.kinds()
        source = data.typed(type)
        for client in source.clients:
            source.check(client)
            source.read(client)
    except TffcError as error:
        return refused(error)
    return True


def refused(error: TffcError) -> bool:
    """Return that an input was not read.

    Raises:
      TffcError: the error, if it does not say what is wrong with the input: the reader met
        something that it did not expect.
    """
    if error.code == "E865":
        raise error
    return False


def folder(name: str) -> pathlib.Path:
    """Return a folder for the files of a reader, which goes with the process."""
    path = _place(os.getpid()) / name
    path.mkdir(exist_ok=True)
    return path


@functools.cache
def _place(process: int) -> pathlib.Path:
    place = pathlib.Path(tempfile.mkdtemp(prefix="tffc-fuzz-"))

    def remove() -> None:
        if os.getpid() == process:  # not at the end of one that this process began
            shutil.rmtree(place, ignore_errors=True)

    atexit.register(remove)
    return place
