"""Vectors that are rotated after a clip keep their norm, and get no longer otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.assurance.privacy.derivations import derivation, round_by
from tffc.assurance.privacy.accounting import Gaussian, Laplacian
from tffc.assurance.privacy.question import Neighbours
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

CLIP, SCALE, DEVIATION, SIZE = 2.0, 10.0, 50.0, 8
SIGNS = np.array([1, -1, -1, 1, 1, 1, -1, 1], np.float32)
STEP = np.array([[1, 1], [1, -1]], np.float32)
Work = Callable[[Any], Any]


def hadamard_matrix() -> Any:
    matrix = np.array([[1.0]])
    for _ in range(3):
        matrix = np.kron(matrix, STEP)
    return (matrix / math.sqrt(SIZE)).astype(np.float32)


def padded(x: Any) -> Any:
    clipped = x * tf.minimum(1.0, CLIP / tf.norm(x))
    return tf.concat([clipped, tf.zeros([SIZE - 4])], 0)


def by_matrix(x: Any) -> Any:
    return tf.reshape(tf.matmul(tf.reshape(padded(x) * SIGNS, [1, SIZE]), hadamard_matrix()), [-1])


def by_matrix_from_the_left(x: Any) -> Any:
    column = tf.reshape(padded(x), [SIZE, 1])
    return tf.reshape(tf.matmul(hadamard_matrix(), column, transpose_a=True), [SIZE])


def one_step(y: Any) -> Any:
    pairs = tf.matmul(tf.reshape(y, [-1, 2]), STEP)
    return tf.reshape(tf.transpose(tf.reshape(pairs, [-1, SIZE // 2, 2]), [0, 2, 1]), [SIZE])


def by_steps(x: Any) -> Any:
    y = padded(x) * SIGNS
    for _ in range(3):
        y = one_step(y)
    return y / math.sqrt(SIZE)


def by_a_loop(x: Any) -> Any:
    y = padded(x) * tf.sign(tf.random.stateless_uniform([SIZE], [3, 4]) - 0.5)
    y = tf.while_loop(lambda n, y: n < 3, lambda n, y: [n + 1, one_step(y)], [0, y])[1]
    return y / math.sqrt(SIZE)


def rounded(work: Work) -> Work:
    return lambda x: tf.round(work(x) * SCALE)


PRIVATE: dict[str, tuple[Work, float, float]] = {
    # What makes the contribution, and its length if a client is added, and if it is replaced.
    "matrix": (by_matrix, CLIP, 2 * CLIP),
    "matrix from the left": (by_matrix_from_the_left, CLIP, 2 * CLIP),
    "steps": (by_steps, CLIP, 2 * CLIP),
    "loop": (by_a_loop, CLIP, 2 * CLIP),
    "rounded": (
        rounded(by_a_loop),
        CLIP * SCALE + 0.5 * math.sqrt(SIZE),
        2 * CLIP * SCALE + math.sqrt(SIZE),
    ),
    "longer": (lambda x: 3.0 * by_matrix(x), 3 * CLIP, 6 * CLIP),
    "two iterations": (
        lambda x: tf.while_loop(
            lambda n, y: n < 2, lambda n, y: [n + 1, one_step(y)], [0, padded(x)]
        )[1],
        2 * CLIP,
        4 * CLIP,
    ),
    "no rotation": (
        lambda x: tf.reshape(
            tf.matmul(tf.reshape(padded(x), [4, 2]), np.array([[3, 0], [4, 1]], np.float32)), [-1]
        ),
        CLIP * float(np.linalg.norm([[3, 0], [4, 1]], 2)),
        2 * CLIP * float(np.linalg.norm([[3, 0], [4, 1]], 2)),
    ),
}


def noisy(total: Any) -> Any:
    return total + tf.random.normal(total.shape, stddev=DEVIATION)


def length(work: Work, neighbours: Neighbours) -> float:
    result = derivation(round_by(lambda x: work(x), noisy), neighbours)
    assert result.is_shown, result.missing
    (part,) = result.parts
    assert isinstance(part, Gaussian)
    return DEVIATION / part.multiplier


@pytest.mark.parametrize("name", PRIVATE)
def test_lengths(name: str) -> None:
    work, added, replaced = PRIVATE[name]
    assert length(work, Neighbours.ADD_OR_REMOVE) == pytest.approx(added, rel=1e-6)
    assert length(work, Neighbours.REPLACE) == pytest.approx(replaced, rel=1e-6)


@pytest.mark.parametrize("name", PRIVATE)
def test_no_contribution_is_longer(name: str) -> None:
    work, added, replaced = PRIVATE[name]
    random = np.random.default_rng(0)
    vectors = [work(tf.constant(x, tf.float32)).numpy() for x in 9 * random.normal(size=(40, 4))]
    lengths = [float(np.linalg.norm(vector)) for vector in vectors]
    assert max(lengths) <= added * (1 + 1e-6)
    assert max(np.linalg.norm(a - b) for a in vectors for b in vectors) <= replaced * (1 + 1e-6)


def laplacian(total: Any) -> Any:
    u = tf.random.uniform(total.shape, -0.5, 0.5)
    return total - DEVIATION * tf.sign(u) * tf.math.log(1.0 - 2.0 * tf.abs(u))


def test_the_sum_of_magnitudes_is_not_kept() -> None:
    result = derivation(round_by(by_matrix, laplacian))
    assert not any(isinstance(part, Laplacian) for part in result.parts)


def counted(x: Any, most: Any) -> Any:
    return tf.while_loop(lambda n, y: n < most, lambda n, y: [n + 1, one_step(y)], [0, padded(x)])[
        1
    ]


def times(x: Any, matrix: Any) -> Any:
    return tf.reshape(tf.matmul(tf.reshape(x, [-1, 2]), matrix), [-1])


FAULTS: dict[str, Work] = {
    "with itself": lambda x: times(padded(x), tf.reshape(x, [2, 2])),
    "as often as data says": lambda x: counted(x, tf.cast(x[0], tf.int32)),
    "as often as chance says": lambda x: counted(x, tf.random.uniform([], 0, 9, tf.int32)),
    "before a clip": lambda x: times(x, STEP),
    "plus what was there": lambda x: by_matrix(x) + tf.concat([x, x], 0),
    "halves": lambda x: times(tf.cast(padded(x), tf.bfloat16), tf.cast(STEP, tf.bfloat16)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    work = FAULTS[name]
    process = round_by(lambda x: tf.cast(work(x), tf.float32), noisy)
    assert not derivation(process).is_shown


def test_more_iterations_than_are_looked_at() -> None:
    assert not derivation(round_by(lambda x: counted(x, 33), noisy)).is_shown
    assert length(lambda x: counted(x, 31), Neighbours.ADD_OR_REMOVE) > CLIP * 2.0**15
