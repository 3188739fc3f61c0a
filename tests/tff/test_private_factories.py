"""What is shown of TFF's differentially private factories is their accounting by hand."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.tff.wheel import needs_wheel
from tffc.assurance.privacy.accounting import Gaussian

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

Z, CLIENTS, CLIP, COUNT = 2.0, 100.0, 3.0, 1.5
"""The noise multiplier, the expected clients, the clip, and the deviation of a count's noise."""

VALUE = tff.to_type(
    collections.OrderedDict(
        kernel=tff.TensorType(np.float32, [2, 2]), bias=tff.TensorType(np.float32, [3])
    )
)

Factory = Callable[[Any], Any]


def private(aggregators: Any) -> Any:
    return aggregators.DifferentiallyPrivateFactory


def fixed(aggregators: Any) -> Any:
    return private(aggregators).gaussian_fixed(Z, CLIENTS, CLIP)


def with_sum(aggregators: Any, inner: Any) -> Any:
    """Return a factory that adds central noise to the sum of another."""
    import tensorflow_privacy

    query = tensorflow_privacy.GaussianSumQuery(CLIP, Z * CLIP)
    return private(aggregators)(query, inner)


FACTORIES: dict[str, Factory] = {
    "fixed": fixed,
    "adaptive": lambda a: private(a).gaussian_adaptive(Z, CLIENTS, CLIP),
    # The noise of the model is larger where the count has less.
    "count": lambda a: private(a).gaussian_adaptive(Z, CLIENTS, CLIP, clipped_count_stddev=COUNT),
    "zeroing": lambda a: a.zeroing_factory(10.0, fixed(a)),
    "concatenated": lambda a: a.concat_factory(fixed(a)),
    # Rounding to one of 2^32 steps adds less than what the multiplier is compared to.
    "secure": lambda a: with_sum(a, a.SecureSumFactory(CLIP)),
    "secure, of uneven ends": lambda a: with_sum(a, a.SecureSumFactory(CLIP, -2.0)),
    "secure, in a wide range": lambda a: with_sum(a, a.SecureSumFactory(2 * CLIP)),
}
"""Factories whose rounds are private with the noise multiplier `Z`."""

NOT_SHOWN: dict[str, Factory] = {
    # The seed of the noise is the time of day.
    "tree": lambda a: private(a).tree_aggregation(
        Z, CLIENTS, CLIP, collections.OrderedDict(kernel=spec([2, 2]), bias=spec([3]))
    ),
    "sum": lambda a: a.SumFactory(),
    "mean": lambda a: a.UnweightedMeanFactory(),
}


def library(name: str) -> Any:
    return getattr(tff, name)


def spec(shape: list[int]) -> Any:
    import tensorflow as tf

    return tf.TensorSpec(shape)


def round_of(factory: Factory) -> Any:
    """Rounds that release the result of an aggregation, and nothing of its measurements."""
    process = factory(library("aggregators")).create(VALUE)
    state = process.initialize.type_signature.result

    @tff.federated_computation(state, tff.types.at_clients(VALUE))
    def following(state: Any, value: Any) -> Any:
        output = process.next(state, value)
        return output.state, output.result

    return tff.templates.IterativeProcess(process.initialize, following)


@pytest.mark.parametrize("name", FACTORIES)
def test_multiplier(name: str) -> None:
    answer = tff.audit(round_of(FACTORIES[name]), privacy={}).privacy
    assert answer is not None
    assert answer.derivation.is_shown, answer.steps
    (part,) = answer.derivation.parts
    assert isinstance(part, Gaussian)
    assert math.isclose(part.multiplier, Z, rel_tol=1e-6)


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_not_shown(name: str) -> None:
    answer = tff.audit(round_of(NOT_SHOWN[name]), privacy={}).privacy
    assert answer is not None
    assert answer.spending is None
    assert answer.steps
