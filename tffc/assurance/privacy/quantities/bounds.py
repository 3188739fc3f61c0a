"""Bounds of real numbers by monomials: products of powers of unknown numbers that are not negative.

    min(1, clip / norm)  <=  1   and   <=  clip * norm^-1

A set of such bounds says enough to see that `x * min(1, clip / norm(x))` has a norm of at most
`clip`: the norm of the product is at most `norm(x) * clip * norm(x)^-1`.  All arithmetic is that of
real numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

MOST_BOUNDS = 8
"""The bounds of one number that are remembered; more are left out, which only loses knowledge."""

SAME = 1e-12
"""Coefficients whose ratio is nearer to one than this count as equal."""


class Unknown(NamedTuple):
    """An unknown number that is not negative.

    Its `kind` is `norm` for a sum of powers of clients' values, `state` for an element of the
    server's state, `released` for a number that was released, and `clients` for the number of
    clients.
    """

    kind: str
    key: tuple[object, ...]

    @property
    def is_public(self) -> bool:
        """Whether whoever sees the releases may know the number."""
        return self.kind != "norm"


Powers = tuple[tuple[Unknown, Fraction], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Monomial:
    """A coefficient times powers of unknown numbers, in a fixed order, none with exponent zero."""

    coefficient: float
    powers: Powers = ()

    def __mul__(self, other: Monomial) -> Monomial:
        powers: dict[Unknown, Fraction] = dict(self.powers)
        for unknown, exponent in other.powers:
            powers[unknown] = powers.get(unknown, Fraction(0)) + exponent
        return Monomial(self.coefficient * other.coefficient, _ordered(powers))

    def power(self, exponent: Fraction) -> Monomial:
        """Return a power; the coefficient must be positive, or zero for a positive exponent."""
        raised = self.coefficient ** float(exponent)
        if not self.coefficient:
            return ZERO
        return Monomial(raised, tuple((unknown, e * exponent) for unknown, e in self.powers))

    def scaled(self, factor: float) -> Monomial:
        """Return a multiple."""
        return ZERO if not factor else Monomial(self.coefficient * factor, self.powers)

    @property
    def is_public(self) -> bool:
        """Whether it has no number in it that only clients know."""
        return all(unknown.is_public for unknown, _ in self.powers)

    def is_close(self, other: Monomial) -> bool:
        """Whether it is the same monomial but for the rounding of this arithmetic."""
        same = math.isclose(self.coefficient, other.coefficient, rel_tol=SAME)
        return same and self.powers == other.powers

    def with_values(self, values: Mapping[Unknown, float]) -> Monomial:
        """Return it with these values for some unknown numbers."""
        coefficient, powers = self.coefficient, list[tuple[Unknown, Fraction]]()
        for unknown, exponent in self.powers:
            if unknown not in values:
                powers.append((unknown, exponent))
            elif not values[unknown]:
                coefficient = math.inf if exponent < 0 else 0.0
            else:
                coefficient *= values[unknown] ** float(exponent)
        return Monomial(coefficient, tuple(powers))


ZERO = Monomial(0.0)
ONE = Monomial(1.0)


def _ordered(powers: Mapping[Unknown, Fraction]) -> Powers:
    present = [(unknown, exponent) for unknown, exponent in powers.items() if exponent]
    return tuple(sorted(present, key=lambda pair: (pair[0].kind, repr(pair[0].key))))


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a real number: it is at most each of `above` and at least each of `below`.

    Nothing is known of a number without bounds.  A number that is known exactly has a monomial in
    both.
    """

    above: tuple[Monomial, ...] = ()
    below: tuple[Monomial, ...] = ()

    @property
    def exact(self) -> Monomial | None:
        """The number itself, if it is known to be a monomial."""
        return next((bound for bound in self.above if bound in self.below), None)

    @property
    def is_nonnegative(self) -> bool:
        """Whether the number is known not to be negative."""
        return any(bound.coefficient >= 0 for bound in self.below)

    @property
    def is_nonpositive(self) -> bool:
        """Whether the number is known not to be positive."""
        return any(bound.coefficient <= 0 for bound in self.above)

    @property
    def magnitude(self) -> tuple[Monomial, ...]:
        """Monomials that the absolute value does not exceed."""
        if self.is_nonnegative:
            return self.above
        lower = [_negative(bound) for bound in self.below]
        if self.is_nonpositive:
            return tuple(lower)
        both = [b for a in self.above for c in lower for b in _maximum(a, c)]
        return _strict(both, upper=True)

    @property
    def least_magnitude(self) -> tuple[Monomial, ...]:
        """Positive monomials that the absolute value is not below."""
        if self.is_nonnegative:
            return tuple(bound for bound in self.below if bound.coefficient > 0)
        if self.is_nonpositive:
            return tuple(_negative(bound) for bound in self.above if bound.coefficient < 0)
        return ()

    @property
    def interval(self) -> tuple[float, float]:
        """The numbers between which it is."""
        above = [bound.coefficient for bound in self.above if not bound.powers]
        below = [bound.coefficient for bound in self.below if not bound.powers]
        if self.is_nonnegative:
            below.append(0.0)
        if self.is_nonpositive:
            above.append(0.0)
        return max(below, default=-math.inf), min(above, default=math.inf)


ANY = Bounds()


def exactly(monomial: Monomial) -> Bounds:
    """Return the bounds of a number that is a monomial."""
    return bounded([monomial], [monomial] if monomial.coefficient <= 0 else [monomial, ZERO])


def constant(value: float) -> Bounds:
    """Return the bounds of a constant; nothing is known of one that is not finite."""
    return exactly(Monomial(float(value))) if math.isfinite(value) else ANY


