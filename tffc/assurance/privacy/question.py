"""What is asked about privacy; asking loads nothing of what answers."""

from __future__ import annotations

import dataclasses
import enum


class Neighbours(enum.Enum):
    """Which two sets of clients are told apart no better than ε and δ say."""

    ADD_OR_REMOVE = "a client added or removed"
    REPLACE = "a client's data replaced by any other"
    ZERO_OUT = "a client's contributions replaced by zero"


NEIGHBOURS = {each.name.lower().replace("_", "-"): each for each in Neighbours}
"""The relations of neighbours, by their names in policies and options."""


class CohortKind(enum.Enum):
    """How the clients of a round are chosen."""

    ALL = "all clients, or any"
    POISSON = "each client by itself with a probability"
    FIXED = "a fixed number without replacement"


@dataclasses.dataclass(frozen=True, slots=True)
class Cohorts:
    """How the clients of rounds are chosen, by chances that nobody else knows.

    `rate` is the probability of a client, for Poisson sampling; `size` of `population` clients take
    part for a fixed number.
    """

    kind: CohortKind = CohortKind.ALL
    rate: float = 1.0
    size: int = 0
    population: int = 0

    def __str__(self) -> str:
        if self.kind is CohortKind.POISSON:
            return f"Poisson sampling, each client with probability {self.rate:g}"
        if self.kind is CohortKind.FIXED:
            return f"{self.size} of {self.population} clients without replacement"
        return "any clients in each round, without amplification by sampling"


ANY_COHORTS = Cohorts()


@dataclasses.dataclass(frozen=True, slots=True)
class PrivacyQuestion:
    """What is asked: the ε at `delta` of a number of rounds, with clients chosen by `cohorts`.

    `at_most` is the ε that a policy allows, and `least_clients` a number of clients that every
    round has at least.  Outputs at or below the paths `withheld` are seen by nobody else.  If it
    `has_secret_seeds`, whoever asks vouches for seeds that follow from a clock.
    Each client takes part in at most `participations` of the rounds, or in any.
    """

    rounds: int = 1
    delta: float = 1e-6
    cohorts: Cohorts = ANY_COHORTS
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
    least_clients: int = 1
    at_most: float | None = None
    withheld: tuple[str, ...] = ()
    has_secret_seeds: bool = False
    participations: int | None = None

    def text(self) -> str:
        """Return what is asked as text."""
        most = "shown" if self.at_most is None else f"at most {self.at_most:g}"
        text = (
            f"{most} at δ = {self.delta:g} for {self.rounds:,} rounds, {self.cohorts}, for "
            f"{self.neighbours.value}"
        )
        if self.least_clients > 1:
            text += f", with at least {self.least_clients:,} clients in each round"
        if self.participations is not None:
            text += f", each client in at most {self.participations:,} of them"
        if self.withheld:
            text += f", of all outputs but {', '.join(self.withheld)}"
        if self.has_secret_seeds:
            text += ", with seeds that are secret"
        return text
