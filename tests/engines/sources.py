"""Clients' data in memory."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from tffc.errors import DataError


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
