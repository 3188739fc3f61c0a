"""The ε of a run of rounds, by the library `dp-accounting`.

The rounds of a run are an event of that library: the mechanisms of a round, under its sampling, as
often as there are rounds.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

from tffc.assurance.privacy.question import ANY_COHORTS, CohortKind, Cohorts, Neighbours
from tffc.support.errors import LanguageValueError, MissingExtraError
from tffc.support.extras import installation


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


@dataclasses.dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Discrete normal noise on integers: the sensitivity by L2 divided by its standard deviation.

    If several add their shares of the noise, the logarithm of a probability is, summed up over all
    elements, at most half of `excess` from that of noise that is one draw.
    """

    l2: float
    excess: float

    def __str__(self) -> str:
        return f"discrete Gaussian, noise multiplier {1 / self.l2:.7g}"

    def divergence(self, order: float) -> float:
        """Return its Rényi divergence of an order, at most.

        Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020,
        proposition 5, for one draw; each of the probabilities in the sum over outcomes is a share
        away from that.
        """
        away = (2 * order - 1) / (2 * (order - 1)) * self.excess
        return order * self.l2**2 / 2 + away


def excess_of_shares(deviation: float, shares: int) -> float:
    """Return how far the sum of a number of discrete normal draws may be from one draw with the
    same variance: twice the largest difference of logarithms of probabilities.

    Kairouz, Liu and Steinke, "The distributed discrete Gaussian mechanism for federated learning
    with secure aggregation", 2021, for a standard deviation of at least one half.
    """
    steps = range(1, min(shares, MOST_SHARES))
    exponents = [-2 * math.pi**2 * deviation**2 * k / (k + 1) for k in steps]
    rest = max(0, shares - MOST_SHARES) * math.exp(-(math.pi**2) * deviation**2)
    return max(10 * (math.fsum(map(math.exp, exponents)) + rest), LEAST_EXCESS)


MOST_SHARES = 10_000
"""The shares that are added up one by one; those above count as if they were the first."""

LEAST_EXCESS = 1e-300
"""What stands for an excess that is too small for a number."""


Part = Gaussian | Laplacian | Skellam | DiscreteGaussian
"""The mechanisms of a kind in a round, together."""


