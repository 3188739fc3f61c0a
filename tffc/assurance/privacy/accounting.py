"""The ε of a run of rounds, by the library `dp-accounting`.

The rounds of a run are an event of that library: the mechanisms of a round, under its sampling, as
often as there are rounds.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import math
from collections.abc import Sequence
from typing import Any

from tffc.assurance.privacy.sensitivity import Neighbours
from tffc.support.errors import LanguageValueError, MissingExtraError
from tffc.support.extras import installation


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
class Gaussian:
    """Normal noise: its standard deviation is `multiplier` times the sensitivity by L2."""

    multiplier: float

    def __str__(self) -> str:
        return f"Gaussian, noise multiplier {self.multiplier:.7g}"


@dataclasses.dataclass(frozen=True, slots=True)
class Laplacian:
    """Laplace's noise: its scale is `multiplier` times the sensitivity by L1."""

    multiplier: float

    def __str__(self) -> str:
        return f"Laplace, noise multiplier {self.multiplier:.7g}"


@dataclasses.dataclass(frozen=True, slots=True)
class Skellam:
    """Skellam's noise on integers: the sensitivities by L1 and L2 divided by its standard
    deviation, and that deviation."""

    l1: float
    l2: float
    deviation: float

    def __str__(self) -> str:
        return (
            f"Skellam, standard deviation {self.deviation:.7g}, in it the sensitivities "
            f"{self.l2:.7g} by L2 and {self.l1:.7g} by L1"
        )

    def divergence(self, order: float) -> float:
        """Return its Rényi divergence of an order, at most.

        Agarwal, Kairouz and Liu, "The Skellam mechanism for differentially private federated
        learning", 2021, corollary 3.6, with the total variance.
        """
        variance = self.deviation**2
        l1, l2 = self.l1 * self.deviation, self.l2 * self.deviation
        gaussian = order * l2**2 / (2 * variance)
        first = ((2 * order - 1) * l2**2 + 6 * l1) / (4 * variance**2)
        return gaussian + min(first, 3 * l1 / (2 * variance))


Part = Gaussian | Laplacian | Skellam
"""The mechanisms of a kind in a round, together."""


@dataclasses.dataclass(frozen=True, slots=True)
class Spending:
    """The ε that rounds cost at a δ, and the accountant that found it."""

    epsilon: float
    delta: float
    rounds: int
    cohorts: Cohorts
    accountant: str


class NoBoundError(LanguageValueError):
    """No accountant has a bound for a combination of mechanisms, sampling and neighbours."""


ORDERS = (
    *(1 + step / 10.0 for step in range(1, 100)),
    *range(11, 64),
    *(128, 256, 512, 1024),
)
"""The orders of Rényi divergences that are looked at."""


def spending(
    parts: Sequence[Part],
    rounds: int,
    delta: float,
    cohorts: Cohorts,
    neighbours: Neighbours,
) -> Spending:
    """Return the ε of a number of rounds, each with these mechanisms.

    Raises:
      MissingExtraError: `dp-accounting` is not installed.
      NoBoundError: no accountant has a bound for the combination.
    """
    library = load_library()
    if not parts or not rounds:
        return Spending(0.0, delta, rounds, cohorts, "none: nothing is released")
    if any(isinstance(part, Skellam) for part in parts):
        return _of_divergences(library, parts, rounds, delta, cohorts)
    event = round_event(library, parts, cohorts)
    relations = library.NeighboringRelation
    candidates: list[tuple[str, Any]] = []
    if cohorts.kind is CohortKind.ALL or neighbours is Neighbours.ADD_OR_REMOVE:
        # A mechanism that is not sampled is the same for all neighbours: its sensitivity is theirs.
        relation = relations.ADD_OR_REMOVE_ONE
        candidates.append(("PLD", lambda: library.pld.PLDAccountant(relation)))
        candidates.append(("RDP", lambda: library.rdp.RdpAccountant(list(ORDERS), relation)))
    elif neighbours is Neighbours.ZERO_OUT and cohorts.kind is CohortKind.POISSON:
        relation = relations.REPLACE_SPECIAL
        candidates.append(("PLD", lambda: library.pld.PLDAccountant(relation)))
    elif neighbours is Neighbours.REPLACE and cohorts.kind is CohortKind.FIXED:
        relation = relations.REPLACE_ONE
        candidates.append(("RDP", lambda: library.rdp.RdpAccountant(list(ORDERS), relation)))
    for name, make in candidates:
        accountant = make()
        if accountant.supports(event):
            accountant.compose(library.SelfComposedDpEvent(event, rounds))
            epsilon = float(accountant.get_epsilon(delta))
            version = importlib.import_module("importlib.metadata").version("dp-accounting")
            return Spending(
                epsilon, delta, rounds, cohorts, f"{name} accountant of dp-accounting {version}"
            )
    raise NoBoundError(
        "E540",
        f"no accountant has a bound for {', '.join(map(str, parts))} under {cohorts}, for "
        f"{neighbours.value}",
        help="Poisson sampling has one for a client added or removed, and a fixed number of "
        "clients for a client's data replaced, each for one kind of noise",
    )


def round_event(library: Any, parts: Sequence[Part], cohorts: Cohorts) -> Any:
    """Return the event of `dp-accounting` for one round."""
    events = [_event(library, part) for part in parts]
    event = events[0] if len(events) == 1 else library.ComposedDpEvent(events)
    if cohorts.kind is CohortKind.POISSON:
        return library.PoissonSampledDpEvent(cohorts.rate, event)
    if cohorts.kind is CohortKind.FIXED:
        return library.SampledWithoutReplacementDpEvent(cohorts.population, cohorts.size, event)
    return event


def _event(library: Any, part: Part) -> Any:
    if isinstance(part, Gaussian):
        return library.GaussianDpEvent(part.multiplier)
    if isinstance(part, Laplacian):
        return library.LaplaceDpEvent(part.multiplier)
    return library.UnsupportedDpEvent()


def _of_divergences(
    library: Any, parts: Sequence[Part], rounds: int, delta: float, cohorts: Cohorts
) -> Spending:
    """Return the ε by adding up Rényi divergences, without amplification by sampling."""
    if cohorts.kind is not CohortKind.ALL:
        raise NoBoundError(
            "E540",
            f"no accountant has a bound for Skellam's noise under {cohorts}",
            help="ask without sampling, which amplifies nothing and holds for any clients",
        )
    orders = [float(order) for order in ORDERS if order == int(order)]
    total = [rounds * sum(_divergence(part, order) for part in parts) for order in orders]
    module = importlib.import_module("dp_accounting.rdp.rdp_privacy_accountant")
    epsilon, _ = module.compute_epsilon(orders, total, delta)
    return Spending(float(epsilon), delta, rounds, cohorts, "RDP, with Skellam's divergences")


def _divergence(part: Part, order: float) -> float:
    if isinstance(part, Skellam):
        return part.divergence(order)
    if isinstance(part, Gaussian):
        return order / (2 * part.multiplier**2)
    # Mironov, "Rényi differential privacy", 2017, table II.
    inverse = 1 / part.multiplier
    larger = math.exp((order - 1) * inverse) * order / (2 * order - 1)
    smaller = math.exp(-order * inverse) * (order - 1) / (2 * order - 1)
    return math.log(larger + smaller) / (order - 1)


def load_library() -> Any:
    """Return the module `dp_accounting`.

    Raises:
      MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module("dp_accounting")
    except ImportError as error:
        raise MissingExtraError(
            "E701",
            "accounting for privacy needs dp-accounting, which cannot be imported",
            notes=(str(error),),
            help=installation("privacy"),
        ) from None