def between(low: float, high: float) -> Bounds:
    """Return the bounds of a number of an interval."""
    above = [Monomial(high)] if math.isfinite(high) else []
    below = [Monomial(low)] if math.isfinite(low) else []
    return bounded(above, below)


def bounded(above: Iterable[Monomial], below: Iterable[Monomial]) -> Bounds:
    """Return bounds without those that others imply."""
    return Bounds(_strict(above, upper=True), _strict(below, upper=False))


def _strict(bounds: Iterable[Monomial], *, upper: bool) -> tuple[Monomial, ...]:
    best: dict[Powers, Monomial] = {}
    for bound in bounds:
        known = best.get(bound.powers)
        if math.isnan(bound.coefficient) or math.isinf(bound.coefficient):
            continue
        if known is None or (bound.coefficient < known.coefficient) is upper:
            best[bound.powers] = bound
    return tuple(list(best.values())[:MOST_BOUNDS])


def _negative(bound: Monomial) -> Monomial:
    return ZERO if not bound.coefficient else Monomial(-bound.coefficient, bound.powers)


def _maximum(first: Monomial, second: Monomial) -> list[Monomial]:
    """Return the larger of two monomials if it is known which that is."""
    if first.powers == second.powers:
        return [max(first, second, key=lambda bound: bound.coefficient)]
    if first.coefficient <= 0 <= second.coefficient:
        return [second]
    if second.coefficient <= 0 <= first.coefficient:
        return [first]
    return []


def _minimum(first: Monomial, second: Monomial) -> list[Monomial]:
    return [_negative(bound) for bound in _maximum(_negative(first), _negative(second))]


def _sum(first: Monomial, second: Monomial) -> list[Monomial]:
    """Return the sum of two monomials if it is one."""
    if not first.coefficient:
        return [second]
    if not second.coefficient:
        return [first]
    if first.powers != second.powers:
        return []
    total = first.coefficient + second.coefficient
    return [Monomial(total, first.powers) if total else ZERO]


def either(first: Bounds, second: Bounds) -> Bounds:
    """Return the bounds of a number that is one of two."""
    return bounded(
        [b for a in first.above for c in second.above for b in _maximum(a, c)],
        [b for a in first.below for c in second.below for b in _minimum(a, c)],
    )


def is_at_least(first: Bounds, second: Bounds) -> bool:
    """Tell whether the first number is known to be at least the second."""
    return any(
        low.powers == high.powers and low.coefficient >= high.coefficient
        for low in first.below
        for high in second.above
    )


def negative(value: Bounds) -> Bounds:
    return bounded(map(_negative, value.below), map(_negative, value.above))


def add(first: Bounds, second: Bounds) -> Bounds:
    above = [b for a in first.above for c in second.above for b in _sum(a, c)]
    below = [b for a in first.below for c in second.below for b in _sum(a, c)]
    for value, other in ((first, second), (second, first)):
        # What is added to a number that is not negative is not above the sum.
        above.extend(value.above if other.is_nonpositive else ())
        below.extend(value.below if other.is_nonnegative else ())
    return bounded(above, below)


def subtract(first: Bounds, second: Bounds) -> Bounds:
    return add(first, negative(second))


def multiply(first: Bounds, second: Bounds) -> Bounds:
    for known, other in ((first, second), (second, first)):
        exact = known.exact
        if exact is not None and exact.coefficient < 0:
            return negative(multiply(negative(known), other))
    if first.is_nonpositive and not first.is_nonnegative:
        return negative(multiply(negative(first), second))
    if second.is_nonpositive and not second.is_nonnegative:
        return negative(multiply(first, negative(second)))
    if first.is_nonnegative and second.is_nonnegative:
        return bounded(
            _products(first.above, second.above),
            [ZERO, *_products(first.least_magnitude, second.least_magnitude)],
        )
    if second.is_nonnegative:
        first, second = second, first
    if first.is_nonnegative:
        # The sign is that of the second, and so are the signs of its bounds.
        above, below = (_products(first.above, part) for part in (second.above, second.below))
        return bounded(above, below)
    largest = _products(first.magnitude, second.magnitude)
    return bounded(largest, map(_negative, largest))


def _products(first: Iterable[Monomial], second: Iterable[Monomial]) -> list[Monomial]:
    others = list(second)
    return [a * b for a in first for b in others]


def reciprocal(value: Bounds) -> Bounds:
    """Return the bounds of one divided by a number, which counts as unbounded at zero."""
    if value.is_nonpositive and not value.is_nonnegative:
        return negative(reciprocal(negative(value)))
    if not value.is_nonnegative:
        return ANY
    least = [b.power(Fraction(-1)) for b in value.least_magnitude]
    most = [b.power(Fraction(-1)) for b in value.above if b.coefficient > 0]
    return bounded(least, [ZERO, *most])


def power(value: Bounds, exponent: Fraction) -> Bounds:
    """Return the bounds of a positive power of a number that is not negative."""
    if not value.is_nonnegative:
        return ANY
    above = [b.power(exponent) for b in value.above if b.coefficient >= 0]
    return bounded(above, [ZERO, *(b.power(exponent) for b in value.least_magnitude)])


def absolute(value: Bounds) -> Bounds:
    if value.is_nonnegative:
        return value
    return bounded(value.magnitude, [ZERO, *value.least_magnitude])


def square(value: Bounds) -> Bounds:
    return power(absolute(value), Fraction(2))


def maximum(first: Bounds, second: Bounds) -> Bounds:
    above = [b for a in first.above for c in second.above for b in _maximum(a, c)]
    return bounded(above, [*first.below, *second.below])


def minimum(first: Bounds, second: Bounds) -> Bounds:
    return negative(maximum(negative(first), negative(second)))
