"""Python objects as values of programs, and back."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import tffc as tff
from tffc.language.types import (
    CLIENTS,
    SERVER,
    SequenceType,
    StructType,
    Type,
    at_clients,
    at_server,
    to_type,
)
from tffc.language.values.concrete import (
    Federated,
    Stacked,
    flatten,
    to_python,
    to_value,
    unflatten,
)
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import TffcError

tf = load_tensorflow()
OrderedDict = collections.OrderedDict
INT, FLOAT, TEXT = np.int32, np.float32, np.str_


class Point(NamedTuple):
    y: Any
    x: Any


class Field(NamedTuple):
    name: str


@dataclasses.dataclass
class Pair:
    """A stand-in for an attrs class: what tells one is the list of its fields."""

    __attrs_attrs__ = (Field("a"), Field("b"))
    a: Any
    b: Any


def same(found: Any, expected: Any) -> bool:
    """Whether two values are equal, classes and element types included."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, np.ndarray):
        if found.dtype != expected.dtype or found.shape != expected.shape:
            return False
        return bool(np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"))
    if isinstance(found, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


def strings(*items: bytes) -> np.ndarray[Any, Any]:
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


ACCEPTED: list[tuple[Any, Any, Any]] = [
    (1, INT, INT(1)),
    (-(2**31), INT, INT(-(2**31))),
    (2**64 - 1, np.uint64, np.uint64(2**64 - 1)),
    (True, np.bool_, np.bool_(True)),
    (0.1, np.float16, np.float16(0.1)),
    (float("inf"), FLOAT, FLOAT("inf")),
    (1j, np.complex64, np.complex64(1j)),
    ("é", TEXT, "é".encode()),
    (b"a\0", TEXT, b"a\0"),
    (np.int8(3), INT, INT(3)),
    (np.float16(1.5), np.float64, np.float64(1.5)),
    (np.array(1, INT), INT, INT(1)),
    ([1, 2], (INT, [2]), np.array([1, 2], INT)),
    ([[1], [2]], (np.int64, [None, 1]), np.array([[1], [2]])),
    ([], (FLOAT, [None]), np.array([], FLOAT)),
    (3, (INT, None), INT(3)),
    (["a", b"b\0"], (TEXT, [2]), strings(b"a", b"b\0")),
    (np.array(["a", "bc"]), (TEXT, [None]), strings(b"a", b"bc")),
    (tf.constant([1, 2]), (INT, [2]), np.array([1, 2], INT)),
    (tf.constant("a"), TEXT, b"a"),
    (tf.Variable(1.5), FLOAT, FLOAT(1.5)),
    ((1, 2.0), [INT, FLOAT], (INT(1), FLOAT(2))),
    ([1, 2.0], OrderedDict(a=INT, b=FLOAT), (INT(1), FLOAT(2))),
    ({"b": 2.0, "a": 1}, OrderedDict(a=INT, b=FLOAT), (INT(1), FLOAT(2))),
    (Point(1, 2), [("y", INT), ("x", INT)], (INT(1), INT(2))),
    (Pair(1, 2), [("a", INT), ("b", INT)], (INT(1), INT(2))),
    (tff.Struct([(None, 1), ("a", 2)]), [INT, ("a", INT)], (INT(1), INT(2))),
    ([], (), ()),
    ([1, 2], tff.SequenceType(INT), [INT(1), INT(2)]),
    (tf.data.Dataset.range(2), tff.SequenceType(np.int64), [np.int64(0), np.int64(1)]),
    (
        tf.data.Dataset.from_tensors({"b": 1, "a": "t"}),
        tff.SequenceType(OrderedDict(b=INT, a=TEXT)),
        [(INT(1), b"t")],
    ),
    ([1, 2], at_clients(INT), Federated((INT(1), INT(2)), all_equal=False)),
    (1, at_clients(INT, all_equal=True), Federated((INT(1),), all_equal=True)),
    (1, at_server(INT), Federated((INT(1),), all_equal=True)),
    (CLIENTS, tff.PlacementType(), CLIENTS),
]


LISTED: list[tuple[Any, Any, Any]] = [
    ([1, np.int64(2)], FLOAT, [FLOAT(1), FLOAT(2)]),
    ([[1, 2]], (FLOAT, [2]), [np.array([1, 2], FLOAT)]),
    ([np.float64(0.5)], FLOAT, [FLOAT(0.5)]),
    ([np.int64(5)], INT, [INT(5)]),
    ([OrderedDict(a=1)], {"a": FLOAT}, [(FLOAT(1),)]),
]
"""Lists whose elements are numbers of another kind or size than a sequence has."""


@pytest.mark.parametrize(("source", "element", "value"), LISTED, ids=str)
def test_lists_are_converted_to_sequences(source: Any, element: Any, value: Any) -> None:
    assert same(to_value(source, tff.SequenceType(element)), value)


@pytest.mark.parametrize(
    ("item", "element"), [(1.5, INT), (True, INT), (np.int64(2**40), INT), ("a", FLOAT)]
)
def test_but_only_where_nothing_is_lost(item: Any, element: Any) -> None:
    with pytest.raises(TypeError, match="E711"):
        to_value([item], tff.SequenceType(element))


def test_names_are_left_out_where_the_type_has_none() -> None:
    unnamed = to_type(StructType([INT, FLOAT]))
    for given in ({"b": 1, "a": 2.0}, Point(1, 2.0)):
        assert same(to_value(given, unnamed), (INT(1), FLOAT(2)))
    for refused in (tff.Struct([("a", 1), ("b", 2.0)]), {"b": 2.0, "a": 1}):
        with pytest.raises(TypeError, match="E711"):
            to_value(refused, unnamed)


@pytest.mark.parametrize(("source", "type_spec", "value"), ACCEPTED, ids=lambda x: str(x)[:30])
def test_accepted(source: Any, type_spec: Any, value: Any) -> None:
    assert same(to_value(source, to_type(type_spec)), value)


def test_bfloat16() -> None:
    value = to_value(ml_dtypes.bfloat16(1.5), to_type(tf.bfloat16))
    assert type(value) is ml_dtypes.bfloat16
    assert (
        to_value(tf.constant([1.5], tf.bfloat16), to_type((tf.bfloat16, [1]))).dtype == "bfloat16"
    )


def test_tensors_made_of_several() -> None:
    sparse_type = to_type([("indices", (np.int64, [None, 2])), ("values", (INT, [None]))])
    assert isinstance(sparse_type, StructType)
    sparse_type = StructType([*sparse_type.items(), ("dense_shape", (np.int64, [2]))])
    indices, values, shape = to_value(tf.SparseTensor([[0, 1]], [5], [2, 2]), sparse_type)
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[0, 1]], [5], [2, 2])


