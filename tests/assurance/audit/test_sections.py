"""The flow of a graph's result includes every input that changes the result.

Graphs are traced from random lists of steps: arithmetic, choices, loops, variables, functions and
datasets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tffc as tff
from tffc.assurance.audit.flow import Flow, dataset
from tffc.assurance.audit.sections import Draw, SectionWalk
from tffc.language import Compiled
from tffc.runtime.frameworks.sections import run_section
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

VECTOR = tff.TensorType(np.float32, [3])
SCALAR = tff.TensorType(np.float32)
RAGGED = tff.TensorType(np.float32, [None])
PAIRS = tff.SequenceType([("x", np.float32), ("y", np.float32)])
PARAMETER = tff.to_type(
    [("a", VECTOR), ("b", VECTOR), ("s", SCALAR), ("t", SCALAR), ("u", RAGGED), ("d", PAIRS)]
)
A, B, S, T, U, SIZE, X, Y, COUNT = (1 << bit for bit in range(9))
GIVEN = (
    Flow(A),
    Flow(B),
    Flow(S),
    Flow(T),
    Flow(U, SIZE),
    dataset(COUNT, [Flow(X), Flow(Y)]),
)
"""What the leaves of the parameter depend on, each on a source of its own."""


def section_of(function: Callable[..., Any]) -> Compiled:
    """Return a function of the parameter's leaves as a section."""
    traced = tff.tf_computation(lambda p: function(p.a, p.b, p.s, p.t, p.u, p.d), PARAMETER)
    node = traced.node
    assert isinstance(node, Compiled)
    return node


def flows(function: Callable[..., Any], drawn: list[Draw] | None = None) -> list[int]:
    """Return the sources of each result of a function of the parameter's leaves."""

    def source_of(draw: Draw) -> int:
        if drawn is not None:
            drawn.append(draw)
        return COUNT << 1

    found = SectionWalk(section_of(function), source_of).results(GIVEN)
    return [flow.total() for flow in found]


@tf.function
def swapped(first: Any, second: Any) -> Any:
    return second, first + 1.0


@tf.function
def first_of(d: Any) -> Any:
    return next(iter(d))["x"]


def counted(d: Any) -> Any:
    return d.reduce(0.0, lambda n, _: n + 1.0)


def kept(v: Any, initial: Any) -> Any:
    variable = tf.Variable(initial)
    variable.assign(v)
    return variable.read_value()


