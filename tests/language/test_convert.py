"""Python objects as types."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

from tffc.language import DType, StructType, TensorType, to_type
from tffc.language.containers.struct import Struct
from tffc.language.types import StructWithPythonType
from tffc.support.errors import LanguageTypeError, LanguageValueError

INT, FLOAT = TensorType(np.int32), TensorType(np.float32)
Point = namedtuple("Point", "x y")


class Pair(NamedTuple):
    a: np.int32
    b: Point  # has no annotations


class Named(NamedTuple):
    a: np.int32
    b: bool


class Nested(NamedTuple):
    inner: Named


KINDS = (
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, "
    "float64, complex64, complex128, str"
)


CONVERTED = [
    (INT, "int32", None),
    (np.int32, "int32", None),
    (np.dtype(np.float64), "float64", None),
    (np.dtype(">i4"), "int32", None),
    (np.str_, "str", None),
    (np.bytes_, "str", None),
    (np.dtype("S5"), "str", None),
    (np.dtype("U3"), "str", None),
    (np.bool_, "bool", None),
    (DType.INT8, "int8", None),
    (bool, "bool", None),
    (int, "int32", None),
    (float, "float32", None),
    (complex, "complex128", None),
    (str, "str", None),
    (bytes, "str", None),
    ((np.int32, [2, None]), "int32[2,?]", None),
    ((np.int32, (3,)), "int32[3]", None),
    ((np.int32, []), "int32", None),
    ((np.int32, range(2)), "int32[0,1]", None),
    ((np.int32, ""), "int32", None),
    ((np.int32, None), "'int32'(shape=None)", None),
    ((np.int32, [True]), "int32[1]", None),
    ([np.int32, np.float32], "<int32,float32>", list),
    ((np.int32, np.float32), "<int32,float32>", tuple),
    ([], "<>", list),
    ((), "<>", tuple),
    (("a", np.int32), "<a=int32>", tuple),
    ((None, np.int32), "<int32>", tuple),
    ([("a", np.int32)], "<a=int32>", None),
    ([["a", np.int32]], "<a=int32>", None),
    ([np.int32, ("a", np.float32)], "<int32,a=float32>", None),
    ((("x", np.int32), ("y", np.int32)), "<x=int32,y=int32>", None),
    ({"b": np.int32, "a": [np.float32]}, "<b=int32,a=<float32>>", dict),
    (OrderedDict(b=np.int32, a=np.float32), "<b=int32,a=float32>", OrderedDict),
    ({}, "<>", dict),
    (Point(np.int32, [np.float32]), "<x=int32,y=<float32>>", Point),
    (Point(np.int32, [1]), "int32[1]", None),
    (Named, "<a=int32,b=bool>", Named),
    (Nested, "<inner=<a=int32,b=bool>>", Nested),
    (Struct([("a", np.int32), (None, np.float32)]), "<a=int32,float32>", None),
]


@pytest.mark.parametrize(
    ("source", "text", "container"), CONVERTED, ids=[str(c[0])[:40] for c in CONVERTED]
)
def test_conversion(source: object, text: str, container: type | None) -> None:
    type_ = to_type(source)
    assert str(type_) == text
    assert getattr(type_, "container", None) is container


def test_attrs() -> None:
    attrs = pytest.importorskip("attrs", reason="an optional package")
    record = attrs.make_class("Record", ["a", "b"])
    type_ = to_type(record(np.int32, (np.float32, [1])))
    assert isinstance(type_, StructWithPythonType)
    assert (str(type_), type_.container) == ("<a=int32,b=float32[1]>", record)


def test_bfloat16() -> None:
    import ml_dtypes

    assert to_type(ml_dtypes.bfloat16) == to_type(np.dtype(ml_dtypes.bfloat16))
    assert to_type((ml_dtypes.bfloat16, [1])) == TensorType(DType.BFLOAT16, (1,))


def refusal(call: Any, *arguments: object) -> str:
    with pytest.raises(LanguageTypeError) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        None,
        3,
        "x",
        np.array(1),
        [np.int32, [1]],
        (np.int32, np.int64(3)),
        {"a": None},
        Point,
        Pair,
        object,
    ],
    ids=str,
)
def test_no_type(source: object) -> None:
    assert (
        refusal(to_type, source)
        .splitlines()[0]
        .endswith(" is not a type, nor can it be read as one [E110]")
    )


def test_no_element_type() -> None:
    assert refusal(TensorType, [np.int32]) == (
        "[<class 'numpy.int32'>] is not an element type [E110]\n"
        "  help: give a NumPy or TensorFlow dtype, or a Python class such as int"
    )


def test_no_type_says_what_to_give() -> None:
    assert refusal(to_type, None) == (
        "None is not a type, nor can it be read as one [E110]\n"
        "  help: give a NumPy or TensorFlow dtype, a (dtype, shape) pair, a TensorSpec, "
        "a tff type, or a list, tuple, mapping, namedtuple, attrs object or dataclass of these"
    )


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (np.object_, "object"),
        (np.datetime64, "datetime64"),
        (np.longdouble, "float128"),
        (np.void, "void"),
    ],
)
def test_element_type_that_the_language_has_not(source: object, name: str) -> None:
    assert refusal(to_type, source) == (
        f"tensors of {name} are not part of the language [E111]\n"
        f"  note: its element types are {KINDS}"
        "\n  help: declare one of these element types, and convert to it in TensorFlow"
    )


def test_shape() -> None:
    assert TensorType(np.int32, [1, None]).shape == (1, None)
    assert refusal(TensorType, np.int32, 3) == (
        "3 is not a shape; expected a sequence of sizes or None [E112]"
    )


def test_elements() -> None:
    assert StructType({"a": int}) == StructType([("a", int)])
    assert refusal(StructType, "ab") == (
        "'ab' is not a collection of types and (name, type) pairs [E110]"
        '\n  help: write a list of types, or of names and types, such as [("a", '
        "np.int32)]"
    )
    assert refusal(to_type, {1: np.int32}) == (
        "the key 1 of a mapping is not a string [E107]"
        "\n  help: write the names as strings, or give a list if there are no names"
    )


@pytest.mark.tensorflow
def test_tensorflows_types() -> None:
    import tensorflow as tf

    sources = (
        *(tf.int32, tf.string, tf.bfloat16, (tf.float32, [2, None])),
        (tf.int32, tf.TensorShape(None)),  # pyright: ignore[reportArgumentType]  # not in TensorFlow's annotations
        tf.TensorSpec([None, 3], tf.float32),
        [tf.int32, tf.TensorSpec([], tf.bool)],
        tf.data.DatasetSpec(tf.TensorSpec([2], tf.int64)),
        tf.data.DatasetSpec({"x": tf.TensorSpec([None], tf.string)}),
    )
    assert [str(to_type(source)) for source in sources] == [
        "int32",
        "str",
        "bfloat16",
        "float32[2,?]",
        "'int32'(shape=None)",
        "float32[?,3]",
        "<int32,bool>",
        "int64[2]*",
        "<x=str[?]>*",
    ]
    assert refusal(to_type, tf.RaggedTensorSpec([None, None], tf.int32)) == (
        "a RaggedTensorSpec is not a type of the language [E111]\n"
        "  help: give its component tensors as a struct"
    )
    for source in (tf.resource, tf.qint8):
        assert refusal(to_type, source) == (
            f"tensors of {source.name} are not part of the language [E111]\n"
            f"  note: its element types are {KINDS}\n"
            "  help: declare one of these element types, and convert to it in TensorFlow"
        )


def test_struct_container() -> None:
    struct = Struct([("a", 1), (None, 2)])
    assert (len(struct), list(struct), struct[0], struct["a"], struct.a) == (2, [1, 2], 1, 1, 1)
    assert struct[0:2] == (1, 2)
    assert (str(struct), repr(struct)) == ("<a=1,2>", "Struct([('a', 1), (None, 2)])")
    assert dir(Struct.named(b=1, a=2)) == ["a", "b"]
    assert Struct.unnamed(1) == Struct([(None, 1)]) != Struct([("a", 1)])
    for index in (-1, 2):
        with pytest.raises(IndexError, match=f"no element {index} in a struct of 2"):
            _ = struct[index]
    with pytest.raises(AttributeError, match="no element 'b' in this struct; it has 'a'"):
        _ = struct.b
    assert refusal(Struct, [1]) == "expected a (name, value) pair, found 1 [E159]"
    with pytest.raises(ValueError, match=r"two elements named 'a' \[E107\]"):
        Struct([("a", 1), (None, 2), ("a", 3)])
    with pytest.raises(ValueError, match=r"the element name '_asdict' is reserved \[E107\]"):
        Struct([("_asdict", 1)])


def test_nested_ten_thousand_deep() -> None:
    source: object = [("a", np.int32)]
    for _ in range(10_000):
        source = [source]
    assert str(to_type(source)) == f"{'<' * 10_001}a=int32{'>' * 10_001}"


def test_containers_of_themselves_are_refused() -> None:
    endless: list[object] = [np.int32]
    endless.append({"again": endless})
    with pytest.raises(LanguageValueError) as caught:
        to_type(endless)
    assert str(caught.value) == "a list that contains itself is not a type [E110]"
