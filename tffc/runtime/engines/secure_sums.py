"""Secure sums computed as plain sums: nothing is kept secret here.

Bounds are still checked, because protocols that keep values secret rely on them: values are at
least 0, and at most what the sum says.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeAlias

import numpy as np

from tffc.language.type_parts import leaves
from tffc.language.types import StructType, TensorType, Type
from tffc.language.values.concrete import flatten, unflatten
from tffc.language.values.refusals import (
    MAX_BITWIDTH,
    beyond_bounds,
    division_by_zero,
    negative_bound,
    too_many_bits,
)
from tffc.linking.aggregations import SECURE
from tffc.support.errors import ExecutionError

BITWIDTH, _, MODULAR = SECURE


class SecureSum:
    """A secure sum, by the operator `uri`, of values of a type under a bound; see `SecureSumSteps`.

    The `limits` are the greatest values of its leaves, or their moduli if it `is_modular`.  One
    bound may apply to all tensors of a struct.

    Raises:
      ExecutionError: the bound has too many bits, is negative, or is a modulus of 0.
    """

    def __init__(self, uri: str, type: Type, bound: Any, bound_type: Type) -> None:
        self.type = type
        self.is_modular = uri == MODULAR
        self.limits = list(_spread(bound, bound_type, type))
        for limit in () if self.is_modular else self.limits:
            if np.any(np.less(limit, 0)):
                raise negative_bound(np.min(limit))
        if uri == BITWIDTH:
            self.limits = list(map(_largest_of_bits, self.limits))
        elif self.is_modular and not all(map(np.all, self.limits)):
            raise division_by_zero()

    def check(self, value: Any, client: str) -> None:
        """Check that what a client contributes is within the bound.

        Raises:
          ExecutionError: it is not.
        """
        if self.is_modular:
            return
        for leaf, limit in zip(flatten(value, self.type), self.limits, strict=True):
            beyond = beyond_bounds(leaf, limit)
            if beyond:
                raise ExecutionError(
                    "E663",
                    f"the client {client} {beyond}",
                    help="raise the bound of the sum, or clip what clients add to it",
                )

    def contribution(self, value: Any, client: str) -> Any:
        """Return the value that is added for a client; raises the same errors as `check`."""
        self.check(value, client)
        return value

    def report(self, total: Any) -> Any:
        """Return the sum of the values, given the sum of all contributions."""
        return total

    def modulus(self, leaf: Any, limit: Any) -> int:
        """Return the modulus of masked sums of a leaf: its limit, or the range of its element type.

        Raises:
          ExecutionError: it is negative.
        """
        if not self.is_modular:
            return 256 ** np.asarray(leaf).dtype.itemsize
        if np.any(np.less(limit, 0)):
            raise negative_bound(np.min(limit))
        return int(np.asarray(limit).reshape(()))

    def merge(self, first: Any, second: Any) -> Any:
        """Return the sum of two sums or contributions."""
        add = _add_modulo if self.is_modular else _add
        sides = flatten(first, self.type), flatten(second, self.type)
        return unflatten(map(add, *sides, self.limits), self.type)


MakeSecureSum: TypeAlias = Callable[[Hashable, str, Type, Any, Type], SecureSum]
"""A function that takes a sum's place in its program and the arguments of `SecureSum`."""


def _largest_of_bits(bits: Any) -> Any:
    """Return the greatest number with `bits` bits."""
    if np.any(np.greater(bits, MAX_BITWIDTH)):
        raise too_many_bits(np.max(bits))
    return 2 ** np.asarray(bits, np.int64) - 1


def zero_of(type: Type) -> Any:
    """Return the sum of no values of a type; a leaf of unknown shape is a scalar zero."""
    return unflatten(map(_zero, leaves(type)), type)


def _zero(leaf: Type) -> Any:
    assert isinstance(leaf, TensorType)
    shape = [size or 0 for size in leaf.shape or ()] if leaf.is_fully_defined() else ()
    return np.zeros(shape, leaf.element_type.dtype)[()]


def _add(total: Any, leaf: Any, limit: Any) -> Any:
    """Return the sum in the element type of `leaf`, where it wraps around as in TensorFlow."""
    with np.errstate(over="ignore"):
        return np.add(total, leaf)


def _add_modulo(total: Any, leaf: Any, modulus: Any) -> Any:
    # Add in 64 bits, because the sum may need one bit more than the element type has.
    wide = np.add(np.asarray(total, np.int64), np.asarray(leaf, np.int64))
    return np.mod(wide, np.asarray(modulus, np.int64)).astype(leaf.dtype)[()]


def _spread(bound: Any, bound_type: Type, contributions: Type) -> Iterator[Any]:
    """Yield the bound of each tensor of the contributions."""
    stack = [(bound, bound_type, contributions)]
    while stack:
        value, value_type, type = stack.pop()
        if isinstance(value_type, StructType) and isinstance(type, StructType):
            stack.extend(reversed(list(zip(value, value_type, type, strict=True))))
        else:
            yield from [value] * len(leaves(type))
