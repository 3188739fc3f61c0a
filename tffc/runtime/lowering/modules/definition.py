"""What an operation of StableHLO is in JAX."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.modules.stablehlo import ModuleOperation
from tffc.runtime.lowering.operations.definition import Array

Computation: TypeAlias = Callable[..., list[Array]]
"""The function of a region."""


@dataclasses.dataclass(frozen=True, slots=True)
class OperationCall:
    """An operation that is computed, with the functions of its regions."""

    operation: ModuleOperation
    functions: Sequence[Computation]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self.operation.types[0].shape

    @property
    def dtype(self) -> np.dtype:
        """The element type of the first output."""
        return self.operation.types[0].dtype

    def __getitem__(self, name: str) -> Any:
        return self.operation.attributes[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or what one has that is left out."""
        return self.operation.attributes.get(name, default)

    def pairs(self, name: str, count: int) -> list[tuple[int, int]]:
        """Return an attribute of two integers for each of so many dimensions."""
        rows = self.get(name, np.zeros((count, 2), np.int64))
        return [(int(low), int(high)) for low, high in rows]

    def refusal(self, reason: str) -> NotLoweredError:
        """Return the error that the operation is not translated because of `reason`."""
        return NotLoweredError(f"{self.operation.name} {reason}")


Translation: TypeAlias = Callable[..., Array]
"""A function of the call of an operation and each input; it returns an output, or several.

An input is an array of NumPy if it is a constant, and otherwise one of JAX.
"""

COMBINING = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.and": "bitwise_and",
    "stablehlo.or": "bitwise_or",
    "stablehlo.xor": "bitwise_xor",
}
"""What combines two elements in any order, in StableHLO and in `jax.lax`."""

OF_TRUTHS = {"add": "bitwise_or", "mul": "bitwise_and"}
"""What StableHLO computes instead where the elements are truth values."""


def combining(call: OperationCall, place: int = 0) -> str | None:
    """Return the name in `jax.lax` of what a region computes, if it only combines two elements."""
    region = call.operation.regions[place]
    if len(region.operations) != 1:
        return None
    (inner,) = region.operations
    if region.returned != inner.results or sorted(inner.operands) != sorted(region.parameters):
        return None
    name = COMBINING.get(inner.name, "")
    return (OF_TRUTHS.get(name, name) if inner.types[0].dtype.kind == "b" else name) or None
