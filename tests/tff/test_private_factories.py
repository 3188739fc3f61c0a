"""What is shown of TFF's differentially private factories is their accounting by hand."""

from __future__ import annotations

import collections
import importlib
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
    library = importlib.import_module("tensorflow_privacy")
    query = library.GaussianSumQuery(CLIP, Z * CLIP)
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
    "tree": lambda a: tree(a, is_efficient=True),
    "tree of a given seed": lambda a: tree(a, is_efficient=True, noise_seed=1),
    "sum": lambda a: a.SumFactory(),
    "mean": lambda a: a.UnweightedMeanFactory(),
}


VECTOR = tff.TensorType(np.float32, [5])


def tree(
    aggregators: Any, *, is_efficient: bool, is_pair: bool = True, noise_seed: int | None = None
) -> Any:
    pair = collections.OrderedDict(kernel=spec([2, 2]), bias=spec([3]))
    specs = pair if is_pair else spec([5])
    return private(aggregators).tree_aggregation(
        Z, CLIENTS, CLIP, specs, noise_seed=noise_seed, use_efficient=is_efficient
    )


def library(name: str) -> Any:
    return getattr(tff, name)


def spec(shape: list[int]) -> Any:
    import tensorflow as tf

    return tf.TensorSpec(shape)


def round_of(factory: Factory, value_type: Any = VALUE) -> Any:
    """Rounds that release the result of an aggregation, and nothing of its measurements."""
    process = factory(library("aggregators")).create(value_type)
    state = process.initialize.type_signature.result

    @tff.federated_computation(state, tff.types.at_clients(value_type))
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


# Hierarchical histograms.


def histogram_of(mechanism: str, *, is_secure: bool, clip: str = "sub-sampling") -> Any:
    """Rounds that release the histogram that the process keeps in its state."""
    process = library("analytics").build_hierarchical_histogram_process(
        lower_bound=0.0,
        upper_bound=8.0,
        num_bins=8,
        clip_mechanism=clip,
        max_records_per_user=4,
        dp_mechanism=mechanism,
        noise_multiplier=Z,
        expected_clients_per_round=50,
        bits=20,
        enable_secure_sum=is_secure,
    )
    state = process.initialize.type_signature.result

    @tff.federated_computation(state, process.next.type_signature.parameter[1])
    def following(state: Any, value: Any) -> Any:
        output = process.next(state, value)
        return output[0], output[0].aggregated_hierarchical_histogram

    return tff.templates.IterativeProcess(process.initialize, following)


@pytest.mark.parametrize("clip", ["sub-sampling", "distinct"])
def test_histogram_with_central_noise(clip: str) -> None:
    process = histogram_of("central-gaussian", is_secure=False, clip=clip)
    answer = tff.audit(process, privacy={}).privacy
    assert answer is not None
    assert answer.derivation.is_shown, answer.steps
    (part,) = answer.derivation.parts
    assert isinstance(part, Gaussian)
    assert math.isclose(part.multiplier, Z, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("mechanism", "step"),
    [
        ("no-noise", "noise"),
        # A server's assertion tells whether the sum is as large as it says.
        ("central-gaussian", "no other release"),
        # The records of a client are limited, and the length of the tree is only asserted.
        ("distributed-discrete-gaussian", "bound of each contribution"),
    ],
)
def test_histograms_that_are_not_shown(mechanism: str, step: str) -> None:
    question = {"neighbours": "zero-out", "least-clients": 50, "secret-seeds": True}
    answer = tff.audit(histogram_of(mechanism, is_secure=True), privacy=question).privacy
    assert answer is not None
    assert {each.step for each in answer.steps} == {step}


# Tree aggregation.


def node(tree_draws: list[np.ndarray], level: int, *, is_efficient: bool) -> np.ndarray:
    """The noise of the sum of 2^level rounds: that of one draw, or the estimate of least variance
    from the draws of all nodes below it."""
    if not level:
        return tree_draws.pop(0)
    first = node(tree_draws, level - 1, is_efficient=is_efficient)
    second = node(tree_draws, level - 1, is_efficient=is_efficient)
    own = tree_draws.pop(0)
    if not is_efficient:
        return own
    below = 2 * variance(level - 1)
    return (own + (first + second) / below) / (1 + 1 / below)


