"""Numbers that are shown as noise have that distribution, when they are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.assurance.privacy.attack import attack
from tests.assurance.privacy.derivations import derivation
from tests.assurance.privacy.programs.rounds import SIZE
from tffc.assurance.privacy.accounting import spending
from tffc.assurance.privacy.question import ANY_COHORTS, Neighbours

jax: Any = pytest.importorskip("jax", reason="needs tffc[jax]")
jnp: Any = pytest.importorskip("jax.numpy")
stats: Any = pytest.importorskip("scipy.stats")

from tests.assurance.privacy import keyed_rounds as rounds  # noqa: E402 - it imports JAX.

COUNT = 1 << 18
DELTA = 1e-5
WORDS = np.random.default_rng(1)

DRAWS = {
    "norm": rounds.normal,
    "laplace": lambda key, shape: rounds.SCALE * jax.random.laplace(key, shape),
}


def shown(distribution: str, is_partitionable: bool, shape: Any) -> float:
    """The scale of the noise that is shown of rounds with it."""

    def release(total: Any, seed: Any) -> Any:
        return total + DRAWS[distribution](rounds.key_of(seed), shape)

    with jax.threefry_partitionable(is_partitionable):
        derived = derivation(rounds.round_of(release, contribution=rounds.by_sum))
    assert derived.is_shown
    return float(derived.sums[0].scale)


@pytest.mark.slow
@pytest.mark.parametrize("is_partitionable", [True, False])
@pytest.mark.parametrize("distribution", DRAWS)
def test_distributions(distribution: str, is_partitionable: bool) -> None:
    """A test of Kolmogorov and Smirnov, on the elements of one array and on those at one place."""
    scale = shown(distribution, is_partitionable, (SIZE,))
    draw = jax.jit(DRAWS[distribution], static_argnums=1)
    with jax.threefry_partitionable(is_partitionable):
        key = rounds.key_of(jnp.asarray(WORDS.integers(0, 2**32, 2, np.uint32)))
        elements = np.asarray(draw(key, (COUNT + 1,)), np.float64)
        keys = rounds.key_of(jnp.asarray(WORDS.integers(0, 2**32, [COUNT, 2], np.uint32)))
        rows = np.asarray(jax.vmap(lambda k: DRAWS[distribution](k, (SIZE,)))(keys), np.float64)
    for sample in (elements, rows[:, 0], rows[:, -1]):
        assert stats.kstest(sample / scale, distribution).pvalue > 1e-4
    products = rows[:, :, None] * rows[:, None, :] / scale**2
    correlation = products.mean(0) / np.sqrt((products**2).mean(0))
    assert np.abs(correlation[~np.eye(SIZE, dtype=bool)]).max() < 5 / np.sqrt(COUNT)


def keyed(total: Any, seed: Any) -> Any:
    return total + rounds.normal(rounds.key_of(seed))


@pytest.mark.slow
def test_an_attack() -> None:
    """Two sets of clients differ in one whose contribution is as long as it may be."""
    pytest.importorskip("dp_accounting")
    derived = derivation(rounds.round_of(keyed))
    assert derived.is_shown
    claimed = spending(derived.parts, 1, DELTA, ANY_COHORTS, Neighbours.ADD_OR_REMOVE).epsilon
    longest = rounds.by_norm(1e4 * jnp.ones(SIZE, np.float32))
    finish = jax.jit(jax.vmap(keyed, (None, 0)))
    seeds = (WORDS.integers(0, 2**32, [1_000_000, 2], np.uint32) for _ in range(2))
    totals = (jnp.zeros(SIZE), longest)
    first, second = (
        np.asarray(finish(total, jnp.asarray(seed)), np.float64)
        for total, seed in zip(totals, seeds, strict=True)
    )
    assert 0.5 <= attack(first, second, DELTA) <= claimed
