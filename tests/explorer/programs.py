"""Large rounds for the explorer, made without TensorFlow."""

from __future__ import annotations

import numpy as np

import tffc as tff
from tffc.language import Compiled, DType, Node, StructType, TensorType
from tffc.language.array import to_array
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.builder import GraphBuilder

FLOAT = TensorType(DType.FLOAT32)


def halve() -> Compiled:
    """Return the section `(float32 -> float32)` that halves a number."""
    builder = GraphBuilder()
    half = builder.constant(to_array(np.float32(0.5)))
    return builder.finish(GraphArithmetic(builder).multiply(builder.parameter(FLOAT), half), FLOAT)


def chain(length: int) -> Compiled:
    """Return the section `(<float32,float32> -> float32)` that adds a number `length` times."""
    builder = GraphBuilder()
    given = builder.parameter(StructType([FLOAT, FLOAT]))
    assert isinstance(given, tuple)
    first, second = given
    arithmetic = GraphArithmetic(builder)
    total = first
    for _ in range(length):
        total = arithmetic.plus(total, second)
    return builder.finish(total, FLOAT)


def many_bindings(count: int = 400) -> Node:
    """Return a round of `count` calls: maps of each value, sums and maxima."""
    work = tff.Computation.from_node(halve())

    def run(state: tff.Value, data: tff.Value) -> tuple[tff.Value, tuple[tff.Value, ...]]:
        values = [data]
        for _ in range(count - 20):
            values.append(tff.federated_map(work, values[-1]))
        sums = [tff.federated_sum(value) for value in values[-10:]]
        others = [tff.federated_max(value) for value in values[-10:]]
        return state, (*sums, *others)

    return traced(run)


def large_graph(length: int = 20_000) -> Node:
    """Return a round whose work is one graph of `length` nodes."""
    work = tff.Computation.from_node(chain(length))

    def run(state: tff.Value, data: tff.Value) -> tuple[tff.Value, tff.Value]:
        sent = tff.federated_broadcast(state)
        return state, tff.federated_mean(tff.federated_map(work, (sent, data)))

    return traced(run)


def traced(run: object) -> Node:
    return tff.federated_computation(
        run, tff.types.at_server(np.float32), tff.types.at_clients(np.float32)
    ).node