CASES: dict[str, tuple[Callable[..., Any], Sequence[int]]] = {
    "elements": (lambda a, b, s, t, u, d: (a + b, a * s, tf.zeros_like(a)), (A | B, A | S, 0)),
    "shape": (
        lambda a, b, s, t, u, d: (tf.size(u), tf.size(u * u + s), tf.shape(a)),
        (SIZE, SIZE, 0),
    ),
    "shape and elements": (lambda a, b, s, t, u, d: (tf.reduce_sum(u),), (U | SIZE,)),
    "ones": (lambda a, b, s, t, u, d: (tf.reduce_sum(tf.ones_like(u)),), (SIZE,)),
    "reshape": (lambda a, b, s, t, u, d: (tf.reshape(u, [-1, 1]),), (U | SIZE,)),
    "choice": (lambda a, b, s, t, u, d: (tf.where(s > t, a, b),), (A | B | S | T,)),
    "branch": (lambda a, b, s, t, u, d: (tf.cond(s > 0.0, lambda: a, lambda: b),), (A | B | S,)),
    "constant branch": (
        lambda a, b, s, t, u, d: (tf.cond(s > 0.0, lambda: 1.0, lambda: 2.0),),
        (S,),
    ),
    "loop": (
        lambda a, b, s, t, u, d: tf.while_loop(
            lambda i, v, w: i < s, lambda i, v, w: (i + 1.0, v + 1.0, w), (0.0, a, b)
        ),
        (S, A | S, B),
    ),
    "function": (lambda a, b, s, t, u, d: swapped(a, b), (B, A)),
    "variable": (lambda a, b, s, t, u, d: (kept(a, b),), (A | B,)),
    "count of a dataset": (lambda a, b, s, t, u, d: (counted(d), d.cardinality()), (COUNT, COUNT)),
    "element of a dataset": (
        lambda a, b, s, t, u, d: (
            d.reduce(0.0, lambda n, e: n + e["x"]),
            d.reduce(s, lambda n, e: n),
        ),
        (X | COUNT, S),
    ),
    "map": (
        lambda a, b, s, t, u, d: (
            d.map(lambda e: (e["y"] * s, e["x"])).reduce(0.0, lambda n, e: n + e[0]),
            d.map(lambda e: e["y"]).reduce(0.0, lambda n, q: n + 1.0),
        ),
        (Y | S | COUNT, COUNT),
    ),
    "filter": (
        lambda a, b, s, t, u, d: (
            counted(d.filter(lambda e: e["x"] > t)),
            d.filter(lambda e: e["x"] > t).reduce(0.0, lambda n, e: n + e["y"]),
        ),
        (X | T | COUNT, X | Y | T | COUNT),
    ),
    "batches": (
        lambda a, b, s, t, u, d: (
            counted(d.batch(2)),
            d.batch(2).reduce(0.0, lambda n, e: n + tf.reduce_sum(e["x"])),
            d.batch(2).reduce(0, lambda n, e: n + tf.shape(e["x"])[0]),
        ),
        (COUNT, X | COUNT, COUNT),
    ),
    "an order of a dataset": (
        lambda a, b, s, t, u, d: (d.shuffle(9).take(1).reduce(0.0, lambda n, e: n + e["x"]),),
        (X | COUNT,),
    ),
    "datasets in one": (
        lambda a, b, s, t, u, d: (
            tf.data.Dataset.zip((d.map(lambda e: e["x"]), d.map(lambda e: e["y"]))).reduce(
                0.0, lambda n, e: n + e[1]
            ),
        ),
        (Y | COUNT,),
    ),
    "dataset of a tensor": (
        lambda a, b, s, t, u, d: (
            counted(tf.data.Dataset.from_tensor_slices(u)),
            tf.data.Dataset.from_tensors(a).reduce(0.0, lambda n, v: n + v[0]),
        ),
        (SIZE, A),
    ),
    "datasets of each element": (
        lambda a, b, s, t, u, d: (
            counted(d.flat_map(lambda e: tf.data.Dataset.from_tensor_slices(u))),
            d.flat_map(lambda e: tf.data.Dataset.from_tensors(e["x"] * s)).reduce(
                0.0, lambda n, x: n + x
            ),
        ),
        (SIZE | COUNT, X | S | COUNT),
    ),
    "windows": (
        lambda a, b, s, t, u, d: (
            d.window(2).reduce(0.0, lambda n, e: n + 1.0),
            d.window(2)
            .flat_map(lambda e: e["y"].batch(2))
            .reduce(0.0, lambda n, y: n + tf.reduce_sum(y)),
        ),
        (COUNT, Y | COUNT),
    ),
    "the only element": (
        lambda a, b, s, t, u, d: (
            d.batch(9).get_single_element()["x"],
            tf.data.Dataset.from_tensors((a, b)).get_single_element()[1],
        ),
        (X | COUNT, B),
    ),
    "padded batches": (
        lambda a, b, s, t, u, d: (
            d.padded_batch(2).reduce(0, lambda n, e: n + tf.shape(e["x"])[0]),
        ),
        (COUNT,),
    ),
    "iterator": (
        lambda a, b, s, t, u, d: (first_of(d),),
        (X | COUNT,),
    ),
    "loop over a dataset": (
        lambda a, b, s, t, u, d: d.reduce((0.0, a), lambda n, e: (n[0] + e["y"], n[1])),
        (Y | COUNT, A),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_flow(name: str) -> None:
    function, expected = CASES[name]
    assert flows(function) == list(expected)


def test_draws_are_sources() -> None:
    drawn: list[Draw] = []

    def function(a: Any, b: Any, s: Any, t: Any, u: Any, d: Any) -> Any:
        return a + tf.random.normal([3]), b + tf.random.stateless_normal([3], [1, 2]), s

    assert flows(function, drawn) == [A | COUNT << 1, B | COUNT << 1, S]
    assert {(each.operation, each.is_fresh) for each in drawn} == {
        ("RandomStandardNormal", True),
        ("StatelessRandomNormalV2", False),
    }


# Drawn graphs.


def clipped(value: Any) -> Any:
    return tf.clip_by_value(tf.where(tf.math.is_finite(value), value, 0.0), -4.0, 4.0)


VECTORS: list[Callable[..., Any]] = [
    lambda v, w, s, t, d: v + w,
    lambda v, w, s, t, d: v * s,
    lambda v, w, s, t, d: tf.where(v > w, w, t),
    lambda v, w, s, t, d: tf.cond(s > t, lambda: v, lambda: w * 2.0),
    lambda v, w, s, t, d: tf.while_loop(
        lambda i, x: i < s, lambda i, x: (i + 1.0, x + w), (0.0, v)
    )[1],
    lambda v, w, s, t, d: tf.concat([v[:1], w[1:]], 0),
    lambda v, w, s, t, d: tf.gather(v, tf.argsort(w)),
    lambda v, w, s, t, d: swapped(v, w)[1],
    lambda v, w, s, t, d: kept(v, w),
    lambda v, w, s, t, d: tf.linalg.matvec(tf.tensordot(v, w, 0), v),
    lambda v, w, s, t, d: tf.scan(lambda x, y: x + y, v),
    lambda v, w, s, t, d: tf.map_fn(lambda y: y * t, w),
    lambda v, w, s, t, d: tf.reverse(v, [0]),
    lambda v, w, s, t, d: tf.zeros_like(v),
]
SCALARS: list[Callable[..., Any]] = [
    lambda v, w, s, t, d: tf.reduce_sum(v),
    lambda v, w, s, t, d: s * t,
    lambda v, w, s, t, d: tf.reduce_max(tf.stack([s, t, v[0]])),
    lambda v, w, s, t, d: counted(d),
    lambda v, w, s, t, d: d.reduce(s, lambda n, e: n + e["x"]),
    lambda v, w, s, t, d: d.reduce((s, t), lambda n, e: (n[1], n[0] + e["y"]))[0],
    lambda v, w, s, t, d: tf.cast(tf.argmax(v), tf.float32),
    lambda v, w, s, t, d: tf.case([(s > t, lambda: s), (s < 0.0, lambda: t)], lambda: v[0]),
]
DATASETS: list[Callable[..., Any]] = [
    lambda v, w, s, t, d: d.map(lambda e: {"x": e["y"], "y": e["x"] + s}),
    lambda v, w, s, t, d: d.filter(lambda e: e["x"] > t),
    lambda v, w, s, t, d: d.batch(2).unbatch(),
    lambda v, w, s, t, d: d.take(1),
    lambda v, w, s, t, d: d.concatenate(d),
    lambda v, w, s, t, d: d.take(tf.cast(s, tf.int64)),
    lambda v, w, s, t, d: d.flat_map(
        lambda e: tf.data.Dataset.from_tensor_slices({"x": v, "y": w + e["y"]})
    ),
    lambda v, w, s, t, d: d.scan(t, lambda n, e: (n + e["x"], {"x": n, "y": e["y"]})),
    lambda v, w, s, t, d: d.take_while(lambda e: e["y"] < s),
    lambda v, w, s, t, d: tf.data.Dataset.from_tensor_slices({"x": v, "y": w}),
]


@st.composite
def graphs(draw: Any) -> Callable[..., Any]:
    """Return a function of the parameter's leaves that does these steps in order."""
    steps = draw(
        st.lists(st.tuples(st.integers(0, 2), *[st.integers(0, 99)] * 6), min_size=3, max_size=9)
    )

    def function(a: Any, b: Any, s: Any, t: Any, u: Any, d: Any) -> Any:
        vectors, datasets = [a, b], [d]
        scalars = [s, t, clipped(tf.reduce_sum(u)), tf.cast(tf.size(u), tf.float32)]
        for kind, which, *picks in steps:
            operands = [
                pool[pick % len(pool)]
                for pool, pick in zip(
                    (vectors, vectors, scalars, scalars, datasets), picks, strict=True
                )
            ]
            table = (VECTORS, SCALARS, DATASETS)[kind]
            made = table[which % len(table)](*operands)
            if kind == 2:
                datasets.append(made.take(6))
            else:
                (vectors, scalars)[kind].append(clipped(made))
        return vectors[-1], scalars[-1], vectors[0] + scalars[-1], counted(datasets[-1])

    return function


FLOATS = st.integers(-4, 4).map(float)
ROWS = st.lists(st.tuples(FLOATS, FLOATS), max_size=3)
DATA = st.tuples(
    st.lists(FLOATS, min_size=3, max_size=3),
    st.lists(FLOATS, min_size=3, max_size=3),
    FLOATS,
    FLOATS,
    st.lists(FLOATS, max_size=4),
    ROWS,
)


def changes(one: Any, other: Any) -> Iterator[tuple[int, Any]]:
    """Yield data with one part replaced, and the source of that part."""
    for at, bit in enumerate((A, B, S, T)):
        yield bit, (*one[:at], other[at], *one[at + 1 :])
    longer = [*one[4], *other[4]]
    yield U, (*one[:4], (other[4] * 4 + one[4])[: len(one[4])], one[5])
    yield SIZE | U, (*one[:4], longer, one[5])
    others = other[5] * 3 or one[5]
    yield X, (*one[:5], [(p, y) for (_, y), (p, _) in zip(one[5], others, strict=False)])
    yield Y, (*one[:5], [(x, q) for (x, _), (_, q) in zip(one[5], others, strict=False)])
    yield COUNT | X | Y, (*one[:5], [*one[5], *other[5]])


@pytest.mark.slow
@given(graphs(), DATA, DATA)
def test_what_changes_a_result_is_in_its_flow(
    function: Callable[..., Any], one: Any, other: Any
) -> None:
    section = section_of(function)
    found = SectionWalk(section, lambda _: 0).results(GIVEN)
    before = run_section(section, arguments(one))
    for bits, changed in changes(one, other):
        after = run_section(section, arguments(changed))
        for flow, first, second in zip(found, before, after, strict=True):
            if not flow.total() & bits:
                np.testing.assert_array_equal(first, second)


def arguments(data: Any) -> tuple[Any, ...]:
    *tensors, rows = data
    pairs = [tuple(np.float32(each) for each in row) for row in rows]
    return (*(np.array(each, np.float32) for each in tensors), pairs)
