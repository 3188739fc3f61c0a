"""Functions whose kernels keep state: forms and engines share kernels exactly as programs do.

A draw with a seed goes on in its kernel.  Calls of one function that is not inlined share its
kernels, and calls of two functions of equal content do not; so the numbers that a program gives
tell whether a function was joined with another, or split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow

import tffc as tff
from tests.refusals import refusal
from tffc.backends import compile_form
from tffc.runtime.engines.sections import EngineInterpreter
from tffc.runtime.interpreter.interpreter import invoke, run
from tffc.support.errors import GraphError

tf: Any = tensorflow
FLOATS = tff.SequenceType(np.float32)
STATE, DATA = tff.types.at_server(np.float32), tff.types.at_clients(FLOATS)
FORMS = ("mapreduce", "distribute-aggregate")


def draw() -> Any:
    """The next number of a generator with a seed."""
    return tf.random.uniform([], seed=7)


def apart(function: Callable[..., Any]) -> Any:
    """A function of a graph that is not inlined; each time it is another."""
    options = {"autograph": False, "experimental_attributes": {"_noinline": True}}
    return tf.function(function, **options)


def total(data: Any) -> Any:
    """A number that depends on the order of the elements too."""
    return data.reduce(0.0, lambda sum, x: 3 * sum + x)


def two_equal_functions(data: Any) -> Any:
    f, g = apart(draw), apart(draw)
    return f() + 10 * f() + 100 * g() + 1000 * g()


def one_function_called_twice(data: Any) -> Any:
    f = apart(draw)
    return f() + 10 * f()


def functions_that_call_one(data: Any) -> Any:
    f = apart(draw)
    g, h = (apart(lambda: f() + 10 * f()) for _ in range(2))
    return g() + 100 * h() + 1e4 * g()


def inlined_functions(data: Any) -> Any:
    f, g = tf.function(draw, autograph=False), tf.function(draw, autograph=False)
    return f() + 10 * f() + 100 * g()


def retraced_function(data: Any) -> Any:
    f = tf.function(
        lambda x: tf.cast(x, tf.float32) * draw(),
        autograph=False,
        reduce_retracing=True,
        experimental_attributes={"_noinline": True},
    )
    return f(tf.constant(1)) + 10 * f(tf.constant(2.0)) + 100 * f(tf.constant(3))


def mapped_by_equal_functions(data: Any) -> Any:
    return total(data.map(lambda x: x + draw()).map(lambda x: x + draw()))


def mapped_by_callers_of_one(data: Any) -> Any:
    f = apart(draw)
    return total(data.map(lambda x: x + f()).map(lambda x: x + 10 * f()))


def reduced_twice(data: Any) -> Any:
    def reduced() -> Any:
        return data.reduce(0.0, lambda sum, x: 3 * sum + x * draw())

    return reduced() + 100 * reduced()


def reduced_in_a_loop(data: Any) -> Any:
    def step(i: Any, sum: Any) -> Any:
        return i + 1, 10 * sum + data.reduce(0.0, lambda inner, x: inner + draw())

    return tf.while_loop(lambda i, _: i < 3, step, (0, 0.0))[1]


def reduced_in_a_function(data: Any) -> Any:
    f = apart(lambda elements: elements.reduce(0.0, lambda sum, x: sum + draw()))
    return f(data) + 10 * f(data)


def scanned_and_flattened(data: Any) -> Any:
    data = data.scan(1.0, lambda state, x: (state + x, state * draw()))
    return total(data.flat_map(lambda x: data.take(2).map(lambda y: x + y * draw())))


def branches(data: Any) -> Any:
    def drawn() -> Any:
        return tf.cond(total(data) > 0, lambda: draw() + 10 * draw(), draw)

    return drawn() + 100 * drawn()


def branches_of_elements(data: Any) -> Any:
    def drawn(x: Any) -> Any:
        return tf.cond(x > 0, draw, lambda: -draw())

    return total(data.map(lambda x: drawn(x) + 10 * drawn(x)))


def loops_in_functions(data: Any) -> Any:
    def count() -> Any:
        def step(i: Any, sum: Any) -> Any:
            return i + 1, 10 * sum + draw()

        return tf.while_loop(lambda i, _: i < 3, step, (0, 0.0))[1]

    f, g = apart(count), apart(count)
    return f() + 1000 * g() + 1e5 * f()


def tables_of_their_kernels(data: Any) -> Any:
    def count() -> Any:
        table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int32, value_dtype=tf.int32)
        size = tf.raw_ops.LookupTableSizeV2(table_handle=table)
        with tf.control_dependencies([size]):
            tf.raw_ops.LookupTableInsertV2(
                table_handle=table, keys=[tf.cast(size, tf.int32)], values=[1]
            )
        return tf.cast(size, tf.float32)

    f, g = apart(count), apart(count)
    return f() + 10 * f() + 100 * g() + 1000 * g()


def shuffled(data: Any) -> Any:
    return total(data.shuffle(5, seed=3)) + 1000 * total(data.shuffle(5, seed=3))


PROGRAMS = [
    two_equal_functions,
    one_function_called_twice,
    functions_that_call_one,
    inlined_functions,
    retraced_function,
    mapped_by_equal_functions,
    mapped_by_callers_of_one,
    reduced_twice,
    reduced_in_a_loop,
    reduced_in_a_function,
    scanned_and_flattened,
    branches,
    branches_of_elements,
    loops_in_functions,
    tables_of_their_kernels,
    shuffled,
]


def round_of(body: Callable[..., Any]) -> Any:
    """A round whose clients compute the body in two computations of equal content, and again inside
    of another."""
    first, second = (tff.tf_computation(body, FLOATS) for _ in range(2))

    @tff.tf_computation(FLOATS)
    def inside(data: Any) -> Any:
        return first(data) + 7 * first(data) + 11 * second(data)

    @tff.tf_computation(*[np.float32] * 3)
    def join(a: Any, b: Any, c: Any) -> Any:
        return a + 13 * b + 17 * c

    @tff.federated_computation(STATE, DATA)
    def computed(state: Any, data: Any) -> Any:
        parts = [tff.federated_map(each, data) for each in (first, second, inside)]
        return state, tff.federated_sum(tff.federated_map(join, tuple(parts)))

    return computed.node


QUICK = (two_equal_functions, mapped_by_callers_of_one, reduced_in_a_function, branches)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in PROGRAMS],
    ids=lambda body: body.__name__,
)
def test_kernels_are_shared_as_in_the_program(body: Callable[..., Any]) -> None:
    program = round_of(body)
    argument = (0.0, [[1.0, 2.0, 3.0]])
    expected = run(program, argument)
    forms = [compile_form(program, form).decompile() for form in FORMS]
    assert [run(compiled, argument) for compiled in forms] == [expected] * 2
    compiled = forms[0]
    assert invoke(compiled, compiled.type, argument, EngineInterpreter) == expected


@tff.tf_computation(np.float32)
def scaled(x: Any) -> Any:
    return x * draw()


@tff.tf_computation(np.float32)
def scaled_apart(x: Any) -> Any:
    return x * apart(draw)()


@tff.tf_computation(np.float32, np.float32)
def added(x: Any, y: Any) -> Any:
    return 3 * x + y


@tff.tf_computation(np.float32, np.float32)
def added_after_a_draw(x: Any, y: Any) -> Any:
    return 3 * x + y * draw()


@tff.tf_computation(np.float32)
def queued(x: Any) -> Any:
    queue = tf.queue.FIFOQueue(9, [tf.float32], [[]])
    with tf.control_dependencies([queue.enqueue([x])]):
        return tf.cast(queue.size(), tf.float32)


@tff.tf_computation(np.float32)
def shuffled_elements(x: Any) -> Any:
    return tf.random.shuffle(tf.stack([x, 2 * x, 3 * x]), seed=5)[0]


@pytest.mark.parametrize(
    ("mapped", "reduced"),
    [
        (scaled, added),
        (scaled_apart, added),
        (queued, added),
        (shuffled_elements, added),
        (None, added_after_a_draw),
    ],
)
def test_what_elements_would_share_is_refused(mapped: Any, reduced: Any) -> None:
    """The graph of a sequence has one kernel for all elements; each call would need its own."""
    zero = tff.tf_computation(lambda: 0.0)

    @tff.federated_computation(FLOATS)
    def work(data: Any) -> Any:
        elements = data if mapped is None else tff.sequence_map(mapped, data)
        return tff.sequence_reduce(elements, zero(), reduced)

    @tff.federated_computation(STATE, DATA)
    def computed(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(work, data))

    text = refusal(GraphError, compile_form, computed.node, "mapreduce")
    assert "E745" in text
    argument = (0.0, [[1.0, 2.0, 3.0], [4.0, 5.0]])
    decompiled = compile_form(computed.node, "distribute-aggregate").decompile()
    assert run(decompiled, argument) == run(computed.node, argument)


def test_draws_of_an_aggregation_start_anew() -> None:
    zero, report = tff.tf_computation(draw), tff.tf_computation(lambda x: x * draw(), np.float32)

    @tff.federated_computation(STATE, tff.types.at_clients(np.float32))
    def computed(state: Any, data: Any) -> Any:
        parts = (zero(), added_after_a_draw, added_after_a_draw, report)
        return state, tff.federated_aggregate(data, *parts)

    argument = (0.0, [1.0, 2.0])
    for form in FORMS:
        compiled = compile_form(computed.node, form).decompile()
        assert run(compiled, argument) == run(computed.node, argument)
