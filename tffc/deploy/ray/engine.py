"""The engine on Ray: clients' work and merges in actors, which keep their graphs between rounds.

The driver (this process) prepares a round and puts the values that it keeps and sends into Ray's
object store once.  It divides the clients into shards as the local engine does.  An idle actor gets
several neighbouring shards at a time: a subtree of the tree of merges, large enough that its work
takes longer than a message.  Accumulators come back as bytes at once, so when a machine dies,
finished work is not lost.  If the result of shards never arrives, another actor gets them; each
result is recorded once.  The accumulators of neighbours are merged in groups, by an actor if they
are large, in the order of the local engine's tree.  So for the same shards the result is the same,
bit for bit.

Secure sums are plain sums here: their bounds are checked, but nothing is kept secret.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from tffc.backends.forms.steps import TupleAggregation
from tffc.deploy.ray.api import Actor, Ray, Ref, load_ray
from tffc.deploy.ray.worker import RoundRefs, Worker, merged_bytes
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.engines.engine import ONE_A_CALL, Batching, Cohort
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.remote import RemoteEngine
from tffc.runtime.engines.shards import Batches, ShardResult, shards_of
from tffc.runtime.engines.shipment import bundle_to_bytes, source_to_bytes
from tffc.runtime.engines.showing import showing
from tffc.runtime.engines.speed import MERGE, SERVER, WAIT, RemoteSpeed
from tffc.support.errors import ExecutionError, LanguageValueError, TffcError

ATTEMPTS = 3
"""The number of lost actors after which a job is given up."""

LARGE = 2**24
"""A group of accumulators of at least so many bytes is merged by an actor, not by the driver."""

LONG = 0.2
"""The most seconds of work in shards that are handed out together."""

UNEVEN = 1.3
"""The most work of an actor, as a multiple of its fair share, that handing out shards together may
cause."""

SMALL = 2**16
"""Up to so many bytes, the server's values are sent with each call, not through Ray's store."""

PAUSE = 0.5
"""The seconds between two attempts to reach a lost actor, and the longest wait for results."""


LOGS = "the logs of the worker's machine, in Ray's folder session_latest/logs, tell more"


class RayOptions(NamedTuple):
    """The options of the engine; `workers` and `address` are None where Ray decides."""

    address: str | None = None
    workers: int | None = None
    cpus_per_worker: float = 1
    gpus_per_worker: float = 0
    shard: int | None = None
    fanout: int = 8
    wait: float = 300


def parse_options(words: Sequence[str]) -> RayOptions:
    """Parse the words of the options.

    Raises:
      LanguageValueError: they cannot be parsed.
    """
    parser = _OptionParser(prog="ray", add_help=False, allow_abbrev=False)
    parser.add_argument("--address")
    parser.add_argument("--workers", type=_positive)
    parser.add_argument("--cpus-per-worker", type=_amount)
    parser.add_argument("--gpus-per-worker", type=_amount)
    parser.add_argument("--shard", type=_positive)
    parser.add_argument("--fanout", type=_power_of_two)
    parser.add_argument("--wait", type=_amount)
    options = vars(parser.parse_args(list(words)))
    return RayOptions(**{name: value for name, value in options.items() if value is not None})


class _OptionParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LanguageValueError(
            "E931",
            "the engine on Ray does not take these options",
            notes=(message,),
            help="give --address=auto, --workers=N, --cpus-per-worker=X, --gpus-per-worker=X, "
            "--shard=N, --fanout=N or --wait=SECONDS",
        )


def _positive(text: str) -> int:
    return _number(text, int, lambda number: number > 0, "a positive number")


def _amount(text: str) -> float:
    return _number(text, float, lambda number: 0 <= number < 2**20, "a number from 0 on")


def _power_of_two(text: str) -> int:
    return _number(text, int, lambda number: number > 1 and not number & number - 1, "2, 4, 8 ...")


N = TypeVar("N", int, float)


def _number(text: str, kind: type[N], holds: Callable[[N], bool], expected: str) -> N:
    with contextlib.suppress(ValueError):
        if holds(kind(text)):
            return kind(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")


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
        self._pool = _pool_of(self._ray, self.options)
        self._bundle = self._ray.put(bundle_to_bytes(process.bundle))
        self._source: tuple[ClientSource, Ref] | None = None
        self._shard_seconds: float | None = None

    @property
    def _workers(self) -> int:
        return self._pool.count

    def _aggregate(
        self, cohort: Cohort, carried: object, sent: object
    ) -> tuple[Sequence[object], set[str]]:
        source = self._shipped(cohort.source)
        encoded = encode((carried, sent))
        context = self._ray.put(encoded) if len(encoded) > SMALL else encoded
        refs = RoundRefs(self._bundle, context, source)
        clients, most = cohort.clients, self.options.shard
        batches, shards = self._windows(clients)
        if batches is None:
            shards = shards_of(clients, most)
        elif most is not None:
            shards = [clients[at : at + most] for at in range(0, len(clients), most)]
        together = self._together(len(shards))
        hands = [shards[at : at + together] for at in range(0, len(shards), together)]
        work = _RoundWork(
            self.process, cohort, carried, refs, self.options, hands, batches, self.speed
        )
        try:
            self._pool.run(work)
        except TffcError:
            raise
        except BaseException:
            # After an interruption no actor may continue with the round.
            self._pool.close()
            raise
        if work.failure is not None:
            raise work.failure
        self._shard_seconds = work.shard_seconds()
        aggregation = TupleAggregation(self.process.steps.aggregations)
        totals = None if work.total is None else decode(work.total)
        with self.speed.driver.measure(SERVER), showing():
            totals = aggregation.zero(carried) if totals is None else totals
            return aggregation.report(totals, carried), work.skipped

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


class _Job(NamedTuple):
    """Shards to be computed, or, at a height above 0, a group of accumulators to be merged."""

    height: int
    number: int
    parts: tuple[bytes, ...]


class _RoundWork:
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
        self._cohort = cohort
        self._carried = carried
        self._fanout = options.fanout
        self.refs = refs
        self._hands = hands
        self._batches = batches
        self.speed = speed
        self._end = len(hands)
        self.jobs = collections.deque(_Job(0, number, ()) for number in range(self._end))
        self._waiting: dict[tuple[int, int], dict[int, bytes]] = {}
        self._done = self._shards_done = 0
        self._seconds = 0.0
        self.attempts: collections.Counter[_Job] = collections.Counter()
        self.skipped: set[str] = set()
        self.failure: TffcError | None = None
        self.total: bytes | None = None
        cohort.progress(0, len(cohort.clients))

    def start(self, actor: Actor, job: _Job) -> Ref:
        """Give a job to an actor; return the reference of its result."""
        if job.height:
            return actor.merge.remote(self.refs, list(job.parts))
        shards = [list(map(os.fsencode, shard)) for shard in self._hands[job.number]]
        skips = self._cohort.skip_bad_clients
        return actor.run_shards.remote(self.refs, shards, skips, self._batches)

    def repeat(self, job: _Job, reason: str) -> None:
        """Queue a job again whose result never arrived, because the reason may be temporary.

        Raises:
          ExecutionError: the job has lost too many actors.
        """
        self.attempts[job] += 1
        if self.attempts[job] < ATTEMPTS:
            self.jobs.appendleft(job)
            return
        shards = () if job.height else self._hands[job.number]
        what = f"that of the clients {shards[0][0]} to {shards[-1][-1]}" if shards else "a merge"
        raise ExecutionError(
            "E772",
            f"{ATTEMPTS} workers of Ray were lost at the same work",
            notes=(f"it was {what}", reason.strip().partition("\n")[0]),
            help=f"too little memory is a usual reason; {LOGS}",
        )

    def record(self, job: _Job, content: bytes) -> None:
        """Record the result of a job."""
        result = ShardResult.from_bytes(content)
        self.speed.take(result.times, result.decisions)
        self._take(job, result)

    def _take(self, job: _Job, result: ShardResult) -> None:
        if result.error is not None:
            self._fail(job, result.error)
            return
        if job.height:
            self._add(job.height, job.number, result.totals)
            return
        if job.number >= self._end:
            return
        self.skipped.update(result.skipped)
        for client, output in result.outputs:
            self._cohort.deliver(client, output)
        self._shards_done += len(self._hands[job.number])
        self._seconds += result.seconds
        self._done += sum(map(len, self._hands[job.number]))
        self._cohort.progress(self._done, len(self._cohort.clients))
        self._add(0, job.number, result.totals)

    def shard_seconds(self) -> float:
        """Return how many seconds a shard took on average."""
        return self._seconds / max(1, self._shards_done)

    def _add(self, height: int, number: int, totals: bytes) -> None:
        """Put accumulators into their group, and merge the group when it is complete."""
        count = len(self._hands)
        for _ in range(height):
            count = -(-count // self._fanout)
        if count == 1:
            self.total = totals
            return
        group = self._waiting.setdefault((height, number // self._fanout), {})
        group[number] = totals
        first = number // self._fanout * self._fanout
        if len(group) < min(self._fanout, count - first):
            return
        del self._waiting[height, number // self._fanout]
        job = _Job(height + 1, number // self._fanout, tuple(group[at] for at in sorted(group)))
        if sum(map(len, job.parts)) >= LARGE:
            self.jobs.appendleft(job)
            return
        with self.speed.driver.measure(MERGE):
            content = merged_bytes(self._steps, self._carried, job.parts)
        self._take(job, ShardResult.from_bytes(content))

    def _fail(self, job: _Job, error: TffcError) -> None:
        """End the work from a job on; earlier shards continue, and may fail too."""
        number = -1 if job.height else job.number
        if number < self._end:
            self._end, self.failure = number, error
            self.jobs = collections.deque(
                earlier for earlier in self.jobs if not earlier.height and earlier.number < number
            )


class _Pool:
    """Actors with the same options, which live until the process ends or a round is interrupted."""

    def __init__(self, ray: Ray, options: RayOptions) -> None:
        self._ray = ray
        self._options = options
        self._actors: list[Actor] = []
        self._idle: list[Actor] = []

    def run(self, work: _RoundWork) -> None:
        """Carry out the jobs of a round.

        Raises:
          ExecutionError: a job fails, a job loses too many actors, or no actor answers for too
            long.
        """
        wanted = min(self.size(), max(1, len(work.jobs)))
        while len(self._actors) < wanted:
            self._actors.append(self._make())
        idle = self._idle
        lost = dict.fromkeys((actor for actor in self._actors if actor not in idle), 0.0)
        flying: dict[Ref, tuple[Actor, _Job | None]] = {}
        answered = time.monotonic()
        while work.jobs or any(job is not None for _, job in flying.values()):
            now = time.monotonic()
            if any(job is not None for _, job in flying.values()):
                answered = now
            elif now - answered > self._options.wait:
                self.close()
                raise self._nobody()
            for actor in [actor for actor, since in lost.items() if now - since >= PAUSE]:
                del lost[actor]
                flying[actor.ping.remote()] = actor, None
            while work.jobs and idle:
                actor, job = idle.pop(0), work.jobs.popleft()
                flying[work.start(actor, job)] = actor, job
            with work.speed.driver.measure(WAIT):
                done = self._first_of(flying)
            for ready in done:
                actor, job = flying.pop(ready)
                try:
                    content = self._result(ready)
                except self._ray.exceptions.RayError as error:
                    lost[actor] = time.monotonic()
                    if job is not None:
                        work.repeat(job, str(error))
                    continue
                idle.append(actor)
                answered = time.monotonic()
                if job is not None:
                    work.record(job, content)

    def _nobody(self) -> ExecutionError:
        cpus, gpus = self._options.cpus_per_worker, self._options.gpus_per_worker
        amounts = self._ray.cluster_resources()
        has = f"{amounts.get('CPU', 0):g} CPU, {amounts.get('GPU', 0):g} GPU"
        return ExecutionError(
            "E944",
            f"no worker of Ray has answered in {self._options.wait:g} seconds",
            notes=(f"each asks for {cpus:g} CPU and {gpus:g} GPU of one machine; Ray has {has}",),
            help="have workers ask for less by --cpus-per-worker or --gpus-per-worker, or wait "
            "longer for machines by --wait",
        )

    def _first_of(self, flying: Iterable[Ref]) -> Sequence[Ref]:
        """Wait at most `PAUSE` for any call; return the references of results that are there."""
        refs = list(flying)
        if not refs:
            time.sleep(PAUSE)
            return []
        return self._ray.wait(refs, num_returns=1, timeout=PAUSE)[0]

    @property
    def count(self) -> int:
        """The number of actors."""
        return len(self._actors)

    def close(self) -> None:
        """End all actors."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
        self._idle = []

    def size(self) -> int:
        """Return the number of actors to use."""
        if self._options.workers is not None:
            return self._options.workers
        cpus = self._ray.cluster_resources().get("CPU", 1)
        return max(1, int(cpus / max(self._options.cpus_per_worker, 0.01)))

    def _make(self) -> Actor:
        actors = self._ray.remote(
            num_cpus=self._options.cpus_per_worker,
            num_gpus=self._options.gpus_per_worker,
            max_restarts=-1,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )(Worker)
        return actors.remote(os.getcwd(), max(1, int(self._options.cpus_per_worker)))

    def _result(self, ready: Ref) -> bytes:
        """Return the result of a call.

        Raises:
          RayError: the actor was lost.
          ExecutionError: the call itself failed.
        """
        try:
            return self._ray.get(ready)
        except self._ray.exceptions.RayTaskError as error:
            raise ExecutionError(
                "E772",
                "a worker of Ray failed",
                notes=(f"{type(error.cause).__name__}: {error.cause}".partition("\n")[0],),
                help=LOGS,
            ) from error


