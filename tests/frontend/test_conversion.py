"""Python objects as values: arguments, constants and results."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frontend.computations import Pair, Point, traced
from tests.refusals import error_without_place
from tffc.frontend.conversion import infer_type
from tffc.support.errors import TffcError

fc = tff.federated_computation
INT = np.int32


def array_of(item: Any) -> Any:
    array = np.empty([1], object)
    array[0] = item
    return array


@dataclasses.dataclass
class Weighted:
    value: Any
    weight: float


RESULTS = {
    "a list": (lambda x: [x, x], "<int32,int32>", "list", "<f_arg,f_arg>"),
    "a tuple": (lambda x: (x, 1), "<int32,int32>", "tuple", "<f_arg,1>"),
    "an ordered dict": (
        lambda x: collections.OrderedDict(b=x, a=2.5),
        "<b=int32,a=float32>",
        "OrderedDict",
        "<b=f_arg,a=2.5>",
    ),
    "a dict": (lambda x: {"b": x, "a": 2.5}, "<b=int32,a=float32>", "dict", "<b=f_arg,a=2.5>"),
    "a namedtuple": (lambda x: Point(x, 1), "<x=int32,y=int32>", "Point", "<x=f_arg,y=1>"),
    "an attrs object": (
        lambda x: Pair(x, 1),
        "<left=int32,right=int32>",
        "Pair",
        "<left=f_arg,right=1>",
    ),
    "a struct": (
        lambda x: tff.structure.Struct([("a", x), (None, x)]),
        "<a=int32,int32>",
        None,
        "<a=f_arg,f_arg>",
    ),
    "pairs": (
        lambda x: [("a", x), ("b", x)],
        "<<str,int32>,<str,int32>>",
        None,
        "<<b'a',f_arg>,<b'b',f_arg>>",
    ),
    "an empty tuple": (lambda x: (), "<>", "tuple", "<>"),
    "an empty dict": (lambda x: {}, "<>", "dict", "<>"),
    "a large integer": (lambda x: 2**40, "int64", None, "1099511627776"),
    "an array": (lambda x: np.array([1, 2]), "int64[2]", None, "[1 2]"),
    "an array of objects": (lambda x: np.array([b"a"], object), "str[1]", None, "[b'a']"),
    "a string": (lambda x: "é", "str", None, r"b'\xc3\xa9'"),
    "bytes": (lambda x: b"a", "str", None, "b'a'"),
    "a boolean": (lambda x: True, "bool", None, "True"),
    "a float": (lambda x: 0.5, "float32", None, "0.5"),
    "a complex": (lambda x: 1j, "complex128", None, "1j"),
    "a NumPy scalar": (lambda x: np.float64(0.5), "float64", None, "0.5"),
    "a computation": (
        lambda x: fc(lambda y: y, INT),
        "(int32 -> int32)",
        None,
        "(<lambda>_arg -> <lambda>_arg)",
    ),
    "a placement": (lambda x: tff.CLIENTS, "placement", None, "CLIENTS"),
}


@pytest.mark.parametrize("case", RESULTS)
def test_results(case: str) -> None:
    body, type_, container, text = RESULTS[case]
    result = fc(body, INT).type_signature.result
    assert str(result) == type_
    assert getattr(getattr(result, "container", None), "__name__", None) == container
    assert traced(body, INT) == f"(f_arg -> {text})"


def test_containers_are_no_part_of_the_program() -> None:
    assert fc(lambda x: [x], INT) == fc(lambda x: (x,), INT)
    assert "as " not in repr(fc(lambda x: [x, (x,)], [INT]).node.type)


def test_result_nested_ten_thousand_deep() -> None:
    def deep(x: Any) -> Any:
        for _ in range(10_000):
            x = [x]
        return x

    text = traced(deep, INT)
    assert text == f"(f_arg -> {'<' * 10_000}f_arg{'>' * 10_000})"


RETURNED = "\n  note: it was returned by '<lambda>'"
KINDS = (
    "\n  note: values are computations, constants of Python and NumPy, placements, and lists, "
    "tuples, mappings, namedtuples and attrs objects of these"
)
DECORATE = (
    "\n  help: decorate it with @tff.tensorflow.computation(...) or "
    "@tff.federated_computation(...), with the types of its parameters"
)

REFUSED: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "a function": (
        lambda x: len,
        TypeError,
        "the Python function 'len' cannot be a value of a program [E460]"
        + KINDS
        + RETURNED
        + DECORATE,
    ),
    "a set": (
        lambda x: {x},
        TypeError,
        "an object of class 'set' cannot be a value of a program [E460]"
        + KINDS
        + RETURNED
        + "\n  help: give a list or tuple",
    ),
    "a generator": (
        lambda x: (y for y in [x]),
        TypeError,
        "an object of class 'generator' cannot be a value of a program [E460]"
        + KINDS
        + RETURNED
        + "\n  help: give a list or tuple",
    ),
    "a nested None": (
        lambda x: [x, {"a": None}],
        TypeError,
        "None cannot be a value of a program [E460]"
        + KINDS
        + "\n  note: it stands at `[1].a`"
        + RETURNED,
    ),
    "a class": (
        lambda x: np.int32,
        TypeError,
        "the class 'int32' cannot be a value of a program [E460]" + KINDS + RETURNED,
    ),
    "a key that is not a string": (
        lambda x: {1: x},
        TypeError,
        "the key 1 of a mapping is not a string [E107]"
        + RETURNED
        + "\n  help: write the names as strings, or give a list if there are no names",
    ),
    "an integer past 64 bits": (
        lambda x: 2**70,
        ValueError,
        "the integer 1180591620717411303424 does not fit 64 bits [E121]"
        + RETURNED
        + "\n  help: use an integer from -2**63 to 2**63 - 1, or a float",
    ),
    "an array of objects": (
        lambda x: np.array([None, {}], object),
        TypeError,
        "a NumPy array of objects is not a tensor of strings: it holds None [E460]" + RETURNED,
    ),
    "an array of values": (
        lambda x: array_of(x),
        TypeError,
        "a NumPy array of objects is not a tensor of strings: it holds an object of class 'Value' "
        "[E460]" + RETURNED + "\n  help: put values of a program into a list",
    ),
    "a dataclass": (
        lambda x: Weighted(x, 1.0),
        TypeError,
        "an object of class 'Weighted' cannot be a value of a program [E460]"
        + KINDS
        + RETURNED
        + "\n  help: give a namedtuple, or the dictionary of its fields",
    ),
    "a number past float32": (
        lambda x: 1e300,
        ValueError,
        "the constant 1e+300 does not fit float32 [E121]"
        + RETURNED
        + "\n  help: float32 holds numbers up to 3.4e+38; np.float64 holds more",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_results_refused(case: str) -> None:
    body, builtin, text = REFUSED[case]
    assert str(error_without_place(builtin, lambda: fc(body, INT))) == text


def test_containers_of_themselves_are_refused() -> None:
    endless: list[Any] = [1]
    endless.append({"again": endless})
    text = (
        "a list that contains itself is not a struct [E460]\n  note: it stands at `[1].again`"
        "\n  help: take the container out of itself; copy it where a second one is meant"
    )
    assert str(error_without_place(TffcError, lambda: tff.to_value(endless))) == text
    with pytest.raises(ValueError, match="E460"):
        infer_type(endless)


def test_containers_may_stand_twice() -> None:
    pair = [1, 2]
    assert str(tff.to_value([pair, pair, ((), ())])) == "<<1,2>,<1,2>,<<>,<>>>"


def test_tensors_are_refused_with_what_to_give() -> None:
    from tffc.frontend.hints import alternative

    class Tensor:
        pass

    Tensor.__module__ = "tensorflow.python.framework"
    assert alternative(Tensor()) == (
        "make it inside a TensorFlow computation; a constant can be given as NumPy array"
    )


def test_to_value_outside_of_traces() -> None:
    value = tff.to_value([1, {"a": 2.0}], [np.int64, [("a", np.float32)]])
    assert str(value) == "<1,<a=2.0>>"
    assert str(value.type_signature) == "<int64,<a=float32>>"


TARGETS = {
    "shape unknown": (np.array([1, 2], INT), (INT, [None]), "int32[?]"),
    "rank unknown": (np.array([1, 2], INT), (INT, None), "'int32'(shape=None)"),
    "a wider integer": (np.int32(1), np.int64, "int64"),
    "a narrower float": (0.1, np.float16, "float16"),
    "a name that the target has not": ({"a": 1}, [("a", INT)], "<a=int32>"),
}


@pytest.mark.parametrize("case", TARGETS)
def test_targets(case: str) -> None:
    source, target, type_ = TARGETS[case]
    assert str(tff.to_value(source, target).type_signature) == type_


TARGETS_REFUSED: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "an int for a float": (
        1,
        np.float32,
        ValueError,
        "the constant 1 of type int32 does not fit float32 [E121]\n"
        "  help: convert it first, for example np.float32(...)",
    ),
    "an array for a scalar": (
        np.array([1, 2], INT),
        INT,
        ValueError,
        "the constant array([1, 2], dtype=int32) of shape [2] is not of type `int32` [E461]\n"
        "  help: give one of this shape, or declare the type as `int32[2]`",
    ),
    "a scalar for an unknown rank": (
        1,
        (INT, None),
        ValueError,
        "the constant 1 of shape [] is not of type `'int32'(shape=None)` [E461]\n"
        "  help: give one of this shape, or declare the type as `int32`",
    ),
    "a long constant": (
        "word " * 20,
        [INT],
        ValueError,
        "the constant 'word word word word word word word word word word word w... stands where a "
        "value of type `<int32>` is needed [E461]\n"
        "  help: give a list or mapping of 1 elements",
    ),
    "a constant for a struct": (
        1,
        [INT],
        ValueError,
        "the constant 1 stands where a value of type `<int32>` is needed [E461]\n"
        "  help: give a list or mapping of 1 elements",
    ),
    "a constant for a sequence": (
        1,
        tff.SequenceType(INT),
        ValueError,
        "the constant 1 stands where a value of type `int32*` is needed [E461]\n"
        "  help: make the sequence in a TensorFlow computation, as a tf.data.Dataset",
    ),
    "a constant for a function": (
        1,
        tff.FunctionType(None, INT),
        ValueError,
        "the constant 1 stands where a value of type `( -> int32)` is needed [E461]\n"
        "  help: give a computation",
    ),
    "too few elements": (
        [1],
        [INT, INT],
        TypeError,
        "Type `<int32>` is not assignable to expected type `<int32,int32>` [E101]\n"
        "  help: give a struct of 2, not of 1",
    ),
    "too many elements": (
        [1, 2],
        [INT],
        TypeError,
        "Type `<int32,int32>` is not assignable to expected type `<int32>` [E101]\n"
        "  help: give a struct of 1, not of 2",
    ),
    "other names": (
        {"a": 1},
        [("b", INT)],
        TypeError,
        "Type `<a=int32>` is not assignable to expected type `<b=int32>` [E101]\n"
        "  help: name the elements b, or leave out the names",
    ),
    "a list for a sequence": (
        [1],
        tff.SequenceType(INT),
        TypeError,
        "Type `<int32>` is not assignable to expected type `int32*` [E101]\n"
        "  help: make it a sequence in a TensorFlow computation, with "
        "tf.data.Dataset.from_tensor_slices(x)",
    ),
}


@pytest.mark.parametrize("case", TARGETS_REFUSED)
def test_targets_refused(case: str) -> None:
    source, target, builtin, text = TARGETS_REFUSED[case]
    assert str(error_without_place(builtin, lambda: tff.to_value(source, target))) == text


def test_inferred_types() -> None:
    value = {"a": [1, (2.0, "s")], "b": np.zeros([2, 3]), "c": fc(lambda: 1)}
    assert str(infer_type(value)) == "<a=<int32,<float32,str>>,b=float64[2,3],c=( -> int32)>"
