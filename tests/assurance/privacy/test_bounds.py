"""Bounds by monomials hold for the numbers that generated expressions compute."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from tffc.assurance.privacy.quantities import bounds
from tffc.assurance.privacy.quantities.bounds import Bounds, Monomial, Unknown, constant, exactly

UNKNOWNS = [Unknown("state", (name,)) for name in "abc"]

Value = tuple[Bounds, float]
"""Bounds, and a number within them."""


def leaf(chance: random.Random, numbers: dict[Unknown, float]) -> Value:
    if chance.random() < 0.4:
        number = chance.choice([0.0, 0.5, 1.0, 3.0, -2.0])
        return constant(number), number
    if chance.random() < 0.3:
        low, high = sorted(chance.choice([-2.0, -1.0, 0.0, 1.0, 4.0]) for _ in range(2))
        return bounds.between(low, high), chance.uniform(low, high)
    unknown = chance.choice(UNKNOWNS)
    return exactly(Monomial(1.0, ((unknown, Fraction(1)),))), numbers[unknown]


def grown(chance: random.Random, first: Value, second: Value) -> Value | None:
    """An operation on two values, None where it is not defined."""
    (a, x), (b, y) = first, second
    match chance.randrange(11):
        case 0:
            return bounds.add(a, b), x + y
        case 1:
            return bounds.subtract(a, b), x - y
        case 2 | 3:
            return bounds.multiply(a, b), x * y
        case 4:
            return (bounds.reciprocal(a), 1 / x) if x else None
        case 5:
            return bounds.minimum(a, b), min(x, y)
        case 6:
            return bounds.maximum(a, b), max(x, y)
        case 7:
            return bounds.absolute(a), abs(x)
        case 8:
            return bounds.square(a), x * x
        case 9:
            return (bounds.power(a, Fraction(1, 2)), math.sqrt(x)) if x >= 0 else None
        case _:
            return bounds.either(a, b), chance.choice([x, y])


def value(monomial: Monomial, numbers: dict[Unknown, float]) -> float:
    return monomial.with_values(numbers).coefficient


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        numbers = {unknown: chance.choice([0.25, 1.0, 2.5, 9.0]) for unknown in UNKNOWNS}
        values = [leaf(chance, numbers) for _ in range(4)]
        for _ in range(12):
            result = grown(chance, chance.choice(values), chance.choice(values))
            if result is None or abs(result[1]) > 1e12:
                continue
            known, number = result
            slack = 1e-9 * max(1.0, abs(number))
            for bound in known.above:
                most = value(bound, numbers)
                assert number <= most + 1e-9 * abs(most) + slack
            for bound in known.below:
                least = value(bound, numbers)
                assert number >= least - 1e-9 * abs(least) - slack
            for bound in known.magnitude:
                most = value(bound, numbers)
                assert abs(number) <= most + 1e-9 * abs(most) + slack
            values.append(result)


def test_a_clip_by_a_norm() -> None:
    norm = Unknown("norm", (2, (1, 0)))
    root = bounds.power(exactly(Monomial(1.0, ((norm, Fraction(1)),))), Fraction(1, 2))
    factor = bounds.minimum(constant(1.0), bounds.multiply(constant(3.0), bounds.reciprocal(root)))
    assert Monomial(3.0, ((norm, Fraction(-1, 2)),)) in factor.magnitude
    assert constant(1.0).above[0] in factor.magnitude
