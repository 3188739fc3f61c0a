"""Trained models: the saved state of a run, and functions with a part of it bound.

A part is named by its path through the structs of the state, by names or positions separated by
slashes, like its arrays: `model`, `model/hidden`, `0/1`.  The whole state has the empty path.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from tffc.language.array import to_array
from tffc.language.nodes import Compiled, Node
from tffc.language.type_parts import leaves
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.language.values.concrete import flatten
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Tensor, from_leaves
from tffc.linking.operand import tensors as tensors_of
from tffc.linking.xla import tensorflow_section
from tffc.support.errors import ExportError

LARGEST = 2**31 - 2**20
"""The most bytes of weights in a graph: a message is limited to 2 GiB, everything included."""

MOST_NAMED = 8
"""The most parts that an error names."""


@dataclasses.dataclass(frozen=True, slots=True)
class StatePart:
    """A part of a state, or the whole state; `position` is its path by positions only."""

    path: str
    position: str
    type: Type
    value: Any

    def __str__(self) -> str:
        return f"the part {self.path} of the state" if self.path else "the state"


def find_part(state: StatePart, path: str) -> StatePart:
    """Return the part of a state with this path.

    Raises:
      ExportError: there is none.
    """
    all_parts = list(parts(state))
    for part in all_parts:
        if path in (part.path, part.position):
            return part
    raise ExportError(
        "E803",
        f"the state has no part {path!r}",
        notes=(f"the state is of type `{state.type}`",),
        help=f"its parts are {named(all_parts[1:])}" if all_parts[1:] else "leave the part out",
    )


def parts(root: StatePart) -> Iterator[StatePart]:
    """Yield a part and all parts inside it, outer ones first."""
    stack = [root]
    while stack:
        part = stack.pop()
        yield part
        if isinstance(part.type, StructType):
            inner = [
                StatePart(
                    _joined(part.path, str(index) if name is None else name),
                    _joined(part.position, str(index)),
                    element,
                    part.value[index],
                )
                for index, (name, element) in enumerate(part.type.items())
            ]
            stack.extend(reversed(inner))


def bind_part(function: Node, part: StatePart, state: StatePart) -> Compiled:
    """Return a function with its first argument bound to a part of a state.

    Raises:
      ExportError: the function is no computation of TensorFlow, JAX or PyTorch that takes the part,
        or the part is too large for a graph.
      FormError: the function cannot be part of a graph.
      GraphError: the function is malformed.
    """
    if not isinstance(function, Compiled):
        raise ExportError(
            "E873",
            "expected a computation of TensorFlow, JAX or PyTorch, found one of another kind, of "
            f"type `{function.type}`",
            help="decorate a function of the model and its input with "
            "@tff.tf_computation(MODEL, BATCH)",
        )
    function = tensorflow_section(function)
    assert isinstance(function.type, FunctionType)
    parameter = function.type.parameter
    builder = GraphBuilder()
    if _is_first(parameter, part.type):
        assert isinstance(parameter, StructType)
        first = from_leaves(part.type, _constants(builder, part))
        rest = StructType.of(parameter.names[1:], parameter.types[1:])
        others = builder.parameter(rest) if len(rest) else ()
        assert isinstance(others, tuple)
        argument = (first, *others)
    elif _is_only(parameter, part.type):
        argument = from_leaves(part.type, _constants(builder, part))
    else:
        raise _other_argument(parameter, part, state)
    return builder.finish(builder.call(function, argument), function.type.result)


def _is_first(parameter: Type | None, type: Type) -> bool:
    """Return whether a value of this type can be the first of several arguments."""
    if not isinstance(parameter, StructType) or not parameter.types:
        return False
    return parameter.types[0].is_assignable_from(type)


def _is_only(parameter: Type | None, type: Type) -> bool:
    """Return whether a value of this type can be the only argument."""
    return parameter is not None and parameter.is_assignable_from(type)


def _other_argument(parameter: Type | None, part: StatePart, state: StatePart) -> ExportError:
    fitting = [
        candidate
        for candidate in parts(state)
        if _is_first(parameter, candidate.type) or _is_only(parameter, candidate.type)
    ]
    return ExportError(
        "E853",
        f"the function cannot be given {part}, which is of type `{part.type}`",
        notes=(f"its parameter is of type `{parameter}`",) if parameter else ("it has none",),
        help=f"name the part of the state to give it: {named(fitting)}"
        if fitting
        else "give the function's first parameter the type of the state or of a part of it",
    )


def _constants(builder: GraphBuilder, part: StatePart) -> Iterator[Tensor]:
    kinds, values = leaves(part.type), flatten(part.value, part.type)
    reason = None
    if any(isinstance(kind, SequenceType) for kind in kinds):
        reason = "it contains sequences, expected only tensors"
    elif (size := sum(getattr(value, "nbytes", 0) for value in values)) > LARGEST:
        reason = f"it has {size:,} bytes, and a graph takes less than 2 GiB"
    if reason is not None:
        raise ExportError(
            "E875",
            f"{part} cannot be kept in a graph: {reason}",
            help="name a part of the state that has only what the function needs",
        )
    for kind, value in zip(kinds, values, strict=True):
        assert isinstance(kind, TensorType)
        yield from tensors_of(builder.constant(to_array(value, kind.element_type)))


def named(parts: list[StatePart]) -> str:
    """Return the paths of some parts for an error; the whole state's path is empty."""
    more = f" and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else ""
    return ", ".join(part.path or "the state itself" for part in parts[:MOST_NAMED]) + more


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
