"""The secure sums of a MapReduceForm, computed in the open.

Nothing is kept secret here.  What a protocol relies on is checked all the same: no client's value
may be above its bound.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tffc.backends.forms.form import MapReduceForm, signature
from tffc.engines.sections import run_section
from tffc.engines.steps import struct
from tffc.errors import ExecutionError
from tffc.ir.nodes import Compiled
from tffc.ir.types import StructType, TensorType, Type, leaves
from tffc.values.concrete import flatten, unflatten

MODULAR = 2
"""The position of the modular sum among the three."""


class SecureSums:
    """The three secure sums of a round: tuples of three values, as `update` takes them."""

    def __init__(self, form: MapReduceForm) -> None:
        self._form = form
        self._types = struct(signature(form.work).result).types[1:]
        self._is_empty = not any(map(leaves, self._types))

    def zero(self) -> tuple[Any, ...]:
        """The sums over no client."""
        return tuple(
            unflatten((_zero(leaf) for leaf in leaves(type)), type) for type in self._types
        )

    def add(self, sums: Any, values: Sequence[Any], client: str) -> tuple[Any, ...]:
        """The sums with what one client contributes to each.

        Raises:
          ExecutionError: a value is above its bound.
        """
        if self._is_empty:
            return tuple(sums)
        for kind, (value, type) in enumerate(zip(values, self._types, strict=True)):
            if kind != MODULAR:
                for leaf, limit in zip(flatten(value, type), self._limits[kind], strict=True):
                    _check(leaf, limit, client)
        return self.merge(sums, values)

    def merge(self, first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
        """The sums over the clients of both."""
        if self._is_empty:
            return tuple(first)
        return tuple(
            self._combine(kind, *pair) for kind, pair in enumerate(zip(first, second, strict=True))
        )

    def _combine(self, kind: int, first: Any, second: Any) -> Any:
        type = self._types[kind]
        add: Callable[..., Any] = _add_modulo if kind == MODULAR else _add
        parts = zip(flatten(first, type), flatten(second, type), self._limits[kind], strict=True)
        return unflatten((add(*part) for part in parts), type)

    @functools.cached_property
    def _limits(self) -> tuple[list[Any], ...]:
        """The greatest value, or for modular sums the modulus, of each tensor of each sum."""
        form = self._form
        bits, maxima, moduli = (
            _bounds(bound, type)
            for bound, type in zip(
                (
                    form.secure_sum_bitwidth,
                    form.secure_sum_max_input,
                    form.secure_modular_sum_modulus,
                ),
                self._types,
                strict=True,
            )
        )
        return [2 ** np.asarray(b, np.int64) - 1 for b in bits], maxima, moduli


def _zero(leaf: Type) -> Any:
    """Zeros, or one that stands for all where the shape is not known yet."""
    assert isinstance(leaf, TensorType)
    shape = [size or 0 for size in leaf.shape or ()] if leaf.is_fully_defined() else ()
    return np.zeros(shape, leaf.dtype.dtype)[()]


def _add(total: Any, leaf: Any, limit: Any) -> Any:
    """The sum in the element type of `leaf`, where it wraps around as in TensorFlow."""
    with np.errstate(over="ignore"):
        return np.add(total, leaf)


def _add_modulo(total: Any, leaf: Any, modulus: Any) -> Any:
    wide = np.add(np.asarray(total, np.int64), np.asarray(leaf, np.int64))
    return np.mod(wide, np.asarray(modulus, np.int64)).astype(leaf.dtype)[()]


def _check(leaf: Any, limit: Any, client: str) -> None:
    if np.any(np.greater(leaf, limit)):
        raise ExecutionError(
            "E663",
            f"the client {client} adds {np.max(leaf)} to a secure sum whose values are at most "
            f"{np.max(limit)}",
            help="raise the bound of the sum, or clip what clients add to it",
        )


def _bounds(component: Compiled, contributions: Type) -> list[Any]:
    """The bound of each tensor of the contributions.  One bound may stand for a whole struct."""
    if not leaves(contributions):
        return []
    return list(_spread(run_section(component, None), signature(component).result, contributions))


def _spread(bound: Any, bound_type: Type, contributions: Type) -> Iterator[Any]:
    stack = [(bound, bound_type, contributions)]
    while stack:
        value, value_type, type = stack.pop()
        if isinstance(value_type, StructType) and isinstance(type, StructType):
            stack.extend(reversed(list(zip(value, value_type, type, strict=True))))
        else:
            yield from [value] * len(leaves(type))
