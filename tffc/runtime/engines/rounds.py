"""Running rounds one after another on any engine: their clients, numbers and evaluations."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tffc.runtime.data.source import ClientSource, Progress, no_progress
from tffc.runtime.engines.client_states import ClientStates, HeldState, SourceWithStates
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.engine import Cohort, Deliver, Engine
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.sampling import ALL, Sampling
from tffc.runtime.engines.state import State
from tffc.runtime.operations.counts import count_round


@dataclasses.dataclass(frozen=True, slots=True)
class Spent:
    """The seconds that a round took, and those of its evaluation.

    The number of workers, the seconds that they spent in each part, and measurements about batches
    are given if the engine knows them.
    """

    seconds: float = 0.0
    evaluation: float | None = None
    workers: int | None = None
    parts: Mapping[str, float] = dataclasses.field(default_factory=dict[str, float])
    known: Mapping[str, bool] = dataclasses.field(default_factory=dict[str, bool])


@dataclasses.dataclass(frozen=True, slots=True)
class Contributions:
    """The ages of a step's contributions, in the order of its clients, and how many were too old
    and were dropped since the step before."""

    ages: tuple[int, ...]
    dropped: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Exchange:
    """What the server of a federation exchanged with nodes in a round.

    These are the attempts that the round took, the bytes of values sent and received in all of
    them, how many clients each node that took part says it had, and why others were left out.
    """

    attempts: int
    sent: int
    received: int
    clients: Mapping[str, int]
    left_out: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """A finished round.

    It has its number, the clients that took part and those left out, the state after the round, the
    server output, the result of an evaluation if there was one, the time that was spent, the states
    of all clients after the round, if they keep any, and a line for each group of clients that was
    left out.  `simulated` are the seconds that it took by a model of delays; `contributions` tells
    of those that a buffered round has merged; `warnings` are what the user should know; `exchange`
    is that of a round whose clients are nodes.
    """

    number: int
    clients: tuple[str, ...]
    state: State
    output: Any
    skipped: tuple[str, ...] = ()
    evaluation: Any = None
    spent: Spent = dataclasses.field(default_factory=Spent, compare=False)
    client_states: ClientStates | None = dataclasses.field(default=None, compare=False)
    lost: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    contributions: Contributions | None = None
    simulated: float | None = None
    warnings: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    exchange: Exchange | None = dataclasses.field(default=None, compare=False)


def run_rounds(
    engine: Engine,
    state: State,
    source: ClientSource,
    rounds: int,
    sampling: Sampling = ALL,
    *,
    skip_bad_clients: bool = False,
    deliver: Deliver = lambda client, output: None,
    progress: Progress = no_progress,
    evaluation: Evaluation | None = None,
    least_clients: int = 0,
    client_states: ClientStates | None = None,
    delays: Delays | None = None,
) -> Iterator[Round]:
    """Run rounds from `state` on, each with the clients sampled for it, and yield them.

    Clients that keep states begin with `client_states`, by default with the first ones.

    A round that would aggregate fewer than `least_clients` clients ends the run before anything of
    it is returned.  By a model of `delays`, a round takes as long as its slowest client.  If an
    evaluation is due after a round, it is done before the round is yielded.

    A round for which nobody is drawn is run like any other: to leave it out would show that.

    Raises:
      DataError: there are too few clients, or a client's data cannot be read.
      ExecutionError: a component fails, or too few clients are left in a round.
      FormError: the evaluation takes states of another type.
    """
    if evaluation is not None:
        evaluation.check(engine.process)
    state_type = engine.process.client_state_type
    if client_states is None and state_type is not None:
        client_states = ClientStates(state_type)
    last = state.rounds + rounds
    for _ in range(rounds):
        number = state.rounds + 1
        names = sampling.draw(source.clients, number)
        cohort = Cohort(source, names, skip_bad_clients, deliver, progress, number, least_clients)
        held: dict[str, HeldState] = {}
        if client_states is not None:
            cohort = _with_states(cohort, client_states, held)
        begun = time.perf_counter()
        outcome = engine.run_round(state.value, cohort)
        ended = time.perf_counter()
        state = State(outcome.state, engine.process.program, number)
        if client_states is not None:
            client_states = client_states.after(held)
        skipped = frozenset(outcome.skipped)
        took_part = tuple(name for name in names if name not in skipped)
        measured = measuring = None
        if evaluation is not None and evaluation.is_due(number, last):
            measured = evaluation.measure(state.value, number, client_states)
            measuring = time.perf_counter() - ended
        spent = Spent(ended - begun, measuring, outcome.workers, outcome.parts, outcome.known)
        count_round(number, spent.seconds, len(took_part), len(skipped))
        yield Round(
            number,
            took_part,
            state,
            outcome.output,
            outcome.skipped,
            measured,
            spent,
            client_states,
            outcome.lost,
            warnings=outcome.warnings,
            simulated=delays and delays.of_round(sampling.seed, number, names),
        )


def _with_states(cohort: Cohort, states: ClientStates, held: dict[str, HeldState]) -> Cohort:
    """Return a cohort whose clients have states beside their data; `held` takes their new ones."""

    def deliver(client: str, state: Any) -> None:
        held[client] = states.keep(cohort.round, client, state)
        cohort.deliver(client, state)

    source = SourceWithStates(cohort.source, states, cohort.clients)
    return dataclasses.replace(cohort, source=source, deliver=deliver)
