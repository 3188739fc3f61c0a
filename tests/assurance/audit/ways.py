"""Ways in which a write to a state may run: for a number, under a decision on it, or so often."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.assurance.audit.states import State, after
from tffc.frontend import eager_semantics
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

Write = Callable[[Any], Any]
Way = Callable[[Write, Any], Any]


plain = tf.autograph.experimental.do_not_convert
"""Lets a function be traced as it is, which is faster."""


def done(operation: Any, result: Any) -> Any:
    """Return a result after an operation."""
    with after(operation):
        return tf.identity(result)


def number(x: Any) -> Any:
    return tf.cast(x, tf.int32)


def value(write: Write, x: Any) -> Any:
    return write(x)


def branch(write: Write, x: Any) -> Any:
    return tf.cond(x > 1.0, lambda: done(write(tf.constant(9.0)), 1), lambda: tf.constant(0))


def other_branch(write: Write, x: Any) -> Any:
    return tf.cond(
        x > 1.0,
        lambda: done(write(tf.constant(9.0)), 1),
        lambda: done(write(tf.constant(4.0)), 1),
    )


def case(write: Write, x: Any) -> Any:
    which = tf.clip_by_value(number(x), 0, 2)
    none = [lambda: tf.constant(0)] * 2
    return tf.switch_case(which, [lambda: done(write(tf.constant(9.0)), 1), *none])


def loop(write: Write, x: Any) -> Any:
    return tf.while_loop(
        lambda i: i < x, lambda i: [done(write(i + 3.0), i + 1.0)], [tf.constant(0.0)]
    )


def loop_in_function(write: Write, x: Any) -> Any:
    @tf.function(autograph=False)
    def function(x: Any) -> Any:
        return loop(write, x)[0]

    return function(x)


def called(write: Write, x: Any) -> Any:
    @tf.function(autograph=False, experimental_attributes={"_noinline": True})
    def function(x: Any) -> Any:
        return branch(write, x)

    return function(x)


def called_with_value(write: Write, x: Any) -> Any:
    @tf.function(autograph=False)
    def function(x: Any) -> Any:
        return done(write(x), 1)

    return function(x)


def as_often(write: Write, x: Any) -> Any:
    return tf.data.Dataset.range(tf.cast(x, tf.int64)).reduce(
        0, plain(lambda n, each: done(write(tf.cast(each, tf.float32) + 3.0), n + 1))
    )


def mapped(write: Write, x: Any) -> Any:
    counted = tf.data.Dataset.range(tf.cast(x, tf.int64))
    written = counted.map(plain(lambda each: done(write(tf.cast(each, tf.float32) + 3.0), each)))
    return written.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n + each))


def filtered(write: Write, x: Any) -> Any:
    passed = tf.data.Dataset.range(3).filter(plain(lambda each: tf.cast(each, tf.float32) < x))
    return passed.reduce(0, plain(lambda n, each: done(write(tf.constant(6.0)), n + 1)))


def flattened(write: Write, x: Any) -> Any:
    inner = tf.data.Dataset.range(2).flat_map(
        lambda _: tf.data.Dataset.range(tf.cast(x, tf.int64)).map(
            plain(lambda other: done(write(tf.constant(6.0)), other))
        )
    )
    return inner.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n + each))


def switched(write: Write, x: Any) -> Any:
    """Write after one side of a Switch."""
    sides = tf.raw_ops.Switch(data=tf.constant(0.0), pred=x > 1.0)
    yes, no = tf.identity(sides.output_true), tf.identity(sides.output_false)
    with after(yes):
        nine = tf.constant(9.0)
        written = done(write(nine), nine)
    return tf.raw_ops.Merge(inputs=[written, no]).output


def switched_value(write: Write, x: Any) -> Any:
    """Write the side of a Switch that is the secret number."""
    sides = tf.raw_ops.Switch(data=x, pred=x > 0.5)
    written = done(write(sides.output_true), sides.output_true)
    return tf.raw_ops.Merge(inputs=[written, tf.identity(sides.output_false)]).output


def old_branch(write: Write, x: Any) -> Any:
    with old_control_flow():
        return tf.compat.v1.cond(
            x > 1.0, lambda: done(write(tf.constant(9.0)), 1), lambda: tf.constant(0)
        )


def old_loop(write: Write, x: Any) -> Any:
    with old_control_flow():
        return tf.compat.v1.while_loop(
            lambda i: i < x, lambda i: [done(write(i + 3.0), i + 1.0)], [tf.constant(0.0)]
        )


@contextlib.contextmanager
def old_control_flow() -> Iterator[None]:
    """Have branches and loops made of Switch, Merge, Enter and Exit.

    Their builders ask with `==` whether two tensors are one object.
    """
    was_new = tf.compat.v1.control_flow_v2_enabled()
    tf.compat.v1.disable_control_flow_v2()
    try:
        with eager_semantics._comparing(by_value=False):
            yield
    finally:
        if was_new:
            tf.compat.v1.enable_control_flow_v2()


WAYS: dict[str, Way] = {
    "value": value,
    "branch": branch,
    "other branch": other_branch,
    "case": case,
    "loop": loop,
    "loop in a function": loop_in_function,
    "function": called,
    "function with the value": called_with_value,
    "reduce": as_often,
    "map": mapped,
    "filter": filtered,
    "flat_map": flattened,
    "switch": switched,
    "value of a switch": switched_value,
    "branch of TensorFlow 1": old_branch,
    "loop of TensorFlow 1": old_loop,
}

AT_THE_TOP = ("value", "switch", "value of a switch", "branch of TensorFlow 1",
              "loop of TensorFlow 1")  # fmt: skip
"""The ways that leave the write in the graph itself, where references can be used."""

MANY = ("loop", "loop in a function", "reduce", "map", "filter", "flat_map", "loop of TensorFlow 1")
"""The ways that write more than once."""

ALWAYS = ("value", "function with the value", "other branch")
"""The ways that write whatever the number is."""


def fit(state: State) -> list[str]:
    """Return the ways that a kind of state can be written in."""
    return [
        name
        for name in WAYS
        if not (state.is_reference and name not in AT_THE_TOP)
        and not (state.is_once and name in MANY)
        and not (state.waits and name not in ALWAYS)
    ]
