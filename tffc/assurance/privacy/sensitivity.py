"""How much one client can change what a round releases: the sensitivity of noisy sums.

Each tensor that a client contributes is measured in the scale of the noise that is added to its
sum, so that one number holds for all mechanisms of a kind together.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.bounds import ZERO, Bounds, Monomial, Unknown, multiply
from tffc.assurance.privacy.quantities.lines import distance
from tffc.assurance.privacy.quantities.norms import Elements, Limit, limit_of, own_elements
from tffc.assurance.privacy.quantities.quantity import Contribution, Mechanism, Quantity
from tffc.assurance.privacy.question import Neighbours
from tffc.assurance.privacy.rounds import CLIENTS


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
    ratio between what it counts in the sum and the scale of the noise.

    If it `is_larger`, what is contributed is not it, but has elements of at most its magnitudes:
    two of them may differ by as much as both magnitudes together.
    """

    leaf: str
    value: Quantity
    weight: Monomial
    channel: str
    is_larger: bool = False


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
    options: list[Sensitivity] = []
    missing: list[NotShown] = []
    for backwards, is_late in itertools.product((False, True), repeat=2):
        order = _Order(backwards, is_late)
        try:
            options.append(_Bounding(power, neighbours, algebra, order).of(pieces))
        except NotShown as step:
            missing.append(step)
    if not options:
        raise missing[0]
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
    if contribution.noise is not None and contribution.noise.is_shifted:
        if neighbours is Neighbours.ZERO_OUT:
            raise NotShown(
                contribution.channel,
                "bound of each contribution",
                "something is added to the noise that is not zero for a client without data",
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


MOST_FACTORS = 8
"""How many factors of a product are looked at one after another."""


class _Scaling(NamedTuple):
    """Factors that a tensor was made with, from other elements: what is known of their product.

    The `key` is the same for tensors that were made with the same factors, and `term` is that of
    the last of them.
    """

    key: tuple[int, ...]
    factor: Bounds
    elements: Elements
    term: int


def _scalings(value: Quantity) -> list[_Scaling]:
    """Return the ways to see a tensor as a product: its last factor, its last two, and so on; and
    all factors of its base."""
    scalings: list[_Scaling] = []
    if value.factor is not None:
        whole = value.factor
        scalings.append(_Scaling((0, whole.term), whole.bounds, (value.base, 0), whole.term))
    key: tuple[int, ...] = ()
    factor: Bounds | None = None
    while value.product is not None and len(scalings) < MOST_FACTORS:
        value, last = value.product
        key = (*key, last.term)
        factor = last.bounds if factor is None else multiply(factor, last.bounds)
        scalings.append(_Scaling(key, factor, own_elements(value), last.term))
    return scalings


MOST_LINES = 30
"""How many lines that are on lines are followed."""


class _Order(NamedTuple):
    """The order in which bounds are looked for.

    The ways to see tensors as products are tried `is_backwards` or not; and the bounds of single
    elements, if that `is_late`, when there is nothing else.  `depth` is that of the lines.
    """

    is_backwards: bool
    is_late: bool
    depth: int = 0


class _Bounding:
    """The bounds of tensors that are added up."""

    def __init__(self, power: int, neighbours: Neighbours, algebra: Algebra, order: _Order) -> None:
        self._power = power
        self._neighbours = neighbours
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
            left = [part for piece in left for part in _parts(self._wider(piece))]
        return Sensitivity(self._power, tuple(self._terms), tuple(self._bounds))

    def _without_bounded(self, pieces: list[_Piece]) -> list[_Piece]:
        """Return the tensors for which no bound is known by what they were scaled with, or by
        their elements."""
        levels = range(MOST_FACTORS + 1)
        for level in reversed(levels) if self._order.is_backwards else levels:
            groups: dict[tuple[int, ...], list[tuple[_Piece, _Scaling]]] = {}
            left: list[_Piece] = []
            for piece in pieces:
                scalings = _scalings(piece.value)
                if level < len(scalings):
                    groups.setdefault(scalings[level].key, []).append((piece, scalings[level]))
                else:
                    left.append(piece)
            for group in groups.values():
                if not self._is_bounded_by_factor(group):
                    left.extend(p for p, s in group if not self._is_bounded_by_factor([(p, s)]))
            pieces = left
        pieces = [piece for piece in pieces if not self._is_bounded_by_norm(piece)]
        if not self._order.is_late:
            pieces = [piece for piece in pieces if not self._is_bounded_by_elements(piece)]
            return self._without_lines(pieces)
        return [
            piece
            for piece in self._without_lines(pieces)
            if self._has_larger(piece) or not self._is_bounded_by_elements(piece)
        ]

    def _is_bounded_by_factor(self, group: list[tuple[_Piece, _Scaling]]) -> bool:
        """Add the bound that a factor sets to all tensors of a group together, if there is one."""
        pieces = [piece for piece, _ in group]
        sizes = [piece.value.size for piece in pieces]
        size = None if None in sizes else sum(s for s in sizes if s is not None)
        weight = _largest([piece.weight for piece in pieces])
        options: list[tuple[Monomial, Limit]] = []
        for bound in group[0][1].factor.magnitude:
            limit = limit_of(bound, [scaling.elements for _, scaling in group])
            of_powers = limit and limit.of_powers(self._power, size)
            if limit and of_powers:
                options.append((of_powers, limit))
        if weight is None or not options:
            return False
        of_powers, limit = min(options, key=lambda option: _simplicity(option[0]))
        self._add(pieces, limit.norm, limit.number, of_powers * weight, group[0][1].term)
        return True

    def _is_bounded_by_norm(self, piece: _Piece) -> bool:
        """Add the bound that follows from what is known of a norm itself, if there is one."""
        value = piece.value
        if value.length is None:
            return False
        limit = Limit(1, value.length)
        of_powers = limit.of_powers(self._power, value.size)
        assert of_powers is not None
        self._add([piece], 1, limit.number, of_powers * piece.weight, value.term)
        return True

    def _is_bounded_by_elements(self, piece: _Piece) -> bool:
        """Add the bound that follows from that of each element, if there is one."""
        value = piece.value
        if not (value.provenance.is_of_client or piece.is_larger) and self._is_replaced:
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
        is_narrow = not number.powers and high - low < 2 * number.coefficient
        if self._is_replaced and is_narrow and not piece.is_larger:
            whole = Monomial((high - low) ** self._power / self._apart([piece]))
        self._add([piece], 0, number, whole.scaled(float(value.size)) * piece.weight, value.term)
        return True

    def _without_lines(self, pieces: list[_Piece]) -> list[_Piece]:
        """Return the tensors for which no bound follows from a line: all that are on one together,
        or else each by itself."""
        on_lines: list[_Piece] = []
        rest: list[_Piece] = []
        for piece in pieces:
            is_on_line = piece.value.line is not None and piece.value.size is not None
            (on_lines if is_on_line else rest).append(piece)
        if not on_lines or self._order.depth >= MOST_LINES:
            return pieces
        if self._are_bounded_by_lines(on_lines):
            return rest
        if len(on_lines) == 1:
            return pieces
        return rest + [piece for piece in on_lines if not self._are_bounded_by_lines([piece])]

    def _are_bounded_by_lines(self, pieces: list[_Piece]) -> bool:
        """Add the bound that follows from tensors that others are affine functions of, but for a
        distance of each element, if there is one.

        By Minkowski's inequality, the norm is at most that of those tensors and of the distances.
        What all clients add to an element does not change if one is replaced.
        """
        power, bases = self._power, list[_Piece]()
        apart: list[Monomial] = []
        for piece in pieces:
            line = piece.value.line
            assert line is not None
            far = distance(line)
            if self._is_replaced:
                far = 2 * far if piece.is_larger else line.most - line.least
            if not math.isfinite(far):
                return False
            weight = piece.weight.scaled(abs(line.slope) ** power)
            bases.append(piece._replace(value=line.base, weight=weight))
            apart.append(piece.weight.scaled(far**power * float(piece.value.size or 0)))
        order = self._order._replace(depth=self._order.depth + 1)
        inner = _Bounding(power, self._neighbours, self._algebra, order)
        try:
            known = inner.of(bases)
        except NotShown:
            return False
        terms = [term for term in (*known.terms, *apart) if term.coefficient]
        if any(term.powers != terms[0].powers for term in terms):
            return False
        parts = [sum(t.coefficient for t in each) ** (1 / power) for each in (known.terms, apart)]
        whole = Monomial(sum(parts) ** power, terms[0].powers if terms else ())
        self._bounds.extend(bound for bound in known.bounds if bound not in self._bounds)
        self._note(pieces, whole)
        self._terms.append(whole)
        return True

    def _note(self, pieces: list[_Piece], whole: Monomial) -> None:
        """Note the bound of a contribution that weighs as much as a term, if it is one number."""
        weight = pieces[0].weight
        if any(piece.weight != weight for piece in pieces) or not weight.coefficient:
            return
        sides = 2.0 if self._is_replaced else 1.0
        norm = (whole * weight.power(Fraction(-1))).power(Fraction(1, self._power))
        by = self._algebra.places.get(pieces[0].value.term, "")
        leaves = tuple(dict.fromkeys(piece.leaf for piece in pieces))
        bound = ContributionBound(leaves, self._power, norm.scaled(1 / sides), (by,))
        self._bounds.append(bound)

    def _add(
        self, group: list[_Piece], norm: int, number: Monomial, whole: Monomial, term: int
    ) -> None:
        leaves = tuple(dict.fromkeys(piece.leaf for piece in group))
        by = self._algebra.places.get(term, "")
        self._bounds.append(ContributionBound(leaves, norm, number, (by,)))
        self._terms.append(whole.scaled(self._apart(group)))

    def _apart(self, group: Sequence[_Piece]) -> float:
        """Return how much more than a contribution two of them differ: the power of their distance
        by that of their bound.

        Two vectors without negative elements are not more than at right angles.
        """
        if not self._is_replaced:
            return 1.0
        is_acute = self._power == 2 and all(
            p.value.bounds.is_nonnegative and not p.is_larger for p in group
        )
        return 2.0 if is_acute else 2.0**self._power

    def _wider(self, piece: _Piece) -> _Piece:
        """Return a tensor in whose place a larger one is looked at.

        Raises:
          NotShown: there is none.
        """
        if piece.value.image is not None and self._power == 2:
            base, most = piece.value.image
            return piece._replace(value=base, weight=piece.weight.scaled(most**2))
        larger = self._larger(piece)
        if larger is not None:
            return piece._replace(value=larger, is_larger=True)
        raise NotShown(
            piece.channel,
            "bound of each contribution",
            f"nothing is known that {piece.leaf} does not exceed, by any norm",
        )

    def _has_larger(self, piece: _Piece) -> bool:
        """Tell whether there is a tensor in whose place a larger one can be looked at."""
        is_image = piece.value.image is not None and self._power == 2
        return is_image or self._larger(piece) is not None

    def _larger(self, piece: _Piece) -> Quantity | None:
        """Return a tensor within which that of a piece is.

        Of a public one, a client's data may say which elements it takes: two clients differ, though
        what they take them from does not.
        """
        if not piece.value.within:
            return None
        larger = piece.value.within[0]
        is_chosen = piece.value.provenance.is_of_client and not larger.provenance.is_of_client
        return None if self._is_replaced and is_chosen else larger


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
        is_larger = any(piece.is_larger for piece in group)
        yield from _parts(_Piece(leaf, vector, weight, group[0].channel, is_larger))


def _largest(weights: Sequence[Monomial]) -> Monomial | None:
    """Return the largest of some weights, if that is known."""
    if any(weight.powers != weights[0].powers for weight in weights):
        return None
    return max(weights, key=lambda weight: weight.coefficient)
