"""Buffered rounds on a federation, in real time: a contribution is the sum of a node's clients.

Nodes work at their own pace on the state that they were given.  The server merges what they answer
as it arrives, and steps when enough has; see `tffc.runtime.engines.buffered`.  A node that fails,
or does not answer in time, is left out until the next step.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tffc.backends.forms.buffered import BufferedSteps
from tffc.deploy.federation.asking import LATE, Arrival, Asking, TooFewError, read_reply
from tffc.deploy.federation.engine import FederationEngine, Nodes
from tffc.deploy.federation.messages import Reply, Request
from tffc.deploy.federation.pauses import pause_after
from tffc.deploy.federation.rounds import wait_for_nodes
from tffc.deploy.federation.settings import RunSettings
from tffc.deploy.federation.tasks import WORK
from tffc.runtime.engines.buffered import Arrived, Start, run_buffered
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.engine import Cohort, RoundResult
from tffc.runtime.engines.groups import group_result
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.showing import client_code, showing
from tffc.runtime.engines.state import State
from tffc.runtime.operations.counts import count_repeat
from tffc.support.errors import TffcError

LONGEST = 1.0
"""The most seconds between two looks for answers."""

Sleep = Callable[[float], None]


def run_buffered_federation(
    engine: FederationEngine,
    state: State,
    settings: RunSettings,
    buffering: Buffering,
    sleep: Sleep = time.sleep,
) -> Iterator[Round]:
    """Run buffered rounds from `state` on, up to the configured number.

    The run begins once enough nodes are connected to have all in flight.

    Raises:
      TooFewError: too few nodes are connected, or answer for a step in all attempts.
      ExecutionError: a step at the server fails, or would aggregate too few nodes.
      FormError: the bundle does not say that its rounds may be buffered.
    """
    least = settings.min_replies
    buffering.check(max(buffering.size, buffering.in_flight), least)
    engine.process.buffered_steps  # noqa: B018 (it is refused here, before the wait)
    needed = max(settings.min_nodes, buffering.size, buffering.in_flight)
    nodes = Nodes(_waited_for(engine, settings, sleep, needed))
    federation = _BufferedFederation(engine, sleep)
    rounds = settings.rounds - state.rounds
    engine.count.begin()
    engine.count.begin_attempt()
    for finished in run_buffered(
        federation, state, nodes, rounds, buffering, settings.seed, least_clients=least
    ):
        yield dataclasses.replace(finished, exchange=engine.count.exchange(finished.clients))
        engine.count.begin()
        engine.count.begin_attempt()


def _waited_for(
    engine: FederationEngine, settings: RunSettings, sleep: Sleep, least: int
) -> Sequence[str]:
    """Return the nodes, once there are enough, in as many attempts as there may be."""
    for _ in range(settings.attempts - 1):
        try:
            return wait_for_nodes(engine, settings, sleep, least)
        except TooFewError as error:
            engine.tell(f"{error.message}: they are waited for again in {settings.pause:g} s")
            sleep(settings.pause)
    return wait_for_nodes(engine, settings, sleep, least)


class _BufferedFederation:
    """A `BufferedEngine` whose clients are nodes."""

    shows_clients = False

    def __init__(self, engine: FederationEngine, sleep: Sleep) -> None:
        self._engine, self._sleep = engine, sleep

    @property
    def process(self) -> Process:
        """See `Engine`."""
        return self._engine.process

    def run_round(self, state: object, cohort: Cohort) -> RoundResult:
        """See `Engine`."""
        return self._engine.run_round(state, cohort)

    def arrivals(
        self, steps: BufferedSteps, cohort: Cohort, delays: Delays | None, seed: int
    ) -> NodeArrivals:
        """See `BufferedEngine`; contributions arrive in real time."""
        return NodeArrivals(self._engine, steps, cohort, self._sleep)


class _NodeFlight(NamedTuple):
    """A node at work: its start, what it was asked and when, and how its answer is checked."""

    start: Start
    request: Request
    asking: Asking
    since: float


class NodeArrivals:
    """Asks nodes for contributions, which arrive when they answer; see `Arrivals`."""

    def __init__(
        self, engine: FederationEngine, steps: BufferedSteps, cohort: Cohort, sleep: Sleep
    ) -> None:
        self._engine, self._group, self._cohort = engine, steps.group, cohort
        self._sleep = sleep
        self._timeout = engine.settings.timeout
        self._starts: list[Start] = []
        self._states: dict[int, object] = {}
        self._flights: dict[str, _NodeFlight] = {}
        self._round, self._attempt = 0, 1

    @property
    def now(self) -> float | None:
        """See `Arrivals`."""
        return None

    def clients(self) -> Sequence[str]:
        """See `Arrivals`; a node that lacks files of the bundle is sent them while nobody is at
        work."""
        names = sorted(self._engine.federation.names())
        lacking = self._engine.lacking(names)
        if lacking and not self._flights:
            self._engine.supply(lacking)
            lacking = self._engine.lacking(names)
        return [name for name in names if name not in lacking]

    def begin(self, start: Start, state: object) -> None:
        """See `Arrivals`."""
        self._states[start.version] = state
        self._starts.append(start)

    def wait(self) -> Sequence[Arrived]:
        """See `Arrivals`."""
        self._send()
        begun = time.monotonic()
        while self._flights:
            arrived = [*self._answers(), *self._late()]
            if arrived:
                return arrived
            self._sleep(pause_after(time.monotonic() - begun, LONGEST))
        return []

    def _send(self) -> None:
        """Ask the nodes that begin, those on the same state with the same request."""
        for version in sorted({start.version for start in self._starts}):
            starts = [start for start in self._starts if start.version == version]
            with showing():
                carried, sent = self._group.prepare(self._states[version])
            request = self._engine.ask_for(carried, sent, version + 1)
            nodes = tuple(start.client for start in starts)
            cohort = dataclasses.replace(self._cohort, clients=nodes, round=version + 1)
            asking = self._engine.asking(cohort, carried)
            record = request.to_record()
            self._engine.federation.send(WORK, dict.fromkeys(nodes, record), more=True)
            for _ in nodes:
                self._engine.count.send(record)
            now = time.monotonic()
            self._flights |= {
                start.client: _NodeFlight(start, request, asking, now) for start in starts
            }
        self._starts.clear()
        self._states.clear()

    def _answers(self) -> Iterator[Arrived]:
        """Yield what the answers are that are there."""
        for arrival in self._engine.federation.receive(0.0):
            flight = self._flights.get(arrival.node)
            if flight is None:
                continue
            if arrival.record is not None:
                self._engine.count.receive(arrival.record)
            answer = self._answer(flight, arrival)
            if answer is None:
                flight.asking.tell(f"{arrival.node} answers too late an earlier request")
                continue
            del self._flights[arrival.node]
            if isinstance(answer, str):
                flight.asking.leave_out(arrival.node, answer)
                yield Arrived(flight.start, None)
            else:
                yield answer

    def _answer(self, flight: _NodeFlight, arrival: Arrival) -> Arrived | str | None:
        """Return the contribution in an answer, what is wrong with it, or None if it is to an
        earlier request."""
        try:
            reply = read_reply(arrival, flight.request, flight.asking.unfit)
            if not isinstance(reply, Reply):
                return reply
            with showing(False), client_code():
                partial = group_result(self._group, flight.asking.carried, reply.totals)
            self._engine.count.take(arrival.node, reply.clients)
            return Arrived(flight.start, partial)
        except TffcError as error:
            return error.message

    def _late(self) -> Iterator[Arrived]:
        """Yield the nodes that have had their time."""
        now = time.monotonic()
        for node, flight in list(self._flights.items()):
            if now - flight.since >= self._timeout:
                del self._flights[node]
                flight.asking.tell(f"{node} did not answer in time")
                self._engine.count.leave_out(node, LATE)
                yield Arrived(flight.start, None)

    def goes_on(self, round: int, clients: int) -> bool:
        """See `Arrivals`; nodes may be there again after a pause."""
        self._attempt = self._attempt + 1 if round == self._round else 2
        self._engine.count.attempts += 1
        self._round = round
        settings = self._engine.settings
        what = (
            f"{clients} nodes contributed to round {round}, and the buffer holds {settings.buffer}"
        )
        if self._attempt > settings.attempts:
            raise TooFewError(
                "E770",
                what,
                notes=(f"that was attempt {settings.attempts}, the last one",),
                help="see the log for what each node answered; wait longer, or let the buffer hold "
                "fewer",
            )
        count_repeat()
        self._engine.tell(f"{what}: nodes are asked again in {settings.pause:g} s")
        self._sleep(settings.pause)
        return True

    def parts(self) -> Mapping[str, float]:
        """See `Arrivals`."""
        return {}

    def close(self) -> None:
        """See `Arrivals`; what nodes still answer is ignored."""
        self._flights.clear()
