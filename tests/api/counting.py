"""A small process whose state and output are in the author's own containers."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import numpy as np

import tffc as tff


class Count(NamedTuple):
    """How many rounds there were, and the last mean."""

    rounds: Any
    mean: Any


@tff.tensorflow.computation
def zero() -> Any:
    return Count(np.int32(0), np.float32(0))


STATE = zero.type_signature.result


@tff.tensorflow.computation(STATE, np.float32)
def count(state: Any, mean: Any) -> Any:
    return Count(state.rounds + 1, mean), collections.OrderedDict(
        loss=mean - 1.0, rounds=state.rounds
    )


@tff.federated_computation
def initialize() -> Any:
    return tff.federated_eval(zero, tff.SERVER)


@tff.federated_computation(
    tff.FederatedType(STATE, tff.SERVER), tff.FederatedType(np.float32, tff.CLIENTS)
)
def one_round(state: Any, data: Any) -> Any:
    counted = tff.federated_map(count, (state, tff.federated_mean(data)))
    return counted[0], counted[1]


@tff.federated_computation(
    tff.FederatedType(STATE, tff.SERVER), tff.FederatedType(np.float32, tff.CLIENTS)
)
def measured(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(data)


PROCESS = tff.templates.IterativeProcess(initialize, one_round)