STACKED = (
    "\n  help: a sequence takes its elements one by one: give "
    "tf.data.Dataset.from_tensor_slices(x) in place of these arrays x"
)
CONVERT = "\n  help: convert it first, for example np."

REFUSED: list[tuple[Any, Any, str]] = [
    (
        1,
        FLOAT,
        "the argument is 1, but should be of type `float32` [E711]" + CONVERT + "float32(...)",
    ),
    (
        1.0,
        INT,
        "the argument is 1.0, but should be of type `int32` [E711]" + CONVERT + "int32(...)",
    ),
    (
        True,
        INT,
        "the argument is True, but should be of type `int32` [E711]" + CONVERT + "int32(...)",
    ),
    (
        300,
        np.int8,
        "the argument is 300, but should be of type `int8` [E711]",
    ),
    (
        2**70,
        np.int64,
        f"the argument is {2**70}, but should be of type `int64` [E711]",
    ),
    (
        1e40,
        FLOAT,
        "the argument is 1e+40, but should be of type `float32` [E711]",
    ),
    (
        np.int64(1),
        INT,
        "the argument is a NumPy int64 scalar, but should be of type `int32` [E711]"
        f"{CONVERT}int32(...)",
    ),
    (
        np.zeros((2, 3), INT),
        (INT, [3, None]),
        "the argument is a NumPy int32 array of shape [2, 3], but should be of type "
        "`int32[3,?]` [E711]",
    ),
    ("a" * 50, INT, f"the argument is '{'a' * 39}..., but should be of type `int32` [E711]"),
    (1, TEXT, "the argument is 1, but should be of type `str` [E711]"),
    (None, INT, "the argument is None, but should be of type `int32` [E711]"),
    (
        np.datetime64("2020"),
        (INT, [1]),
        "the argument is a NumPy datetime64[Y] scalar, but should be of type `int32[1]` [E711]",
    ),
    (
        [1, "a"],
        (INT, [2]),
        "the argument at [1] is 'a', but should be of type `int32` [E711]",
    ),
    (
        [[1], [2, 3]],
        (INT, None),
        "the argument at [0] is a list of 1 elements, but should be of type `int32` [E711]",
    ),
    (
        {1},
        INT,
        "the argument is an object of class 'set', but should be of type `int32` [E711]",
    ),
    (
        (1,),
        [INT, INT],
        "the argument is a tuple of 1 elements, but should be of type `<int32,int32>` [E711]",
    ),
    (
        {"a": 1, "b": 2},
        [INT],
        "the argument is a dict of 2 elements, but should be of type `<int32>` [E711]",
    ),
    (
        {"a": 1},
        OrderedDict(a=INT, b=INT),
        "the argument has no element 'b', but should be of type `<a=int32,b=int32>` [E711]\n"
        "  note: it has 'a'"
        "\n  help: give it the elements 'a', 'b'",
    ),
    (
        {"a": 1, "c": 1},
        OrderedDict(a=INT),
        "the argument has an element 'c', but should be of type `<a=int32>` [E711]\n"
        "  note: it has 'a', 'c'"
        "\n  help: give it the elements 'a'",
    ),
    (
        ({"a": [1, 2.5]},),
        [OrderedDict(a=tff.SequenceType(INT))],
        f"the argument at [0].a[1] is 2.5, but should be of type `int32` [E711]{CONVERT}int32(...)",
    ),
    (
        1,
        at_clients(INT),
        "the argument is 1, but should be of type `{int32}@CLIENTS` [E711]\n"
        "  help: give a list with one value for each client",
    ),
    (
        [1, 2.0],
        at_clients(INT),
        f"the argument at [1] is 2.0, but should be of type `int32` [E711]{CONVERT}int32(...)",
    ),
    (
        np.array([1]),
        tff.SequenceType(INT),
        "the argument is a NumPy int64 array of shape [1], but should be of type `int32*` [E711]\n"
        "  help: a sequence takes its elements one by one: give list(x) in place of the array x",
    ),
    (
        (np.zeros([3, 2]), np.zeros([3])),
        tff.SequenceType(((np.float64, [2]), np.float64)),
        f"the argument is a tuple of 2 elements, but should be of type "
        f"`<float64[2],float64>*` [E711]{STACKED}",
    ),
    (
        {"x": np.zeros([3])},
        tff.SequenceType({"x": np.float64}),
        f"the argument is a dict of 1 elements, but should be of type `<x=float64>*` [E711]"
        f"{STACKED}",
    ),
    (
        range(2),
        tff.SequenceType(INT),
        "the argument is an object of class 'range', but should be of type `int32*` [E711]\n"
        "  help: give a list of elements, or a tf.data.Dataset",
    ),
    (
        tf.data.Dataset.range(2).repeat(),
        tff.SequenceType(np.int64),
        "the argument is a dataset without an end, and sequences are finite [E708]\n"
        "  help: take a part of it: dataset.take(n)",
    ),
    (
        3,
        tff.FunctionType(INT, INT),
        "the argument is 3, but should be of type `(int32 -> int32)` [E711]\n"
        "  help: give a computation",
    ),
    (1, tff.PlacementType(), "the argument is 1, but should be of type `placement` [E711]"),
]


