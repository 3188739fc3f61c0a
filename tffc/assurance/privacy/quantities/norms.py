"""Norms of clients' values: sums of powers of their elements' magnitudes.

The norm of several tensors is one unknown number for all of them, so that a sum over layers is the
unknown that a global clip divides by.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from tffc.assurance.privacy.quantities import bounds
from tffc.assurance.privacy.quantities.bounds import Bounds, Monomial, Unknown, bounded, exactly
from tffc.assurance.privacy.quantities.quantity import Quantity

NORM = "norm"

Elements = tuple[int, int]
"""What elements a tensor has: the terms of its base and of the factor, or 0 for none."""


def own_elements(value: Quantity) -> Elements:
    """Return what elements a tensor has."""
    return value.base, 0 if value.factor is None else value.factor.term


def norm_of(power: int, elements: Iterable[Elements]) -> Unknown:
    """Return the sum of powers of the magnitudes of all elements of some tensors; power zero stands
    for the largest magnitude."""
    return Unknown(NORM, (power, *sorted(elements)))


def _one(power: int, elements: Elements) -> Monomial:
    return Monomial(1.0, ((norm_of(power, [elements]), Fraction(1)),))


def power_sum(value: Quantity, power: int) -> Bounds:
    """Return the bounds of the sum of a power of the magnitudes of a tensor's elements."""
    if value.parts:
        total = power_sum(value.parts[0], power)
        for part in value.parts[1:]:
            total = add(total, power_sum(part, power))
        return total
    if value.size == 1 and value.factor is None:
        known = bounds.power(bounds.absolute(value.bounds), Fraction(power))
        if known.exact is not None:
            return known
    if value.factor is None:
        return exactly(_one(power, (value.base, 0)))
    factor = bounds.power(bounds.absolute(value.factor.bounds), Fraction(power))
    scaled = bounds.multiply(factor, exactly(_one(power, (value.base, 0))))
    if scaled.exact is not None:
        return scaled
    own = _one(power, own_elements(value))
    return bounded([own, *scaled.above], [own, *scaled.below])


def add(first: Bounds, second: Bounds) -> Bounds:
    """Return the bounds of a sum; norms of different tensors add up to the norm of all."""
    total = bounds.add(first, second)
    joint = _joint(first.exact, second.exact)
    if joint is None:
        return total
    return bounded([joint, *total.above], [joint, *total.below])


def largest(value: Quantity) -> Bounds:
    """Return the bounds of the largest magnitude of a tensor's elements."""
    own = exactly(_one(0, own_elements(value)))
    if value.parts or value.factor is None:
        return own
    base = exactly(_one(0, (value.base, 0)))
    scaled = bounds.multiply(bounds.absolute(value.factor.bounds), base)
    return bounded([*own.above, *scaled.above], [*own.below, *scaled.below])


def _joint(first: Monomial | None, second: Monomial | None) -> Monomial | None:
    """Return the sum of two monomials that differ in the tensors of a norm alone."""
    if first is None or second is None or first.coefficient != second.coefficient:
        return None
    one, other = _norm_in(first), _norm_in(second)
    if one is None or other is None or one.power != other.power or one.rest != other.rest:
        return None
    if one.exponent != 1 or other.exponent != 1 or not one.power:
        return None
    both = norm_of(one.power, [*one.elements, *other.elements])
    return Monomial(first.coefficient, ((both, Fraction(1)),)) * Monomial(1.0, one.rest)


class _Norm(NamedTuple):
    """The one norm in a monomial, its exponent there, and the other powers."""

    power: int
    elements: list[Elements]
    exponent: Fraction
    rest: bounds.Powers


def _norm_in(monomial: Monomial) -> _Norm | None:
    norms = [(unknown, exponent) for unknown, exponent in monomial.powers if unknown.kind == NORM]
    if len(norms) != 1:
        return None
    unknown, exponent = norms[0]
    power, *elements = unknown.key
    assert isinstance(power, int)
    rest = tuple(pair for pair in monomial.powers if pair[0].kind != NORM)
    return _Norm(power, elements, exponent, rest)  # pyright: ignore[reportArgumentType]


class Limit(NamedTuple):
    """A public number that a norm of tensors does not exceed: `norm` is 1 or 2, or 0 for the
    largest magnitude."""

    norm: int
    number: Monomial

    def of_powers(self, power: int, size: int | None) -> Monomial | None:
        """Return what the sum of a power of the magnitudes does not exceed, for tensors of `size`
        elements together, None if that is not known.

        The norm of absolute values is the largest; that of squares is at least the largest
        magnitude; and by the inequality of Cauchy and Schwarz the norm of absolute values is at
        most the root of the number of elements times that of squares.
        """
        whole = self.number.power(Fraction(power))
        if self.norm == power or (self.norm, power) == (1, 2):
            return whole
        if size is None:
            return None
        return whole.scaled(math.sqrt(size) if self.norm == 2 else float(size))


def limit_of(factor: Monomial, elements: Iterable[Elements]) -> Limit | None:
    """Return the limit that a bound of a factor sets to these tensors, times that factor.

    It divides by a norm of these tensors, and perhaps of others.
    """
    norm = _norm_in(factor)
    if norm is None:
        return None
    if collections.Counter(elements) - collections.Counter(norm.elements):
        return None
    exponent = -norm.exponent * (norm.power or 1)
    if exponent != 1 or factor.coefficient < 0:
        return None
    number = Monomial(factor.coefficient, norm.rest)
    return Limit(norm.power, number) if number.is_public else None
