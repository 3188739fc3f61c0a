"""Running rounds on a federation, and repeating those with too few replies."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tffc.deploy.federation.asking import TooFewError
from tffc.deploy.federation.client_states import RECEIPT
from tffc.deploy.federation.engine import FederationEngine, Nodes
from tffc.deploy.federation.settings import RunSettings
from tffc.runtime.engines.client_states import ClientStates, HeldState
from tffc.runtime.engines.engine import Cohort, RoundResult
from tffc.runtime.engines.rounds import Round, Spent
from tffc.runtime.engines.sampling import sample
from tffc.runtime.engines.state import State
from tffc.runtime.operations.counts import count_repeat, count_round
from tffc.runtime.operations.json_log import logged_as

UNNAMED = re.compile(r"node-\d{10,}", re.ASCII)
"""The names of nodes that have none of their own: numbers for them."""

POLL = 2.0
"""The seconds between two counts of the connected nodes."""


def run_federation(
    engine: FederationEngine,
    state: State,
    settings: RunSettings,
    tell: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
    receipts: ClientStates | None = None,
) -> Iterator[Round]:
    """Run the rounds from `state` on, up to the configured number.

    If clients keep states, `receipts` says which ones those of each node have: by default none.

    A round with too few replies is repeated from the same state, with the nodes connected by then.
    Which nodes are asked depends on the seed, the round's number and the names of the connected
    nodes.

    Raises:
      TooFewError: too few nodes are connected or reply, in all attempts.
      ExecutionError: a step at the server fails.
    """
    if receipts is None and engine.process.client_state_type is not None:
        receipts = ClientStates(RECEIPT)
    while state.rounds < settings.rounds:
        held: dict[str, HeldState] = {}
        begun = time.perf_counter()
        engine.count.begin()
        with logged_as(round=state.rounds + 1):
            names, outcome = _round(engine, state, settings, tell, sleep, receipts, held)
        if receipts is not None:
            receipts = receipts.after(held)
        state = State(outcome.state, engine.process.program, state.rounds + 1)
        left_out = frozenset(outcome.skipped)
        took_part = tuple(name for name in names if name not in left_out)
        seconds = time.perf_counter() - begun
        count_round(state.rounds, seconds, len(took_part), len(left_out))
        yield Round(
            state.rounds,
            took_part,
            state,
            outcome.output,
            outcome.skipped,
            spent=Spent(seconds),
            client_states=receipts,
            exchange=engine.count.exchange(took_part),
        )


def _round(
    engine: FederationEngine,
    state: State,
    settings: RunSettings,
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
    receipts: ClientStates | None,
    held: dict[str, HeldState],
) -> tuple[tuple[str, ...], RoundResult]:
    """Return the nodes that a round asked, and its result; `held` takes their new receipts."""

    def deliver(node: str, receipt: Any) -> None:
        assert receipts is not None
        held[node] = receipts.keep(state.rounds + 1, node, receipt)

    cohort: Cohort | None = None
    for attempt in range(1, settings.attempts + 1):
        try:
            if cohort is not None and engine.unfinished:
                engine.count.attempts += 1
            else:
                engine.count.begin_attempt()
                names = _sampled(engine, state.rounds + 1, settings, sleep, receipts is not None)
                source = Nodes(names, receipts)
                cohort = Cohort(source, names, deliver=deliver, round=state.rounds + 1)
            return cohort.clients, engine.run_round(state.value, cohort)
        except TooFewError as error:
            if attempt == settings.attempts:
                error.notes += (f"that was attempt {attempt}, the last one",)
                raise
            count_repeat()
            part = " with its last step" if engine.unfinished else ""
            tell(f"{error.message}: the round begins again{part} in {settings.pause:g} s")
            sleep(settings.pause)
    raise AssertionError("there is one attempt or more")


def _sampled(
    engine: FederationEngine,
    number: int,
    settings: RunSettings,
    sleep: Callable[[float], None],
    needs_names: bool,
) -> tuple[str, ...]:
    """Return the nodes that a round asks, of those that are connected now.

    Nodes without a name of their own are left out if it `needs_names`: they may have another name
    after a restart.
    """
    waiting = wait_for_nodes(engine, settings, sleep, settings.min_nodes, needs_names)
    names = tuple(sorted(waiting))
    count = max(math.ceil(settings.fraction * len(names)), settings.min_replies)
    return sample(names, min(count, len(names)), settings.seed, number)


def _names(engine: FederationEngine, needs_names: bool) -> Sequence[str]:
    names = engine.federation.names()
    unnamed = [name for name in names if needs_names and UNNAMED.fullmatch(name)]
    for name in unnamed:
        engine.tell(f"{name} is left out: give it a name, by which its clients' states are known")
    return [name for name in names if name not in unnamed]


def wait_for_nodes(
    engine: FederationEngine,
    settings: RunSettings,
    sleep: Callable[[float], None],
    least: int,
    needs_names: bool = False,
) -> Sequence[str]:
    """Return the names of the connected nodes, once there are at least so many.

    Raises:
      TooFewError: there are too few until the timeout.
    """
    waited = 0.0
    while len(names := _names(engine, needs_names)) < least:
        if waited >= settings.timeout:
            raise TooFewError(
                "E770",
                f"{len(names)} nodes are there, and a round needs {least}",
                help="start more nodes, or let fewer be enough with min-nodes",
            )
        sleep(POLL)
        waited += POLL
    return names
