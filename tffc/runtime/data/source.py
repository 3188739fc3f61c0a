"""The protocols of data sets and of clients.

A data set is opened first, which finds out its clients.  Given the type of the value that each
client holds, it becomes a source, which reads one client at a time as a value of that type.  Both
can be pickled, to be read by other processes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tffc.language.types import Type
from tffc.support.errors import DataError


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """The origin of data: its kind, the options it was opened with, and its files."""

    kind: str
    options: Mapping[str, str | None]
    files: Sequence[str]


class ClientSource(Protocol):
    """Clients that each hold a value of one type."""

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of all clients, in order."""
        ...

    def read(self, client: str) -> Any:
        """Return the value of a client.  Called from several threads at once.

        Raises:
          DataError: the client has no value of the type that the source was opened with.
        """
        ...


class CheckedSource(ClientSource, Protocol):
    """A source that knows its origin and can check a client's data without keeping it."""

    def origin(self) -> Origin:
        """Return where the data comes from."""
        ...

    def check(self, client: str) -> tuple[int, ...]:
        """Return the number of elements of each sequence in a client's value, in the order of the
        type.

        Checks whatever can be known without making the value.

        Raises:
          DataError: the client's data is not of the type that the source was opened with.
        """
        ...


class DataSet(Protocol):
    """Clients whose data has no type of the language yet."""

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of all clients, sorted."""
        ...

    def kinds(self) -> Mapping[str, str]:
        """Describe what the clients hold, as far as it is known, by the array's name:
        `float32[20]`.

        Raises:
          DataError: the data cannot be read.
        """
        ...

    def origin(self) -> Origin:
        """Return where the data comes from."""
        ...

    def typed(self, type: Type) -> CheckedSource:
        """Return the clients as a source of values of a type.

        Raises:
          DataError: no client can hold one.
        """
        ...


D_co = TypeVar("D_co", bound=DataSet, covariant=True)


@dataclasses.dataclass(frozen=True, slots=True)
class TypedClients(Generic[D_co]):
    """The clients of a data set, each with a value of one type: the base of checked sources."""

    data: D_co

    @property
    def clients(self) -> tuple[str, ...]:
        return self.data.clients

    def origin(self) -> Origin:
        """See `CheckedSource`."""
        return self.data.origin()


Progress = Callable[[int, int], None]
"""Is called with the number of things done and their total."""


def no_progress(done: int, total: int) -> None:
    """Ignore progress."""


Indexing = Callable[[int, int, str], None]
"""Is called with how many bytes or files of a data set are indexed, their total, and which of the
two it counts."""


OFTEN = 1000
"""The number of rows that are indexed between two reports of progress."""


def no_indexing(done: int, total: int, things: str) -> None:
    """Ignore progress of indexing."""


def counted(clients: Sequence[str], progress: Progress) -> Iterator[str]:
    """Yield the clients one by one, reporting each as done when the next is requested."""
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


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """The result of checking all clients against a type.

    `lengths` has, for each client that fits, the number of elements of each sequence in its value;
    `errors` has the error of each other client.  `error` says why no client can fit, otherwise
    None.
    """

    type: Type
    lengths: Mapping[str, tuple[int, ...]]
    errors: Mapping[str, DataError]
    error: DataError | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every client fits."""
        return self.error is None and not self.errors


def fit(data: DataSet, type: Type, progress: Progress = no_progress) -> Fit:
    """Check every client of a data set, also after one has failed."""
    try:
        source = data.typed(type)
    except DataError as error:
        return Fit(type, {}, {}, error)
    lengths: dict[str, tuple[int, ...]] = {}
    errors: dict[str, DataError] = {}
    for client in counted(source.clients, progress):
        try:
            lengths[client] = source.check(client)
        except DataError as error:
            errors[client] = error
    return Fit(type, lengths, errors)
