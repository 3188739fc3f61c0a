"""Contributions to buffered rounds, which actors compute, and which arrive when they are done."""

from __future__ import annotations

import collections
import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence

from tffc.backends.forms.buffered import BufferedSteps
from tffc.deploy.ray.api import Actor, Ref
from tffc.deploy.ray.pool import Pool, Session
from tffc.deploy.ray.work import Attempts
from tffc.deploy.ray.worker import RoundRefs
from tffc.runtime.engines.buffered import Arrived, Start
from tffc.runtime.engines.encoding import decode
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.shards import ShardResult
from tffc.runtime.engines.showing import showing
from tffc.runtime.engines.speed import SERVER, RemoteSpeed
from tffc.support.errors import TffcError


@dataclasses.dataclass
class _Shipped:
    """What actors need of a state, while clients that were given it are at work."""

    refs: RoundRefs
    count: int = 0


class RayArrivals:
    """Computes contributions in actors, each when one is idle; see `Arrivals` and `Jobs`.

    `refs_of` stores what the server keeps and sends of a state.
    """

    def __init__(
        self,
        pool: Pool,
        steps: BufferedSteps,
        cohort: Cohort,
        refs_of: Callable[[object, object], RoundRefs],
        speed: RemoteSpeed,
    ) -> None:
        self._group, self._cohort, self._refs_of = steps.group, cohort, refs_of
        self.speed = speed
        self._starts: collections.deque[Start] = collections.deque()
        self._states: dict[int, _Shipped] = {}
        self._arrived: list[Arrived] = []
        self._failure: TffcError | None = None
        self._attempts = Attempts()
        self._begun, self._done = time.perf_counter(), 0
        self._session = Session(pool, self)

    @property
    def now(self) -> float | None:
        """See `Arrivals`."""
        return None

    def begin(self, start: Start, state: object) -> None:
        """See `Arrivals`."""
        if start.version not in self._states:
            with self.speed.driver.measure(SERVER), showing():
                carried, sent = self._group.prepare(state)
            self._states[start.version] = _Shipped(self._refs_of(carried, sent))
        self._states[start.version].count += 1
        self._starts.append(start)

    def wait(self) -> Sequence[Arrived]:
        """See `Arrivals`."""
        while not self._arrived and (self._starts or self._session.busy):
            self._session.step()
            if self._failure is not None:
                raise self._failure
        arrived, self._arrived = self._arrived, []
        return arrived

    def clients(self) -> None:
        """See `Arrivals`."""
        return

    def goes_on(self, round: int, clients: int) -> bool:
        """See `Arrivals`; data that cannot be read stays so."""
        return False

    def parts(self) -> Mapping[str, float]:
        """See `Arrivals`."""
        spent = self.speed.end_round(self._begun, self._done)
        self._begun, self._done = time.perf_counter(), 0
        return spent

    def close(self) -> None:
        """See `Arrivals`; ends the actors that are at work."""
        self._starts.clear()
        self._session.close()

    def count(self) -> int:
        """See `Jobs`."""
        return len(self._starts)

    def take(self) -> Start:
        """See `Jobs`."""
        return self._starts.popleft()

    def start(self, actor: Actor, job: Start) -> Ref:
        """See `Jobs`."""
        refs, skips = self._states[job.version].refs, self._cohort.skip_bad_clients
        return actor.contribute.remote(refs, os.fsencode(job.client), skips)

    def repeat(self, job: Start, reason: str) -> None:
        """See `Jobs`."""
        error = self._attempts.lose(job, f"that of the client {job.client}", reason)
        if error is None:
            self._starts.appendleft(job)
        else:
            self.fail(job, error)

    def record(self, job: Start, content: bytes) -> None:
        """See `Jobs`."""
        result = ShardResult.from_bytes(content)
        self.speed.take(result.times, result.decisions)
        if result.error is not None:
            self.fail(job, result.error)
            return
        shipped = self._states[job.version]
        shipped.count -= 1
        if not shipped.count:
            del self._states[job.version]
        self._done += 1
        self._arrived.append(Arrived(job, None if result.skipped else decode(result.totals)))

    def fail(self, job: Start, error: TffcError) -> None:
        """See `Jobs`."""
        self._failure = self._failure or error
