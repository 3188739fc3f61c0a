"""Tensors that are linear combinations of draws of standard normal noise, up to what is public.

Each draw has the shape of one tensor of the noise; a combination of its elements has them at the
same places.  A tensor may hold several combinations, along axes in front of those of the draws.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """Combinations of draws of the shape `inner`: `weights` have the axes in front of it, and one
    of all draws, by number; draws beyond its end have no weight."""

    weights: Any
    inner: Shape

    @property
    def outer(self) -> Shape:
        """The axes in front of those of the draws."""
        return self.weights.shape[:-1]

    @property
    def shape(self) -> Shape:
        """The shape of the tensor."""
        return (*self.outer, *self.inner)


def nothing(shape: Shape) -> Combination:
    """Return a tensor without noise."""
    return Combination(np.zeros(0), shape)


def single(number: int, inner: Shape) -> Combination:
    """Return one draw."""
    weights = np.zeros(number + 1)
    weights[number] = 1.0
    return Combination(weights, inner)


def added(first: Any, second: Any) -> Combination | None:
    """Return a sum, if one of two tensors is a combination and both are known."""
    if isinstance(second, Combination) and not isinstance(first, Combination):
        first, second = second, first
    if isinstance(second, Combination):
        if first.inner != second.inner:
            return None
        one, other = padded([first.weights, second.weights])
        try:
            return Combination(one + other, first.inner)
        except ValueError:
            return None
    return first if _is_public_shift(first, second) else None


def _is_public_shift(value: Combination, number: Any) -> bool:
    """Tell whether adding a known tensor to a combination leaves it one of the same shape."""
    try:
        wide = np.broadcast_shapes(value.shape, number.shape)
    except ValueError:
        return False
    return wide == value.shape and bool(np.isfinite(number).all())


def scaled(value: Combination, number: Any) -> Combination | None:
    """Return a multiple by a known tensor that has one factor for each combination."""
    rank = len(value.shape)
    if number.ndim > rank or not np.isfinite(number).all():
        return None
    factors = number.reshape((1,) * (rank - number.ndim) + number.shape)
    count = len(value.outer)
    if any(length != 1 for length in factors.shape[count:]):
        return None
    factors = factors.reshape((*factors.shape[:count], 1)).astype(float)
    try:
        wide = np.broadcast_shapes(factors.shape[:count], value.outer)
    except ValueError:
        return None
    return Combination(value.weights * factors, value.inner) if wide == value.outer else None


def summed(value: Combination, axes: Sequence[int], *, keeps: bool) -> Combination | None:
    """Return the sum along axes, if they are in front of those of the draws."""
    rank = len(value.shape)
    if any(not -rank <= axis < rank for axis in axes):
        return None
    places = tuple(sorted({axis % rank for axis in axes}))
    if any(place >= len(value.outer) for place in places):
        return None
    return Combination(value.weights.sum(axis=places, keepdims=keeps), value.inner)


def part(value: Combination, index: Sequence[Any]) -> Combination | None:
    """Return what an index of numbers and slices takes, if that is whole combinations."""
    count = len(value.outer)
    if any(each != slice(None) for each in index[count:]):
        return None
    return Combination(value.weights[tuple(index[:count])], value.inner)


def stacked(values: Sequence[Any], join: Any) -> Any:
    """Return several tensors along their first axis, by `np.stack` or `np.concatenate`."""
    draws = [value for value in values if isinstance(value, Combination)]
    if not draws:
        return join(values) if values else None
    inner = draws[0].inner
    weights: list[Any] = []
    for value in values:
        if isinstance(value, Combination):
            if value.inner != inner:
                return None
            weights.append(value.weights)
        elif value.shape[value.ndim - len(inner) :] != inner or not np.isfinite(value).all():
            return None
        else:
            weights.append(np.zeros((*value.shape[: value.ndim - len(inner)], 1)))
    try:
        whole = join(padded(weights))
    except ValueError:
        return None
    return Combination(whole, inner) if whole.ndim > 1 else None


def reshaped(value: Combination, shape: Shape) -> Combination | None:
    """Return the elements in another shape, if that ends with the axes of the draws."""
    count = len(shape) - len(value.inner)
    if count < 0 or shape[count:] != value.inner:
        return None
    if math.prod(shape) != math.prod(value.shape):
        return None
    return Combination(value.weights.reshape((*shape[:count], -1)), value.inner)


def padded(weights: Sequence[Any]) -> list[Any]:
    """Return weights with the same number of draws."""
    width = max(each.shape[-1] for each in weights)
    return [
        np.pad(each, [(0, 0)] * (each.ndim - 1) + [(0, width - each.shape[-1])]) for each in weights
    ]
