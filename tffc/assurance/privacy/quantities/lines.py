"""Affine functions of a tensor that are rounded and clipped, as quantisation makes them.

    q = min(max(round((x - low) * scale), 0), most)        at a client
    q / scale + low                                        what a client adds to the sum at a server

The second is `x` but for half a step, wherever the interval does not cut it off.
"""

from __future__ import annotations

import dataclasses
import math

from tffc.assurance.privacy.quantities.bounds import Bounds
from tffc.assurance.privacy.quantities.norms import limit_of
from tffc.assurance.privacy.quantities.quantity import Line, Quantity


def number_of(value: Quantity) -> float | None:
    """Return the number that each element of a tensor is, if it is a known one."""
    exact = value.bounds.exact
    return None if exact is None or exact.powers else exact.coefficient


def line_of(value: Quantity) -> Line | None:
    """Return a client's tensor as an affine function of one; None if it is none, or has noise."""
    if not value.provenance.is_of_client or value.sums or value.signal or value.noise:
        return None
    return value.line or Line(value)


def shifted(value: Quantity, other: Quantity, total: Quantity) -> Line | None:
    """Return the line of the sum `total` of a client's tensor and of a number, or of what is
    added to one that is rounded."""
    line, number = line_of(value), number_of(other)
    if line is None or total.shape != value.shape:
        return None
    if number is None:
        least, most = other.bounds.interval
        is_step = value.is_whole and value.line is not None and math.isfinite(most - least)
        return moved(value, least, most) if is_step else None
    return Line(
        line.base,
        line.slope,
        line.least + number,
        line.most + number,
        line.low + number,
        line.high + number,
    )


def scaled(value: Quantity, factor: Quantity, product: Quantity) -> Line | None:
    """Return the line of the `product` of a tensor that is one and a number."""
    line, number = value.line, number_of(factor)
    if line is None or not number or product.shape != value.shape:
        return None
    least, most = sorted((line.least * number, line.most * number))
    low, high = sorted((line.low * number, line.high * number))
    return Line(line.base, line.slope * number, least, most, low, high)


def clipped(value: Quantity, low: float, high: float) -> Line | None:
    """Return the line of a client's tensor that is brought into an interval."""
    line = line_of(value)
    if line is None:
        return None
    return dataclasses.replace(
        line, low=min(max(line.low, low), high), high=min(max(line.high, low), high)
    )


def moved(value: Quantity, least: float, most: float) -> Line | None:
    """Return the line of a client's tensor to whose elements numbers from `least` to `most` are
    added, as by rounding."""
    line = line_of(value)
    if line is None:
        return None
    if (line.low, line.high) != (-math.inf, math.inf):
        line = Line(value)  # What is added after a clip leads out of its interval.
    return dataclasses.replace(line, least=line.least + least, most=line.most + most)


def distance(line: Line) -> float:
    """Return by how much the magnitude of an element may be larger than that of the base's times
    the slope."""
    return max(-line.least, line.most, 0.0) + max(0.0, line.low, -line.high)


def reach(line: Line) -> float:
    """Return a number that no element on a line exceeds in magnitude: infinity if none is known."""
    base = line.base
    least, most = base.bounds.interval
    known = [max(-least, most)]
    factors = () if base.factor is None else base.factor.bounds.magnitude
    for factor in factors:
        limit = limit_of(factor, [(base.base, 0)])
        if limit is not None and not limit.number.powers:
            known.append(limit.number.coefficient)
    return abs(line.slope) * min(known) + distance(line)


def is_inside(limits: Bounds, low: float, high: float) -> bool:
    """Tell whether a number is known to be in an interval."""
    least, most = limits.interval
    return low <= least and most <= high and not math.isnan(least + most)


def scaled_image(value: Quantity, factor: Quantity) -> tuple[Quantity, float] | None:
    """Return what the product of a tensor and a number is an image of."""
    number = number_of(factor)
    if value.image is None or number is None:
        return None
    return value.image[0], value.image[1] * abs(number)
