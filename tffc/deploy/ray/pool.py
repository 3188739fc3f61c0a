"""Actors of Ray that carry out jobs, repeat those of lost ones, and live until the process ends."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tffc.deploy.ray.api import Actor, Ray, Ref
from tffc.deploy.ray.options import RayOptions
from tffc.deploy.ray.work import LOGS
from tffc.deploy.ray.worker import Worker
from tffc.runtime.engines.speed import WAIT, RemoteSpeed
from tffc.support.errors import ExecutionError, TffcError

PAUSE = 0.5
"""The seconds between two attempts to reach a lost actor, and the longest wait for results."""

J = TypeVar("J")


class Jobs(Protocol[J]):
    """Jobs for actors, and what becomes of their results."""

    @property
    def speed(self) -> RemoteSpeed: ...

    def count(self) -> int:
        """Return the number of jobs that no actor has."""
        ...

    def take(self) -> J:
        """Return the most urgent of these jobs, which an actor gets now."""
        ...

    def start(self, actor: Actor, job: J) -> Ref:
        """Give a job to an actor; return the reference of its result."""
        ...

    def repeat(self, job: J, reason: str) -> None:
        """Let a job be done again whose result never arrived, because the reason may be temporary;
        or let it fail if it has lost too many actors."""
        ...

    def record(self, job: J, content: bytes) -> None:
        """Record the result of a job."""
        ...

    def fail(self, job: J, error: TffcError) -> None:
        """Record that a job failed with an error that an actor did not expect."""
        ...


class Pool:
    """Actors with the same options, which live until the process ends or a round is interrupted."""

    def __init__(self, ray: Ray, options: RayOptions) -> None:
        self.ray = ray
        self.options = options
        self._actors: list[Actor] = []
        self.idle: list[Actor] = []

    def run(self, work: Jobs[Any]) -> None:
        """Carry out all jobs of some work.

        Raises:
          ExecutionError: no actor answers for too long.
        """
        session = Session(self, work)
        while work.count() or session.busy:
            session.step()

    @property
    def count(self) -> int:
        """The number of actors."""
        return len(self._actors)

    def lost(self) -> list[Actor]:
        """Return the actors that are not idle."""
        return [actor for actor in self._actors if actor not in self.idle]

    def grow(self, wanted: int) -> list[Actor]:
        """Start actors up to a number; return the new ones, which are not idle yet."""
        new = [self._make() for _ in range(len(self._actors), wanted)]
        self._actors += new
        return new

    def has(self, actor: Actor) -> bool:
        """Return whether an actor has not been ended."""
        return actor in self._actors

    def rest(self, actor: Actor) -> None:
        """Let an actor be idle, of which another session may have heard before."""
        if self.has(actor) and actor not in self.idle:
            self.idle.append(actor)

    def close(self) -> None:
        """End all actors."""
        self.end(list(self._actors))

    def end(self, actors: Iterable[Actor]) -> None:
        """End some actors."""
        ended = list(actors)
        for actor in ended:
            self.ray.kill(actor)
        self._actors = [actor for actor in self._actors if actor not in ended]
        self.idle = [actor for actor in self.idle if actor not in ended]

    def size(self) -> int:
        """Return the number of actors to use."""
        if self.options.workers is not None:
            return self.options.workers
        cpus = self.ray.cluster_resources().get("CPU", 1)
        return max(1, int(cpus / max(self.options.cpus_per_worker, 0.01)))

    def _make(self) -> Actor:
        actors = self.ray.remote(
            num_cpus=self.options.cpus_per_worker,
            num_gpus=self.options.gpus_per_worker,
            max_restarts=-1,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )(Worker)
        return actors.remote(os.getcwd(), max(1, int(self.options.cpus_per_worker)))


class Session(Generic[J]):
    """The actors of a pool at some work, which may get more jobs between the steps."""

    def __init__(self, pool: Pool, work: Jobs[J]) -> None:
        self._pool, self._work, self._ray = pool, work, pool.ray
        self._most = pool.size()
        self._lost = dict.fromkeys(pool.lost(), 0.0)
        self._flying: dict[Ref, tuple[Actor, J | None]] = {}
        self._answered = time.monotonic()

    @property
    def busy(self) -> list[Actor]:
        """The actors that have a job."""
        return [actor for actor, job in self._flying.values() if job is not None]

    def step(self) -> None:
        """Hand out jobs, wait at most `PAUSE` for a result, and record those that are there.

        Raises:
          ExecutionError: no actor answers for too long.
        """
        busy, now = self.busy, time.monotonic()
        wanted = min(self._most, max(1, self._work.count() + len(busy)))
        self._lost |= dict.fromkeys(self._pool.grow(wanted), 0.0)
        if busy or not self._work.count():
            self._answered = now
        elif now - self._answered > self._pool.options.wait:
            self._pool.close()
            raise self._nobody()
        for actor in [actor for actor, since in self._lost.items() if now - since >= PAUSE]:
            del self._lost[actor]
            self._flying[actor.ping.remote()] = actor, None
        while self._work.count() and self._pool.idle:
            actor, job = self._pool.idle.pop(0), self._work.take()
            self._flying[self._work.start(actor, job)] = actor, job
        with self._work.speed.driver.measure(WAIT):
            done = self._first()
        for ready in done:
            self._record(ready)

    def _record(self, ready: Ref) -> None:
        actor, job = self._flying.pop(ready)
        content = failure = None
        try:
            content = self._ray.get(ready)
        except self._ray.exceptions.RayTaskError as error:
            failure = ExecutionError(
                "E772",
                "a worker of Ray failed",
                notes=(f"{type(error.cause).__name__}: {error.cause}".partition("\n")[0],),
                help=LOGS,
            )
            failure.__cause__ = error
        except self._ray.exceptions.RayError as error:
            if self._pool.has(actor):
                self._lost[actor] = time.monotonic()
            if job is not None:
                self._work.repeat(job, str(error))
            return
        self._pool.rest(actor)
        self._answered = time.monotonic()
        if job is not None and failure is not None:
            self._work.fail(job, failure)
        elif job is not None and content is not None:
            self._work.record(job, content)

    def close(self) -> None:
        """End the actors that have a job."""
        self._pool.end(self.busy)

    def _first(self) -> Sequence[Ref]:
        """Wait at most `PAUSE` for any call; return the references of results that are there."""
        refs = list(self._flying)
        if not refs:
            time.sleep(PAUSE)
            return []
        return self._ray.wait(refs, num_returns=1, timeout=PAUSE)[0]

    def _nobody(self) -> ExecutionError:
        options, amounts = self._pool.options, self._ray.cluster_resources()
        cpus, gpus = options.cpus_per_worker, options.gpus_per_worker
        has = f"{amounts.get('CPU', 0):g} CPU, {amounts.get('GPU', 0):g} GPU"
        return ExecutionError(
            "E944",
            f"no worker of Ray has answered in {options.wait:g} seconds",
            notes=(f"each asks for {cpus:g} CPU and {gpus:g} GPU of one machine; Ray has {has}",),
            help="have workers ask for less by --cpus-per-worker or --gpus-per-worker, or wait "
            "longer for machines by --wait",
        )


_pools: dict[RayOptions, Pool] = {}


def pool_of(ray: Ray, options: RayOptions) -> Pool:
    """Return the actors for these options; start or join Ray if this process has not yet.

    Raises:
      ExecutionError: there is no Ray.
    """
    if not ray.is_initialized():
        _pools.clear()
        _start(ray, options)
    key = options._replace(shard=None, fanout=2)
    return _pools.setdefault(key, Pool(ray, options))


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
