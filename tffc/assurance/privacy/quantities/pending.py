"""Sums to which noise was added that is followed from round to round.

More noise may be added to them, which may take some of the first away again.  As soon as anything
else is done to such a sum, or it is released, it is a mechanism, and its result is public.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

from tffc.assurance.privacy.quantities import bounds, noises
from tffc.assurance.privacy.quantities.bounds import Bounds
from tffc.assurance.privacy.quantities.quantity import (
    Contribution,
    Noise,
    Provenance,
    Quantity,
    Shape,
    union,
)
from tffc.assurance.privacy.quantities.shapes import common_shape


class Releasing(Protocol):
    """Terms of tensors, and the mechanisms that release sums."""

    draws: list[str]
    cores: dict[int, Quantity]
    settlements: dict[int, Quantity]
    places: dict[int, str]
    place: str

    def term(self, *key: Any) -> int:
        """Return the number of an expression."""
        ...

    def noise_number(self) -> int:
        """Return the draw that stands for all noise that is followed."""
        ...

    def released(
        self,
        sums: tuple[tuple[Contribution, Bounds], ...],
        noise: Noise,
        shape: Shape,
        provenance: Provenance,
        *operands: Quantity,
    ) -> Quantity:
        """Record a mechanism, and return its result."""
        ...


def is_stream(value: Quantity) -> bool:
    """Tell whether a tensor is nothing but noise that is followed from round to round."""
    return value.noise is not None and value.noise.stream is not None


def added(algebra: Releasing, first: Quantity, second: Quantity) -> Quantity | None:
    """Return a sum with more noise; None if not both of two tensors have noise or sums."""
    if not (first.stream or second.stream or is_stream(first) or is_stream(second)):
        return None
    shape = first.shape
    for value in (first, second):
        is_followed = value.sums or is_stream(value)
        if not is_followed or value.half is not None or value.shape != shape or shape is None:
            return None
    if not (first.sums or second.sums):
        return None
    stream = None
    for value in (first, second):
        other = value.noise.stream if value.noise is not None else value.stream
        if other is not None and other.inner != shape:
            return None
        if other is not None:
            stream = other if stream is None else stream.added(other)
    term = algebra.term("add", *sorted((first.term, second.term)))
    whole = Quantity(
        term,
        union(first.provenance, second.provenance),
        shape=shape,
        sums=(*first.sums, *second.sums),
        stream=stream,
        core=term,
    )
    algebra.cores[term] = whole
    return whole


def scaled(algebra: Releasing, value: Quantity, factor: Quantity) -> Quantity | None:
    """Return noise, or a sum with it, times a number that is known; None for anything else."""
    if not (value.stream or is_stream(value)):
        return None
    number = factor.bounds.exact
    if number is None or number.powers or not factor.provenance.is_public:
        return None
    if not number.coefficient or value.shape is None or common_shape(value, factor) != value.shape:
        return None
    term = algebra.term("multiply", *sorted((value.term, factor.term)))
    coefficient = number.coefficient
    if value.noise is not None and value.noise.stream is not None:
        noise = dataclasses.replace(value.noise, stream=value.noise.stream.scaled(coefficient))
        return Quantity(term, value.provenance, shape=value.shape, noise=noise)
    assert value.stream is not None
    sums = [(each, bounds.multiply(scale, factor.bounds)) for each, scale in value.sums]
    stream = value.stream.scaled(coefficient)
    return dataclasses.replace(value, term=term, sums=tuple(sums), stream=stream)


def settled(algebra: Releasing, value: Quantity) -> Quantity:
    """Return a tensor of which nothing is followed from round to round: a sum with such noise as
    the result of a mechanism, and such noise by itself as anything that depends on it."""
    if is_stream(value):
        return dataclasses.replace(value, noise=None)
    if value.stream is None:
        return value
    if value.core not in algebra.settlements:
        core = algebra.cores[value.core]
        assert core.stream is not None
        number = algebra.noise_number()
        place = algebra.draws[number]
        noise = Noise(noises.STREAM, bounds.ANY, frozenset((number,)), place, core.stream)
        before, algebra.place = algebra.place, algebra.places[value.core]
        algebra.settlements[value.core] = algebra.released(
            core.sums, noise, core.shape or (), core.provenance
        )
        algebra.place = before
    result = algebra.settlements[value.core]
    return result if value.term == value.core else dataclasses.replace(result, term=value.term)
