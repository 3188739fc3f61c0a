"""The engine on Ray: clients' work and merges in actors, which keep their graphs between rounds.

The driver (this process) prepares a round and puts the values that it keeps and sends into Ray's
object store once.  It divides the clients into shards as the local engine does.  An idle actor gets
several neighbouring shards at a time: a subtree of the tree of merges, large enough that its work
takes longer than a message.  Accumulators come back as bytes at once, so when a machine dies,
finished work is not lost.  If the result of shards never arrives, another actor gets them; each
result is recorded once.  The accumulators of neighbours are merged in groups, by an actor if they
are large, in the order of the local engine's tree.  So for the same shards the result is the same,
bit for bit.

Of a round in groups, the shards of all groups are done side by side, and the results of groups are
merged by actors, in a tree; see `tffc.deploy.ray.groups`.

In buffered rounds, a client's contribution is a job, and arrives when it is done; see
`tffc.deploy.ray.arrivals`.

Secure sums are plain sums here: their bounds are checked, but nothing is kept secret.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

from tffc.backends.forms.buffered import BufferedSteps
from tffc.backends.forms.steps import TupleAggregation
from tffc.deploy.ray.api import Ref, load_ray
from tffc.deploy.ray.arrivals import RayArrivals
from tffc.deploy.ray.groups import GroupsWork
from tffc.deploy.ray.options import parse_options
from tffc.deploy.ray.pool import Jobs, pool_of
from tffc.deploy.ray.work import RoundWork
from tffc.deploy.ray.worker import RoundRefs
from tffc.language.values.resources import STORE
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.engines.engine import ONE_A_CALL, Batching, Cohort, RoundResult
from tffc.runtime.engines.groups import GroupsResult
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.remote import RemoteEngine
from tffc.runtime.engines.shards import Batches, shards_of
from tffc.runtime.engines.shipment import bundle_to_bytes, source_to_bytes
from tffc.runtime.engines.showing import showing
from tffc.runtime.engines.speed import SERVER
from tffc.support.errors import TffcError

LONG = 0.2
"""The most seconds of work in shards that are handed out together."""

UNEVEN = 1.3
"""The most work of an actor, as a multiple of its fair share, that handing out shards together may
cause."""

SMALL = 2**16
"""Up to so many bytes, the server's values are sent with each call, not through Ray's store."""

_Shards: TypeAlias = tuple[Batches | None, list[tuple[str, ...]]]


class RayEngine(RemoteEngine):
    """Runs rounds of one process in actors, which all engines with the same options share.

    Raises:
      LanguageValueError: the options cannot be parsed.
      ExecutionError: Ray cannot be started, or is not found at the address.
    """

    def __init__(
        self,
        process: Process,
        options: Sequence[str] = (),
        batching: Batching = ONE_A_CALL,
    ) -> None:
        super().__init__(process, batching)
        self.options = parse_options(options)
        self._ray = load_ray()
        self._pool = pool_of(self._ray, self.options)
        # Each node gets the resources once, and its workers use them where they are.
        resources = {
            digest: self._ray.put(STORE.content(digest)) for digest in process.bundle.resources()
        }
        self._bundle = self._ray.put((bundle_to_bytes(process.bundle), resources))
        self._source: tuple[ClientSource, Ref] | None = None
        self._shard_seconds: float | None = None

    @property
    def _workers(self) -> int:
        return self._pool.count

    def _aggregate(
        self, cohort: Cohort, carried: object, sent: object
    ) -> tuple[Sequence[object], set[str]]:
        refs = self._refs(cohort.source, carried, sent)
        work = self._work(cohort, carried, refs, self._shards(cohort))
        self._run(work)
        if work.failure is not None:
            raise work.failure
        self._measured([work])
        aggregation = TupleAggregation(self.process.steps.aggregations)
        totals = None if work.total is None else decode(work.total)
        with self.speed.driver.measure(SERVER), showing():
            totals = aggregation.zero(carried) if totals is None else totals
            return aggregation.report(totals, carried), work.skipped

    def run_groups(
        self, state: object, cohorts: Sequence[Cohort], *, skip_bad: bool
    ) -> GroupsResult:
        """See `RunsGroups`."""
        steps, errors = self.process.steps, dict[int, TffcError]()
        with self.speed.measure_round(sum(len(cohort.clients) for cohort in cohorts)):
            try:
                with self.speed.driver.measure(SERVER), showing():
                    carried, sent = steps.prepare(state)
                refs = self._refs(cohorts[0].source, carried, sent)
            except TffcError as error:
                return GroupsResult([error] * len(cohorts), None, {})
            shards: dict[int, _Shards] = {}
            for number, cohort in enumerate(cohorts):
                try:
                    cohort.check_enough(steps)
                    shards[number] = self._shards(cohort)
                except TffcError as error:
                    errors[number] = error
            together = self._together(sum(len(part) for _, part in shards.values()))
            works = {
                number: self._work(cohorts[number], carried, refs, parts, together)
                for number, parts in shards.items()
            }
            work = GroupsWork(
                works, errors, steps, refs, self.options.fanout, self.speed, skip_bad=skip_bad
            )
            self._run(work)
        if work.failure is not None:
            raise work.failure
        self._measured(list(works.values()))
        results = [
            work.errors.get(number)
            or RoundResult(
                None,
                None,
                tuple(client for client in cohort.clients if client in works[number].skipped),
                self._workers,
            )
            for number, cohort in enumerate(cohorts)
        ]
        return GroupsResult(results, work.partial, self.speed.parts())

    @property
    def shows_clients(self) -> bool:
        """See `BufferedEngine`."""
        return False

    def arrivals(
        self, steps: BufferedSteps, cohort: Cohort, delays: Delays | None, seed: int
    ) -> RayArrivals:
        """See `BufferedEngine`; contributions arrive in real time."""
        refs = functools.partial(self._refs, cohort.source)
        return RayArrivals(self._pool, steps, cohort, refs, self.speed)

    def _refs(self, source: ClientSource, carried: object, sent: object) -> RoundRefs:
        shipped = self._shipped(source)
        encoded = encode((carried, sent))
        context = self._ray.put(encoded) if len(encoded) > SMALL else encoded
        return RoundRefs(self._bundle, context, shipped)

    def _shards(self, cohort: Cohort) -> _Shards:
        """Return the numbers for batches, if there are any, and the shards of a cohort."""
        clients, most = cohort.clients, self.options.shard
        batches, shards = self._windows(clients)
        if batches is None:
            shards = shards_of(clients, most)
        elif most is not None:
            shards = [clients[at : at + most] for at in range(0, len(clients), most)]
        return batches, shards

    def _work(
        self,
        cohort: Cohort,
        carried: object,
        refs: RoundRefs,
        parts: _Shards,
        together: int | None = None,
    ) -> RoundWork:
        batches, shards = parts
        count = together or self._together(len(shards))
        hands = [shards[at : at + count] for at in range(0, len(shards), count)]
        return RoundWork(
            self.process, cohort, carried, refs, self.options, hands, batches, self.speed
        )

    def _run(self, work: Jobs[Any]) -> None:
        try:
            self._pool.run(work)
        except TffcError:
            raise
        except BaseException:
            # After an interruption no actor may continue with the round.
            self._pool.close()
            raise

    def _measured(self, works: Sequence[RoundWork]) -> None:
        """Remember how long a shard took on average."""
        seconds, counts = (
            zip(*(work.measured() for work in works), strict=True) if works else ((), ())
        )
        self._shard_seconds = sum(seconds) / max(1, sum(counts))

    def _shipped(self, source: ClientSource) -> Ref:
        """Return the reference of a source, which is stored once."""
        if self._source is None or self._source[0] is not source:
            shipped = source_to_bytes(source, "ray.cloudpickle")
            self._source = source, self._ray.put(shipped)
        return self._source[1]

    def _together(self, shards: int) -> int:
        """Return how many of `shards` are handed out together: a power of two, chosen by how long a
        shard took in the last round."""
        if not self._shard_seconds:
            return 1
        actors = self._pool.size()
        most = 1
        for size in (2**power for power in range(shards.bit_length())):
            longest = -(-shards // (size * actors)) * size
            if size * self._shard_seconds <= LONG and longest * actors <= UNEVEN * shards:
                most = size
        return most
