"""The states of clients in the folder of a run: the files of each client's last round.

    clients/round-N/*.npz    the state after round N of each client whose last round it was

The states that a run begins with are those of round 0.  Like the outputs of a round, the files are
written before the round is committed; files that a later round has replaced are removed after that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import urllib.parse
from collections.abc import Iterator
from typing import Any

from tffc.language.types import Type
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.npz import read_arrays
from tffc.runtime.engines.client_states import ClientStates
from tffc.runtime.runs.run_record import altered, read_record, reading
from tffc.support.errors import DataError, reader

CLIENTS = "clients"
"""The folder for clients' values, in that of the run."""

FLOWER, NVFLARE = "flower", "nvflare"
"""The kinds of the sources of runs on federations, whose nodes have the data and states of
clients."""

FEDERATIONS = {FLOWER: "Flower", NVFLARE: "NVFlare"}
"""The names of federations, by the kinds of sources."""

SUFFIX = ".npz"

LONGEST_NUMBER = 20
"""Numbers of rounds have fewer digits."""


@dataclasses.dataclass(frozen=True, slots=True)
class StateFile:
    """A client's state of a type, in a file."""

    path: pathlib.Path
    type: Type

    @reader("a client's state", DataError)
    def read(self) -> Any:
        """See `HeldState`."""
        if not os.path.lexists(self.path):
            raise DataError(
                "E626",
                f"there is no state of client {client_of(self.path)} in {self.path}",
                notes=("the folder of a run keeps the last state of each client",),
                help="read the states of a round before the next round, or run without a folder",
            )
        layout = ArrayLayout(self.type)
        return layout.decode(read_arrays(self.path, layout), str(self.path))


def file_of(folder: pathlib.Path, number: int, client: str) -> pathlib.Path:
    """Return the file of a client's value after a round, in the folder for clients' values."""
    return folder / f"round-{number}" / file_name(client)


def file_name(client: str) -> str:
    """Return the name of the file of a client's value."""
    return urllib.parse.quote(client, safe=" ", errors="surrogateescape") + SUFFIX


def client_of(file: pathlib.Path) -> str:
    """Return the name of the client whose file `file_name` has named."""
    return urllib.parse.unquote(file.name.removesuffix(SUFFIX), errors="surrogateescape")


def state_files(folder: pathlib.Path, rounds: int) -> Iterator[tuple[str, pathlib.Path]]:
    """Yield the clients and the files of their states after the rounds up to a number, by rounds.

    Raises:
      DataError: a name of a round leads elsewhere.
      OSError: a folder cannot be read.
    """
    for number in sorted(number for number in _rounds(folder) if number <= rounds):
        inner = folder / f"round-{number}"
        if inner.is_symlink() or not inner.is_dir():
            raise altered(inner, "is no folder")
        yield from states_in(inner)


def states_in(folder: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Yield the clients and the files of their states in a folder.

    Raises:
      DataError: a name of a file leads elsewhere.
      OSError: the folder cannot be read.
    """
    for entry in os.scandir(folder):
        if entry.name.endswith(SUFFIX):
            if not entry.is_file(follow_symlinks=False):
                raise altered(folder / entry.name, "is no file")
            yield client_of(folder / entry.name), folder / entry.name


def states_of_run(folder: pathlib.Path, type: Type) -> ClientStates:
    """Return the states of clients after the last round of the run in a folder.

    Raises:
      DataError: there is no such run, or its files cannot be read.
    """
    record = read_record(folder)
    if record is None:
        raise DataError(
            "E626",
            f"there is no run in {folder}",
            help="give the folder of a run whose clients keep states",
        )
    federation = FEDERATIONS.get(record.identity.source.kind)
    if federation is not None:
        raise DataError(
            "E626",
            f"the states of clients of the run in {folder} are at the nodes of {federation}",
            help="go on with this run there, or copy its state elsewhere, to begin with the state "
            "of the server alone",
        )
    clients = folder / CLIENTS
    with reading(clients):
        files = dict(state_files(clients, record.rounds))
    return ClientStates(type, {client: StateFile(file, type) for client, file in files.items()})


def remove_file(file: pathlib.Path) -> None:
    """Remove the file of a state that a later round has replaced, and its folder if it is empty."""
    file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        file.parent.rmdir()


def _rounds(folder: pathlib.Path) -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(folder):
            prefix, _, number = name.partition("-")
            if prefix == "round" and number.isdecimal() and len(number) < LONGEST_NUMBER:
                yield int(number)
