"""Questions about types that take a function, and struct types as structs."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.frontend.type_queries import (
    PlacementLiteral,
    contains_federated_types,
    transform_type_postorder,
)
from tffc.language.types import Type
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

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


def test_elements_of_struct_types_may_have_any_name() -> None:
    fields: Any = tff.to_type(OrderedDict(label=np.int32, _hidden=np.float32))
    assert str(fields.label) == "int32"
    assert str(fields._hidden) == "float32"
    assert fields._asdict() == OrderedDict(label=fields[0], _hidden=fields[1])
    with pytest.raises(IndexError, match="no element -1 in a struct of 2"):
        fields[-1]
    assert fields[0:1] == (fields.label,)


def test_what_is_no_dtype_is_not_implemented() -> None:
    with pytest.raises(NotImplementedError, match="E110"):
        tff.TensorType(5)
    with pytest.raises(NotImplementedError, match="E111"):
        tff.TensorType(np.object_)


def test_polymorphic_computations_for_a_type() -> None:
    same: Any = tff.tensorflow.computation(lambda x: x)
    found = same.fn_for_argument_type(tff.to_type(np.int32))
    assert str(found.type_signature) == "(int32 -> int32)"
    assert same.fn_for_argument_type(tff.to_type(np.int32)) is found
    first: Any = tff.federated_computation(lambda x, y: x)
    pair = tff.to_type([("x", np.int32), ("y", np.float32)])
    assert str(first.fn_for_argument_type(pair, True).type_signature) == (
        "(<x=int32,y=float32> -> int32)"
    )


def test_arguments_and_results_in_the_terms_of_numpy() -> None:
    tf = load_tensorflow()
    given = OrderedDict(a=1, b=[np.int32(2), tf.constant([3]), tf.Variable(4.0)])
    found = tff.tensorflow.transform_args(given)
    assert found == OrderedDict(a=1, b=[2, np.array([3]), 4.0])
    assert [type(each) for each in found["b"]] == [np.int32, np.ndarray, np.float32]
    assert tff.tensorflow.transform_result(found) == found


def test_placements_are_made_copied_and_kept() -> None:
    made = PlacementLiteral("TEST", "test", False, "a test")
    assert (
        str(made),
        made == PlacementLiteral("OTHER", "test", True, ""),
        made == tff.CLIENTS,
    ) == (
        "TEST",
        True,
        False,
    )
    assert len({made, tff.CLIENTS, tff.SERVER, pickle.loads(pickle.dumps(made))}) == 3
    for placement in (tff.CLIENTS, tff.SERVER):
        assert copy.deepcopy(placement) is placement
        assert pickle.loads(pickle.dumps(placement)) is placement
    unchecked: Any = made
    with pytest.raises(AttributeError, match="cannot assign to field 'name'"):
        unchecked.name = "x"
    assert str(tff.FederatedType(np.int32, made)) == "{int32}@TEST"
    assert tff.FederatedType(np.int32, copy.deepcopy(made)) is tff.FederatedType(np.int32, made)
    same = PlacementLiteral("C", "clients", True, "")
    assert tff.FederatedType(np.int32, same).placement is tff.CLIENTS


def test_other_placements_are_in_no_program() -> None:
    at = tff.FederatedType(np.int32, PlacementLiteral("TEST", "test", False, "a test"))
    node = tff.framework.Lambda("x", at, tff.framework.Reference("x", at))
    for use in (
        lambda: tff.federated_computation(lambda x: x, [at]),
        lambda: tff.framework.ConcreteComputation.from_building_block(node),
    ):
        with pytest.raises(TypeError, match=r"cannot be of type `{int32}@TEST` \[E105\]"):
            use()
    with pytest.raises(ValueError, match=r"`{int32}@TEST` cannot be stored.*\[E105\]"):
        tff.types.serialize_type(at)
