"""Secure sums, computed like others: nothing is kept secret here.

A protocol that keeps values secret relies on bounds, so these are checked all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tffc.backends.forms.form import signature
from tffc.backends.forms.steps import Runtime
from tffc.errors import ExecutionError
from tffc.ir.nodes import Compiled
from tffc.ir.type_parts import leaves
from tffc.ir.types import StructType, TensorType, Type
from tffc.linking.aggregations import SECURE
from tffc.values.concrete import flatten, unflatten
from tffc.values.refusals import MAX_BITWIDTH, division_by_zero, too_many_bits

BITWIDTH, _, MODULAR = SECURE


class SecureSum:
    """A secure sum, by the operator `uri`, of values of a type under a bound.

    One bound may stand for all tensors of a struct.

    Raises:
      ExecutionError: the bound has too many bits, or is a modulus of 0.
    """

    def __init__(self, uri: str, type: Type, bound: Any, bound_type: Type) -> None:
        self._type = type
        self._is_modular = uri == MODULAR
        self._limits = list(_spread(bound, bound_type, type))
        if uri == BITWIDTH:
            self._limits = list(map(_largest_of_bits, self._limits))
        elif self._is_modular and not all(map(np.all, self._limits)):
            raise division_by_zero()

    def check(self, value: Any, client: str) -> None:
        """Check that what a client contributes is within the bound.

        Raises:
          ExecutionError: it is not.
        """
        if self._is_modular:
            return
        for leaf, limit in zip(flatten(value, self._type), self._limits, strict=True):
            if np.any(np.greater(leaf, limit)):
                raise ExecutionError(
                    "E663",
                    f"the client {client} adds {np.max(leaf)} to a secure sum whose values are at "
                    f"most {np.max(limit)}",
                    help="raise the bound of the sum, or clip what clients add to it",
                )

    def merge(self, first: Any, second: Any) -> Any:
        """Return the sum of two sums or contributions."""
        add = _add_modulo if self._is_modular else _add
        sides = flatten(first, self._type), flatten(second, self._type)
        return unflatten(map(add, *sides, self._limits), self._type)


class SecureSums:
    """The three secure sums of a round: tuples of three values, as `update` takes them."""

    def __init__(self, types: Sequence[Type], bounds: Sequence[Compiled], runtime: Runtime) -> None:
        """Take the types of what clients contribute to each sum, and what gives their bounds."""
        self._types = types
        self._bounds = bounds
        self._run = runtime.run
        self._is_empty = not any(map(leaves, types))

    def zero(self) -> tuple[Any, ...]:
        """Return the sums over no client."""
        if not self._is_empty:
            # So the bounds are made once, before and not within the work of the first client.
            _ = self._sums
        return tuple(map(zero_of, self._types))

    def add(self, sums: Any, values: Sequence[Any], client: str) -> tuple[Any, ...]:
        """Return the sums with what one client contributes to each.

        Raises:
          ExecutionError: a value is above its bound.
        """
        if self._is_empty:
            return tuple(sums)
        for each, value in zip(self._sums, values, strict=True):
            each.check(value, client)
        return self.merge(sums, values)

    def merge(self, first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
        """Return the sums over the clients of both."""
        if self._is_empty:
            return tuple(first)
        triples = zip(self._sums, first, second, strict=True)
        return tuple(each.merge(one, other) for each, one, other in triples)

    @functools.cached_property
    def _sums(self) -> tuple[SecureSum, ...]:
        return tuple(
            SecureSum(uri, type, self._run(bound, None), signature(bound).result)
            for uri, type, bound in zip(SECURE, self._types, self._bounds, strict=True)
        )


def _largest_of_bits(bits: Any) -> Any:
    """Return the greatest number of so many bits."""
    if np.any(np.greater(bits, MAX_BITWIDTH)):
        raise too_many_bits(np.max(bits))
    return 2 ** np.asarray(bits, np.int64) - 1


def zero_of(type: Type) -> Any:
    """Return the sum of no values of a type; where a shape is not known yet, one zero stands for
    all."""
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
    # In 64 bits: the sum of two numbers below the modulus may need one bit more than they do.
    wide = np.add(np.asarray(total, np.int64), np.asarray(leaf, np.int64))
    return np.mod(wide, np.asarray(modulus, np.int64)).astype(leaf.dtype)[()]


def _spread(bound: Any, bound_type: Type, contributions: Type) -> Iterator[Any]:
    """Give the bound of each tensor of the contributions."""
    stack = [(bound, bound_type, contributions)]
    while stack:
        value, value_type, type = stack.pop()
        if isinstance(value_type, StructType) and isinstance(type, StructType):
            stack.extend(reversed(list(zip(value, value_type, type, strict=True))))
        else:
            yield from [value] * len(leaves(type))
