"""Which distribution numbers have that are a function of 23 uniform random bits.

There are 2^23 such numbers.  In order, the one at a place is to be a quantile of the distribution
between that of the share of numbers before it and that of the share up to it; then it is nothing
but a number of the distribution, rounded.  The shares may be wrong by a quarter of a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tffc.assurance.privacy.quantities import noises

BITS = 23
COUNT = 1 << BITS
SLACK = 0.25

LEAST_TAIL = 0.05
"""What the distribution has at least beyond the last number, of the share of one number."""

LARGEST_STEP = 0.5
"""The largest step between neighbours in a table of the normal distribution."""

QUARTILE = 0.6744897501960817
"""The third quartile of the normal distribution."""

AT_ONCE = 1 << 16
SOME = 4099
"""How far apart the numbers are that are looked at first."""

Shares: TypeAlias = Callable[[Any], Any]
"""Returns the shares of a distribution below numbers that follow each other."""


class Standard(NamedTuple):
    """The distribution of numbers: `distribution` times `scale`, or between `low` and `high`."""

    distribution: str
    scale: float
    low: float = -math.inf
    high: float = math.inf


class _Numbers(NamedTuple):
    """All numbers in order, with their ends and quartiles."""

    values: Any
    first: float
    last: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance between the quartiles."""
        return self.high - self.low


def standard_of(values: Any) -> Standard | None:
    """Return the distribution of a number that is each of `COUNT` values with the same probability,
    None if it is none of those that are known."""
    if values.shape != (COUNT,) or not np.isfinite(values).all():
        return None
    if not (values[:-1] <= values[1:]).all():
        is_falling = (values[:-1] >= values[1:]).all()
        values = values[::-1] if is_falling else np.sort(values)
    places = (0, -1, COUNT // 4, 3 * COUNT // 4)
    numbers = _Numbers(values, *(float(values[place]) for place in places))
    if not numbers.first < numbers.low < numbers.high < numbers.last:
        return None
    with np.errstate(all="ignore"):
        for fitting in (_uniform, _laplace, _normal, _exponential):
            standard = fitting(numbers)
            if standard is not None:
                return standard
    return None


def _fits(values: Any, shares: Shares, some: Shares | None = None) -> bool:
    """Tell whether the share of a distribution below each number is near that of numbers."""
    if not _is_near((some or shares)(values[::SOME]), np.arange(0, COUNT, SOME)):
        return False
    return all(
        _is_near(shares(values[start : start + AT_ONCE]), np.arange(start, start + AT_ONCE))
        for start in range(0, COUNT, AT_ONCE)
    )


def _is_near(shares: Any, places: Any) -> bool:
    # A share that is no number is not near any.
    return bool((np.abs(COUNT * shares - (places + 0.5)) <= 0.5 + SLACK).all())


def _has_tails(*shares: float) -> bool:
    """Tell whether the shares beyond the last numbers do not vanish."""
    return all(COUNT * share >= LEAST_TAIL for share in shares)


def _uniform(numbers: _Numbers) -> Standard | None:
    width = (numbers.last - numbers.first) * COUNT / (COUNT - 1)
    if not _fits(numbers.values, lambda values: (values - numbers.first) / width):
        return None
    return Standard(noises.UNIFORM, width, numbers.first, numbers.first + width)


def _laplace(numbers: _Numbers) -> Standard | None:
    scale = numbers.width / (2 * math.log(2.0))
    if not _has_tails(*(0.5 * _power(-abs(end) / scale) for end in numbers[1:3])):
        return None
    if not _fits(numbers.values, lambda values: _share_of_laplace(values / scale)):
        return None
    return Standard(noises.LAPLACE, scale)


def _share_of_laplace(values: Any) -> Any:
    tails = 0.5 * np.exp(-np.abs(values))
    return np.where(values < 0, tails, 1.0 - tails)


def _normal(numbers: _Numbers) -> Standard | None:
    scale = numbers.width / (2 * QUARTILE)
    ends = -numbers.first / scale, numbers.last / scale
    if not _has_tails(*(0.5 * math.erfc(end / math.sqrt(2.0)) for end in ends)):
        return None
    if not _fits(
        numbers.values,
        lambda values: _share_of_normal(values / scale),
        lambda values: np.array([_normal_below(value / scale) for value in values]),
    ):
        return None
    return Standard(noises.NORMAL, scale)


def _normal_below(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2.0))


def _share_of_normal(values: Any) -> Any:
    """Return the integral of the density up to each number, by Simpson's rule from one to the
    next; it is no number where they are too far from each other for that."""
    steps = np.diff(values)
    if steps.max() > LARGEST_STEP:
        return np.full(values.shape, np.nan)
    density, middles = _density(values), _density(values[:-1] + steps / 2)
    masses = steps / 6 * (density[:-1] + 4 * middles + density[1:])
    first = _normal_below(float(values[0]))
    return np.concatenate([[first], first + np.cumsum(masses)])


def _density(values: Any) -> Any:
    return np.exp(-0.5 * values * values) / math.sqrt(2 * math.pi)


def _exponential(numbers: _Numbers) -> Standard | None:
    scale = numbers.width / math.log(3.0)
    if numbers.first >= 0:
        if not _has_tails(_power(-numbers.last / scale)):
            return None
        is_one = _fits(numbers.values, lambda values: -np.expm1(-values / scale))
        return Standard(noises.EXPONENTIAL, scale) if is_one else None
    if numbers.last > 0 or not _has_tails(_power(numbers.first / scale)):
        return None
    is_one = _fits(numbers.values, lambda values: np.exp(values / scale))
    return Standard(noises.EXPONENTIAL, -scale) if is_one else None


def _power(exponent: float) -> float:
    return math.exp(exponent) if exponent < 0 else 1.0