_pools: dict[RayOptions, _Pool] = {}


def _pool_of(ray: Ray, options: RayOptions) -> _Pool:
    """Return the actors for these options; start or join Ray if this process has not yet."""
    if not ray.is_initialized():
        _pools.clear()
        _start(ray, options)
    key = options._replace(shard=None, fanout=2)
    return _pools.setdefault(key, _Pool(ray, options))


def _start(ray: Ray, options: RayOptions) -> None:
    settings: dict[str, object] = {"address": options.address}
    if options.address is None:
        settings = {"include_dashboard": False}
        if options.workers is not None and "RAY_ADDRESS" not in os.environ:
            settings["num_cpus"] = math.ceil(options.workers * options.cpus_per_worker)
    try:
        with _keeping_answer(signal.SIGTERM):
            ray.init(**settings, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:
        where = "here" if options.address is None else f"at {options.address}"
        raise ExecutionError(
            "E944",
            f"there is no Ray {where}",
            notes=(str(error).partition("\n")[0],),
            help="start it with ray start --head and give --address=auto, or give no address for "
            "one of this process",
        ) from error


@contextlib.contextmanager
def _keeping_answer(number: int) -> Generator[None]:
    """Let a signal be answered after the block as before it.

    Ray would answer SIGTERM itself, with another exit code and without a word about the run.
    """
    before = signal.getsignal(number)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(number, before)
