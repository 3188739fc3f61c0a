"""Rounds of any size, written against a module `tff`, so that both sides trace the same code.

Each is of type `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np


def chain(tff: Any, size: int) -> Any:
    """Return `size` maps in a row, and one sum."""
    step, both = _functions(tff)

    @tff.federated_computation(tff.FederatedType(np.float32, tff.SERVER), _clients(tff))
    def each_round(state: Any, data: Any) -> Any:
        value = tff.federated_map(both, (data, tff.federated_broadcast(state)))
        for _ in range(size):
            value = tff.federated_map(step, value)
        total = tff.federated_sum(value)
        return tff.federated_map(both, (state, total)), total

    return each_round


def aggregations(tff: Any, size: int) -> Any:
    """Return `size` sums, each of a value that is mapped twice."""
    step, both = _functions(tff)

    @tff.federated_computation(tff.FederatedType(np.float32, tff.SERVER), _clients(tff))
    def each_round(state: Any, data: Any) -> Any:
        sent = tff.federated_broadcast(state)
        new = state
        for _ in range(size):
            value = tff.federated_map(step, tff.federated_map(both, (data, sent)))
            new = tff.federated_map(both, (new, tff.federated_sum(value)))
        return new, new

    return each_round


def wide(tff: Any, size: int) -> Any:
    """Return a model of `size` tensors, one step at the clients and one mean."""
    names = [f"w{i}" for i in range(size)]
    model = tff.StructType([(name, tff.TensorType(np.float32, [8])) for name in names])

    @tff.tensorflow.computation(model, np.float32)
    def work(weights: Any, factor: Any) -> Any:
        return collections.OrderedDict((n, weights[i] * factor) for i, n in enumerate(names))

    @tff.tensorflow.computation(model, model)
    def update(weights: Any, delta: Any) -> Any:
        return collections.OrderedDict((n, weights[i] + delta[i]) for i, n in enumerate(names))

    @tff.federated_computation(tff.FederatedType(model, tff.SERVER), _clients(tff))
    def each_round(state: Any, data: Any) -> Any:
        sent = tff.federated_broadcast(state)
        delta = tff.federated_mean(tff.federated_map(work, (sent, data)))
        return tff.federated_map(update, (state, delta)), delta

    return each_round


def server_chain(tff: Any, size: int) -> Any:
    """Return `size` maps in a row at the server."""
    step, both = _functions(tff)

    @tff.federated_computation(tff.FederatedType(np.float32, tff.SERVER), _clients(tff))
    def each_round(state: Any, data: Any) -> Any:
        new = tff.federated_map(both, (state, tff.federated_sum(data)))
        for _ in range(size):
            new = tff.federated_map(step, new)
        return new, new

    return each_round


def sums(tff: Any, size: int) -> Any:
    """Return `size` sums of what each client holds."""

    @tff.federated_computation(tff.FederatedType(np.float32, tff.SERVER), _clients(tff))
    def each_round(state: Any, data: Any) -> Any:
        totals = [tff.federated_sum(data) for _ in range(size)]
        return state, tff.federated_zip(tuple(totals))

    return each_round


def secure_sums(tff: Any, size: int) -> Any:
    """Return `size` secure sums of what each client holds."""

    @tff.federated_computation(
        tff.FederatedType(np.float32, tff.SERVER), tff.FederatedType(np.int32, tff.CLIENTS)
    )
    def each_round(state: Any, data: Any) -> Any:
        totals = [tff.federated_secure_sum_bitwidth(data, 8) for _ in range(size)]
        return state, tff.federated_zip(tuple(totals))

    return each_round


def fields(tff: Any, size: int) -> Any:
    """Return a state of `size` fields, selected one by one and zipped again."""
    state_type = tff.StructType([(f"f{i}", np.float32) for i in range(size)])

    @tff.federated_computation(tff.FederatedType(state_type, tff.SERVER), _clients(tff))
    def each_round(state: Any, data: Any) -> Any:
        chosen = collections.OrderedDict((f"f{i}", state[i]) for i in range(size))
        return tff.federated_zip(chosen), tff.federated_sum(data)

    return each_round


def _functions(tff: Any) -> tuple[Any, Any]:
    """Return a function of one number, and one of two."""

    @tff.tensorflow.computation(np.float32)
    def step(x: Any) -> Any:
        return x * 1.5 + 1.0

    @tff.tensorflow.computation(np.float32, np.float32)
    def both(x: Any, y: Any) -> Any:
        return x + y

    return step, both


def _clients(tff: Any) -> Any:
    return tff.FederatedType(np.float32, tff.CLIENTS)


PROGRAMS = {
    "chain": chain,
    "aggregations": aggregations,
    "wide": wide,
    "server-chain": server_chain,
    "sums": sums,
    "secure-sums": secure_sums,
    "fields": fields,
}
