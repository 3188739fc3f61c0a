"""The shapes of arrays: sizes, None for one that is not known, and None alone for any shape."""

from __future__ import annotations

from typing import Any

from tffc.frontend.type_queries import is_shape_fully_defined as is_shape_fully_defined
from tffc.frontend.type_queries import num_elements_in_shape as num_elements_in_shape
from tffc.language.shapes import Shape, to_shape
from tffc.runtime.user_code.source import entry_point
from tffc.tff.federated_language import messages

ArrayShape = Shape


@entry_point
def from_proto(shape_pb: Any) -> Shape:
    """Return the shape in a message `ArrayShape`."""
    if shape_pb.unknown_rank:
        return None
    return tuple(None if size < 0 else int(size) for size in shape_pb.dim)


@entry_point
def to_proto(shape: object) -> Any:
    """Return a shape as a message `ArrayShape`."""
    sizes = to_shape(shape)
    if sizes is None:
        return messages.ArrayShape(unknown_rank=True)
    return messages.ArrayShape(dim=[-1 if size is None else size for size in sizes])


@entry_point
def is_shape_scalar(shape: object) -> bool:
    """Return whether a shape is that of a scalar."""
    return to_shape(shape) == ()


@entry_point
def is_compatible_with(target: object, other: object) -> bool:
    """Return whether an array can have both shapes."""
    one, two = to_shape(target), to_shape(other)
    if one is None or two is None:
        return True
    return len(one) == len(two) and all(
        None in (first, second) or first == second for first, second in zip(one, two, strict=True)
    )
