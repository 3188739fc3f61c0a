"""The secure sums of a MapReduceForm, computed in the open.

Nothing is kept secret here.  What a protocol relies on is checked all the same: no client's value
may be above its bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tffc.backends.forms import MapReduceForm
from tffc.errors import ExecutionError
from tffc.execution.sections import run_section
from tffc.ir.nodes import Compiled
from tffc.ir.trampoline import Task, run
from tffc.ir.types import FunctionType, StructType, Type, leaves


class SecureSums:
    """The three secure sums of one round, to which clients' contributions are added one by one."""

    def __init__(self, form: MapReduceForm) -> None:
        outputs = _result(form.work)
        assert isinstance(outputs, StructType)
        self.types = outputs.types[1:]
        bits, maxima, moduli = (
            _bounds(bound, type)
            for bound, type in zip(
                (
                    form.secure_sum_bitwidth,
                    form.secure_sum_max_input,
                    form.secure_modular_sum_modulus,
                ),
                self.types,
                strict=True,
            )
        )
        self.limits = ([2 ** np.asarray(b, np.int64) - 1 for b in bits], maxima, moduli)
        self.sums: list[list[Any]] = [[0] * len(leaves(type)) for type in self.types]

    def add(self, values: Sequence[Any], client: str) -> None:
        """Adds what one client contributes to each of the three sums.

        Raises:
          ExecutionError: a value is above its bound.
        """
        for kind, (value, type) in enumerate(zip(values, self.types, strict=True)):
            sums, limits = self.sums[kind], self.limits[kind]
            for index, leaf in enumerate(_flatten(value, type)):
                if kind == 2:
                    sums[index] = _add_modulo(sums[index], leaf, limits[index])
                else:
                    _check(leaf, limits[index], client)
                    sums[index] = _add(sums[index], leaf)

    def totals(self) -> tuple[Any, ...]:
        """The three sums, as `update` takes them."""
        pairs = zip(self.types, self.sums, strict=True)
        return tuple(run(_restore(type, iter(sums))) for type, sums in pairs)


def _add(total: Any, leaf: Any) -> Any:
    """The sum in the element type of `leaf`, where it wraps around as in TensorFlow."""
    with np.errstate(over="ignore"):
        return np.add(np.asarray(total, leaf.dtype), leaf)


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
    found: list[Any] = []
    stack = [(run_section(component, None), _result(component), contributions)]
    while stack:
        bound, bound_type, type = stack.pop()
        if isinstance(bound_type, StructType) and isinstance(type, StructType):
            stack.extend(reversed(list(zip(bound, bound_type, type, strict=True))))
        else:
            found.extend([bound] * len(leaves(type)))
    return found


def _flatten(value: Any, type: Type) -> list[Any]:
    """The tensors of a value, in the order of its type."""
    found: list[Any] = []
    stack = [(value, type)]
    while stack:
        part, part_type = stack.pop()
        if isinstance(part_type, StructType):
            stack.extend(reversed(list(zip(part, part_type, strict=True))))
        else:
            found.append(part)
    return found


def _restore(type: Type, tensors: Iterator[Any]) -> Task[Any]:
    """The value of a type with these tensors."""
    if not isinstance(type, StructType):
        return next(tensors)
    values = []
    for element in type:
        values.append((yield _restore(element, tensors)))
    return tuple(values)


def _result(component: Compiled) -> Type:
    assert isinstance(component.type, FunctionType)
    return component.type.result
