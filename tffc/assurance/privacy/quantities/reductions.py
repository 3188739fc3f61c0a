"""Sums and extremes of the elements of tensors."""

from __future__ import annotations

import dataclasses

import numpy as np

from tffc.assurance.privacy.quantities import bounds, norms
from tffc.assurance.privacy.quantities.arrangements import Arrangements
from tffc.assurance.privacy.quantities.bounds import ANY, ZERO, exactly
from tffc.assurance.privacy.quantities.quantity import Quantity, Shape


class Reductions(Arrangements):
    """Functions of all elements of a tensor."""

    def total(self, value: Quantity, shape: Shape | None = ()) -> Quantity:
        """Return the sum of all elements of a tensor."""
        limits = ANY
        if value.parts and all(part.size == 1 for part in value.parts):
            limits = value.parts[0].bounds
            for part in value.parts[1:]:
                limits = norms.add(limits, part.bounds)
        elif value.power_of is not None:
            limits = norms.power_sum(*value.power_of)
        elif value.size is not None:
            low, high = (value.size * limit for limit in value.bounds.interval)
            limits = bounds.between(low, high) if value.size else exactly(ZERO)
        if value.content is not None:
            return self.constant(np.sum(value.content).reshape(shape or ()))
        return self.unknown([value], "total", shape=shape, limits=limits)

    def power_sum(self, value: Quantity, power: int, scale: float = 1.0) -> Quantity:
        """Return a multiple of the sum of a power of the magnitudes of all elements."""
        limits = bounds.multiply(norms.power_sum(value, power), bounds.constant(scale))
        return self.unknown([value], "power sum", power, scale, shape=(), limits=limits)

    def some_element(self, value: Quantity, name: str, shape: Shape | None) -> Quantity:
        """Return some of the elements of sums over clients, of which their bounds are known."""
        result = self.unknown([value], name, shape=shape, limits=value.bounds)
        return dataclasses.replace(result, is_integer=value.is_integer)

    def largest(self, value: Quantity, shape: Shape | None = ()) -> Quantity:
        """Return the largest element; of magnitudes, it is a norm."""
        limits = bounds.between(*value.bounds.interval)
        if value.power_of is not None and value.power_of[1] == 1:
            limits = norms.largest(value.power_of[0])
        return self.unknown([value], "largest", shape=shape, limits=limits)
