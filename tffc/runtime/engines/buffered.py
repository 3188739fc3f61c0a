"""Buffered rounds: contributions are merged as they arrive, and the server steps after some.

The clients in flight work on the state that they were given.  A contribution that arrives is
discounted by its age, the number of steps since then, and merged with those before it.  After so
many contributions as the buffer holds, the server steps from the state of now.

What an engine adds is how contributions are computed and when they arrive (`Arrivals`); everything
else is the same for simulated and for real time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from tffc.backends.forms.buffered import BufferedSteps
from tffc.runtime.data.source import ClientSource, Progress, no_progress
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.engine import Cohort, Engine
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.rounds import Contributions, Round, Spent
from tffc.runtime.engines.showing import client_code, showing
from tffc.runtime.engines.state import State
from tffc.runtime.operations.counts import count_round
from tffc.support.errors import ExecutionError

if TYPE_CHECKING:
    from tffc.backends.forms.steps import Value

TRIES = 64
"""How many clients a start draws from all before it draws from those that are free."""


class Start(NamedTuple):
    """The start of a client's work: its number, the client, and the version of the state that it is
    given, which is the number of the server's steps before."""

    number: int
    client: str
    version: int


class Arrived(NamedTuple):
    """What comes of a start: a contribution, or None if the client is left out."""

    start: Start
    partial: Value | None


class Arrivals(Protocol):
    """Computes contributions, and tells when they arrive."""

    @property
    def now(self) -> float | None:
        """The simulated seconds so far; None in real time."""
        ...

    def begin(self, start: Start, state: Value) -> None:
        """Let a client begin its work on the value of a state."""
        ...

    def wait(self) -> Sequence[Arrived]:
        """Wait until something arrives, and return all that does at that moment, in order; nothing
        if nothing is in flight.

        Raises:
          DataError: a client's data cannot be read, and bad clients are not skipped.
          ExecutionError: a client's work fails.
        """
        ...

    def clients(self) -> Sequence[str] | None:
        """Return the clients that there are now; None if they stay the same in a run."""
        ...

    def goes_on(self, round: int, clients: int) -> bool:
        """Return whether clients that were left out may begin again, perhaps after a pause, because
        nothing is in flight and a round has only so many clients.

        Raises:
          ExecutionError: they have begun again too often.
        """
        ...

    def parts(self) -> Mapping[str, float]:
        """Return the seconds that workers spent in each part since the last call."""
        ...

    def close(self) -> None:
        """End all work that is in flight."""
        ...


@runtime_checkable
class BufferedEngine(Protocol):
    """An engine that can run buffered rounds; its errors may tell values of clients if it
    `shows_clients`."""

    @property
    def shows_clients(self) -> bool: ...

    def arrivals(
        self, steps: BufferedSteps, cohort: Cohort, delays: Delays | None, seed: int
    ) -> Arrivals:
        """Return how contributions of a cohort's clients are computed, and when they arrive."""
        ...


class Buffer:
    """The server of buffered rounds: the version of its state, the clients in flight, and the
    contributions that have arrived since the last step.  With `shows`, errors may tell values of
    clients."""

    def __init__(
        self,
        steps: BufferedSteps,
        state: State,
        buffering: Buffering,
        clients: Sequence[str],
        *,
        shows: bool = False,
    ) -> None:
        self.state = state
        self._shows = shows
        self.in_flight: dict[str, Start] = {}
        self._steps, self._buffering, self._clients = steps, buffering, clients
        self._here: frozenset[str] | None = None
        self._starts = 0
        self._forget()

    def _forget(self) -> None:
        self.clients: list[str] = []
        self.ages: list[int] = []
        self.skipped: list[str] = []
        self.dropped = 0
        self._total: Value = None

    @property
    def version(self) -> int:
        """The number of steps that the state has behind it."""
        return self.state.rounds

    def next_start(self, seed: int) -> Start | None:
        """Return the next start, of a client that is free; None if enough are in flight or none is
        free.

        A client is free if it is not in flight, and neither in the buffer nor left out since the
        last step: a step has at most one contribution of each.
        """
        busy = {*self.in_flight, *self.clients, *self.skipped}
        if self._here is not None:
            busy &= self._here
        if len(self.in_flight) >= self._buffering.in_flight or len(busy) >= len(self._clients):
            return None
        self._starts += 1
        client = draw(self._clients, busy, seed, self._starts)
        self.in_flight[client] = Start(self._starts, client, self.version)
        return self.in_flight[client]

    def set_clients(self, clients: Sequence[str]) -> None:
        """Let only these clients begin from now on."""
        self._clients, self._here = clients, frozenset(clients)

    def free_skipped(self) -> None:
        """Let clients that were left out since the last step begin again."""
        self.skipped.clear()

    def take(self, arrival: Arrived) -> None:
        """Take what arrives: discount and merge it, or drop it, or leave its client out."""
        client = arrival.start.client
        del self.in_flight[client]
        age, most = self.version - arrival.start.version, self._buffering.max_age
        if arrival.partial is None:
            self.skipped.append(client)
        elif most is not None and age > most:
            self.dropped += 1
        else:
            with showing():
                weight = self._steps.weight(age)
            # These are values of single clients.
            with showing(self._shows), client_code():
                partial = self._steps.discounted(arrival.partial, weight)
                first = not self.clients
                self._total = partial if first else self._steps.join(self._total, partial)
            self.clients.append(client)
            self.ages.append(age)

    @property
    def is_full(self) -> bool:
        """Whether the server is to step."""
        return len(self.clients) >= self._buffering.size

    def step(self, program: str) -> Round:
        """Step from the state of now, empty the buffer, and return the round that this ends."""
        with showing():
            value, output = self._steps.conclude(self.state.value, self._total)
        self.state = State(value, program, self.version + 1)
        finished = Round(
            self.version,
            tuple(self.clients),
            self.state,
            output,
            tuple(self.skipped),
            contributions=Contributions(tuple(self.ages), self.dropped),
        )
        self._forget()
        return finished


