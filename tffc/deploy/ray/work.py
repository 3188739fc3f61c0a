"""The clients' part of rounds as jobs for actors: shards, and a tree of merges."""

from __future__ import annotations

import collections
import os
from collections.abc import Sequence
from typing import NamedTuple

from tffc.deploy.ray.api import Actor, Ref
from tffc.deploy.ray.options import RayOptions
from tffc.deploy.ray.worker import RoundRefs, merged_bytes
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.shards import Batches, ShardResult
from tffc.runtime.engines.speed import MERGE, RemoteSpeed
from tffc.support.errors import ExecutionError, TffcError

ATTEMPTS = 3
"""The number of lost actors after which a job is given up."""

LARGE = 2**24
"""A group of accumulators of at least so many bytes is merged by an actor, not by the driver."""

LOGS = "the logs of the worker's machine, in Ray's folder session_latest/logs, tell more"


class Job(NamedTuple):
    """Shards to be computed, or, at a height above 0, neighbours in a tree to be merged."""

    height: int
    number: int
    parts: tuple[bytes, ...]


class Tree:
    """Merges of a number of results, as bytes, always so many neighbours at once.

    The shape depends on these numbers alone.  As the second is a power of two, neighbours that are
    merged pairwise give what the local engine's tree gives.  `total` is the result of all.
    """

    def __init__(self, leaves: int, fanout: int) -> None:
        self._leaves, self._fanout = leaves, fanout
        self._waiting: dict[tuple[int, int], dict[int, bytes]] = {}
        self.total: bytes | None = None

    def add(self, height: int, number: int, result: bytes) -> Job | None:
        """Add the result of a number at a height; return the merge that has all parts with it."""
        count = self._leaves
        for _ in range(height):
            count = -(-count // self._fanout)
        if count == 1:
            self.total = result
            return None
        at = height, number // self._fanout
        neighbours = self._waiting.setdefault(at, {})
        neighbours[number] = result
        first = number // self._fanout * self._fanout
        if len(neighbours) < min(self._fanout, count - first):
            return None
        del self._waiting[at]
        parts = tuple(neighbours[number] for number in sorted(neighbours))
        return Job(height + 1, number // self._fanout, parts)


class Attempts:
    """Counts the actors that each job has lost."""

    def __init__(self) -> None:
        self._lost: collections.Counter[object] = collections.Counter()

    def lose(self, job: object, what: str, reason: str) -> ExecutionError | None:
        """Count an actor that was lost at a job; return an error if it was one too many."""
        self._lost[job] += 1
        if self._lost[job] < ATTEMPTS:
            return None
        return ExecutionError(
            "E772",
            f"{ATTEMPTS} workers of Ray were lost at the same work",
            notes=(f"it was {what}", reason.strip().partition("\n")[0]),
            help=f"too little memory is a usual reason; {LOGS}",
        )


class RoundWork:
    """The clients' part of one round: the jobs to be done, and the results so far.

    `hands` are the groups of shards that are handed out together.  `jobs` are those that no actor
    has, the most urgent first.  `failure` is the error of the first group of shards that has one,
    and `total` the accumulators of all clients, as bytes.
    """

    def __init__(
        self,
        process: Process,
        cohort: Cohort,
        carried: object,
        refs: RoundRefs,
        options: RayOptions,
        hands: Sequence[Sequence[tuple[str, ...]]],
        batches: Batches | None,
        speed: RemoteSpeed,
    ) -> None:
        self._steps = process.steps
        self.cohort = cohort
        self._carried = carried
        self.refs = refs
        self._hands = hands
        self._batches = batches
        self.speed = speed
        self._end = len(hands)
        self.jobs = collections.deque(Job(0, number, ()) for number in range(self._end))
        self._tree = Tree(len(hands), options.fanout)
        self._arrived: set[int] = set()
        self._done = 0
        self._seconds = 0.0
        self._attempts = Attempts()
        self.skipped: set[str] = set()
        self.failure: TffcError | None = None
        cohort.progress(0, len(cohort.clients))

    @property
    def total(self) -> bytes | None:
        """The accumulators of all clients; None before they are merged, or without clients."""
        return self._tree.total

    @property
    def is_over(self) -> bool:
        """Whether the total, or the failure, is the last one."""
        if self.failure is not None:
            return all(number in self._arrived for number in range(self._end))
        return self.total is not None or not self._hands

    def count(self) -> int:
        """See `Jobs`."""
        return len(self.jobs)

    def take(self) -> Job:
        """See `Jobs`."""
        return self.jobs.popleft()

    def start(self, actor: Actor, job: Job) -> Ref:
        """See `Jobs`."""
        if job.height:
            return actor.merge.remote(self.refs, list(job.parts))
        shards = [list(map(os.fsencode, shard)) for shard in self._hands[job.number]]
        skips = self.cohort.skip_bad_clients
        return actor.run_shards.remote(self.refs, shards, skips, self._batches)

    def repeat(self, job: Job, reason: str) -> None:
        """See `Jobs`."""
        shards = () if job.height else self._hands[job.number]
        what = f"that of the clients {shards[0][0]} to {shards[-1][-1]}" if shards else "a merge"
        error = self._attempts.lose(job, what, reason)
        if error is None:
            self.jobs.appendleft(job)
        else:
            self.fail(job, error)

    def record(self, job: Job, content: bytes) -> None:
        """See `Jobs`."""
        result = ShardResult.from_bytes(content)
        self.speed.take(result.times, result.decisions)
        self._take(job, result)

    def _take(self, job: Job, result: ShardResult) -> None:
        if result.error is not None:
            self.fail(job, result.error)
            return
        if job.height:
            self._add(job.height, job.number, result.totals)
            return
        if job.number >= self._end:
            return
        self._arrived.add(job.number)
        self.skipped.update(result.skipped)
        for client, output in result.outputs:
            self.cohort.deliver(client, output)
        self._seconds += result.seconds
        self._done += sum(map(len, self._hands[job.number]))
        self.cohort.progress(self._done, len(self.cohort.clients))
        self._add(0, job.number, result.totals)

    def measured(self) -> tuple[float, int]:
        """Return how many seconds the shards took that are done, and their number."""
        return self._seconds, sum(len(self._hands[number]) for number in self._arrived)

    def _add(self, height: int, number: int, totals: bytes) -> None:
        """Put accumulators into the tree, and merge them with their neighbours once all are
        there."""
        job = self._tree.add(height, number, totals)
        if job is None or self.failure is not None:
            return
        if sum(map(len, job.parts)) >= LARGE:
            self.jobs.appendleft(job)
            return
        with self.speed.driver.measure(MERGE):
            content = merged_bytes(self._steps, self._carried, job.parts)
        self._take(job, ShardResult.from_bytes(content))

    def fail(self, job: Job, error: TffcError) -> None:
        """End the work from a job on; earlier shards continue, and may fail too."""
        number = 0 if job.height else job.number
        if number < self._end or (job.height and self.failure is None):
            self._end, self.failure = number, error
            self.jobs = collections.deque(
                earlier for earlier in self.jobs if not earlier.height and earlier.number < number
            )
