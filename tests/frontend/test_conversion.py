"""Python objects as values: arguments, constants and results."""

from __future__ import annotations

import collections
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


def test_inferred_types() -> None:
    value = {"a": [1, (2.0, "s")], "b": np.zeros([2, 3]), "c": fc(lambda: 1)}
    assert str(infer_type(value)) == "<a=<int32,<float32,str>>,b=float64[2,3],c=( -> int32)>"