def draw(clients: Sequence[str], busy: set[str], seed: int, number: int) -> str:
    """Return the client of the start of a number: one that is not busy, by hashes of the seed and
    the number."""
    for attempt in range(TRIES):
        client = clients[_hash(seed, number, attempt) % len(clients)]
        if client not in busy:
            return client
    free = [client for client in clients if client not in busy]
    return free[_hash(seed, number, TRIES) % len(free)]


def _hash(seed: int, number: int, attempt: int) -> int:
    digest = hashlib.sha256(f"{seed}/start/{number}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def run_buffered(
    engine: Engine,
    state: State,
    source: ClientSource,
    rounds: int,
    buffering: Buffering,
    seed: int = 0,
    *,
    delays: Delays | None = None,
    skip_bad_clients: bool = False,
    progress: Progress = no_progress,
    evaluation: Evaluation | None = None,
    least_clients: int = 0,
) -> Iterator[Round]:
    """Run buffered rounds from `state` on, each up to a step of the server, and yield them.

    All clients in flight begin with `state`.  Which clients begin, and in a simulation when their
    contributions arrive, depends only on the seed, the clients' names and the delays.

    Raises:
      DataError: there are too few clients, or a client's data cannot be read.
      ExecutionError: a component fails, or a step has too few clients.
      FormError: the bundle does not say that its rounds may be buffered.
    """
    if evaluation is not None:
        evaluation.check(engine.process)
    steps = engine.process.buffered_steps
    clients = source.clients
    cohort = Cohort(source, clients, skip_bad_clients, least_clients=least_clients)
    buffering.check(len(clients), least_clients)
    assert isinstance(engine, BufferedEngine), "the choice of the engine was checked"
    buffer = Buffer(steps, state, buffering, clients, shows=engine.shows_clients)
    arrivals = engine.arrivals(steps, cohort, delays, seed)
    last = state.rounds + rounds
    stepped, begun, is_due = arrivals.now, time.perf_counter(), True
    try:
        while buffer.version < last:
            if is_due and (here := arrivals.clients()) is not None:
                buffer.set_clients(here)
            is_due = False
            while (start := buffer.next_start(seed)) is not None:
                arrivals.begin(start, buffer.state.value)
            arrived = arrivals.wait()
            if not arrived and not buffer.in_flight:
                if not arrivals.goes_on(buffer.version + 1, len(buffer.clients)):
                    raise _too_few(buffer, buffering)
                buffer.free_skipped()
                is_due = True
            for arrival in arrived:
                buffer.take(arrival)
                progress(len(buffer.clients), buffering.size)
                if not buffer.is_full:
                    continue
                finished, is_due = buffer.step(engine.process.program), True
                now, ended = arrivals.now, time.perf_counter()
                measured = measuring = None
                if evaluation is not None and evaluation.is_due(finished.number, last):
                    measured = evaluation.measure(finished.state.value, finished.number, None)
                    measuring = time.perf_counter() - ended
                left_out = len(finished.skipped)
                count_round(finished.number, ended - begun, len(finished.clients), left_out)
                yield dataclasses.replace(
                    finished,
                    evaluation=measured,
                    simulated=None if now is None or stepped is None else now - stepped,
                    spent=Spent(ended - begun, measuring, parts=arrivals.parts()),
                )
                stepped, begun = now, time.perf_counter()
                if buffer.version >= last:
                    break
    finally:
        arrivals.close()


def _too_few(buffer: Buffer, buffering: Buffering) -> ExecutionError:
    return ExecutionError(
        "E746",
        f"round {buffer.version + 1} is not released: it would aggregate {len(buffer.clients)} "
        f"clients, and the buffer holds {buffering.size}",
        notes=(f"{len(buffer.skipped)} clients were left out",),
        help="mend the data of clients that are left out, or let the buffer hold fewer",
    )
