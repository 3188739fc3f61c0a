"""Reading clients ahead of the workers, if reading waits for a disk or a network.

Then the next clients can be fetched while others are computed.  If reading keeps a core busy, for
example by parsing, passing clients between threads would only cost time.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from tffc.runtime.data.source import ClientSource

AHEAD = 32
"""The most clients that are read ahead, and so are in memory beside those being computed."""

READERS = 8
"""The number of clients that are read at once."""

LEAST_WAIT = 0.001
"""Clients are read ahead if reading one waits at least so many seconds, on average."""

WEIGHT = 0.2
"""The weight of the last client in that average, an exponential moving average."""


class Waits:
    """The seconds that reading a client waits, on average; several threads may measure."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def read(self, source: ClientSource, client: str) -> Any:
        """Read a client, and record how long its thread was idle."""
        begun, busy = time.perf_counter(), time.thread_time()
        try:
            return source.read(client)
        finally:
            waited = time.perf_counter() - begun - (time.thread_time() - busy)
            self.seconds += WEIGHT * (waited - self.seconds)


class ReadAhead:
    """A source of the clients of one round, each read once and roughly in their order.

    `call` calls a function in one of at least so many other threads, and returns its future result.
    If reading a client ahead fails, `read` raises the error.
    """

    def __init__(
        self,
        source: ClientSource,
        clients: Sequence[str],
        waits: Waits,
        call: Callable[[Callable[[], Any], int], Future[Any]],
    ) -> None:
        self.clients = tuple(clients)
        self._source = source
        self._waits = waits
        self._call = call
        self._places: dict[str, int] = {}
        self._next = 0
        self._begun: dict[str, Future[Any]] = {}
        self._has_begun = self._is_closed = False
        self._lock = threading.Lock()

    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        with self._lock:
            if not self._has_begun:
                # Not in `__init__`, because a round whose batches are kept reads no clients.
                self._has_begun = True
                self._places = {client: place for place, client in enumerate(self.clients)}
            # A client that was read before, or is not in the round, is read in this thread.
            place = self._places.pop(client, -1)
            reading = self._begun.pop(client, None)
            if place >= 0 and self._waits.seconds >= LEAST_WAIT:
                self._begin_until(place)
        if reading is None:
            return self._waits.read(self._source, client)
        return reading.result()

    def close(self) -> None:
        """Stop reading ahead."""
        with self._lock:
            self._is_closed = True
            self._begun.clear()

    def _begin_until(self, place: int) -> None:
        """Start reading the next clients after a place that nobody has read yet."""
        self._next = max(self._next, place + 1)
        end = min(place + 1 + AHEAD, len(self.clients))
        for client in self.clients[self._next : end]:
            if client in self._places:
                read = functools.partial(self._read, client)
                self._begun[client] = self._call(read, READERS)
        self._next = max(self._next, end)

    def _read(self, client: str) -> Any:
        return None if self._is_closed else self._waits.read(self._source, client)
