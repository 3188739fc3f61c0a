"""Rounds whose computations are JAX or PyTorch, with the noise of TensorFlow."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.derivations import derivation
from tests.assurance.privacy.programs.rounds import PAIR, VECTOR, process
from tffc.assurance.privacy.accounting import Gaussian
from tffc.assurance.privacy.question import Neighbours

CLIP = 3.0
DEVIATION = 6.0
ELEMENTS = 9
"""The elements of a `PAIR`."""

BATCH = tff.to_type(
    collections.OrderedDict(x=tff.TensorType(np.float32, [8, 4]), y=tff.TensorType(np.float32, [8]))
)


def deviating(deviation: float) -> Callable[[Any], Any]:
    """A function in TensorFlow that adds normal noise to each tensor of a structure."""

    def finish(total: Any) -> Any:
        return tf.nest.map_structure(
            lambda x: x + tf.random.normal(x.shape, stddev=deviation), total
        )

    return finish


def round_of(
    contribution: Any, data: Any = PAIR, framework: Any = tff.jax.computation, finish: Any = None
) -> Any:
    """Rounds that add up what a computation of a framework contributes, with noise of
    TensorFlow's."""
    contribute = framework(contribution, data)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(data))
    def next_sum(state: Any, values: Any) -> Any:
        total: Any = tff.federated_sum(tff.federated_map(contribute, values))
        last = finish or tff.tf_computation(deviating(DEVIATION), total.type_signature.member)
        return state, tff.federated_map(last, total)

    return process((), next_sum)


def multiplier(rounds: Any, neighbours: Neighbours = Neighbours.ADD_OR_REMOVE) -> float:
    """The noise multiplier that is shown of rounds with normal noise."""
    derived = derivation(rounds, neighbours)
    assert derived.is_shown, derived.missing
    (part,) = derived.parts
    assert isinstance(part, Gaussian)
    return part.multiplier


def noised(draw: Any, add: Any, contribution: Any, framework: Any = tff.jax.computation) -> Any:
    """Rounds in which a framework adds what a TensorFlow computation draws to the sum."""
    contribute = framework(contribution, VECTOR)
    computation = tff.tf_computation(draw)
    finish = framework(add, VECTOR, computation.type_signature.result)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(contribute, values))
        noise = tff.federated_eval(computation, tff.SERVER)
        return state, tff.federated_map(finish, (total, noise))

    return process((), next_sum)


class Example(NamedTuple):
    """What clients contribute, and the largest norm of it by hand."""

    contribution: Any
    norm: float
    data: Any = PAIR
