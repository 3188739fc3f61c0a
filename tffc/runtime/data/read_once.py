"""A cache of clients' values, so that files are parsed once and not in every round.

Parsing a client's file takes longer than a small model's work on it.
"""

from __future__ import annotations

import threading
from typing import Any

from tffc.language.types import Type
from tffc.runtime.data.arrays import stackable_layout
from tffc.runtime.data.source import CheckedSource, Origin
from tffc.support.errors import DataError
from tffc.support.guards import Array

MOST_BYTES = 2**28
"""About how many bytes of values are kept; clients beyond that are read again each time."""

OVERHEAD = 200
"""About how many bytes Python needs for each array or string."""


class ReadOnce:
    """A source that keeps the values of another; they are of one type and do not change.

    It keeps at most about `max_bytes` of values.  A pickled copy starts empty.
    """

    def __init__(self, source: CheckedSource, type: Type, max_bytes: int = MOST_BYTES) -> None:
        self._source = source
        self._type = type
        self._max_bytes = max_bytes
        self._layout = stackable_layout(type)
        self._values: dict[str, Any] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return ReadOnce, (self._source, self._type, self._max_bytes)

    @property
    def clients(self) -> tuple[str, ...]:
        return self._source.clients

    def origin(self) -> Origin:
        """See `CheckedSource`."""
        return self._source.origin()

    def check(self, client: str) -> tuple[int, ...]:
        """See `CheckedSource`."""
        return self._source.check(client)

    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        if client in self._values:
            return self._values[client]
        value = self._source.read(client)
        if self._bytes < self._max_bytes and (size := self._size(value)) is not None:
            with self._lock:
                if self._bytes + size <= self._max_bytes and client not in self._values:
                    self._values[client] = value
                    self._bytes += size
        return value

    def _size(self, value: object) -> int | None:
        """Return about how many bytes a value takes; None if that is not known."""
        if self._layout is None:
            return None
        try:
            columns = self._layout.columns(value, "")
        except DataError:
            return None
        return sum(OVERHEAD + _size_of(column) for column in columns)


def _size_of(column: Array) -> int:
    if column.dtype != object:
        return column.nbytes
    return sum(OVERHEAD + len(text) for text in column.flat)
