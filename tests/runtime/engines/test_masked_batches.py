"""Rounds of clients whose last batches differ in size, which one masked loop computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.runtime.engines.batches import BOTH, BOTH_SLOWLY, check_same, round_of
from tffc.runtime.batching import compilers, planner
from tffc.runtime.batching.limits import Limits
from tffc.runtime.lowering.retrace import Retrace

ROWS = tff.SequenceType(tff.StructWithPythonType([np.int32, (np.float32, (4, 4, 1))], tuple))
FEATURES = np.linspace(0.5, 1.5, 48, dtype=np.float32).reshape(16, 3)
FILTERS = np.linspace(0.5, 1.5, 18, dtype=np.float32).reshape(3, 3, 1, 2)
SIZE = 4

Step = Callable[[list[Any], Any, Any], Any]


@pytest.fixture(autouse=True)
def by_pjrt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute batches with JAX, which alone masks them, also those of images."""
    monkeypatch.setattr(planner, "CONVOLUTIONS", frozenset())
    monkeypatch.setattr(compilers, "preferred", lambda: compilers.PJRT)


@pytest.fixture
def masked(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[bool]:
    """Whether each fold that could be masked was."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seen: list[bool] = []
    original = Retrace._tried

    def tried(self: Retrace, run: Any) -> Any:
        result = original(self, run)
        seen.append(result is not None)
        return result

    monkeypatch.setattr(Retrace, "_tried", tried)
    return seen


def clients() -> list[list[Any]]:
    """Return clients with 0 to 11 rows."""
    random = np.random.RandomState(1)
    return [
        [
            (np.int32(random.randint(3)), random.normal(size=(4, 4, 1)).astype(np.float32))
            for _ in range(length)
        ]
        for length in (1, 2, 3, 4, 5, 6, 7, 8, 11, 0, 9)
    ]


def descent(loss: Callable[..., Any]) -> Step:
    """Return a step down the gradient of a loss of rows, a matrix and filters."""

    def step(weights: list[Any], labels: Any, images: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            value = loss(labels, images, *weights)
        slopes = tape.gradient(value, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [
            w - 0.1 * tf.convert_to_tensor(slope) for w, slope in zip(weights, slopes, strict=True)
        ]

    return step


def training(step: Step, arrange: Any = lambda data: data) -> Any:
    """Return a round of clients that train, and count their rows."""

    def work(data: Any) -> Any:
        def reduced(state: Any, row: Any) -> Any:
            labels, images = row
            *weights, rows = state
            return (*step(weights, labels, images), rows + tf.size(labels, tf.int64))

        start = (tf.constant(FEATURES), tf.constant(FILTERS), np.int64(0))
        return arrange(data).batch(SIZE).reduce(start, reduced)

    return round_of(work, ROWS)


def logits(images: Any, w: Any) -> Any:
    return tf.reshape(images, [-1, 16]) @ w


def entropy(labels: Any, values: Any) -> Any:
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, values)
    return tf.reduce_mean(losses)


def network(labels: Any, images: Any, w: Any, f: Any) -> Any:
    images = tf.nn.relu(tf.nn.conv2d(images, f, 1, "SAME"))
    images = tf.nn.max_pool2d(images, 2, 2, "VALID")
    return entropy(labels, tf.reshape(images, [-1, 8]) @ w[:8])


STEPS: dict[str, Step] = {
    "dense": descent(lambda y, i, w, f: entropy(y, logits(i, w)) + tf.nn.l2_loss(w) / 9),
    "convolutions": descent(network),
    "dropout": descent(
        lambda y, i, w, f: entropy(
            y, logits(tf.nn.experimental.stateless_dropout(i, 0.3, seed=[1, 2]), w)
        )
    ),
    "standardized": descent(
        lambda y, i, w, f: tf.reduce_sum(
            tf.tanh(
                (i - tf.reduce_mean(i, 0)) * f[0, 0, 0, 0] - tf.math.reduce_std(i + f[0, 0, 0, 1])
            )
        )
    ),
    "accuracy": lambda weights, y, i: [
        weights[0]
        + tf.reduce_mean(
            tf.cast(tf.equal(tf.argmax(logits(i, weights[0]), 1, tf.int32), y), tf.float32)
        ),
        weights[1] + tf.cast(tf.shape(y)[0], tf.float32),
    ],
}

ARRANGED: dict[str, Any] = {
    "repeated": lambda data: data.repeat(3),
    "skipped": lambda data: data.skip(1),
    "taken again": lambda data: data.take(5).repeat(2),
    "shortened": lambda data: data.repeat(2).take(7),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
@BOTH_SLOWLY
def test_last_batches_are_masked(name: str, limits: Limits, masked: list[bool]) -> None:
    check_same(training(STEPS[name]), clients(), limits=limits)
    assert masked
    assert all(masked)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARRANGED)
@BOTH_SLOWLY
def test_rows_in_any_order(name: str, limits: Limits, masked: list[bool]) -> None:
    process = training(STEPS["dense"], ARRANGED[name])
    check_same(process, clients(), limits=limits)
    assert masked
    assert all(masked)


def turned_rows(weights: list[Any], labels: Any, images: Any) -> Any:
    """Mix rows in a way that no rule describes."""
    mixed = (
        tf.reverse(images, [0])
        * tf.range(1.0, tf.cast(tf.size(labels), tf.float32) + 1)[:, None, None, None]
    )
    return [weights[0] + tf.reduce_sum(mixed), weights[1] + 1]


def variable_rows(data: Any) -> Any:
    """Return a number of rows in a variable that a step wrote, and a check."""
    total = tf.Variable(tf.constant(1, tf.int32))

    @tf.function
    def count(batches: Any) -> Any:
        for labels, _ in batches:
            tf.debugging.assert_less(labels, 3)
            total.assign_add(tf.shape(labels)[0] * (1 + tf.reduce_max(labels)))
        return total.read_value()

    return count(data.batch(SIZE))


@BOTH
def test_variables_and_checks(limits: Limits, masked: list[bool]) -> None:
    check_same(round_of(variable_rows, ROWS), clients(), limits=limits)
    assert masked
    assert all(masked)


@pytest.mark.slow
@BOTH
def test_what_cannot_be_masked_has_code_for_each_size(limits: Limits, masked: list[bool]) -> None:
    check_same(training(turned_rows), clients(), limits=limits)
    assert masked
    assert not any(masked)


def test_a_check_that_fails_is_the_clients_own(masked: list[bool]) -> None:
    def work(data: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            tf.debugging.assert_greater(tf.size(row[0]), 0)
            return state + tf.gather(tf.constant([1, 2, 3]), tf.reduce_sum(row[0] * 0))

        return data.batch(SIZE).reduce(np.int32(0), step)

    check_same(round_of(work, ROWS), clients())
    assert all(masked)


@pytest.mark.slow
@BOTH
def test_rows_are_not_filled_up_to_a_much_larger_batch(limits: Limits, masked: list[bool]) -> None:
    def work(data: Any) -> Any:
        return data.batch(64).reduce(0.0, lambda state, row: state + tf.reduce_mean(row[1]) + 3)

    check_same(round_of(work, ROWS), clients(), limits=limits)
    assert not masked
