"""TensorFlow's operations that draw random numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc.assurance.privacy.graphs.constants import DTYPES
from tffc.assurance.privacy.graphs.table import NodeUse, Outputs, RuleTable, sizes_of
from tffc.assurance.privacy.quantities import bounds, noises
from tffc.assurance.privacy.quantities.quantity import Quantity, Shape

RANDOM_NUMBERS = RuleTable()
"""The rules of this module."""


# Random numbers.


@RANDOM_NUMBERS.rule("RandomStandardNormal")
def _normal(use: NodeUse) -> Outputs:
    return [use.draw(noises.NORMAL, sizes_of(use.inputs[0]))]


@RANDOM_NUMBERS.rule("RandomUniform")
def _uniform(use: NodeUse) -> Outputs:
    limits = bounds.between(0.0, 1.0)
    return [use.draw(noises.UNIFORM, sizes_of(use.inputs[0]), limits)]


STATELESS = {
    "StatelessRandomNormal": noises.NORMAL,
    "StatelessRandomNormalV2": noises.NORMAL,
    "StatelessRandomUniform": noises.UNIFORM,
    "StatelessRandomUniformV2": noises.UNIFORM,
}
"""The distributions that operations draw from a seed among their use.inputs."""


@RANDOM_NUMBERS.rule(*STATELESS)
def _stateless(use: NodeUse) -> Outputs:
    distribution = STATELESS[use.node.op]
    limits = bounds.between(0.0, 1.0) if distribution == noises.UNIFORM else bounds.ANY
    seeds = use.inputs[1:3]
    shape = sizes_of(use.inputs[0])
    return [use.algebra.drawn_from(distribution, seeds, shape, limits, _how(use))]


def _how(use: NodeUse) -> tuple[Any, ...]:
    """Return what numbers from a seed depend on besides it: the operation, their type, the
    generator and the range."""
    return use.node.op, use.node.attr["dtype"].type, *(each.term for each in use.inputs[1:])


# Seeds.

WIDEST = 2**31 - 2
"""The least range of each integer of a seed of several."""

ALONE = 2**62
"""The least range of an integer that is a seed by itself."""


def _kind_of_seed(width: int, shape: Shape | None) -> str | None:
    """Return what seed integers of a range make, None if they can be tried out."""
    if shape is None or not math.prod(shape):
        return None
    if width >= ALONE:
        return noises.WIDE_SEED
    return noises.SEED if width >= WIDEST and math.prod(shape) >= 2 else None


def _width(low: Quantity, high: Quantity) -> int:
    """Return the width of a range between numbers, if these are constants, or else 0."""
    if low.content is None or high.content is None or low.size != 1 or high.size != 1:
        return 0
    return int(np.ravel(high.content)[0]) - int(np.ravel(low.content)[0])


@RANDOM_NUMBERS.rule("RandomUniformInt")
def _integers(use: NodeUse) -> Outputs:
    sizes, low, high = use.inputs
    shape = sizes_of(sizes)
    kind = _kind_of_seed(_width(low, high), shape)
    return None if kind is None else [use.draw(kind, shape)]


@RANDOM_NUMBERS.rule("StatelessRandomUniformInt", "StatelessRandomUniformIntV2")
def _integers_of_seed(use: NodeUse) -> Outputs:
    low, high = use.inputs[-2:]
    return _drawn_from_seed(use, _width(low, high), use.inputs[1:-2])


@RANDOM_NUMBERS.rule("StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2")
def _all_integers_of_seed(use: NodeUse) -> Outputs:
    kind = DTYPES.get(use.node.attr["dtype"].type)
    width = 0 if kind is None or not kind.is_integer else 1 << 8 * kind.size
    return _drawn_from_seed(use, width, use.inputs[1:])


def _drawn_from_seed(use: NodeUse, width: int, seeds: Sequence[Quantity]) -> Outputs:
    """Return integers that follow from a seed, and that are one themselves."""
    shape = sizes_of(use.inputs[0])
    kind = _kind_of_seed(width, shape)
    return None if kind is None else [use.algebra.drawn_from(kind, seeds, shape, how=_how(use))]


@RANDOM_NUMBERS.rule("Bitcast")
def _bitcast(use: NodeUse) -> Outputs:
    """Integers of one size are the same bits, whether they have signs or not."""
    value, types = use.inputs[0], (use.node.attr["T"].type, use.node.attr["type"].type)
    source, kind = map(DTYPES.get, types)
    if source is None or kind is None or not (source.is_integer and kind.is_integer):
        return None
    noise = value.noise
    if source.size != kind.size or noise is None or noise.distribution not in noises.SEEDS:
        return None
    bits = use.algebra.unknown([value], "bits", kind, shape=value.shape, is_integer=True)
    return [dataclasses.replace(bits, noise=noise)]


@RANDOM_NUMBERS.rule("NonDeterministicInts")
def _integers_of_machine(use: NodeUse) -> Outputs:
    shape, kind = sizes_of(use.inputs[0]), DTYPES.get(use.node.attr["dtype"].type)
    width = 0 if kind is None or not kind.is_integer else 1 << 8 * kind.size
    seed = _kind_of_seed(width, shape)
    return None if seed is None else [use.draw(seed, shape)]


@RANDOM_NUMBERS.rule("StatelessRandomGetKeyCounter")
def _key(use: NodeUse) -> Outputs:
    (seed,) = use.inputs
    is_secret = seed.noise is not None and seed.noise.distribution in noises.SEEDS
    return [
        dataclasses.replace(
            use.algebra.unknown([seed], name, shape=shape),
            noise=seed.noise if is_secret else None,
            seed=seed.seed,
        )
        for name, shape in (("key", (1,)), ("counter", (2,)))
    ]


@RANDOM_NUMBERS.rule("RandomPoissonV2")
def _poisson(use: NodeUse) -> Outputs:
    sizes, rate = sizes_of(use.inputs[0]), use.inputs[1]
    shape = None if sizes is None or rate.shape is None else (*sizes, *rate.shape)
    drawn = use.draw(noises.POISSON, shape)
    if drawn.noise is None or not rate.provenance.is_public:
        return [use.algebra.unknown([drawn, rate])]
    noise = dataclasses.replace(drawn.noise, scale=rate.bounds)
    return [dataclasses.replace(drawn, noise=noise, is_integer=True)]
