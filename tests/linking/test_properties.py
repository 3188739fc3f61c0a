"""Random graphs of calls, run by TensorFlow, against the same calls in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.linking.sections import graph_of, link, run, struct, tf, trace
from tffc.language.array import to_array
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import TensorType
from tffc.linking.arithmetic import GraphArithmetic

INT = TensorType(DType.INT32)
PAIR = struct(INT, INT)
LIMIT = 1009
"""Results are taken modulo this, so that they stay small."""


def _counted(x: Any) -> Any:
    return tf.Variable(3).assign_add(x) % LIMIT


def _kept(x: Any) -> Any:
    return tf.Variable(x).assign_add(x) % LIMIT


def _branched(x: Any) -> Any:
    return tf.cond(x > 500, lambda: x - 500, lambda: x + 1)


@functools.cache
def unary() -> list[tuple[Compiled, Callable[[int], int]]]:
    """Sections of one number, and what they are in Python."""
    return [
        (trace(_counted, INT, INT, initialize=True), lambda x: (3 + x) % LIMIT),
        (trace(_kept, INT, INT, initialize=True), lambda x: 2 * x % LIMIT),
        (trace(_branched, INT, INT), lambda x: x - 500 if x > 500 else x + 1),
        (trace(tf.function(lambda x: x * x % LIMIT), INT, INT), lambda x: x * x % LIMIT),
    ]


@functools.cache
def combine() -> Compiled:
    """A section of two numbers with two results."""
    return trace(lambda x, y: ((x + y) % LIMIT, (x * y) % LIMIT), PAIR, PAIR)


steps = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 1000), st.integers(0, 1000)), max_size=12
)


def body(plan: list[tuple[int, int, int]], builder: Any, argument: Any) -> list[Any]:
    """All values of a plan, each made of earlier ones."""
    values = list(argument)
    for kind, first, second in plan:
        x, y = values[first % len(values)], values[second % len(values)]
        if kind < 4:
            values.append(builder.call(unary()[kind][0], x))
        elif kind == 4:
            values.extend(builder.call(combine(), (x, y)))
        elif kind == 5:
            values.append(builder.constant(to_array(second)))
        else:
            limit = builder.constant(to_array(LIMIT))
            values.append(
                GraphArithmetic(builder).floor_mod(GraphArithmetic(builder).plus(x, y), limit)
            )
    return values


def expected(plan: list[tuple[int, int, int]], argument: tuple[int, int]) -> list[int]:
    """The values of a plan, in Python."""
    values = list(argument)
    for kind, first, second in plan:
        x, y = values[first % len(values)], values[second % len(values)]
        if kind < 4:
            values.append(unary()[kind][1](x))
        elif kind == 4:
            values.extend(((x + y) % LIMIT, (x * y) % LIMIT))
        elif kind == 5:
            values.append(second)
        else:
            values.append((x + y) % LIMIT)
    return values


@given(steps, st.integers(0, 1000), st.integers(0, 1000), st.data())
def test_graphs_of_calls(plan: Any, x: int, y: int, data: Any) -> None:
    wanted = expected(plan, (x, y))
    chosen = data.draw(st.lists(st.integers(0, len(wanted) - 1), min_size=1, max_size=4))

    def build(builder: Any, argument: Any) -> Any:
        values = body(plan, builder, argument)
        return tuple(values[index] for index in chosen)

    result = struct(*[INT] * len(chosen))
    linked = link(PAIR, result, build)
    again = link(PAIR, result, lambda b, p: b.call(linked, p))
    assert run(again, (x, y)) == tuple(wanted[index] for index in chosen)
    assert needed(linked) == {node.name for node in graph_of(linked).node}


def needed(section: Compiled) -> set[str]:
    """The nodes that result, parameter and initialization need."""
    nodes = {node.name: node for node in graph_of(section).node}
    found: set[str] = set()
    stack = [name for name in nodes if name.startswith(("arg", "Identity", "init"))]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(edge.lstrip("^").partition(":")[0] for edge in nodes[name].input)
    return found