def variance(level: int) -> float:
    return 1.0 if not level else 1 / (1 + 1 / (2 * variance(level - 1)))


def precision(rounds: int, *, is_efficient: bool) -> np.ndarray:
    """The inverse of the covariance of what is released of rounds, in the scale of a draw."""
    count = 2 * rounds
    prefixes = np.zeros((rounds + 1, count))
    for number in range(1, rounds + 1):
        draws = list(np.eye(count))
        levels = [level for level in range(10, -1, -1) if number >> level & 1]
        nodes = [node(draws, level, is_efficient=is_efficient) for level in levels]
        prefixes[number] = np.sum(nodes, axis=0)
    released = np.diff(prefixes, axis=0)
    return np.linalg.inv(released @ released.T)


@pytest.mark.parametrize("is_pair", [True, False])
@pytest.mark.parametrize("is_efficient", [True, False])
@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 8, 13])
def test_tree_aggregation(rounds: int, is_efficient: bool, is_pair: bool) -> None:
    process = round_of(
        lambda a: tree(a, is_efficient=is_efficient, is_pair=is_pair), VALUE if is_pair else VECTOR
    )
    inverse = precision(rounds, is_efficient=is_efficient)
    for participations, change in (
        (1, np.diag(inverse).max()),
        (None, np.abs(inverse).sum()),
        (rounds, np.abs(inverse).sum()),
    ):
        question: dict[str, Any] = {"rounds": rounds, "secret-seeds": True}
        if participations is not None:
            question["participations"] = participations
        answer = tff.audit(process, privacy=question).privacy
        assert answer is not None
        assert answer.spending is not None, answer.steps
        (part,) = answer.derivation.once
        assert not answer.derivation.parts
        assert math.isclose(part.multiplier, Z / change**0.5, rel_tol=1e-6)
        if participations == 1:
            assert answer.spending.epsilon <= of_all_nodes(rounds, answer.spending.delta)


@pytest.mark.parametrize("is_efficient", [True, False])
def test_rounds_add_the_noise_that_is_accounted_for(is_efficient: bool) -> None:
    rounds, size = 5, 20_000
    value_type = tff.TensorType(np.float32, [size])
    process = round_of(
        lambda a: private(a).tree_aggregation(
            Z, CLIENTS, CLIP, spec([size]), use_efficient=is_efficient
        ),
        value_type,
    )
    state = process.initialize()
    released: list[np.ndarray] = []
    for _ in range(rounds):
        state, result = process.next(state, [np.zeros(size, np.float32)])
        released.append(np.asarray(result) * CLIENTS / (Z * CLIP))
    covariance = np.cov(np.stack(released))
    expected = np.linalg.inv(precision(rounds, is_efficient=is_efficient))
    assert np.abs(covariance - expected).max() < 0.12


def of_all_nodes(rounds: int, delta: float) -> float:
    """The ε if all nodes of the tree are released, for a client that takes part once."""
    import dp_accounting

    event = dp_accounting.SingleEpochTreeAggregationDpEvent(Z, rounds)
    accountant = dp_accounting.rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    )
    return accountant.compose(event).get_epsilon(delta)


def test_what_tree_aggregation_rests_on() -> None:
    process = round_of(lambda a: tree(a, is_efficient=True))
    answer = tff.audit(
        process, privacy={"rounds": 3, "secret-seeds": True, "participations": 2}
    ).privacy
    assert answer is not None
    seeds = "state.query_state.numerator_state.tree_state.value_generator_state.seeds"
    assert (
        f"{seeds} begins as a seed that cannot be guessed, and is never the same as another seed, "
        "whatever is added to either" in answer.derivation.assumptions
    )
    assert "each client takes part in at most 2 rounds" in answer.derivation.assumptions
