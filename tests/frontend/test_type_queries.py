"""Questions about types that take a function, and struct types as structs."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import tffc as tff
from tffc.frontend.type_queries import (
    PlacementLiteral,
    contains_federated_types,
    transform_type_postorder,
)
from tffc.ir.types import Type

NESTED = tff.to_type(OrderedDict(a=np.int32, b=[np.float32] * 2))
ROUND = tff.FunctionType(tff.types.at_server(NESTED), tff.SequenceType(np.int32))


def is_integer(type_: Type) -> bool:
    return isinstance(type_, tff.TensorType) and type_.dtype == np.int32


@pytest.mark.parametrize(
    ("type_", "contained", "everywhere", "number"),
    [
        (NESTED, True, False, 1),
        (ROUND, True, False, 2),
        (tff.to_type(np.int32), True, True, 1),
        (tff.to_type([]), False, False, 0),
    ],
)
def test_predicates(type_: Type, contained: bool, everywhere: bool, number: int) -> None:
    assert tff.types.contains(type_, is_integer) is contained
    assert tff.types.contains_only(type_, is_integer) is everywhere
    assert tff.types.count(type_, is_integer) == number


def test_classes_are_predicates() -> None:
    assert tff.types.count(NESTED, tff.TensorType) == 3
    assert tff.types.contains(ROUND, (tff.FederatedType, tff.AbstractType))
    assert contains_federated_types(ROUND)
    assert not contains_federated_types(NESTED)
    assert tff.types.is_tensorflow_compatible_type(None)
    assert tff.types.is_tensorflow_compatible_type(tff.SequenceType(NESTED))
    assert not tff.types.is_tensorflow_compatible_type(ROUND)


def test_types_are_rebuilt_from_the_inside_out() -> None:
    seen = []

    def widen(type_: Type) -> tuple[Type, bool]:
        seen.append(str(type_))
        return (tff.to_type(np.int64), True) if is_integer(type_) else (type_, False)

    made, changed = transform_type_postorder(NESTED, widen)
    assert (str(made), changed) == ("<a=int64,b=<float32,float32>>", True)
    assert seen[-1] == "<a=int64,b=<float32,float32>>"
    assert transform_type_postorder(NESTED, lambda each: (each, False)) == (NESTED, False)


def test_types_are_messages_and_back() -> None:
    message = tff.types.serialize_type(ROUND)
    assert message.WhichOneof("type") == "function"
    assert str(tff.types.deserialize_type(message)) == str(ROUND)


def test_struct_types_are_structs_of_types() -> None:
    assert isinstance(NESTED, tff.structure.Struct)
    assert not isinstance(tff.to_type(np.int32), tff.structure.Struct)
    assert [str(leaf) for leaf in tff.structure.flatten(NESTED)] == ["int32", "float32", "float32"]
    renamed = tff.to_type(OrderedDict(c=np.int32, b=[np.float32] * 2))
    assert not tff.structure.is_same_structure(NESTED, renamed)
    assert tff.structure.to_odict(NESTED)["a"] == tff.to_type(np.int32)
    opened = tff.structure.from_container(NESTED, recursive=True)
    assert opened != NESTED  # a struct is not a type
    assert opened.b[0] == tff.to_type(np.float32)


def test_struct_types_tell_their_container_and_fields() -> None:
    assert isinstance(NESTED, tff.StructType)
    assert NESTED.python_container is OrderedDict
    assert tff.StructType([np.int32]).python_container is None
    assert dir(NESTED) == ["a", "b"]


def test_what_has_a_type() -> None:
    @tff.federated_computation(np.int32)
    def identity(x: tff.Value) -> tff.Value:
        assert isinstance(x, tff.TypedObject)
        return x

    assert isinstance(identity, tff.TypedObject)
    assert not isinstance(1, tff.TypedObject)


def test_placements_tell_which_they_are() -> None:
    assert tff.CLIENTS.is_clients()
    assert not tff.CLIENTS.is_server()
    assert tff.SERVER.is_server()
    assert isinstance(tff.SERVER, PlacementLiteral)
