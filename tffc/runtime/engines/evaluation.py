"""Evaluating states between rounds, by a round of another program on its own data."""

from __future__ import annotations

import dataclasses
from typing import Any

from tffc.language.assignability import difference_notes
from tffc.language.type_parts import without_containers
from tffc.language.types import Type
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.engine import Cohort, Engine
from tffc.support.errors import FormError, LanguageValueError


@dataclasses.dataclass(frozen=True, slots=True)
class Evaluation:
    """A round that evaluates the state after every `every` rounds, and after the last one.

    All clients of `source` take part in it, which must be at least `least_clients`.  The state that
    it returns is not used.
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
        if self.engine.process.client_output_type is not None:
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

    def check(self, state_type: Type) -> None:
        """Check that the evaluation takes states of a type.

        Raises:
          FormError: it takes states of another type.
        """
        taken = without_containers(self.engine.process.state_type)
        state = without_containers(state_type)
        if not taken.is_assignable_from(state):
            raise FormError(
                "E853",
                f"the evaluation takes a state of type `{taken}`, and the rounds give one of type "
                f"`{state}`",
                notes=difference_notes(taken, state),
                help="evaluate with a program that takes the state which the rounds give",
            )

    def is_due(self, number: int, last: int) -> bool:
        """Return whether the state after round `number` is evaluated; `last` is the last round of
        the run."""
        return number % self.every == 0 or number == last

    def measure(self, state: Any, number: int) -> Any:
        """Evaluate the value of the state after round `number`; raises the errors of a round."""
        cohort = Cohort(
            self.source, self.source.clients, round=number, least_clients=self.least_clients
        )
        return self.engine.run_round(state, cohort).output
