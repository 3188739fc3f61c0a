"""TensorFlow's clock, the seeds that follow from it, and arithmetic on seeds that a user vouches
for."""

from __future__ import annotations

import dataclasses

import numpy as np

from tffc.assurance.privacy.graphs.table import NodeUse, Outputs, RuleTable
from tffc.assurance.privacy.quantities import bounds, noises
from tffc.assurance.privacy.quantities.quantity import Noise, Provenance, Quantity
from tffc.assurance.privacy.quantities.seeds import COARSEST, LARGEST, Seed
from tffc.language.dtypes import DType

CLOCKS = RuleTable()
"""The rules of this module."""

CLOCK = "clock"
"""The source of seeds that are read from clocks."""


@CLOCKS.rule("Timestamp")
def _time(use: NodeUse) -> Outputs:
    """Describe a reading of the clock; all readings together tell about each other."""
    algebra = use.algebra
    if not algebra.has_secret_seeds:
        return None
    number = len(algebra.draws)
    algebra.draws.append(algebra.place)
    noise = Noise(noises.CLOCK, bounds.constant(1.0), frozenset((number,)), algebra.place)
    provenance = Provenance(draws=algebra.followed_draws | {algebra.source(CLOCK)})
    return [Quantity(algebra.fresh(), provenance, shape=(), noise=noise)]


def is_clock(value: Quantity) -> bool:
    """Tell whether a tensor is the time, or a seed of it."""
    return value.seed is not None or (
        value.noise is not None and value.noise.distribution == noises.CLOCK
    )


def steps(use: NodeUse, value: Quantity, *, is_word: bool) -> Seed | None:
    """Return the seed that the whole steps of a clock are, or None."""
    noise = value.noise
    if noise is None or noise.distribution != noises.CLOCK or noise.scale.exact is None:
        return None
    number = abs(noise.scale.exact.coefficient)
    if noise.scale.exact.powers or number < COARSEST:
        return None
    (reading,) = noise.draws
    text = (
        f"the time that {noise.place} reads, in {number:g} steps a second, cannot be guessed, and "
        "is never the same twice, in no other round and at no other client"
    )
    return Seed(use.algebra.source(CLOCK), text, reading, is_word=is_word)


def converted(use: NodeUse, source: DType, kind: DType) -> Quantity:
    """Return the time, or a seed, as another type, which is one only where all digits are kept."""
    value = use.inputs[0]
    result = use.algebra.unknown([value], "converted", kind.number, shape=value.shape)
    result = dataclasses.replace(result, is_integer=kind.is_integer)
    if kind is DType.INT64 and source is DType.FLOAT64:
        seed = value.seed or steps(use, value, is_word=True)
        return dataclasses.replace(result, seed=seed and dataclasses.replace(seed, is_word=True))
    return result


def shifted(value: Quantity, other: Quantity, sign: int) -> Seed | None:
    """Return the seed that is a sum or a difference of integers of 64 bits, if it is one."""
    seed, content = value.seed, other.content
    if seed is None or not seed.is_word or content is None or value.shape is None:
        return None
    if np.broadcast_shapes(value.shape, content.shape) != value.shape:
        return None
    if not seed.offsets:
        return seed
    added = np.broadcast_to(content, value.shape).ravel().tolist()
    offsets = tuple(old + sign * int(new) for old, new in zip(seed.offsets, added, strict=True))
    if max(map(abs, offsets)) > LARGEST:
        return None
    return dataclasses.replace(seed, offsets=offsets)


def joined(use: NodeUse) -> Seed | None:
    """Return the seed that elements of a vector are, if one of them is read from a clock.

    Those with a fraction lose it where the vector becomes integers.  The others are public: equal
    draws from seeds that differ in them would tell what they are.
    """
    readings = [value.seed or steps(use, value, is_word=False) for value in use.inputs]
    for value, seed in zip(use.inputs, readings, strict=True):
        if seed is None and not value.provenance.is_public:
            return None
    seeds = [seed for seed in readings if seed is not None]
    if not seeds or seeds[0].offsets or len({seed.is_word for seed in seeds}) > 1:
        return None
    return seeds[0]
