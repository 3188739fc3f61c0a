"""TensorFlow's operations that draw random numbers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tffc.assurance.privacy import bounds, noises
from tffc.assurance.privacy.table import NodeUse, Outputs, RuleTable, sizes_of

if TYPE_CHECKING:
    pass


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
    return [use.algebra.drawn_from(distribution, use.inputs[1:], sizes_of(use.inputs[0]), limits)]


@RANDOM_NUMBERS.rule("RandomPoissonV2")
def _poisson(use: NodeUse) -> Outputs:
    sizes, rate = sizes_of(use.inputs[0]), use.inputs[1]
    shape = None if sizes is None or rate.shape is None else (*sizes, *rate.shape)
    drawn = use.draw(noises.POISSON, shape)
    if drawn.noise is None or not rate.provenance.is_public:
        return [use.algebra.unknown([drawn, rate])]
    noise = dataclasses.replace(drawn.noise, scale=rate.bounds)
    return [dataclasses.replace(drawn, noise=noise, is_integer=True)]
