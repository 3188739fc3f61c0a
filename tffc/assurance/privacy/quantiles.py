"""Which distribution numbers have that are a function of 23 uniform random bits.

There are 2^23 such numbers.  In order, the one at a place is to be a quantile of the distribution
between that of the share of numbers before it and that of the share up to it; then it is nothing
but a number of the distribution, rounded.  The shares may be wrong by a quarter of a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tffc.assurance.privacy import noises

BITS = 23
COUNT = 1 << BITS
SLACK = 0.25
LEAST_TAIL = 0.05
"""What is beyond the last number, of the share of one."""

LARGEST_STEP = 0.5
"""The largest step between neighbours in a table of the normal distribution."""

HALF = 0.6744897501960817
"""The third quartile of the normal distribution."""


class Standard(NamedTuple):
    """The distribution of numbers: `distribution` times `scale`, or between `low` and `high`."""

    distribution: str
    scale: float
    low: float = -math.inf
    high: float = math.inf


def standard_of(values: Any) -> Standard | None:
    """Return the distribution of a number that is each of `COUNT` values with the same probability,
    None if it is none of those that are known."""
    if values.shape != (COUNT,) or not np.isfinite(values).all():
        return None
    steps = np.diff(values)
    if (steps < 0).any():
        values = values[::-1] if (steps <= 0).all() else np.sort(values)
    ends, quartiles = (values[0], values[-1]), (values[COUNT // 4], values[3 * COUNT // 4])
    if not ends[0] < quartiles[0] < quartiles[1] < ends[1]:
        return None
    with np.errstate(all="ignore"):
        for fitting in (_uniform, _symmetric, _exponential):
            standard = fitting(values, *map(float, (*ends, *quartiles)))
            if standard is not None:
                return standard
    return None


def _fits(shares: Any, tails: tuple[float, ...] = ()) -> bool:
    """Tell whether the share of the distribution below each number is near that of numbers.

    `tails` are the shares beyond the last numbers where the distribution has no end, which must not
    vanish.
    """
    if any(COUNT * tail < LEAST_TAIL for tail in tails):
        return False
    middles = np.arange(COUNT) + 0.5
    # A share that is no number is not near any.
    return bool(np.abs(COUNT * shares - middles).max() <= 0.5 + SLACK)


def _uniform(values: Any, first: float, last: float, low: float, high: float) -> Standard | None:
    width = (last - first) * COUNT / (COUNT - 1)
    if not _fits((values - first) / width):
        return None
    return Standard(noises.UNIFORM, width, first, first + width)


def _symmetric(values: Any, first: float, last: float, low: float, high: float) -> Standard | None:
    distributions: dict[str, tuple[float, Callable[[Any], Any]]] = {
        noises.LAPLACE: (math.log(2.0), _share_of_laplace),
        noises.NORMAL: (HALF, _share_of_normal),
    }
    for distribution, (quartile, share) in distributions.items():
        scale = (high - low) / (2 * quartile)
        shares = share(values / scale)
        if shares is not None and _fits(shares, (shares[0], 1.0 - shares[-1])):
            return Standard(distribution, scale)
    return None


def _exponential(
    values: Any, first: float, last: float, low: float, high: float
) -> Standard | None:
    sign = 1.0 if first >= 0 else -1.0
    scale = (high - low) / math.log(3.0)
    shares = -np.expm1(-values / scale) if sign > 0 else np.exp(values / scale)
    tail = shares[0] if sign < 0 else 1.0 - shares[-1]
    if not (values * sign >= 0).all() or not _fits(shares, (tail,)):
        return None
    return Standard(noises.EXPONENTIAL, sign * scale)


def _share_of_laplace(values: Any) -> Any:
    tails = 0.5 * np.exp(-np.abs(values))
    return np.where(values < 0, tails, 1.0 - tails)


def _share_of_normal(values: Any) -> Any:
    """Return the integral of the density up to each number, by Simpson's rule from one to the
    next; None where they are too far from each other for that."""
    steps = np.diff(values)
    if steps.max() > LARGEST_STEP:
        return None
    density, middles = _density(values), _density(values[:-1] + steps / 2)
    masses = steps / 6 * (density[:-1] + 4 * middles + density[1:])
    first = 0.5 * math.erfc(-values[0] / math.sqrt(2.0))
    return np.concatenate([[first], first + np.cumsum(masses)])


def _density(values: Any) -> Any:
    return np.exp(-0.5 * values * values) / math.sqrt(2 * math.pi)
