"""What is known of a value that is one of two, by a comparison: where a number is greater than
another, a bound of either is a bound of both."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tffc.assurance.privacy.quantities.bounds import ZERO, Bounds, Unknown, bounded, negative
from tffc.assurance.privacy.quantities.bounds import either as join
from tffc.assurance.privacy.quantities.quantity import Quantity


def certain(condition: Quantity, first: Quantity, second: Quantity) -> Quantity | None:
    """Return the one of two values that is chosen by a condition, if that is known; numbers that
    clients compute with are taken to be finite."""
    if first.term == second.term:
        return first
    if condition.content is not None and condition.is_scalar:
        return first if bool(condition.content) else second
    if condition.is_finiteness and second.content is not None:
        return None if np.isfinite(second.content).any() else first
    return None


def facts(condition: Quantity, holds: bool) -> list[tuple[Quantity, Quantity]]:
    """Return the pairs of which the first is at most the second if a condition holds."""
    while condition.negates is not None:
        condition, holds = condition.negates, not holds
    if condition.comparison is None:
        return []
    greater, less = condition.comparison
    return [(less, greater)] if holds else [(greater, less)]


def where(condition: Quantity, value: Quantity, holds: bool) -> Bounds:
    """Return the bounds of a value where a condition holds, or where it does not."""
    known: Bounds = value.bounds
    if value.branches is not None and value.branches[0] == condition.term:
        _, true, false = value.branches
        known = true if holds else false
    above, below = list(known.above), list(known.below)
    for small, large in facts(condition, holds):
        if value.term == small.term:
            above.extend(large.bounds.above)
        if small.power_of is not None and small.power_of[1] == 1 and not small.elements:
            if small.power_of[0].term == value.term:
                above.extend(large.bounds.above)
                below.extend(negative(large.bounds).below)
        if value.term == large.term:
            below.extend(small.bounds.below)
        ratios = [
            high * low.power(Fraction(-1))
            for high in large.bounds.above
            for low in small.bounds.least_magnitude
            if high.coefficient > 0 and small.bounds.is_nonnegative
        ]
        above.extend([b * r for b in known.above for r in ratios if b.coefficient > 0])
        below.extend(
            [b * r.power(Fraction(-1)) for b in known.below for r in ratios if b.coefficient > 0]
        )
    return bounded(above, below)


def either(condition: Quantity, true: Bounds, false: Bounds) -> Bounds:
    """Return the bounds of a value that is either of two, by a condition.

    Where a number is at most zero, so is a multiple of a power of it, which therefore bounds any
    number that is not negative from below.
    """
    known = join(true, false)
    below = list(known.below)
    for holds, here, other in ((True, true, false), (False, false, true)):
        for small, large in facts(condition, holds):
            vanishing = zeros(small) if ZERO in large.bounds.above else set[Unknown]()
            if here.is_nonnegative:
                below.extend(
                    b
                    for b in other.least_magnitude
                    if any(e > 0 and u in vanishing for u, e in b.powers)
                )
    return bounded(known.above, below)


def zeros(value: Quantity) -> set[Unknown]:
    """Return an unknown number that is zero if a value is not positive."""
    exact = value.bounds.exact
    if exact is None or exact.coefficient <= 0 or len(exact.powers) != 1:
        return set()
    return {unknown for unknown, exponent in exact.powers if exponent > 0}
