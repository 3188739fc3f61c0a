"""Querying types with a predicate, and transforming them with a function.

Every type inside a type is visited: the elements of structs and sequences, the members of federated
types, and the parameters and results of functions.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from google.protobuf.message import Message

from tffc.frontend.computation import Computation
from tffc.frontend.type_analysis import check_is_type
from tffc.frontend.value import Value
from tffc.graphs.proto import computation
from tffc.language import wire
from tffc.language.shapes import to_shape
from tffc.language.size import written_size
from tffc.language.traverse import rewrite, walk
from tffc.language.type_parts import local_type
from tffc.language.types import (
    PLACEMENTS,
    FederatedType,
    Placement,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.support.errors import LanguageValueError

PlacementLiteral = Placement
"""TFF's name for the class of `tff.CLIENTS` and `tff.SERVER`."""


def uri_to_placement_literal(uri: str) -> Placement:
    """Return the placement of this name: `clients` or `server`.

    Raises:
      LanguageValueError: there is no such placement.
    """
    for placement in PLACEMENTS:
        if placement.uri == uri:
            return placement
    raise LanguageValueError(
        "E105", f"no placement is called {uri!r}", help="use 'clients' or 'server'"
    )


Predicate: TypeAlias = Callable[[Type], Any] | type[Type] | tuple[type[Type], ...]
"""A predicate of types: a function, or classes for `isinstance`."""


T = TypeVar("T")


class TypedObject(metaclass=abc.ABCMeta):
    """An object with a type: computations, values of programs, and classes derived from this
    one."""

    @property
    @abc.abstractmethod
    def type_signature(self) -> Type:
        """The type."""


TypedObject.register(Computation)
TypedObject.register(Value)


def contains(type_signature: Type, predicate: Predicate) -> bool:
    """Return whether the predicate holds for `type_signature` or a type inside it."""
    return any(map(_asker(predicate), walk(type_signature)))


def contains_only(type_signature: Type, predicate: Predicate) -> bool:
    """Return whether the predicate holds for `type_signature` and every type inside it."""
    return all(map(_asker(predicate), walk(type_signature)))


def count(type_signature: Type, predicate: Predicate) -> int:
    """Return for how many types in `type_signature` the predicate holds, counting repeated ones."""
    holds = _asker(predicate)
    return written_size(type_signature, {}, lambda part: int(bool(holds(part))))


def _asker(predicate: Predicate) -> Callable[[Type], Any]:
    if isinstance(predicate, (type, tuple)):
        return lambda part: isinstance(part, predicate)
    return predicate


def contains_federated_types(type_signature: Type) -> bool:
    """Return whether `type_signature` is or contains a federated type."""
    return contains(type_signature, FederatedType)


def contains_tensor_types(type_signature: Type) -> bool:
    """Return whether `type_signature` is or contains a tensor type."""
    return contains(type_signature, TensorType)


def is_tensorflow_compatible_type(type_spec: Type | None) -> bool:
    """Return whether a TensorFlow computation can take or return values of this type, or None."""
    return type_spec is None or contains_only(type_spec, (TensorType, SequenceType, StructType))


def transform_type_postorder(
    type_signature: Type, transform_fn: Callable[[Type], tuple[Type, bool]]
) -> tuple[Type, bool]:
    """Rebuild a type from the inside out.

    `transform_fn` is called with each type, whose parts are already rebuilt, and returns its
    replacement and whether that differs.  Returns the new type, and whether anything changed.
    """
    changes: list[bool] = []

    def rule(part: Type) -> Type:
        replacement, is_another = transform_fn(part)
        changes.append(is_another)
        return replacement

    return rewrite(check_is_type(type_signature), rule), any(changes)


def visit_preorder(type_signature: Type, fn: Callable[[Type, T], T], context: T) -> None:
    """Call `fn` for each type in a type, outer ones first, with its result for the enclosing type.

    For the whole type it gets `context`.
    """
    waiting = [(type_signature, context)]
    while waiting:
        part, around = waiting.pop()
        inner_around = fn(part, around)
        waiting += [(inner, inner_around) for inner in reversed(part.children())]


strip_placement = local_type
"""TFF's name for the function that replaces every federated type in a type by its member."""


def serialize_type(type_signature: Type) -> Any:
    """Return the type as a `Type` message, in TFF's encoding."""
    return computation.Type.FromString(wire.type_to_bytes(check_is_type(type_signature)))


def deserialize_type(type_proto: Message) -> Type:
    """Return the type in a `Type` message, of this or another package's class."""
    return wire.type_from_bytes(type_proto.SerializeToString())


def is_shape_fully_defined(shape: object) -> bool:
    """Tell whether the rank and all sizes of a shape are known."""
    sizes = to_shape(shape)
    return sizes is not None and None not in sizes


def num_elements_in_shape(shape: object) -> int | None:
    """Return how many elements a tensor of a shape has; None if that is not known."""
    sizes = to_shape(shape)
    return None if sizes is None or None in sizes else math.prod(size or 0 for size in sizes)
