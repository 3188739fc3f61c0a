"""Random numbers are those that TensorFlow draws on a CPU."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf

from tests.runtime.lowering.operations.samples import (
    Sample,
    compare,
    compare_all,
    integers,
    ints,
    sample,
)
from tffc.runtime.lowering.operations.draws import philox

KEYS = np.array([2**64 - 5], np.uint64), np.array([3, 7], np.uint64)
CARRIED = np.array([12345], np.uint64), np.array([2**64 - 2, 2**64 - 1], np.uint64)
SHAPES = ints(2, 3), ints(7), ints(), ints(0, 2), ints(129)
REALS = (tf.float32, tf.float64, tf.float16, tf.bfloat16)
WHOLE = (tf.int32, tf.int64, tf.uint32, tf.uint64)
ALG = np.int32(1)


def keyed(dtypes: Any, tolerance: float = 1e-30) -> list[Sample]:
    """Draws that must be TensorFlow's bit for bit, but for a tolerance."""
    return [
        sample(shape, *keys, ALG, dtype=dtype, tolerance=tolerance)
        for dtype in dtypes
        for keys in (KEYS, CARRIED)
        for shape in (SHAPES if dtype in (tf.float32, tf.int64) else SHAPES[:2])
    ]


def bounds(dtype: Any) -> tuple[Any, Any]:
    kind = dtype.as_numpy_dtype
    return kind(-5), kind(2**31 - 9)


SEEDS = ints(1, 2), np.array([-3, 2**40], np.int64)
SAMPLES = {
    "StatelessRandomGetAlg": [sample()],
    "StatelessRandomGetKeyCounter": [sample(seed) for seed in SEEDS],
    "StatelessRandomUniformV2": keyed(REALS),
    "StatelessRandomUniformFullIntV2": keyed(WHOLE),
    "StatelessRandomUniformIntV2": [
        sample(shape, *keys, ALG, *bounds(dtype))
        for dtype in WHOLE[:2]
        for keys in (KEYS, CARRIED)
        for shape in SHAPES[:3]
    ],
    "StatelessRandomNormalV2": [
        *keyed((tf.float32,), 2e-6),
        *keyed((tf.float64,), 1e-13),
        *keyed((tf.float16,), 2e-3),
        *keyed((tf.bfloat16,), 2e-2),
    ],
    "StatelessRandomUniform": [sample(ints(5), seed, dtype=tf.float32) for seed in SEEDS],
    "StatelessRandomNormal": [
        sample(ints(5), seed, dtype=tf.float32, tolerance=2e-6) for seed in SEEDS
    ],
    "StatelessRandomUniformInt": [
        sample(ints(5), seed, np.int64(-9), np.int64(2**40)) for seed in SEEDS
    ],
    "StatelessRandomUniformFullInt": [sample(ints(5), seed, dtype=tf.int64) for seed in SEEDS],
}


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
def test_draws_what_tensorflow_does(op: str) -> None:
    compare(op, SAMPLES[op])


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
def test_draws_it_compiled(op: str) -> None:
    compare_all(op, SAMPLES[op])


def test_philox_gives_the_published_words() -> None:
    # The test vectors of Random123 for philox4x32-10.
    full = np.array([2**64 - 1], np.uint64)
    words = [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert philox(full, np.repeat(full, 2), 4).tolist() == words
    zero = np.zeros(2, np.uint64)
    assert philox(zero[:1], zero, 4).tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_draws_of_many_clients_are_those_of_each() -> None:
    keys = integers(3, 1, least=0, end=10**9, dtype=np.uint64)
    counters = integers(3, 2, least=0, end=10**9, seed=1, dtype=np.uint64)
    with jax.enable_x64(True):
        many = jax.jit(jax.vmap(lambda key, counter: philox(key, counter, 9)))(keys, counters)
    for row, key, counter in zip(np.asarray(many), keys, counters, strict=True):
        assert row.tolist() == philox(key, counter, 9).tolist()
