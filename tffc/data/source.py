"""What a data set and its clients are to those who read them.

A data set is opened first, which tells its clients.  Given the type that each client of a program
holds, it becomes a source, which reads one client at a time as a value of that type.  Both can be
pickled, to be read by other processes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tffc.ir.types import Type


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """Where data comes from: its kind, the options it was opened with, and the files it is in."""

    kind: str
    options: Mapping[str, str | None]
    files: Sequence[str]


class ClientSource(Protocol):
    """Clients and their values, of one type."""

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of all clients, in their order."""
        ...

    def read(self, client: str) -> Any:
        """Return the value that a client holds.  Called from several threads at once.

        Raises:
          DataError: there is none of the type that the source was opened for.
        """
        ...


class CheckedSource(ClientSource, Protocol):
    """A source that can tell whether a client's data fits without keeping it, and its origin."""

    def origin(self) -> Origin:
        """Return where the data comes from."""
        ...

    def check(self, client: str) -> tuple[int, ...]:
        """Return the number of elements of each sequence in a client's value, in the order of the
        type.

        Whatever can be known without making the value is checked.

        Raises:
          DataError: the client's data is not of the type that the source was opened for.
        """
        ...


class DataSet(Protocol):
    """Clients whose data has no type of the language yet."""

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of all clients, sorted."""
        ...

    def kinds(self) -> Mapping[str, str]:
        """Describe what the clients hold, as far as it is known: `float32[20]` by array's name.

        Raises:
          DataError: the data cannot be read.
        """
        ...

    def origin(self) -> Origin:
        """Return where the data comes from."""
        ...

    def typed(self, type: Type) -> CheckedSource:
        """Return the clients as holders of values of a type.

        Raises:
          DataError: no client can hold one.
        """
        ...


Progress = Callable[[int, int], None]
"""Told how many of how many things are done."""


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


Indexing = Callable[[int, int, str], None]
"""Told how many of how many bytes, or files, of a data set are indexed, and which of them it is."""


OFTEN = 1000
"""So many rows are indexed between two times that it is told."""


def no_indexing(done: int, total: int, things: str) -> None:
    """Tell nobody."""


def counted(clients: Sequence[str], progress: Progress) -> Iterator[str]:
    """Return the clients one by one, each counted when the next is asked for."""
    for done, client in enumerate(clients):
        progress(done, len(clients))
        yield client
    progress(len(clients), len(clients))


def check_all(source: CheckedSource, progress: Progress = no_progress) -> None:
    """Check every client.

    Raises:
      DataError: the data of one does not fit.
    """
    for client in counted(source.clients, progress):
        source.check(client)
