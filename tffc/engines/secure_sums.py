"""Secure sums, computed like others: nothing is kept secret here.

A protocol that keeps values secret relies on bounds, so these are checked all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.errors import ExecutionError
from tffc.ir.nodes import Compiled
from tffc.ir.type_parts import leaves
from tffc.ir.types import FunctionType, StructType, TensorType, Type
from tffc.linking.aggregations import SECURE
from tffc.values.concrete import flatten, unflatten
from tffc.values.refusals import MAX_BITWIDTH, division_by_zero, too_many_bits

BITWIDTH, _, MODULAR = SECURE


class SecureSum:
    """A secure sum, by the operator `uri`, of values of a type under a bound.

    The `limits` are the greatest values of its leaves, or their moduli where it `is_modular`.  One
    bound may stand for all tensors of a struct.

    Raises:
      ExecutionError: the bound has too many bits, or is a modulus of 0.
    """

    def __init__(self, uri: str, type: Type, bound: Any, bound_type: Type) -> None:
        self.type = type
        self.is_modular = uri == MODULAR
        self.limits = list(_spread(bound, bound_type, type))
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
            if np.any(np.greater(leaf, limit)):
                raise ExecutionError(
                    "E663",
                    f"the client {client} adds {np.max(leaf)} to a secure sum whose values are at "
                    f"most {np.max(limit)}",
                    help="raise the bound of the sum, or clip what clients add to it",
                )

    def contribution(self, value: Any, client: str) -> Any:
        """Return what stands for a client's value in sums; raises as `check` does."""
        self.check(value, client)
        return value

    def report(self, total: Any) -> Any:
        """Return the sum of the values, of a sum of all contributions."""
        return total

    def modulus(self, leaf: Any, limit: Any) -> int:
        """Return what sums of a leaf are modulo: its limit, or as many values as it has."""
        return int(limit) if self.is_modular else 256 ** np.asarray(leaf).dtype.itemsize

    def merge(self, first: Any, second: Any) -> Any:
        """Return the sum of two sums or contributions."""
        add = _add_modulo if self.is_modular else _add
        sides = flatten(first, self.type), flatten(second, self.type)
        return unflatten(map(add, *sides, self.limits), self.type)


MakeSecureSum: TypeAlias = Callable[[Hashable, str, Type, Any, Type], SecureSum]
"""Given the place of a sum in its program, and what `SecureSum` takes."""


class SecureSums:
    """The three secure sums of a round: tuples of three values, as `update` takes them."""

    def __init__(
        self,
        types: Sequence[Type],
        bounds: Sequence[Compiled],
        run: Callable[[Compiled, Any], Any],
        make: MakeSecureSum,
    ) -> None:
        """Take the types of what clients contribute to each sum, what gives their bounds when it is
        run, and what makes each sum."""
        self._types = types
        self._bounds = bounds
        self._run = run
        self._make = make
        self._is_empty = not any(map(leaves, types))

    def each(self) -> tuple[SecureSum, ...]:
        """Return the sums, none where clients contribute to none."""
        return () if self._is_empty else self._sums

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
        pairs = zip(self._sums, values, strict=True)
        return self.merge(sums, [each.contribution(value, client) for each, value in pairs])

    def report(self, sums: Sequence[Any]) -> tuple[Any, ...]:
        """Return the sums of the values, of those of all contributions."""
        if self._is_empty:
            return tuple(sums)
        return tuple(each.report(total) for each, total in zip(self._sums, sums, strict=True))

    def merge(self, first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
        """Return the sums over the clients of both."""
        if self._is_empty:
            return tuple(first)
        triples = zip(self._sums, first, second, strict=True)
        return tuple(each.merge(one, other) for each, one, other in triples)

    @functools.cached_property
    def _sums(self) -> tuple[SecureSum, ...]:
        made: list[SecureSum] = []
        for uri, type, bound in zip(SECURE, self._types, self._bounds, strict=True):
            assert isinstance(bound.type, FunctionType)
            made.append(self._make(uri, uri, type, self._run(bound, None), bound.type.result))
        return tuple(made)


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
