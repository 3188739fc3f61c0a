"""Structures made from types, and how two types relate."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageTypeError, LanguageValueError

tf = load_tensorflow()
INT, FLOAT = np.int32, np.float32
NESTED = tff.to_type(OrderedDict(a=INT, b=[FLOAT] * 2))
MIXED = tff.StructType([("a", INT), INT])
Struct = tff.structure.Struct


class Pair(NamedTuple):
    x: Any
    y: Any


@pytest.mark.parametrize(
    ("type_spec", "expected"),
    [
        (NESTED, OrderedDict(a="int32", b=["float32", "float32"])),
        (OrderedDict(a=INT), OrderedDict(a="int32")),
        (tff.StructType([("a", INT), ("b", INT)]), OrderedDict(a="int32", b="int32")),
        (tff.StructType([INT, INT]), ("int32", "int32")),
        (Pair(INT, (FLOAT, [2])), Pair("int32", "float32[2]")),
        ([], []),
        (INT, "int32"),
    ],
    ids=str,
)
def test_structures_of_what_is_made_of_tensor_types(type_spec: Any, expected: Any) -> None:
    found = tff.types.structure_from_tensor_type_tree(str, type_spec)
    assert found == expected
    assert type(found) is type(expected)


def test_specs() -> None:
    assert tff.types.type_to_tf_tensor_specs(NESTED) == OrderedDict(
        a=tf.TensorSpec([], tf.int32), b=[tf.TensorSpec([], tf.float32)] * 2
    )
    text = tff.TensorType(np.str_, [None, 2])
    assert tff.types.type_to_tf_tensor_specs(text) == tf.TensorSpec([None, 2], tf.string)


@pytest.mark.parametrize(
    ("type_spec", "words"),
    [
        (
            tff.SequenceType(INT),
            "expected tensors and structs of them only, found the type `int32*` [E168]\n"
            "  help: give the type of what a sequence or federated type has inside",
        ),
        (
            MIXED,
            "Python has no container for `<a=int32,int32>`, which names some of its elements only "
            "[E161]\n  help: name all elements, or none",
        ),
    ],
    ids=str,
)
def test_types_without_such_structures(type_spec: tff.Type, words: str) -> None:
    assert refusal(LanguageValueError, tff.types.type_to_tf_tensor_specs, type_spec) == words


def test_specs_of_sequences_too() -> None:
    pair = tff.StructType([("x", INT), ("y", INT)])
    type_spec = tff.StructType([("a", INT), ("b", tff.SequenceType(pair))])
    nested = tff.types.type_to_tf_tensor_specs(pair)
    assert tff.types.type_to_tf_structure(type_spec) == OrderedDict(
        a=tf.TensorSpec([], tf.int32), b=tf.data.DatasetSpec(nested)
    )
    with pytest.raises(LanguageValueError, match="expected tensors and structs of them only"):
        tff.types.type_to_tf_structure(tff.FunctionType(None, INT))


@pytest.mark.parametrize(
    ("value", "type_spec", "expected"),
    [
        ([1, 2], NESTED, [1, 2]),
        (Struct([("a", 1), ("b", Struct([(None, 2), (None, 3)]))]), NESTED, {"a": 1, "b": [2, 3]}),
        (Struct([("a", 1)]), tff.StructType([("a", INT)]), OrderedDict(a=1)),
        (Struct([(None, 1)]), tff.StructType([INT]), (1,)),
        ([Struct([(None, 1)])], tff.SequenceType([INT]), [(1,)]),
        ([Struct([(None, 1)])], tff.types.at_clients([INT]), [[1]]),
        (Struct([(None, 1)]), tff.types.at_server([INT]), [1]),
        (5, tff.to_type(INT), 5),
    ],
    ids=str,
)
def test_values_in_the_containers_of_their_types(value: Any, type_spec: Any, expected: Any) -> None:
    assert tff.types.type_to_py_container(value, type_spec) == expected


def test_values_without_a_container() -> None:
    with pytest.raises(ValueError, match="E161"):
        tff.types.type_to_py_container(Struct([("a", 1), (None, 2)]), MIXED)


@pytest.mark.parametrize(
    ("relation", "expected", "words"),
    [
        ("ASSIGNABLE", False, "Type `int32` is not assignable to type `float32`"),
        ("ASSIGNABLE", True, "Type `int32` is not assignable to expected type `float32`"),
        ("EQUIVALENT", False, "Type `int32` is not equivalent to type `float32`"),
        ("IDENTICAL", False, "Type `int32` is not identical to type `float32`"),
    ],
)
def test_words_for_types_that_do_not_fit(relation: str, expected: bool, words: str) -> None:
    types = tff.to_type(INT), tff.to_type(FLOAT)
    found = tff.types.type_mismatch_error_message(
        *types, tff.types.TypeRelation[relation], second_is_expected=expected
    )
    assert found == words


def test_an_unexpected_type() -> None:
    error = tff.types.UnexpectedTypeError(tff.TensorType, tff.SequenceType(INT))
    assert isinstance(error, TypeError)
    assert str(error) == "expected a TensorType, found the type `int32*` [E168]"


@pytest.mark.parametrize(
    ("shape", "count"),
    [([2, 3], 6), ([], 1), ((2, 0), 0), ([2, None], None), (None, None)],
    ids=str,
)
def test_shapes(shape: Any, count: int | None) -> None:
    assert tff.types.num_elements_in_shape(shape) == count
    assert tff.types.is_shape_fully_defined(shape) is (count is not None)


@pytest.mark.parametrize(
    "ask",
    [
        tff.types.is_structure_of_floats,
        tff.types.is_structure_of_integers,
        tff.types.is_structure_of_tensors,
        tff.types.serialize_type,
    ],
)
def test_what_is_asked_about_is_a_type(ask: Any) -> None:
    assert refusal(LanguageTypeError, ask, np.float32) == (
        "expected a type, found the class 'float32' [E110]\n  help: make it one: tff.to_type(x)"
    )
