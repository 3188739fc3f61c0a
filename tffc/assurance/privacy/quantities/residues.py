"""Integers modulo a number, as they are computed with a quotient that is rounded down.

    x - floor(x / m - low / m) * m        is from low to low + m, and equal to x modulo m

A sum of such remainders is equal to the sum of what they are remainders of, and so are both modulo
the number: what a server computes of the first by that formula is a function of the second.
"""

from __future__ import annotations

import dataclasses
import math

from tffc.assurance.privacy.quantities.bounds import Monomial
from tffc.assurance.privacy.quantities.lines import number_of
from tffc.assurance.privacy.quantities.quantity import Quantity, Quotient

NEAR = 1e-9
"""How far a number may be from an integer that it stands for, for the rounding of constants."""


def rounded_down(value: Quantity) -> Quotient | None:
    """Return the quotient that a tensor is if it is rounded down; None if it is of another form."""
    number = 0.0
    if value.product is None and value.addends is not None:
        for part, other in (value.addends, value.addends[::-1]):
            known = number_of(other)
            if known is not None and part.product is not None:
                value, number = part, known
                break
    if value.product is None:
        return None
    whole, factor = value.product
    inverse = number_of(factor)
    if inverse is None or inverse <= 0 or not math.isfinite(whole.span):
        return None
    divisor, shift = _integer(1 / inverse), _integer(number / inverse)
    if divisor is None or shift is None or divisor < 2:
        return None
    return Quotient(whole, divisor, shift)


def _integer(number: float) -> int | None:
    near = round(number)
    return near if math.isclose(number, near, rel_tol=NEAR, abs_tol=NEAR) else None


def multiple(value: Quantity, factor: Quantity) -> Quotient | None:
    """Return the quotient that a tensor is times a number."""
    number = number_of(factor)
    if value.quotient is None or number is None:
        return None
    return dataclasses.replace(value.quotient, times=value.quotient.times * number)


def fits(quotient: Quotient, most: float) -> bool:
    """Tell whether a quotient is at most a number in magnitude."""
    return (quotient.whole.span + abs(quotient.shift)) / quotient.divisor + 1 <= most


def reduction(value: Quantity, other: Quantity) -> Quotient | None:
    """Return the quotient whose multiple is taken away from an integer tensor in the sum of both;
    None if the sum is not the remainder."""
    quotient = other.quotient
    if quotient is None or not (value.is_integer and other.is_integer):
        return None
    is_own = quotient.whole.term == value.term and value.shape == other.shape is not None
    return quotient if is_own and quotient.times == -quotient.divisor else None


def is_known(value: Quantity, modulus: float) -> bool:
    """Tell whether a tensor is equal modulo a number to one that is known."""
    return value.residue is not None and value.residue[1] == Monomial(float(modulus))
