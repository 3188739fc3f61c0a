"""Evaluating states between rounds, by a round of another program on its own data."""

from __future__ import annotations

import dataclasses
from typing import Any

from tffc.language.assignability import difference_notes
from tffc.language.type_parts import without_containers
from tffc.language.types import StructType, Type
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.client_states import ClientStates, SourceWithStates
from tffc.runtime.engines.engine import Cohort, Engine
from tffc.runtime.engines.process import Process
from tffc.support.errors import FormError, LanguageValueError


@dataclasses.dataclass(frozen=True, slots=True)
class Evaluation:
    """A round that evaluates the state after every `every` rounds, and after the last one.

    All clients of `source` take part in it, which must be at least `least_clients`.  States that it
    returns are not used.
    """

    engine: Engine
    source: ClientSource
    every: int = 1
    least_clients: int = 0

    def __post_init__(self) -> None:
        """Check the numbers and the form.

        Raises:
          LanguageValueError: `every` is not positive.
          FormError: the round's output is at the clients.
        """
        if self.every < 1:
            raise LanguageValueError(
                "E706",
                f"cannot evaluate every {self.every} rounds",
                help="give a positive number of rounds",
            )
        if not self.engine.process.steps.aggregates:
            raise FormError(
                "E915",
                "an evaluation has to give its output at the server, and clients have that of this "
                "one",
                help="aggregate what clients measure, for example with tff.federated_mean",
            )

    @property
    def output_type(self) -> Type:
        """The type of the result of an evaluation."""
        return self.engine.process.output_type

    def check(self, rounds: Process) -> None:
        """Check that the evaluation takes the states that the rounds of a process give.

        Raises:
          FormError: it takes states of another type, of the server or of clients.
        """
        own = self.engine.process
        _check_takes(own.state_type, rounds.state_type, "a state", "one")
        if own.client_state_type is not None:
            given = rounds.client_state_type or StructType([])
            _check_takes(own.client_state_type, given, "states of clients", "ones")

    def is_due(self, number: int, last: int) -> bool:
        """Return whether the state after round `number` is evaluated; `last` is the last round of
        the run."""
        return number % self.every == 0 or number == last

    def measure(self, state: Any, number: int, client_states: ClientStates | None = None) -> Any:
        """Evaluate the value of the state after round `number`, with the states of clients if they
        keep some; raises the errors of a round."""
        source: ClientSource = self.source
        if self.engine.process.client_state_type is not None and client_states is not None:
            source = SourceWithStates(source, client_states, source.clients)
        cohort = Cohort(source, source.clients, round=number, least_clients=self.least_clients)
        return self.engine.run_round(state, cohort).output


def _check_takes(taken: Type, state: Type, what: str, such: str) -> None:
    taken, state = without_containers(taken), without_containers(state)
    if not taken.is_assignable_from(state):
        raise FormError(
            "E853",
            f"the evaluation takes {what} of type `{taken}`, and the rounds give {such} of type "
            f"`{state}`",
            notes=difference_notes(taken, state),
            help="evaluate with a program that takes the state which the rounds give",
        )
