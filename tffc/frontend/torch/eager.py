"""The functions of PyTorch that sections were traced from, to compare the two.

Tracing, and the translation of operations, are the part of a program's way that no proof covers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from tffc.frontend.torch.arrays import array_of, tensor_of
from tffc.frontend.torch.releases import load_torch
from tffc.frontend.torch.tracing import result_tensors
from tffc.frontend.xla_capture import arguments_of
from tffc.language.nodes import Compiled
from tffc.language.types import Type
from tffc.support.errors import Span


@dataclasses.dataclass(frozen=True)
class EagerFunction:
    """A traced function, as PyTorch runs it."""

    function: Callable[..., object]
    parameter: Type | None
    splatted: bool
    span: Span | None

    def __call__(self, parts: Sequence[Any]) -> list[Any]:
        """Return the arrays of the result, given those of the parameter in the order of its
        type."""
        tensors = [tensor_of(part) for part in parts]
        args, kwargs = arguments_of(self.parameter, self.splatted, tensors)
        results, _ = result_tensors(load_torch(), self.function(*args, **kwargs))
        return [array_of(tensor) for tensor in results]


_functions: dict[Compiled, EagerFunction] = {}


def remember(section: Compiled, function: EagerFunction) -> None:
    """Note the function that a section was traced from."""
    _functions[section] = function


def eager_function(section: Compiled) -> EagerFunction | None:
    """Return the function that a section was traced from, if this process traced it."""
    return _functions.get(section)
