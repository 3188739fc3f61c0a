"""Questions about types that take a function, and rewriting types with one.

Every type in a type is asked: the elements of structs and sequences, the members of federated
types, and the parameters and results of functions.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from tffc.errors import LanguageValueError
from tffc.frontend.computation import Computation
from tffc.frontend.type_analysis import check_is_type
from tffc.frontend.value import Value
from tffc.ir import wire
from tffc.ir.size import written_size
from tffc.ir.traverse import rewrite, walk
from tffc.ir.types import (
    PLACEMENTS,
    FederatedType,
    Placement,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.proto import computation

PlacementLiteral = Placement
"""The class of `tff.CLIENTS` and `tff.SERVER`, as TFF names it."""


def uri_to_placement_literal(uri: str) -> Placement:
    """Return the placement of this name: `clients` or `server`.

    Raises:
      LanguageValueError: there is none.
    """
    for placement in PLACEMENTS:
        if placement.uri == uri:
            return placement
    raise LanguageValueError(
        "E178", f"no placement is called {uri!r}", help="use 'clients' or 'server'"
    )


Predicate: TypeAlias = Callable[[Type], Any] | type[Type] | tuple[type[Type], ...]
"""What a type is asked: a function of it, or classes that it is to be one of."""


T = TypeVar("T")


class TypedObject(metaclass=abc.ABCMeta):
    """What has a type: computations, values of programs, and classes derived from this one."""

    @property
    @abc.abstractmethod
    def type_signature(self) -> Type:
        """The type."""


TypedObject.register(Computation)
TypedObject.register(Value)


def contains(type_signature: Type, predicate: Predicate) -> bool:
    """Return whether the predicate holds of a type in `type_signature`, itself included."""
    return any(map(_asker(predicate), walk(type_signature)))


def contains_only(type_signature: Type, predicate: Predicate) -> bool:
    """Return whether the predicate holds of every type in `type_signature`, itself included."""
    return all(map(_asker(predicate), walk(type_signature)))


def count(type_signature: Type, predicate: Predicate) -> int:
    """Return of how many types in `type_signature` the predicate holds, each place counted."""
    holds = _asker(predicate)
    return written_size(type_signature, {}, lambda part: int(bool(holds(part))))


def _asker(predicate: Predicate) -> Callable[[Type], Any]:
    if isinstance(predicate, (type, tuple)):
        return lambda part: isinstance(part, predicate)
    return predicate


def contains_federated_types(type_signature: Type) -> bool:
    """Return whether there is a federated type in `type_signature`, itself included."""
    return contains(type_signature, FederatedType)


def contains_tensor_types(type_signature: Type) -> bool:
    """Return whether there is a tensor type in `type_signature`, itself included."""
    return contains(type_signature, TensorType)


def is_tensorflow_compatible_type(type_spec: Type | None) -> bool:
    """Return whether a TensorFlow computation can take or give values of this type, or None."""
    return type_spec is None or contains_only(type_spec, (TensorType, SequenceType, StructType))


def transform_type_postorder(
    type_signature: Type, transform_fn: Callable[[Type], tuple[Type, bool]]
) -> tuple[Type, bool]:
    """Rebuild a type from the inside out.

    `transform_fn` is asked for each type, whose parts are rebuilt already, and gives what takes its
    place and whether that is another one.  The result is the type, and whether anything changed.
    """
    changes: list[bool] = []

    def rule(part: Type) -> Type:
        made, is_another = transform_fn(part)
        changes.append(is_another)
        return made

    return rewrite(check_is_type(type_signature), rule), any(changes)


def visit_preorder(type_signature: Type, fn: Callable[[Type, T], T], context: T) -> None:
    """Call `fn` for each type in a type, before those in that, with what it gave for the type
    around it; for the whole type with `context`."""
    waiting = [(type_signature, context)]
    while waiting:
        part, around = waiting.pop()
        given = fn(part, around)
        waiting += [(inner, given) for inner in reversed(part.children())]


def strip_placement(type_signature: Type) -> Type:
    """Return the type with every federated type replaced by its member."""
    return rewrite(
        type_signature, lambda part: part.member if isinstance(part, FederatedType) else part
    )


def serialize_type(type_signature: Type) -> Any:
    """Return the type as a message `Type`, in the encoding of TFF."""
    return computation.Type.FromString(wire.type_to_bytes(check_is_type(type_signature)))


def deserialize_type(type_proto: Any) -> Type:
    """Return the type that a message `Type` holds, of this or another package."""
    return wire.type_from_bytes(type_proto.SerializeToString())
