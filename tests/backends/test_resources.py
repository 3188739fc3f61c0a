"""State inside TensorFlow code: each call has separate state, also in a form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.backends import compile_form
from tffc.runtime.interpreter.interpreter import run

STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)


@tff.tf_computation(np.int32)
def count_up(x: Any) -> Any:
    """Ten plus `x`, computed with a variable that starts at ten."""
    counter: Any = tf.Variable(tf.constant(10), name="counter")
    with tf.control_dependencies([counter.assign_add(x)]):
        return counter.read_value()


@tff.tf_computation(np.int32)
def look_up(x: Any) -> Any:
    """The square of 0, 1 or 2, from a table."""
    entries = tf.lookup.KeyValueTensorInitializer(tf.range(3), tf.range(3) ** 2)
    return tf.lookup.StaticHashTable(entries, -1).lookup(x)


@tff.tf_computation(np.int32)
def sum_below(x: Any) -> Any:
    """The sum of the numbers below `x`, reduced from a dataset."""
    numbers = tf.data.Dataset.range(tf.cast(x, tf.int64))
    # TensorFlow's stubs do not know datasets of tensors.
    return numbers.reduce(0, lambda total, n: total + tf.cast(n, tf.int32))  # pyright: ignore[reportArgumentType]  # TensorFlow takes numbers, too


@pytest.mark.slow
@pytest.mark.parametrize(("local", "of_two"), [(count_up, 12), (look_up, 4), (sum_below, 1)])
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_two_calls_at_each_place(form: str, local: Any, of_two: int) -> None:
    @tff.federated_computation(STATE, DATA)
    def twice(state: Any, data: Any) -> Any:
        here = [tff.federated_map(local, state), tff.federated_map(local, state)]
        there = [tff.federated_map(local, data), tff.federated_map(local, data)]
        return state, [here, [tff.federated_sum(value) for value in there]]

    program = twice.node
    expected = run(program, (2, [0, 1, 2]))
    assert run(compile_form(program, form).decompile(), (2, [0, 1, 2])) == expected
    assert list(expected[1][0]) == [of_two, of_two]
