"""Rounds that several engines are tried on."""

from __future__ import annotations

from typing import Any

import numpy as np

import tffc as tff
from tffc.backends.compiler import compile_bundle
from tffc.runtime.engines.process import Process

NONE = tff.types.at_server(())
INT = tff.types.at_clients(np.int32)

LIMIT = 50
"""The bound of the secure sum of `bounded`."""


def process_of(computation: Any, form: str = "mapreduce") -> Process:
    return Process(compile_bundle(computation.node, form))


@tff.federated_computation(NONE, tff.types.at_clients([np.float32, np.int32]))
def every_aggregation(state: Any, data: Any) -> Any:
    return state, (
        tff.federated_mean(data[0]),
        tff.federated_mean(data[0], weight=data[0]),
        tff.federated_sum(data[1]),
        tff.federated_min(data[1]),
        tff.federated_max(data[0]),
        tff.federated_secure_sum(data[1], 1000),
        tff.federated_secure_sum_bitwidth(data[1], 10),
    )


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def scaled(state: Any, data: Any) -> Any:
    @tff.tf_computation(np.int32, np.int32)
    def multiply(x: Any, y: Any) -> Any:
        return x * y

    return tff.federated_map(multiply, (tff.federated_broadcast(state), data))


@tff.federated_computation(NONE, INT)
def bounded(state: Any, data: Any) -> Any:
    return state, tff.federated_secure_sum(data, LIMIT)


@tff.tf_computation(np.int32, np.int32)
def difference(key: Any, data: Any) -> Any:
    return key - data


@tff.federated_computation(tff.types.at_server(np.int32), INT)
def personal(key: Any, data: Any) -> Any:
    return tff.federated_map(difference, (tff.federated_broadcast(key), data))


@tff.federated_computation(tff.types.at_server(np.int32), INT)
def adding_up(state: Any, data: Any) -> Any:
    return tff.federated_sum(data), state


@tff.tf_computation(np.int32, np.int32, np.int32)
def tally(key: Any, data: Any, total: Any) -> Any:
    return key + data + total, total + data


@tff.tf_computation(np.int32)
def one_more(key: Any) -> Any:
    return key + 1


@tff.federated_computation(tff.types.at_server(np.int32), INT, INT)
def tallied(key: Any, data: Any, total: Any) -> Any:
    """Each client keeps the total of its data; the sums have it beside the data and the key."""
    sent, kept = tff.federated_map(tally, (tff.federated_broadcast(key), data, total))
    sums = tff.federated_sum(sent), tff.federated_secure_sum_bitwidth(sent, 20)
    return tff.federated_map(one_more, key), kept, sums


@tff.federated_computation(tff.types.at_server(np.int32), INT, INT)
def totals(key: Any, data: Any, total: Any) -> Any:
    """An evaluation: the sum of what clients have kept."""
    return key, data, tff.federated_sum(total)
