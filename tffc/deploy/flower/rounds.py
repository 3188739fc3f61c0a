"""Running rounds on a federation, and repeating those with too few replies."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

from tffc.deploy.flower.asking import TooFewError
from tffc.deploy.flower.engine import FlowerEngine, Nodes
from tffc.deploy.flower.settings import RunSettings
from tffc.runtime.engines.engine import Cohort, RoundResult
from tffc.runtime.engines.rounds import Round, sample
from tffc.runtime.engines.state import State

POLL = 2.0
"""The seconds between two counts of the connected nodes."""


def run_federation(
    engine: FlowerEngine,
    state: State,
    settings: RunSettings,
    tell: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Round]:
    """Run the rounds from `state` on, up to the configured number.

    A round with too few replies is repeated from the same state, with the nodes connected by then.
    Which nodes are asked depends on the seed, the round's number and the names of the connected
    nodes.

    Raises:
      TooFewError: too few nodes are connected or reply, in all attempts.
      ExecutionError: a step at the server fails.
    """
    while state.rounds < settings.rounds:
        names, outcome = _round(engine, state, settings, tell, sleep)
        state = State(outcome.state, engine.process.program, state.rounds + 1)
        left_out = frozenset(outcome.skipped)
        took_part = tuple(name for name in names if name not in left_out)
        yield Round(state.rounds, took_part, state, outcome.output, outcome.skipped)


def _round(
    engine: FlowerEngine,
    state: State,
    settings: RunSettings,
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
) -> tuple[tuple[str, ...], RoundResult]:
    """Return the nodes that a round asked, and its result."""
    cohort: Cohort | None = None
    for attempt in range(1, settings.attempts + 1):
        try:
            if cohort is None or not engine.unfinished:
                cohort = _cohort(engine, state.rounds + 1, settings, sleep)
            return cohort.clients, engine.run_round(state.value, cohort)
        except TooFewError as error:
            if attempt == settings.attempts:
                error.notes += (f"that was attempt {attempt}, the last one",)
                raise
            part = " with its last step" if engine.unfinished else ""
            tell(f"{error.message}: the round begins again{part} in {settings.pause:g} s")
            sleep(settings.pause)
    raise AssertionError("there is one attempt or more")


def _cohort(
    engine: FlowerEngine, number: int, settings: RunSettings, sleep: Callable[[float], None]
) -> Cohort:
    """Return the cohort of a round, of the nodes that are connected now."""
    names = tuple(sorted(_wait_for_nodes(engine, settings, sleep)))
    count = max(math.ceil(settings.fraction * len(names)), settings.min_replies)
    asked = sample(names, min(count, len(names)), settings.seed, number)
    return Cohort(Nodes(asked), asked, round=number)


def _wait_for_nodes(
    engine: FlowerEngine, settings: RunSettings, sleep: Callable[[float], None]
) -> Sequence[str]:
    """Return the names of the connected nodes, once there are enough."""
    waited = 0.0
    while len(names := engine.federation.names()) < settings.min_nodes:
        if waited >= settings.timeout:
            raise TooFewError(
                "E770",
                f"{len(names)} nodes are there, and a round needs {settings.min_nodes}",
                help="start more nodes, or let fewer be enough with min-nodes",
            )
        sleep(POLL)
        waited += POLL
    return names
