"""TensorFlow's operations that draw random numbers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tffc.assurance.privacy import bounds, noises
from tffc.assurance.privacy.constants import DTYPES
from tffc.assurance.privacy.quantities import Shape
from tffc.assurance.privacy.table import NodeUse, Outputs, RuleTable, sizes_of

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
    return [use.algebra.drawn_from(distribution, seeds, sizes_of(use.inputs[0]), limits)]


# Seeds.

WIDEST = 2**31 - 2
"""The least range of each integer of a seed."""


def _is_long(shape: Shape | None) -> bool:
    return shape is not None and math.prod(shape) >= 2


@RANDOM_NUMBERS.rule("RandomUniformInt")
def _integers(use: NodeUse) -> Outputs:
    sizes, low, high = use.inputs
    if low.content is None or high.content is None or low.size != 1 or high.size != 1:
        return None
    shape = sizes_of(sizes)
    if int(np.ravel(high.content)[0]) - int(np.ravel(low.content)[0]) < WIDEST:
        return None
    return [use.draw(noises.SEED, shape)] if _is_long(shape) else None


@RANDOM_NUMBERS.rule("NonDeterministicInts")
def _integers_of_machine(use: NodeUse) -> Outputs:
    shape, kind = sizes_of(use.inputs[0]), DTYPES.get(use.node.attr["dtype"].type)
    if kind is None or not kind.is_integer or kind.size < 4 or not _is_long(shape):
        return None
    return [use.draw(noises.SEED, shape)]


@RANDOM_NUMBERS.rule("StatelessRandomGetKeyCounter")
def _key(use: NodeUse) -> Outputs:
    (seed,) = use.inputs
    is_secret = seed.noise is not None and seed.noise.distribution == noises.SEED
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
