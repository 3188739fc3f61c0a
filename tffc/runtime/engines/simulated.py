"""Contributions of buffered rounds in this process, which arrive in simulated time.

A contribution depends only on the client and on the state that it was given.  So those that arrive
next are computed in threads while the time stands still, and the result does not depend on the
number of workers.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple, Protocol

from tffc.backends.forms.steps import Value
from tffc.runtime.engines.buffered import Arrived, Start
from tffc.runtime.engines.contributions import Contributor
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.speed import Stopwatch

GRACE = 1.0
"""How many seconds the end waits for work in other threads."""


class InThread(Protocol):
    """Calls a function in one of a number of threads, and returns its future result."""

    def __call__(self, function: Callable[[], Any], threads: int) -> Future[Any]: ...


class _Flight(NamedTuple):
    """A client in flight, in the order of arrival."""

    arrives: float
    number: int
    start: Start


@dataclasses.dataclass(slots=True)
class _Version:
    """A state that clients in flight were given, how many of them there are, and what computes
    their contributions, once it is needed."""

    state: Value
    count: int = 0
    contributor: Contributor | None = None


class SimulatedArrivals:
    """Contributions that arrive after simulated delays; see `Arrivals`.

    What arrives at the same time does so in the order of the starts.
    """

    def __init__(
        self,
        contributor: Callable[[Value], Contributor],
        delays: Delays,
        seed: int,
        workers: int,
        call: InThread,
        stopwatch: Stopwatch,
    ) -> None:
        self._contributor, self._delays, self._seed = contributor, delays, seed
        self._workers, self._call, self._stopwatch = workers, call, stopwatch
        self._before = dict(stopwatch.seconds)
        self._now = 0.0
        self._flights: list[_Flight] = []
        self._versions: dict[int, _Version] = {}
        self._futures: dict[int, Future[Value | None]] = {}

    @property
    def now(self) -> float | None:
        """See `Arrivals`."""
        return self._now

    def begin(self, start: Start, state: Value) -> None:
        """See `Arrivals`."""
        self._versions.setdefault(start.version, _Version(state)).count += 1
        seconds = self._delays.seconds(self._seed, start.number, start.client)
        heapq.heappush(self._flights, _Flight(self._now + seconds, start.number, start))

    def wait(self) -> Sequence[Arrived]:
        """See `Arrivals`."""
        if not self._flights:
            return []
        self._now = self._flights[0].arrives
        arrived: list[Arrived] = []
        while self._flights and self._flights[0].arrives == self._now:
            if self._workers > 1:
                for flight in heapq.nsmallest(self._workers, self._flights):
                    self._begin(flight.start)
            start = heapq.heappop(self._flights).start
            future = self._futures.pop(start.number, None)
            contributor = self._given(start)
            if future is None:
                arrived.append(Arrived(start, contributor.contribution(start.client)))
            else:
                arrived.append(Arrived(start, future.result()))
            version = self._versions[start.version]
            version.count -= 1
            if not version.count:
                del self._versions[start.version]
        return arrived

    def _given(self, start: Start) -> Contributor:
        version = self._versions[start.version]
        if version.contributor is None:
            version.contributor = self._contributor(version.state)
        return version.contributor

    def _begin(self, start: Start) -> None:
        """Begin to compute a contribution in another thread, unless that is done."""
        if start.number not in self._futures:
            contributor = self._given(start)
            self._futures[start.number] = self._call(
                lambda: contributor.contribution(start.client), self._workers
            )

    def clients(self) -> None:
        """See `Arrivals`."""
        return

    def goes_on(self, round: int, clients: int) -> bool:
        """See `Arrivals`; what fails would fail again."""
        return False

    def parts(self) -> Mapping[str, float]:
        """See `Arrivals`."""
        spent = self._stopwatch.since(self._before)
        self._before = dict(self._stopwatch.seconds)
        return spent

    def close(self) -> None:
        """See `Arrivals`."""
        wait(self._futures.values(), GRACE)
