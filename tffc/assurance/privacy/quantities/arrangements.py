"""Tensors that have the elements of others, at other places or in other types."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc.assurance.privacy.quantities import bounds, pending
from tffc.assurance.privacy.quantities.bounds import ANY, ZERO, exactly
from tffc.assurance.privacy.quantities.quantity import Quantity, Shape
from tffc.assurance.privacy.quantities.shapes import without_places
from tffc.assurance.privacy.quantities.tensors import SMALL, Tensors


class Arrangements(Tensors):
    """The same elements in another form."""

    def same(self, value: Quantity, shape: Shape | None = None) -> Quantity:
        """Return a tensor of the same elements at perhaps other places."""
        if shape == value.shape and shape is not None:
            return value
        value = pending.settled(self, value)
        noise = value.noise
        if value.size is None or shape is None or math.prod(shape) != value.size:
            noise = None
        keeps_sums = noise is not None or value.noise is None
        content = None
        if value.content is not None and shape is not None and math.prod(shape) == value.size:
            content = np.reshape(value.content, shape)
        term = self.term("rearranged", value.term, shape) if shape is not None else self.fresh()
        rearranged = dataclasses.replace(
            value, term=term, elements=value.base, shape=shape, noise=noise, content=content
        )
        if value.size != 1:
            rearranged = without_places(rearranged)
        return rearranged if keeps_sums else self.unknown([value], shape=shape)

    def transposed(self, value: Quantity, order: tuple[int, ...] | None) -> Quantity:
        """Return a tensor with its axes in another order, or in one that is not known."""
        value = pending.settled(self, value)
        if value.shape is None or order is None or len(order) != len(value.shape):
            return self.same(value)
        moved = self.same(value, tuple(value.shape[axis] for axis in order))
        term = self.term("transposed", value.term, order)
        moved = dataclasses.replace(moved, term=term, elements=value.base, parts=(), content=None)
        return without_places(moved) if value.size != 1 else moved

    def truncated(self, value: Quantity, low: float, high: float) -> Quantity:
        """Return the elements rounded towards zero, as integers that a type holds from `low` to
        `high`; what is outside becomes any of them, of no larger magnitude if they have signs."""
        least, most = value.bounds.interval
        fits = low <= least and most <= high
        if value.is_integer and (fits or value.noise is not None):
            return value
        if value.is_whole and fits and not (value.sums or value.noise or value.signal):
            return dataclasses.replace(value, is_integer=True)
        if fits and value.content is not None:
            return self.constant(np.trunc(value.content).astype(np.int64))
        within = enclosing(value) if fits or low < 0 else ()
        limits = ANY if within else bounds.between(low, high)
        if fits:
            limits = bounds.either(value.bounds, exactly(ZERO))
        result = self.unknown(
            [value], "truncated", low, high, shape=value.shape, limits=limits, is_integer=True
        )
        return dataclasses.replace(result, within=within)

    def stacked(self, values: Sequence[Quantity], *key: Any, shape: Shape | None) -> Quantity:
        """Return a tensor that has the elements of several."""
        stack = self.unknown(values, *key, shape=shape)
        content = None
        if all(value.content is not None for value in values) and len(values) <= SMALL:
            content = np.concatenate([np.ravel(value.content) for value in values])
            content = content.reshape(shape) if shape is not None else None
        if any(value.sums or value.noise or value.signal for value in values):
            return stack
        limits = values[0].bounds
        for value in values[1:]:
            limits = bounds.either(limits, value.bounds)
        return dataclasses.replace(
            stack,
            bounds=limits,
            parts=tuple(values),
            content=content,
            is_integer=all(value.is_integer for value in values),
        )

    def part_of(self, value: Quantity, *key: Any, shape: Shape | None) -> Quantity:
        """Return some elements of a tensor, each at most once."""
        value = pending.settled(self, value)
        if value.sums or value.signal:
            if value.shape == shape:
                return value
            term = self.term("part", value.term, shape, *key)
            return Quantity(
                term,
                value.provenance,
                shape=shape,
                sums=value.sums,
                signal=value.signal,
                is_integer=value.is_integer,
            )
        part = self.unknown([value], "part", shape, *key, shape=shape)
        return dataclasses.replace(
            part, bounds=value.bounds, within=(value,), is_integer=value.is_integer
        )


def enclosing(value: Quantity) -> tuple[Quantity, ...]:
    """Return a client's tensor without noise, within which others are; nothing for any other."""
    return () if value.sums or value.signal or value.noise else (value,)
