"""Clients that are read before a worker asks for them, where reading them waits.

A disk or a network can fetch the next clients while this one is computed.  Where reading keeps a
core busy, as parsing does, handing clients over between threads would only take longer.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from tffc.data.source import ClientSource

AHEAD = 32
"""So many clients are read ahead at most: that is how many are in memory beside those at work."""

READERS = 8
"""So many clients are read at once."""

LEAST_WAIT = 0.001
"""Clients are read ahead where reading one waits for so many seconds, on average."""

WEIGHT = 0.2
"""How much the last client that was read counts in that average."""


class Waits:
    """The seconds that reading a client has waited lately; several threads may measure."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def read(self, source: ClientSource, client: str) -> Any:
        """Read a client, and take note of the time in which its thread did nothing."""
        begun, busy = time.perf_counter(), time.thread_time()
        try:
            return source.read(client)
        finally:
            waited = time.perf_counter() - begun - (time.thread_time() - busy)
            self.seconds += WEIGHT * (waited - self.seconds)


class ReadAhead:
    """A source of the clients of one round, each of which is asked for once, about in their order.

    `call` has a function called in one of at least so many other threads, and returns its future
    result.  What reading a client raises is raised where it is asked for.
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
                # Not before, for a round whose batches are there already asks for nobody.
                self._has_begun = True
                self._places = {each: place for place, each in enumerate(self.clients)}
            # One that is asked for again, or is not a client of the round, is read here.
            place = self._places.pop(client, -1)
            reading = self._begun.pop(client, None)
            if place >= 0 and self._waits.seconds >= LEAST_WAIT:
                self._begin_until(place)
        if reading is None:
            return self._waits.read(self._source, client)
        return reading.result()

    def close(self) -> None:
        """Read nothing more."""
        with self._lock:
            self._is_closed = True
            self._begun.clear()

    def _begin_until(self, place: int) -> None:
        """Have those after a place read that have not been asked for."""
        self._next = max(self._next, place + 1)
        end = min(place + 1 + AHEAD, len(self.clients))
        for client in self.clients[self._next : end]:
            if client in self._places:
                read = functools.partial(self._read, client)
                self._begun[client] = self._call(read, READERS)
        self._next = max(self._next, end)

    def _read(self, client: str) -> Any:
        return None if self._is_closed else self._waits.read(self._source, client)
