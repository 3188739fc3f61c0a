"""No contribution is larger than the bound that is claimed of it."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tffc as tff
from tests.assurance.privacy.derivations import derivation, round_by
from tests.assurance.privacy.random_clips import KIND, SIZE, RandomClip, tf
from tffc.assurance.privacy.accounting import Gaussian, Laplacian
from tffc.assurance.privacy.question import Neighbours

VECTOR = tff.TensorType(KIND, [SIZE])
SCALE = 2.0

ROUNDING = 1e-6


def gaussian(total: Any) -> Any:
    return total + tf.random.normal(total.shape, stddev=SCALE, dtype=KIND)


def laplace(total: Any) -> Any:
    u = tf.random.uniform(total.shape, -0.5, 0.5, dtype=KIND)
    return total - SCALE * tf.sign(u) * tf.math.log(1.0 - 2.0 * tf.abs(u))


def claimed(seed: int, neighbours: Neighbours) -> dict[int, float]:
    """The largest change that is claimed of the clip of a seed, by L1 and L2, if any is."""
    changes: dict[int, float] = {}
    for norm, finish in ((1, laplace), (2, gaussian)):
        result = derivation(
            round_by(lambda x: RandomClip(seed, x).result, finish, VECTOR), neighbours
        )
        if not result.is_shown:
            continue
        changes[norm] = 0.0
        for part in result.parts:
            assert isinstance(part, (Gaussian, Laplacian))
            changes[norm] = SCALE / part.multiplier
    return changes


def inputs() -> Any:
    """Vectors of all sizes, some with zeros, equal elements and whole numbers."""
    generator = np.random.default_rng(7)
    sizes = 10.0 ** generator.uniform(-3, 4, [300, 1])
    vectors = generator.normal(size=[300, SIZE]) * sizes
    vectors[::3] *= generator.integers(0, 2, [100, SIZE])
    vectors[1::5] = np.round(vectors[1::5])
    vectors[2::11] = vectors[2::11, :1]
    special = [[0, 0, 0, 0], [1, 1, 1, 1], [-1, 1, -1, 1], [200, -200, 300, -1], [1e4, 0, 0, 0]]
    return np.concatenate([vectors, np.array(special, KIND), 50_000.0 * np.eye(SIZE)])


INPUTS = inputs()


def contributions(seed: int, vectors: Any) -> Any:
    """What clients contribute that compute with nothing but numbers."""

    @tf.function
    def run(batch: Any) -> Any:
        def one(x: Any) -> Any:
            clip = RandomClip(seed, x)
            finite = [tf.reduce_all(tf.math.is_finite(value)) for value in clip.computed]
            return clip.result, tf.reduce_all(finite)

        signature = (tf.TensorSpec([SIZE], KIND), tf.TensorSpec([], tf.bool))
        return tf.map_fn(one, batch, fn_output_signature=signature)

    results, finite = run(tf.constant(vectors))
    return results.numpy()[finite.numpy()], vectors[finite.numpy()]


def largest(values: Any, norm: int, neighbours: Neighbours) -> float:
    if not len(values):
        return 0.0
    if neighbours is Neighbours.REPLACE:
        values = (values[:, None] - values[None]).reshape([-1, SIZE])
    return float(np.linalg.norm(values, norm, axis=1).max())


def check(seed: int, neighbours: Neighbours) -> frozenset[int]:
    """Check the claims of a clip, and return for which norms there are any."""
    changes = claimed(seed, neighbours)
    if changes:
        values, vectors = contributions(seed, INPUTS)
        if len(vectors):
            # Look closer at what comes from the most that was seen.
            best = vectors[np.argsort(-np.linalg.norm(values, axis=1))[:20]]
            steps = np.random.default_rng(seed).normal(1.0, 0.3, [5, *best.shape])
            more, _ = contributions(seed, (best * steps).reshape([-1, SIZE]))
            values = np.concatenate([values, more])
        for norm, change in changes.items():
            assert largest(values, norm, neighbours) <= change * (1 + ROUNDING) + ROUNDING
    return frozenset(changes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_some_clips(seed: int) -> None:
    check(seed, Neighbours.ADD_OR_REMOVE)


@pytest.mark.slow
@given(st.integers(0, 2**31 - 1), st.sampled_from([Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE]))
def test_random_clips(seed: int, neighbours: Neighbours) -> None:
    check(seed, neighbours)


@pytest.mark.slow
def test_claims_are_frequent() -> None:
    """Of random clips, some are bounded and some are not."""
    counts = collections.Counter(
        bool(check(seed, Neighbours.ADD_OR_REMOVE)) for seed in range(10_000, 10_100)
    )
    assert min(counts[True], counts[False]) >= 20
