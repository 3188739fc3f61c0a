"""The distributions that a program makes of random numbers, by the operations that make them.

A draw of uniform numbers becomes one of Laplace's distribution by its inverse, or as the
difference of two exponential draws; a difference of two Poisson draws is one of Skellam's.  Nothing
is known of noise that is made otherwise.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

from tffc.assurance.privacy.quantities import bounds
from tffc.assurance.privacy.quantities.bounds import ONE, Bounds, exactly
from tffc.assurance.privacy.quantities.quantity import Noise, Quantity
from tffc.assurance.privacy.quantities.seeds import FINEST

NORMAL = "normal"
LAPLACE = "Laplace"
SKELLAM = "Skellam"
DISCRETE = "discrete normal"
UNIFORM = "uniform"
EXPONENTIAL = "exponential"
POISSON = "Poisson"
SIGN = "sign"
STREAM = "correlated normal"
"""Normal noise that is followed from round to round."""

CLOCK = "clock"
"""The time of a clock, times a number: from it follow seeds that a user vouches for."""

SEED = "seed"
"""At least two integers of a range of 2^31 or nearly so: a seed that cannot be tried out."""

WIDE_SEED = "wide seed"
"""Integers of a range of 2^62 or more, each of which cannot be tried out."""

SEEDS = (SEED, WIDE_SEED)

PRIVATE = (NORMAL, LAPLACE, SKELLAM, DISCRETE)
"""The distributions that hide what a client adds to a sum."""

HALVES = (EXPONENTIAL, POISSON)
"""The distributions of which the difference of two draws hides something."""

SCALABLE = (NORMAL, LAPLACE, EXPONENTIAL, UNIFORM, SIGN)
"""The distributions that stay of their kind under a factor."""


def scaled(noise: Noise | None, factor: Bounds) -> Noise | None:
    """Return noise times a number, or None if its distribution is then another one."""
    if noise is None:
        return None
    if noise.distribution == CLOCK:
        return _ticking(noise, factor)
    is_sign = factor.exact in (ONE, ONE.scaled(-1.0))
    if noise.distribution not in SCALABLE and not is_sign:
        return None
    return dataclasses.replace(noise, scale=bounds.multiply(noise.scale, factor))


def _ticking(noise: Noise, factor: Bounds) -> Noise | None:
    """Return a clock that counts other steps, if numbers of 64 bits can tell them apart."""
    scale = bounds.multiply(noise.scale, factor)
    steps = scale.exact
    if steps is None or steps.powers or not 1.0 <= abs(steps.coefficient) <= FINEST:
        return None
    return dataclasses.replace(noise, scale=scale)


def combined(first: Noise, second: Noise) -> Noise | None:
    """Return the sum of two independent draws, if its distribution is known.

    Of noise that hides something by itself, more noise takes nothing away.
    """
    if first.draws & second.draws:
        return None
    is_shifted = first.is_shifted or second.is_shifted
    for noise in (first, second):
        if noise.distribution in PRIVATE:
            return dataclasses.replace(noise, is_shifted=is_shifted)
    if first.distribution != second.distribution:
        return None
    one, other = first.scale.exact, second.scale.exact
    if one is None or other is None or not one.is_close(other.scaled(-1.0)):
        return None
    sums = {EXPONENTIAL: LAPLACE, POISSON: SKELLAM}
    if first.distribution not in sums:
        return None
    scale = bounds.absolute(first.scale)
    if first.distribution == POISSON:
        # The variance of the difference is the sum of the variances, which are the rates.
        scale = bounds.power(bounds.multiply(scale, bounds.constant(2.0)), Fraction(1, 2))
    return Noise(
        sums[first.distribution],
        scale,
        first.draws | second.draws,
        f"{first.place} and {second.place}" if first.place != second.place else first.place,
        is_shifted=is_shifted,
    )


def product(first: Noise, second: Noise) -> Noise | None:
    """Return the product of the sign and the exponential magnitude of one draw: Laplace's."""
    if first.distribution == SIGN:
        first, second = second, first
    if second.distribution != SIGN or first.distribution != EXPONENTIAL:
        return None
    # What was not made of the magnitude alone may depend on the sign.
    if first.draws != second.draws or not first.is_magnitude:
        return None
    if first.is_shifted or second.is_shifted:
        return None
    scale = bounds.multiply(bounds.absolute(first.scale), bounds.absolute(second.scale))
    return dataclasses.replace(first, distribution=LAPLACE, scale=scale)


def logarithm(value: Quantity, shift: float) -> Noise | None:
    """Return the logarithm of `shift` plus a uniform draw from zero to one: a negative exponential
    draw."""
    noise = _uniform(value)
    low, high = value.bounds.interval
    # Where the draws end above zero, their logarithm is bounded, and hides nothing at its end.
    if noise is None or abs(low + shift) > TINY or not math.isclose(high + shift, 1.0):
        return None
    scale = bounds.negative(exactly(ONE))
    return dataclasses.replace(noise, distribution=EXPONENTIAL, scale=scale, is_shifted=False)


TINY = 1e-29
"""Where uniform draws may begin above zero: what they leave out is less likely than any δ."""


def _uniform(value: Quantity) -> Noise | None:
    """Return the noise of a value if it is uniform on its whole interval."""
    noise = value.noise
    if noise is None or noise.distribution != UNIFORM:
        return None
    low, high = value.bounds.interval
    scale = noise.scale.exact
    if scale is None or scale.powers or not math.isclose(abs(scale.coefficient), high - low):
        return None
    return noise


def of_symmetric(value: Quantity, distribution: str) -> Noise | None:
    """Return the sign or the magnitude of a uniform draw around zero."""
    noise = _uniform(value)
    low, high = value.bounds.interval
    if noise is None or noise.is_magnitude or not math.isclose(low, -high, rel_tol=1e-6):
        return None
    is_magnitude = distribution == UNIFORM
    scale = bounds.constant(high) if is_magnitude else exactly(ONE)
    return dataclasses.replace(
        noise,
        distribution=distribution,
        scale=scale,
        is_magnitude=is_magnitude,
        is_shifted=False,
    )
