"""Clients' data in memory."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc.support.errors import DataError


@dataclasses.dataclass(frozen=True)
class Values:
    """A source of clients named by their positions, each of which holds one of the values."""

    values: Sequence[Any]

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(f"{number:05}" for number in range(len(self.values)))

    def read(self, client: str) -> Any:
        return self.values[int(client)]


@dataclasses.dataclass(frozen=True)
class SomeBad(Values):
    """Clients of which those with an odd number have bad data."""

    def read(self, client: str) -> Any:
        if int(client) % 2:
            raise DataError("E000", f"no data of {client}", notes=("a note",), help="some help")
        return super().read(client)


@dataclasses.dataclass(frozen=True)
class Marks(Values):
    """Clients that leave the number of the process that reads them in a folder."""

    folder: pathlib.Path

    def read(self, client: str) -> Any:
        (self.folder / str(os.getpid())).touch()
        return super().read(client)


class OneIsBad(Values):
    """Clients of which the second has bad data."""

    def read(self, client: str) -> Any:
        if client == self.clients[1]:
            raise DataError("E626", "cannot read it")
        return super().read(client)


@dataclasses.dataclass(frozen=True)
class Breaks(Values):
    """Clients whose data raises what it should not."""

    def read(self, client: str) -> Any:
        raise KeyError("a defect of the user's")


class Unsendable(Values):
    """Clients whose data no other process can be sent."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a socket")


def numbers(first: int, count: int) -> Values:
    """Clients with a fraction and an integer each."""
    return Values([(np.float32(1 / (n + 3)), np.int32(n)) for n in range(first, first + count)])
