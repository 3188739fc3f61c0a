"""TensorFlow's Poisson numbers that follow from a seed, and the columns of a table of them.

The numbers of one table are independent, so those of different columns are.  Numbers of two tables
of one seed are not: only one table of a seed has columns that are noise.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from tffc.assurance.privacy.graphs.constants import DTYPES
from tffc.assurance.privacy.graphs.table import NodeUse, Outputs, RuleTable, sizes_of
from tffc.assurance.privacy.quantities import noises
from tffc.assurance.privacy.quantities.quantity import Quantity
from tffc.language.dtypes import DType

POISSON_NUMBERS = RuleTable()
"""The rules of this module."""

LARGEST_RATE = 2**50
"""The largest rate of which integers of 64 bits hold all numbers, and the sampler's all digits."""


@POISSON_NUMBERS.rule("StatelessRandomPoisson")
def _poisson(use: NodeUse) -> Outputs:
    """Describe numbers of one rate, which is a positive constant."""
    sizes, seed, rate = use.inputs
    shape, number = sizes_of(sizes), rate.bounds.exact
    if shape is None or rate.shape is None or shape[len(shape) - len(rate.shape) :] != rate.shape:
        return None
    if DTYPES.get(use.node.attr["dtype"].type) is not DType.INT64:
        return None
    if number is None or number.powers or not 0 < number.coefficient <= LARGEST_RATE:
        return None
    if not rate.provenance.is_public:
        return None
    drawn = use.algebra.drawn_from(noises.POISSON, [seed], shape)
    term = use.algebra.term("numbers of rate", drawn.term, rate.term)
    noise = drawn.noise and dataclasses.replace(drawn.noise, scale=rate.bounds)
    return [dataclasses.replace(drawn, term=term, noise=noise, is_integer=True)]


def column(use: NodeUse, value: Quantity, places: NDArray[np.int64], part: Quantity) -> Quantity:
    """Return elements of a tensor, at places of its flattened elements, as noise of their own, if
    they are a column of Poisson numbers."""
    noise, algebra = value.noise, use.algebra
    if noise is None or noise.distribution != noises.POISSON or not value.shape or not places.size:
        return part
    whole = np.arange(value.size or 0).reshape(value.shape)
    number = int(places.flat[0])
    if number >= value.shape[-1] or not np.array_equal(whole[..., number], places):
        return part
    if value.provenance.draws != noise.draws | algebra.followed_draws or len(noise.draws) != 1:
        return part
    (table,) = noise.draws
    draw = algebra.column(table, value.term, number)
    if draw is None:
        return part
    draws = frozenset((draw,))
    provenance = dataclasses.replace(part.provenance, draws=draws | algebra.followed_draws)
    own = dataclasses.replace(noise, draws=draws, place=algebra.draws[table])
    result = dataclasses.replace(part, provenance=provenance, noise=own)
    return algebra.columns.setdefault(draw, result)


LARGEST_DEVIATION = 2.0**24
"""The largest standard deviation of Skellam's noise that integers of 32 bits hold: that it is 128
times as far from zero is less likely than any δ."""


def narrowed(use: NodeUse) -> Outputs:
    """Return the difference of two columns, and nothing else, as integers of 32 bits, if these
    hold it."""
    (value,), algebra = use.inputs, use.algebra
    noise = value.noise
    if noise is None or noise.distribution != noises.SKELLAM or not value.is_integer:
        return None
    columns = [algebra.columns[draw] for draw in sorted(noise.draws) if draw in algebra.columns]
    if len(columns) != 2 or value.term not in _differences(use, *columns):
        return None
    return [value] if noise.scale.interval[1] <= LARGEST_DEVIATION else None


def _differences(use: NodeUse, first: Quantity, second: Quantity) -> tuple[int, int]:
    subtract = use.algebra.subtract
    return subtract(first, second).term, subtract(second, first).term