@pytest.mark.parametrize(("source", "type_spec", "text"), REFUSED, ids=lambda x: str(x)[:30])
def test_refused(source: Any, type_spec: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        to_value(source, to_type(type_spec))
    assert str(caught.value) == text


def test_what_is_read_can_be_named() -> None:
    with pytest.raises(TffcError, match=r"the state at \.a is 1\.5"):
        to_value({"a": 1.5}, to_type(OrderedDict(a=INT)), "the state")


def test_symbolic_tensors_have_no_value() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="should be of type `int32`"):
        to_value(tf.constant(1), to_type(INT))


WRITTEN: list[tuple[Any, Any, Any]] = [
    (INT(1), INT, INT(1)),
    (b"a", TEXT, b"a"),
    ((INT(1), INT(2)), [("a", INT), ("b", INT)], OrderedDict(a=INT(1), b=INT(2))),
    ((INT(1), INT(2)), StructType([(None, INT), (None, INT)]), (INT(1), INT(2))),
    ((INT(1), INT(2)), [INT, ("b", INT)], tff.Struct([(None, INT(1)), ("b", INT(2))])),
    ((), StructType([]), ()),
    ((INT(1),), [INT], [INT(1)]),
    ((INT(1),), {"a": INT}, {"a": INT(1)}),
    ((INT(1), INT(2)), Point(INT, INT), Point(INT(1), INT(2))),
    ((INT(1), INT(2)), Pair(INT, INT), Pair(INT(1), INT(2))),
    ([INT(1)], tff.SequenceType(INT), [INT(1)]),
    (Federated((INT(1), INT(2)), all_equal=False), at_clients(INT), [INT(1), INT(2)]),
    (Federated((INT(1),), all_equal=True), at_clients(INT), [INT(1), INT(1)]),
    (Federated((INT(1),), all_equal=True), at_clients(INT, all_equal=True), INT(1)),
    (Federated((INT(1),), all_equal=True), at_server(INT), INT(1)),
    (SERVER, tff.PlacementType(), SERVER),
]


