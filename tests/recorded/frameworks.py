"""More programs: what TensorFlow computations hold and refuse, and JAX computations."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.recorded.operators import tensorflow
from tests.recorded.programs import (
    FLOAT,
    INT,
    LONG,
    PAIR,
    STR,
    Language,
    OrderedDict,
    Point,
    Program,
)


def of_another_graph(tf: Any) -> Any:
    with tf.Graph().as_default():
        return tf.constant(1)


def outside(make: Callable[[Any], Any], use: Callable[[Any], Any] = lambda x: x) -> Program:
    """A program that uses something that TensorFlow made before it."""

    def run(t: Language, tf: Any) -> Any:
        made = make(tf)
        return t.tfc(lambda: use(made))

    return tensorflow(run)


def leaked(t: Language, use: Callable[[Any, Any], Any]) -> Any:
    kept: list[Any] = []
    t.tfc(lambda x: (kept.append(x), x)[1], INT)
    return t.tfc(lambda x: use(x, kept[0]), INT)


def looked_up(t: Language, tf: Any) -> Any:
    def look_up(x: Any) -> Any:
        rows = tf.lookup.KeyValueTensorInitializer(["a"], [1])
        return tf.lookup.StaticHashTable(rows, -1).lookup(x)

    return t.tfc(look_up, (STR, [2]))


def rows_gradient(t: Language, tf: Any) -> Any:
    def gradient(row: Any) -> Any:
        rows = tf.Variable([[1.0], [2.0]])
        with tf.GradientTape() as tape:
            found = tf.gather(rows, [row])
        return tape.gradient(found, rows)

    return t.tfc(gradient, INT)


def iterated(t: Language, tf: Any) -> Any:
    @tf.function
    def total(elements: Any) -> Any:
        found = 0
        for element in elements:
            found += element
        return found

    return t.tfc(lambda d: total(d), t.sequence(INT))


def dense(t: Language, tf: Any) -> Any:
    return t.tfc(lambda x: tf.keras.layers.Dense(2)(x), (FLOAT, [None, 3]))


GRAPHS: dict[str, Program] = {
    "a tensor of outside": outside(lambda tf: tf.constant(1)),
    "a sum with a tensor of outside": outside(lambda tf: tf.constant(1), lambda x: x + 1),
    "a variable of outside": outside(lambda tf: tf.Variable(1)),
    "a sum with a variable of outside": outside(lambda tf: tf.Variable(1), lambda x: x + 1),
    "a dataset of outside": outside(lambda tf: tf.data.Dataset.range(3)),
    "a dataset of outside, reduced": outside(
        lambda tf: tf.data.Dataset.range(3),
        lambda d: d.reduce(np.int64(0), lambda a, b: a + b),
    ),
    "a tensor of another graph": outside(of_another_graph),
    "a sum with a tensor of another graph": outside(of_another_graph, lambda x: x + 1),
    "a tensor of another trace": lambda t: leaked(t, lambda x, y: y),
    "a sum with a tensor of another trace": lambda t: leaked(t, lambda x, y: x + y),
    "a value of a federated trace": lambda t: t.fc(lambda x: t.tfc(lambda: x)(), INT),
    "a sum with a value of a federated trace": lambda t: t.fc(
        lambda x: t.tfc(lambda y: y + x, INT)(x), INT
    ),
    "a table": tensorflow(looked_up),
    "a layer of Keras": tensorflow(dense),
    "a gradient of rows": tensorflow(rows_gradient),
    "a dataset iterated over": tensorflow(iterated),
    "a condition": tensorflow(
        lambda t, tf: t.tfc(lambda x: tf.cond(x > 0, lambda: x, lambda: -x), INT)
    ),
    "a loop": tensorflow(
        lambda t, tf: t.tfc(lambda x: tf.while_loop(lambda i: i < x, lambda i: [i + 1], [0]), INT)
    ),
    "a Python condition": lambda t: t.tfc(lambda x: x if x > 0 else -x, INT),
    "a Python loop over a tensor": lambda t: t.tfc(lambda x: list(x), (INT, [3])),
    "a signature of its own": tensorflow(
        lambda t, tf: t.tfc(
            tf.function(lambda x: x, input_signature=[tf.TensorSpec([], tf.int32)]), INT
        )
    ),
    "a dataset of another shape": lambda t: t.tfc(lambda d: d.batch(2), t.sequence(INT)),
    "a dataset of structs made": lambda t: t.tfc(
        lambda d: d.map(lambda x: OrderedDict(q=x, p=(x, x))), t.sequence(INT)
    ),
    "a dataset of datasets": lambda t: t.tfc(lambda d: d.window(2), t.sequence(INT)),
    "a dataset of ragged tensors": tensorflow(
        lambda t, tf: t.tfc(
            lambda d: d.map(lambda x: tf.ragged.constant([[1], [2, 3]])), t.sequence(INT)
        )
    ),
    "a dataset of sparse tensors": tensorflow(
        lambda t, tf: t.tfc(lambda d: d.map(lambda x: tf.sparse.from_dense([x])), t.sequence(INT))
    ),
    "a ragged type": tensorflow(
        lambda t, tf: t.tfc(lambda x: x, tf.RaggedTensorSpec([None, None], tf.int32))
    ),
    "a call that makes a table": tensorflow(
        lambda t, tf: t.tfc(lambda x: looked_up(t, tf)(x), (STR, [2]))
    ),
    "a call with a wide constant": lambda t: t.tfc(lambda: t.ident(np.int64(1))),
    "a call with a mapping": lambda t: t.tfc(lambda x: t.add(OrderedDict(a=x, b=x)), INT),
    "a call with a mapping in another order": lambda t: t.tfc(
        lambda x: t.add(OrderedDict(b=x, a=x)), INT
    ),
    "a call with a less known shape": lambda t: t.tfc(
        lambda x: t.tfc(lambda y: y, (INT, [3]))(x), (INT, [None])
    ),
    "a computation returned": lambda t: t.tfc(lambda: t.ident),
    "a placement returned": lambda t: t.tfc(lambda: t.tff.CLIENTS),
    "a name with a slash": lambda t: t.tfc(lambda x: x, [("a/b", INT)]),
    "a name of digits": lambda t: t.tfc(lambda x: x, [("1", INT)]),
}


def jax(function: Any, *types: Any) -> Program:
    return lambda t: t.tff.jax.computation(function, *types)


def module(name: str) -> Any:
    """A module of JAX, which is loaded when a program runs."""
    return importlib.import_module(name)


JAX: dict[str, Program] = {
    "a tensor": jax(lambda x: x + 1, INT),
    "two tensors": jax(lambda x, y: x - y, INT, INT),
    "names in another order": jax(lambda b, a: b, OrderedDict(b=INT, a=FLOAT)),
    "no parameter": jax(lambda: 3),
    "nested results": jax(lambda x: [x, (x, x), ()], INT),
    "an ordered dictionary": jax(lambda x: OrderedDict(b=x, a=x), INT),
    "a dictionary": jax(lambda x: {"b": x, "a": x}, INT),
    "a namedtuple": jax(lambda p: Point(p.y, p.x), Point(INT, FLOAT)),
    "a struct": jax(lambda p: p.b, PAIR),
    "an empty struct": jax(lambda p: p, ()),
    "vectors": jax(lambda x: module("jax.numpy").outer(x, x), (FLOAT, [3])),
    "small numbers": jax(lambda x, y: [x, y], np.int8, np.float16),
    "complex numbers": jax(lambda x: x, np.complex64),
    "a gradient": jax(lambda x: module("jax").grad(lambda y: y * y)(x), FLOAT),
    "Python numbers": jax(lambda: [1, 2.5, True, 1j]),
    "a wide array": jax(lambda: np.arange(3)),
    "wide numbers": jax(lambda x: x, LONG),
    "strings": jax(lambda x: x, STR),
    "an unknown size": jax(lambda x: x, (INT, [None])),
    "an unknown rank": jax(lambda x: x, (INT, None)),
    "a sequence": lambda t: t.tff.jax.computation(lambda x: x, t.sequence(INT)),
    "a federated value": lambda t: t.tff.jax.computation(lambda x: x, t.clients(INT)),
    "nothing returned": jax(lambda x: None, INT),
    "a string returned": jax(lambda x: "a", INT),
    "a set returned": jax(lambda x: {1}, INT),
    "a default": jax(lambda x=1: x, INT),
    "a Python condition": jax(lambda x: x if x > 0 else -x, INT),
    "a call of TensorFlow": lambda t: t.tff.jax.computation(lambda x: t.ident(x), INT),
    "an operator": lambda t: t.tff.jax.computation(lambda x: t.tff.federated_sum(x), INT),
    "a map": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.tff.jax.computation(lambda y: y + 1, INT), x),
        t.clients(INT),
    ),
    "a call by name": lambda t: t.fc(
        lambda x: t.tff.jax.computation(lambda b, a: b, INT, INT)(a=x, b=1), INT
    ),
    "a call in TensorFlow": lambda t: t.tfc(
        lambda x: t.tff.jax.computation(lambda y: y, INT)(x), INT
    ),
}
