"""Draws under a seed are the same on every path; others are as TensorFlow's, and never repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.distribution import FAR, distance
from tests.runtime.engines.paths import PATHS, RefusedError, Rounds
from tests.runtime.engines.programs import process_of
from tffc.language.values.concrete import to_python, to_value
from tffc.runtime.batching import planner
from tffc.runtime.interpreter import interpreter

SEED = tff.TensorType(np.int32, [2])
BY_PATH = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path in ("lowered", "pjrt") else [pytest.mark.slow])
        for path in PATHS
    ],
)
SIGMAS = 7
"""A distance from the mean that a thousand pairs of samples never reach in practice."""


def returning(work: Callable[..., Any], data: Any) -> Any:
    """A round in which each client is left with what it makes of a seed of the server and its
    data."""
    section = tff.tf_computation(SEED, data)(work)

    @tff.federated_computation(tff.types.at_server(SEED), tff.types.at_clients(data))
    def each_round(seed: Any, data: Any) -> Any:
        return tff.federated_map(section, (tff.federated_broadcast(seed), data))

    return each_round


def draws(seed: Any) -> tuple[Any, Any, Any, Any]:
    return (
        tf.random.stateless_uniform([7], seed),
        tf.random.stateless_uniform([3, 2], seed, -5, 10**9, tf.int32),
        tf.nn.experimental.stateless_dropout(tf.ones([20]), 0.5, seed),
        tf.random.stateless_normal([5], seed),
    )


def by_data(seed: Any, data: Any) -> Any:
    """Draws under seeds of data, one after another."""

    def step(state: Any, element: Any) -> Any:
        seed = tf.stack([state, element])
        number: Any = tf.random.stateless_uniform([], seed, 0, 2**30, tf.int32)
        return number % 1000 + element

    last = data.reduce(tf.constant(5), step)
    return draws(tf.stack([last, last + 1]))


FOLD_IN: Any = getattr(tf.random, "experimental").stateless_fold_in  # noqa: B009

STATELESS: dict[str, Callable[[Any, Any], Any]] = {
    "data": by_data,
    "broadcast": lambda seed, data: (data.reduce(0, lambda s, x: s + x), draws(seed)),
    "both": lambda seed, data: draws(seed + data.reduce(0, lambda s, x: s + x)),
    "constant": lambda seed, data: (data.reduce(0, lambda s, x: s + x), draws([3, 4])),
    "folded": lambda seed, data: draws(FOLD_IN(seed, data.reduce(0, lambda s, x: s + x))),
}
UNKNOWN = "it has the operation StatelessRandomGetKeyCounter, of a seed that is not known"
CLIENTS = [[1, 2, 3], [4, 5, 6], [7, 8], [], [1, 2, 3], [9, 10, 11, 12, 13, 14]]


@pytest.mark.slow
@BY_PATH
@pytest.mark.parametrize("seeds", STATELESS)
def test_draws_under_a_seed_are_equal(seeds: str, path: str) -> None:
    computation = returning(STATELESS[seeds], tff.SequenceType(np.int32))
    process = process_of(computation, "broadcast")
    seed = np.array([1, -7], np.int32)
    expected = interpreter.run(computation.node, (seed, CLIENTS))
    clients = [to_value(each, process.data_type) for each in CLIENTS]
    if path.startswith("tensorflow") and seeds != "constant":
        with pytest.raises(RefusedError, match=UNKNOWN):
            Rounds(path, process).run(seed, clients)
        return
    rounds = Rounds(path, process).run(seed, clients)
    assert process.client_output_type is not None
    for one, other in zip(rounds, expected, strict=True):
        ones = tf.nest.flatten(to_python(one, process.client_output_type))
        others = tf.nest.flatten(other)
        assert len(ones) == len(others) >= 4
        for drawn in zip(ones[:-1], others[:-1], strict=True):
            np.testing.assert_array_equal(*drawn, strict=True)
        np.testing.assert_allclose(ones[-1], others[-1], rtol=2e-6, atol=2e-6)


COUNT = 3000
STEPS = 6
"""More than the steps of a loop that are written out."""


def fresh(seed: Any, data: Any) -> Any:
    """What tffc must draw anew in every call: uniform and normal numbers, integers, dropout; in a
    loop, in a branch and in a function."""
    zeros = tf.zeros([STEPS, COUNT])
    loop = data.reduce(
        zeros, lambda s, x: tf.concat([s[1:], tf.random.uniform([1, COUNT])], axis=0)
    )
    branch = tf.cond(
        seed[0] > 0, lambda: tf.random.uniform([1, COUNT]), lambda: tf.zeros([1, COUNT])
    )
    called = tf.function(lambda: tf.random.uniform([2, COUNT]))
    return (
        tf.concat([tf.random.uniform([2, COUNT]), loop, branch, called(), called()], axis=0),
        tf.random.normal([2, COUNT]),
        tf.random.uniform([COUNT], -1000, 10**6, tf.int32),
        tf.nn.dropout(tf.ones([COUNT]), 0.25),
    )


@pytest.fixture(scope="module")
def drawing() -> Any:
    return returning(fresh, tff.SequenceType(np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("path", ["alone", "lowered", "pjrt", "pjrt looped"])
def test_other_draws_are_those_of_the_interpreter_in_distribution(drawing: Any, path: str) -> None:
    process = process_of(drawing, "broadcast")
    seed, clients = np.array([1, 1], np.int32), [list(range(STEPS))] * 4
    expected = interpreter.run(drawing.node, (seed, clients))
    held = [to_value(each, process.data_type) for each in clients]
    engine = Rounds(path, process)
    rounds = [*engine.run(seed, held), *engine.run(seed, held)]
    # As a later run does, which takes the kernel that this one has kept.
    planner._load_kernel.cache_clear()
    rounds += Rounds(path, process).run(seed, held)
    uniform, normal, integers, dropped = (
        np.stack([np.asarray(each[kind]) for each in rounds]) for kind in range(4)
    )
    check_distributions([uniform, normal, integers], expected)
    check_independent([uniform, normal, integers, dropped])
    check_none_again(uniform.reshape(-1, COUNT))
    check_none_again(normal.reshape(-1, COUNT))
    assert set(np.unique(dropped)) == {0, np.float32(1 / 0.75)}
    assert abs((dropped > 0).mean() - 0.75) < SIGMAS * np.sqrt(0.75 * 0.25 / dropped.size)


def check_distributions(rounds: list[Any], expected: Any) -> None:
    """Check that samples can be of the distributions of those that are expected."""
    for kind, sample in enumerate(rounds):
        others = np.stack([np.asarray(each[kind]) for each in expected])
        assert sample.dtype == others.dtype
        # Each row of each client, over all rounds, beside the interpreter's.
        count = others.size
        for start in range(0, sample.size, count):
            assert distance(sample.ravel()[start : start + count], others.ravel()) < FAR


def check_independent(samples: list[Any]) -> None:
    """Check that any two samples, of clients, rounds, steps and kinds, correlate by chance only,
    and so do the numbers of one sample with those after them."""
    rows = np.concatenate([np.reshape(each, (-1, COUNT)) for each in samples]).astype(np.float64)
    correlations = np.atleast_2d(np.corrcoef(rows))
    np.fill_diagonal(correlations, 0)
    assert np.abs(correlations).max() * np.sqrt(COUNT) < SIGMAS
    centred = rows - rows.mean(axis=1, keepdims=True)
    for lag in range(1, 9):
        shifted = (centred[:, lag:] * centred[:, :-lag]).mean(axis=1) / centred.var(axis=1)
        assert np.abs(shifted).max() * np.sqrt(COUNT) < SIGMAS


def check_none_again(rows: Any) -> None:
    """Check that no three numbers in a row come twice, as where two streams of numbers overlap."""
    triples = np.lib.stride_tricks.sliding_window_view(rows, 3, axis=1).reshape(-1, 3)
    assert len(np.unique(triples, axis=0)) == len(triples)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["tensorflow", "tensorflow looped"])
def test_tensorflows_batches_refuse_other_draws(drawing: Any, path: str) -> None:
    process = process_of(drawing, "broadcast")
    held = [to_value([1, 2], process.data_type)] * 3
    with pytest.raises(RefusedError, match="it has the operation Random"):
        Rounds(path, process).run(np.array([1, 1], np.int32), held)
