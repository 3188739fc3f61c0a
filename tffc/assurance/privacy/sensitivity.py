"""How much one client can change what a round releases: the sensitivity of noisy sums.

Each tensor that a client contributes is measured in the scale of the noise that is added to its
sum, so that one number holds for all mechanisms of a kind together.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from tffc.assurance.privacy.algebra import Algebra
from tffc.assurance.privacy.bounds import ZERO, Bounds, Monomial, Unknown
from tffc.assurance.privacy.norms import Limit, limit_of, own_elements
from tffc.assurance.privacy.quantities import Contribution, Mechanism, Quantity
from tffc.assurance.privacy.rounds import CLIENTS


class Neighbours(enum.Enum):
    """Which two sets of clients are told apart no better than ε and δ say."""

    ADD_OR_REMOVE = "a client added or removed"
    REPLACE = "a client's data replaced by any other"
    ZERO_OUT = "a client's contributions replaced by zero"


NEIGHBOURS = {each.name.lower().replace("_", "-"): each for each in Neighbours}
"""The relations of neighbours, by their names in policies and options."""


class NotShown(Exception):
    """A step of a derivation that is missing: `channel`, `step` and why."""

    def __init__(self, channel: str, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.channel = channel
        self.step = step
        self.reason = reason


@dataclasses.dataclass(frozen=True, slots=True)
class ContributionBound:
    """What a client's contribution to some leaves of channels does not exceed, together.

    `norm` is 1 or 2, or 0 for the magnitude of each element; `number` is public, and `by` says
    which operations see to it.
    """

    leaves: tuple[str, ...]
    norm: int
    number: Monomial
    by: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Sensitivity:
    """The sum of the `power` of all that one client can change, each in the scale of the noise
    that hides it, and the bounds of contributions that it follows from."""

    power: int
    terms: tuple[Monomial, ...]
    bounds: tuple[ContributionBound, ...]

    @property
    def is_unknown(self) -> bool:
        """Whether it depends on numbers that are not known."""
        return any(term.powers for term in self.terms)

    @property
    def total(self) -> float:
        """The sum, with one for each number that is not known."""
        return sum(term.coefficient for term in self.terms)

    def number(self, values: Mapping[Unknown, float]) -> float | None:
        """Return the norm as a number, if it depends on nothing but these values."""
        total = 0.0
        for term in self.terms:
            term = term.with_values(values)
            if term.powers:
                return None
            total += term.coefficient
        return total ** (1.0 / self.power)


class _Piece(NamedTuple):
    """A tensor that a client contributes to a leaf of a channel, and its weight: the power of the
    ratio between what it counts in the sum and the scale of the noise."""

    leaf: str
    value: Quantity
    weight: Monomial
    channel: str


def sensitivity(
    mechanisms: Sequence[Mechanism],
    power: int,
    neighbours: Neighbours,
    algebra: Algebra,
) -> Sensitivity:
    """Return the sensitivity of mechanisms of a kind together.

    Raises:
      NotShown: no bound of a contribution, or of the scale of noise, is known.
    """
    pieces = [
        _Piece(c.leaf, c.value, _weight(c, scale, each, power, neighbours), c.channel)
        for each in mechanisms
        for c, scale in each.sums
    ]
    for each in mechanisms:
        if len(each.sums) > 1:
            # By Minkowski's inequality, with equal shares: n sums of a norm of at most b each.
            factor = float(len(each.sums)) ** (power - 1)
            leaves = {contribution.leaf for contribution, _ in each.sums}
            pieces = [
                p._replace(weight=p.weight.scaled(factor)) if p.leaf in leaves else p
                for p in pieces
            ]
    options = [_Bounding(power, neighbours, algebra, order).of(pieces) for order in ORDERS]
    return min(options, key=lambda each: (each.is_unknown, each.total))


def _weight(
    contribution: Contribution,
    scale: Bounds,
    mechanism: Mechanism,
    power: int,
    neighbours: Neighbours,
) -> Monomial:
    noise = mechanism.noise.scale.least_magnitude
    if contribution.noise is not None and neighbours is Neighbours.ADD_OR_REMOVE:
        raise NotShown(
            contribution.channel,
            "neighbours",
            "clients add the noise, so one that leaves takes noise with it; "
            "what can be shown is about a client whose contributions are zero",
        )
    if not noise:
        raise NotShown(
            contribution.channel,
            "scale of the noise",
            f"nothing public and positive is known that the scale of the noise of "
            f"{mechanism.noise.place} is not below",
        )
    factors = scale.magnitude
    if not factors:
        raise NotShown(
            contribution.channel,
            "sum",
            "nothing is known that the factor of the sum does not exceed",
        )
    ratios = [f * n.power(Fraction(-1)) for f in factors for n in noise]
    public = [ratio for ratio in ratios if ratio.is_public]
    if not public:
        raise NotShown(contribution.channel, "scale of the noise", "it depends on clients' data")
    if neighbours is Neighbours.ADD_OR_REMOVE and any(
        unknown == CLIENTS for unknown, _ in public[0].powers
    ):
        raise NotShown(
            contribution.channel,
            "sum",
            "the mean divides by the number of clients, which a client more or less changes",
        )
    return min(public, key=_simplicity).power(Fraction(power))


def _simplicity(monomial: Monomial) -> tuple[int, float]:
    """Return the key by which the smallest of the simplest bounds comes first."""
    return len(monomial.powers), monomial.coefficient


ORDERS = (("factor", "product"), ("product", "factor"))
"""Whether tensors are taken by all that they were scaled with, or by the last factor, first."""


class _Bounding:
    def __init__(
        self, power: int, neighbours: Neighbours, algebra: Algebra, order: tuple[str, str]
    ) -> None:
        self._power = power
        self._order = order
        self._is_replaced = neighbours is Neighbours.REPLACE
        self._algebra = algebra
        self._bounds: list[ContributionBound] = []
        self._terms: list[Monomial] = []

    def of(self, pieces: Iterable[_Piece]) -> Sensitivity:
        left = [part for piece in pieces for part in _parts(piece)]
        left = list(_whole(left))
        while left:
            left = self._without_bounded(left)
            left = [self._wider(piece) for piece in left]
        return Sensitivity(self._power, tuple(self._terms), tuple(self._bounds))

    def _without_bounded(self, pieces: list[_Piece]) -> list[_Piece]:
        """Return the tensors for which no bound is known by what they were scaled with, or by
        their elements."""
        left: list[_Piece] = []
        for key in self._order:
            groups: dict[int, list[_Piece]] = {}
            for piece in pieces:
                factor = _factor(piece.value, key)
                groups.setdefault(factor.term if factor is not None else 0, []).append(piece)
            left = []
            for term, group in groups.items():
                if not term:
                    left.extend(group)
                elif not self._is_bounded_by_factor(group, key):
                    left.extend(p for p in group if not self._is_bounded_by_factor([p], key))
            pieces = left
        return [piece for piece in left if not self._is_bounded_by_elements(piece)]

    def _is_bounded_by_factor(self, group: list[_Piece], key: str) -> bool:
        """Add the bound that a factor sets to all tensors of a group together, if there is one."""
        factor = _factor(group[0].value, key)
        assert factor is not None
        elements = [
            (p.value.base, 0) if key == "factor" else own_elements(_scaled(p.value)) for p in group
        ]
        sizes = [piece.value.size for piece in group]
        size = None if None in sizes else sum(s for s in sizes if s is not None)
        weight = _largest([piece.weight for piece in group])
        options: list[tuple[Monomial, Limit]] = []
        for bound in factor.bounds.magnitude:
            limit = limit_of(bound, elements)
            of_powers = limit and limit.of_powers(self._power, size)
            if limit and of_powers:
                options.append((of_powers, limit))
        if weight is None or not options:
            return False
        of_powers, limit = min(options, key=lambda option: _simplicity(option[0]))
        self._add(group, limit.norm, limit.number, of_powers * weight, factor.term)
        return True

    def _is_bounded_by_elements(self, piece: _Piece) -> bool:
        """Add the bound that follows from that of each element, if there is one."""
        value = piece.value
        if not value.provenance.is_of_client and self._is_replaced:
            self._bounds.append(
                ContributionBound((piece.leaf,), 0, ZERO, ("it is the same for every client",))
            )
            return True
        public = [bound for bound in value.bounds.magnitude if bound.is_public]
        if not public or value.size is None:
            return False
        number = min(public, key=_simplicity)
        whole = number.power(Fraction(self._power)) if number.coefficient else ZERO
        low, high = value.bounds.interval
        if self._is_replaced and not number.powers and high - low < 2 * number.coefficient:
            width = ((high - low) / 2) ** self._power
            whole = Monomial(width)
        self._add([piece], 0, number, whole.scaled(float(value.size)) * piece.weight, value.term)
        return True

    def _add(
        self, group: list[_Piece], norm: int, number: Monomial, whole: Monomial, term: int
    ) -> None:
        leaves = tuple(dict.fromkeys(piece.leaf for piece in group))
        by = self._algebra.places.get(term, "")
        self._bounds.append(ContributionBound(leaves, norm, number, (by,)))
        self._terms.append(whole.scaled(2.0**self._power) if self._is_replaced else whole)

    def _wider(self, piece: _Piece) -> _Piece:
        """Return a tensor in whose place a larger one is looked at.

        Raises:
          NotShown: there is none.
        """
        if piece.value.within:
            return piece._replace(value=piece.value.within[0])
        raise NotShown(
            piece.channel,
            "bound of each contribution",
            f"nothing is known that {piece.leaf} does not exceed, by any norm",
        )


def _factor(value: Quantity, key: str) -> Quantity | None:
    if key == "factor":
        return value.factor
    return None if value.product is None else value.product[1]


def _scaled(value: Quantity) -> Quantity:
    assert value.product is not None
    return value.product[0]


def _parts(piece: _Piece) -> list[_Piece]:
    """Return the tensors whose elements a tensor has."""
    flat: list[_Piece] = []
    stack = [piece]
    while stack:
        item = stack.pop()
        if item.value.parts:
            stack.extend(item._replace(value=part) for part in reversed(item.value.parts))
        else:
            flat.append(item)
    return flat


def _whole(pieces: list[_Piece]) -> Iterable[_Piece]:
    """Yield tensors, with sections of one vector that do not overlap as that vector."""
    sections: dict[int, list[_Piece]] = {}
    for piece in pieces:
        if piece.value.section is None:
            yield piece
        else:
            sections.setdefault(piece.value.section[0].term, []).append(piece)
    for group in sections.values():
        limits = sorted((p.value.section or (p.value, 0, 0))[1:] for p in group)
        is_apart = all(end <= start for (_, end), (start, _) in itertools.pairwise(limits))
        weight = _largest([piece.weight for piece in group])
        if not is_apart or weight is None:
            yield from group
            continue
        vector = (group[0].value.section or (group[0].value, 0, 0))[0]
        leaf = ", ".join(dict.fromkeys(piece.leaf for piece in group))
        yield from _parts(_Piece(leaf, vector, weight, group[0].channel))


def _largest(weights: Sequence[Monomial]) -> Monomial | None:
    """Return the largest of some weights, if that is known."""
    if any(weight.powers != weights[0].powers for weight in weights):
        return None
    return max(weights, key=lambda weight: weight.coefficient)
