"""What the differentially private programs share: types, constants, and the round of most."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

import tffc as tff

SIZE = 4
VECTOR = tff.TensorType(np.float32, [SIZE])
PAIR = tff.to_type(
    collections.OrderedDict(
        kernel=tff.TensorType(np.float32, [2, 3]), bias=tff.TensorType(np.float32, [3])
    )
)
"""Several tensors, as a model has."""

CLIP = 3.0
NOISE = 2.0
"""The noise multiplier: the standard deviation of the noise of a sum, for a `CLIP` of 1."""

EXPECTED = 100.0
"""The clients that a round is expected to have."""


def process(first: Any, following: Any) -> Any:
    """A process of rounds whose first state is a constant."""

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_value(first, tff.SERVER)

    return tff.templates.IterativeProcess(initialize, following)


def summed(decorator: Callable[..., Any], data: Any, contribution: Any, release: Any = None) -> Any:
    """Rounds that release a function of the sum of what clients contribute.

    `decorator` makes computations of both functions; without `release`, the sum itself is released.
    """
    contribute = decorator(contribution, data)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(data))
    def next_sum(state: Any, values: Any) -> Any:
        total: Any = tff.federated_sum(tff.federated_map(contribute, values))
        if release is None:
            return state, total
        return state, tff.federated_map(decorator(release, total.type_signature.member), total)

    return process((), next_sum)