NAMES = {Skellam: "Skellam's", DiscreteGaussian: "discrete Gaussian"}
"""The mechanisms that are accounted for by their Rényi divergences, and whose these are."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stretch:
    """A number of rounds with the same mechanisms and the same choice of clients."""

    rounds: int
    parts: tuple[Part, ...]
    cohorts: Cohorts = ANY_COHORTS


@dataclasses.dataclass(frozen=True, slots=True)
class Spending:
    """The ε that rounds cost at a δ, and the accountant that found it.

    Unless it `is_amplified`, nothing was gained by how clients were chosen.
    """

    epsilon: float
    delta: float
    rounds: int
    accountant: str
    is_amplified: bool = False


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
    once: Sequence[Part] = (),
    participations: int | None = None,
) -> Spending:
    """Return the ε of a number of rounds, each with these mechanisms, and all of them with those
    that are there `once`, for clients that take part in at most some of them.

    Raises:
      MissingExtraError: `dp-accounting` is not installed.
      NoBoundError: no accountant has a bound for the combination.
    """
    each = Stretch(rounds, tuple(parts), cohorts)
    if participations is not None and cohorts.kind is CohortKind.ALL:
        # The other rounds are the same for neighbours.
        each = dataclasses.replace(each, rounds=min(rounds, participations))
    if not once:
        return dataclasses.replace(spending_of_all([each], delta, neighbours), rounds=rounds)
    if cohorts.kind is not CohortKind.ALL:
        raise NoBoundError(
            "E540",
            f"no accountant has a bound for noise correlated between rounds under {cohorts}",
            help="ask without sampling, which amplifies nothing and holds for any clients",
        )
    whole = spending_of_all([each, Stretch(1, tuple(once))], delta, neighbours)
    return dataclasses.replace(whole, rounds=rounds)


def least_spending(stretches: Sequence[Stretch], delta: float, neighbours: Neighbours) -> Spending:
    """Return the ε of stretches of rounds one after another: with the amplification by their
    choices of clients if an accountant has a bound for it, and else without any.

    Raises:
      MissingExtraError: `dp-accounting` is not installed.
      NoBoundError: no accountant has a bound.
    """
    try:
        return spending_of_all(stretches, delta, neighbours)
    except NoBoundError:
        plain = [dataclasses.replace(each, cohorts=ANY_COHORTS) for each in stretches]
        return spending_of_all(plain, delta, neighbours)


def spending_of_all(stretches: Sequence[Stretch], delta: float, neighbours: Neighbours) -> Spending:
    """Return the ε of stretches of rounds one after another.

    Raises:
      MissingExtraError: `dp-accounting` is not installed.
      NoBoundError: no accountant has a bound for the combination.
    """
    library = load_library()
    rounds = sum(each.rounds for each in stretches)
    noisy = [each for each in stretches if each.parts and each.rounds]
    if not noisy:
        return Spending(0.0, delta, rounds, "none: nothing is released")
    if any(isinstance(part, Skellam | DiscreteGaussian) for each in noisy for part in each.parts):
        return _of_divergences(noisy, rounds, delta)
    if all(_is_plainly_gaussian(each) for each in noisy):
        return _of_one_gaussian(library, noisy, rounds, delta)
    events = [
        library.SelfComposedDpEvent(round_event(library, each.parts, each.cohorts), each.rounds)
        for each in noisy
    ]
    event = events[0] if len(events) == 1 else library.ComposedDpEvent(events)
    kinds = {each.cohorts.kind for each in noisy}
    for name, make in _accountants(library, kinds, neighbours):
        accountant = make()
        if accountant.supports(event):
            accountant.compose(event)
            epsilon = float(accountant.get_epsilon(delta))
            name = f"{name} accountant of {_library_name()}"
            return Spending(epsilon, delta, rounds, name, kinds != {CohortKind.ALL})
    raise NoBoundError(
        "E540",
        f"no accountant has a bound for {_texts(part for e in noisy for part in e.parts)} under "
        f"{_texts(e.cohorts for e in noisy)}, for {neighbours.value}",
        help="Poisson sampling has one for a client added or removed, and a fixed number of "
        "clients for a client's data replaced, each for one kind of noise",
    )


def _library_name() -> str:
    version = importlib.import_module("importlib.metadata").version("dp-accounting")
    return f"dp-accounting {version}"


def _is_plainly_gaussian(stretch: Stretch) -> bool:
    is_gaussian = all(isinstance(part, Gaussian) for part in stretch.parts)
    return is_gaussian and stretch.cohorts.kind is CohortKind.ALL


def _of_one_gaussian(
    library: Any, stretches: Sequence[Stretch], rounds: int, delta: float
) -> Spending:
    """Return the ε of Gaussian mechanisms without sampling: together they are one.

    Its ε has a formula: Balle and Wang, "Improving the Gaussian mechanism for differential
    privacy", ICML 2018, theorem 8.
    """
    total = sum(
        each.rounds / part.multiplier**2
        for each in stretches
        for part in each.parts
        if isinstance(part, Gaussian)
    )
    epsilon = float(library.get_epsilon_gaussian(1 / math.sqrt(total), delta))
    name = f"the formula of the Gaussian mechanism, in {_library_name()}"
    return Spending(epsilon, delta, rounds, name)


def _texts(values: Iterable[object]) -> str:
    return ", ".join(dict.fromkeys(map(str, values)))


def _accountants(
    library: Any, kinds: Set[CohortKind], neighbours: Neighbours
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the accountants whose relation of neighbours is right for choices of clients."""
    relations = library.NeighboringRelation
    if kinds == {CohortKind.ALL} or neighbours is Neighbours.ADD_OR_REMOVE:
        # A mechanism that is not sampled is the same for all neighbours: its sensitivity is theirs.
        relation = relations.ADD_OR_REMOVE_ONE
        yield "PLD", lambda: library.pld.PLDAccountant(relation)
        yield "RDP", lambda: library.rdp.RdpAccountant(list(ORDERS), relation)
    elif neighbours is Neighbours.ZERO_OUT and CohortKind.FIXED not in kinds:
        special = relations.REPLACE_SPECIAL
        yield "PLD", lambda: library.pld.PLDAccountant(special)
    elif neighbours is Neighbours.REPLACE and CohortKind.POISSON not in kinds:
        one = relations.REPLACE_ONE
        yield "RDP", lambda: library.rdp.RdpAccountant(list(ORDERS), one)


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


def _of_divergences(stretches: Sequence[Stretch], rounds: int, delta: float) -> Spending:
    """Return the ε by adding up Rényi divergences, without amplification by sampling."""
    for each in stretches:
        if each.cohorts.kind is not CohortKind.ALL:
            raise NoBoundError(
                "E540",
                f"no accountant has a bound for noise of integers under {each.cohorts}",
                help="ask without sampling, which amplifies nothing and holds for any clients",
            )
    orders = [float(order) for order in ORDERS if order == int(order)]
    total = [
        sum(each.rounds * _divergence(part, order) for each in stretches for part in each.parts)
        for order in orders
    ]
    module = importlib.import_module("dp_accounting.rdp.rdp_privacy_accountant")
    epsilon, _ = module.compute_epsilon(orders, total, delta)
    kinds = {type(p) for each in stretches for p in each.parts}
    names = [name for kind, name in NAMES.items() if kind in kinds]
    return Spending(float(epsilon), delta, rounds, f"RDP, with {' and '.join(names)} divergences")


def _divergence(part: Part, order: float) -> float:
    if isinstance(part, Skellam | DiscreteGaussian):
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