@pytest.mark.parametrize(("value", "type_spec", "expected"), WRITTEN, ids=lambda x: str(x)[:30])
def test_written(value: Any, type_spec: Any, expected: Any) -> None:
    assert same(to_python(value, to_type(type_spec), clients=2), expected)


def test_functions_are_not_written() -> None:
    with pytest.raises(TypeError) as caught:
        to_python(None, tff.FunctionType(INT, INT))
    assert str(caught.value) == (
        "a function of type `(int32 -> int32)` is not a result that Python can be given [E712]\n"
        "  help: return what it gives for an argument"
    )


def deep(depth: int) -> tuple[Type, Any]:
    kind: Any = to_type(INT)
    value: Any = 1
    for _ in range(depth):
        kind, value = StructType([kind]), (value,)
    return kind, value


@pytest.mark.slow
def test_depth() -> None:
    kind, source = deep(10_000)
    value = to_value(source, kind)
    assert flatten(value, kind) == [1]
    again = unflatten(iter(flatten(value, kind)), kind)
    written = to_python(again, kind)
    for _ in range(10_000):
        (written,) = written
    assert written == 1


def test_stacked_elements_stand_for_a_sequence() -> None:
    columns = (np.arange(3, dtype=np.int32),)
    stacked = Stacked(columns, lambda: list(columns[0]))
    assert to_value(stacked, SequenceType(np.int32)) == [0, 1, 2]
    assert (len(stacked), stacked[1:], stacked == [0, 1, 2], stacked == [0]) == (
        3, [1, 2], True, False,
    )  # fmt: skip
