"""Computations called in Python: they run, and give values in the containers of their types."""

from __future__ import annotations

import collections
import linecache
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frontend.computations import Point
from tests.refusals import error_without_place
from tffc.support.errors import ExecutionError

fc, tfc = tff.federated_computation, tff.tf_computation
Clients, Server = tff.types.at_clients, tff.types.at_server


@fc(Server(int), Clients(int))
def total(start: Any, data: Any) -> Any:
    return [start, tff.federated_sum(data)]


def test_arguments_by_position_and_by_name() -> None:
    assert total(1, [1, 2, 3]) == [1, 6]
    assert total(data=[1, 2, 3], start=1) == [1, 6]
    assert total((1, [])) == [1, 0]


def test_one_argument_is_the_argument() -> None:
    assert fc(lambda p: p[1], (int, float))((1, 2.5)) == 2.5
    assert fc(lambda x: x, int)(7) == 7
    assert fc(lambda: 7)() == 7


CONTAINERS = {
    "list": lambda x: [x, x],
    "tuple": lambda x: (x, x),
    "dict": lambda x: {"a": x, "b": x},
    "OrderedDict": lambda x: collections.OrderedDict(b=x, a=x),
    "Point": lambda x: Point(x, x),
    "Struct": lambda x: tff.structure.Struct([("a", x), (None, x)]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_results(name: str) -> None:
    make = CONTAINERS[name]
    result = fc(make, int)(3)
    assert type(result).__name__ == name
    assert result == make(np.int32(3))


def test_polymorphic_computations_run() -> None:
    swap = fc(lambda a, b: (b, a))
    assert swap(1, b=2.5) == (2.5, 1)
    assert swap("a", True) == (True, b"a")
    double = tfc(lambda a: a * 2)
    assert double(np.array([1, 2], np.int32)).tolist() == [2, 4]


def test_computations_call_each_other() -> None:
    add = tfc(lambda a, b: a + b, int, int)
    assert tfc(lambda x: add(x, add(x, 1)), int)(4) == 9
    assert fc(lambda x: add(x, add(x, 1)), int)(4) == 9


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a missing argument": (
        lambda: total(1),
        TypeError,
        "the argument is 1, but should be of type `<start=int32@SERVER,data={int32}@CLIENTS>` "
        "[E711]",
    ),
    "another type": (
        lambda: fc(lambda x: x, int)(1.0),
        TypeError,
        "the argument is 1.0, but should be of type `int32` [E711]\n"
        "  help: convert it first, for example np.int32(...)",
    ),
    "an unknown name": (
        lambda: total(1, date=[1]),
        TypeError,
        "the computation has no argument named 'date'; its parameter is "
        "`<start=int32@SERVER,data={int32}@CLIENTS>` [E420]\n  help: did you mean 'data'?",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, builtin, text = REFUSED[case]
    assert str(error_without_place(builtin, make)) == text


def test_failures_point_at_the_line_that_fails() -> None:
    import tensorflow as tf

    def check(x: Any) -> Any:
        with tf.control_dependencies([tf.debugging.Assert(x > 0, ["not positive"])]):
            return tf.identity(x)

    positive = tfc(check, int)

    @fc(int)
    def user(x: Any) -> Any:
        return positive(x)

    with pytest.raises(ExecutionError) as caught:
        user(-1)
    span = caught.value.span
    assert span is not None
    assert linecache.getline(span.file, span.line).strip() == "return positive(x)"
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}
