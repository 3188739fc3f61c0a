"""The question how private a run of rounds is."""

from __future__ import annotations

import dataclasses

from tffc.assurance.privacy.accounting import ANY_COHORTS, Cohorts
from tffc.assurance.privacy.neighbours import Neighbours


@dataclasses.dataclass(frozen=True, slots=True)
class PrivacyQuestion:
    """What is asked: the ε at `delta` of a number of rounds, with clients chosen by `cohorts`.

    `at_most` is the ε that a policy allows, and `least_clients` a number of clients that every
    round has at least.  Outputs at or below the paths `withheld` are seen by nobody else.
    """

    rounds: int = 1
    delta: float = 1e-6
    cohorts: Cohorts = ANY_COHORTS
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
    least_clients: int = 1
    at_most: float | None = None
    withheld: tuple[str, ...] = ()

    def text(self) -> str:
        """Return what is asked as text."""
        most = "shown" if self.at_most is None else f"at most {self.at_most:g}"
        text = (
            f"{most} at δ = {self.delta:g} for {self.rounds:,} rounds, {self.cohorts}, for "
            f"{self.neighbours.value}"
        )
        if self.least_clients > 1:
            text += f", with at least {self.least_clients:,} clients in each round"
        if self.withheld:
            text += f", of all outputs but {', '.join(self.withheld)}"
        return text
