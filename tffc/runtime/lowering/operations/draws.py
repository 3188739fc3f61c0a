"""Random numbers: those that TensorFlow draws on a CPU from a key and a counter.

Its generator is Philox with ten rounds: a bijection of 128 bits, the counter, chosen by 64 bits,
the key.  Each block of four 32-bit words is that of the next counter.

See Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    NotLoweredError,
    Operation,
    definitions,
    is_known,
    lax,
    library,
    library_for,
    number,
    numbers,
    type_of,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)

PHILOX = 1
CHOSEN = 3
"""The numbers of the generator: Philox, and whatever the device does best, Philox on a CPU."""

ROUNDS = 10
FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
"""What each round multiplies with, and adds to the key."""

SEED_KEY = np.uint64(0x02461E293EC8F720)
"""The key under which seeds are mixed, so that similar seeds give unrelated draws."""

LEAST_UNIFORM = 1e-7
"""What the normal distribution takes for smaller uniform numbers, whose logarithm is too large."""


def philox(key: Array, counter: Array, count: int) -> Array:
    """Return 32-bit words of the stream of a key, from a counter on.

    The key has 64 bits and the counter 128, the low 64 first: arrays of uint64, of NumPy or JAX.
    """
    blocks = -(-count // 4)
    lib = library_for(count, key, counter)
    key, counter = lib.asarray(key).reshape(-1), lib.asarray(counter).reshape(-1)
    steps = lib.arange(blocks, dtype=np.uint64)
    low = counter[:1] + steps
    high = counter[1:2] + (low < steps).astype(np.uint64)
    words = _mixed(_halves(key[:1]), [*_halves(low), *_halves(high)])
    return lib.stack(words, -1).reshape(-1)[:count]


def _halves(x: Array) -> list[Array]:
    """Return the low and the high 32 bits of 64."""
    low = (x & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return [low, (x >> np.uint64(32)).astype(np.uint32)]


def _mixed(key: list[Array], words: list[Array]) -> list[Array]:
    for turn in range(ROUNDS):
        if turn:
            key = [part + constant for part, constant in zip(key, WEYL, strict=True)]
        low0, high0 = _halves(words[0].astype(np.uint64) * FACTORS[0])
        low1, high1 = _halves(words[2].astype(np.uint64) * FACTORS[1])
        words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0]
    return words


def key_and_counter(seed: Array) -> tuple[Array, Array]:
    """Return the key, uint64[1], and the counter, uint64[2], that a seed of two numbers gives."""
    lib = library(seed)
    words = philox(SEED_KEY, lib.asarray(seed).astype(np.uint64), 4)
    joined = joined_words(words)
    return joined[:1], lib.concatenate([np.zeros(1, np.uint64), joined[1:]])


def joined_words(words: Array) -> Array:
    """Return pairs of 32-bit words, the low one first, as 64-bit words."""
    pairs = words.reshape((-1, 2)).astype(np.uint64)
    return pairs[:, 0] | (pairs[:, 1] << np.uint64(32))


def words_needed(count: int, dtype: Any) -> int:
    """Return how many 32-bit words so many numbers take."""
    return count * 2 if np.dtype(dtype).itemsize == 8 else count


MANTISSAS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def uniform_of(words: Array, dtype: Any) -> Array:
    """Return numbers from 0 to below 1, each of a word, or two for float64.

    The low bits of a word are the mantissa of a number from 1 to below 2.
    """
    dtype = np.dtype(dtype)
    if dtype.itemsize == 8:
        # The first word of a pair has the high bits.
        words = joined_words(words.reshape((-1, 2))[:, ::-1].reshape(-1))
    kind = BITS[dtype.itemsize]
    mantissa = MANTISSAS[dtype.name]
    bits = words.astype(kind) & kind((1 << mantissa) - 1)
    bits = bits | np.ones((), dtype).view(kind)
    return (_floats(bits, dtype) - np.ones((), dtype)).astype(dtype)


def _floats(bits: Array, dtype: np.dtype) -> Array:
    return bits.view(dtype) if is_known(bits) else lax.bitcast_convert_type(bits, dtype)


def normal_of(words: Array, dtype: Any) -> Array:
    """Return normal numbers, as many as uniform ones: the transform of Box and Muller.

    A number is a few units in the last place from TensorFlow's, as sines and logarithms are.
    """
    wide = np.dtype(dtype).itemsize == 8
    kind = np.dtype(np.float64 if wide else np.float32)
    uniform = uniform_of(words, kind).reshape((-1, 2))
    lib = library(uniform)
    radius = lib.sqrt(kind.type(-2) * lib.log(lib.maximum(uniform[:, 0], kind.type(LEAST_UNIFORM))))
    angle = (np.float64(2 * math.pi) * uniform[:, 1].astype(np.float64)).astype(kind)
    pairs = lib.stack([lib.sin(angle) * radius, lib.cos(angle) * radius], -1)
    return pairs.reshape(-1).astype(dtype)


def integer_of(words: Array, dtype: Any) -> Array:
    """Return integers of any value, each of a word, or two for 64 bits."""
    dtype = np.dtype(dtype)
    bits = joined_words(words) if dtype.itemsize == 8 else words
    return bits if dtype.kind == "u" else bits.astype(dtype)


def bounded_integer_of(words: Array, least: Array, end: Array) -> Array:
    """Return integers from `least` to below `end`, whose type they have."""
    dtype = np.dtype(least.dtype)
    unsigned = np.dtype(f"uint{dtype.itemsize * 8}")
    bits = integer_of(words, unsigned)
    span = end.astype(unsigned) - least.astype(unsigned)
    return (least.astype(unsigned) + bits % span).astype(dtype)


def _words(shape: tuple[int, ...], key: Array, counter: Array, dtype: np.dtype) -> Array:
    """Return the words for a tensor, of which a pair is always whole."""
    count = math.prod(shape)
    return philox(key, counter, words_needed(count + count % 2, dtype))


def _drawn(shape: tuple[int, ...], values: Array) -> Array:
    return values[: math.prod(shape)].reshape(shape)


def _shape(node: NodeView, shape: Array) -> tuple[int, ...]:
    return numbers(node, shape, "a shape that is")


def _check_generator(node: NodeView, generator: Array) -> None:
    if number(node, generator, "a generator") not in (PHILOX, CHOSEN):
        raise NotLoweredError(f"{node.op} by another generator than Philox")


@operation("StatelessRandomGetAlg")
def get_alg(node: NodeView) -> Array:
    return np.array(PHILOX, np.int32)


@operation("StatelessRandomGetKeyCounter")
def get_key_counter(node: NodeView, seed: Array) -> Array:
    return [*key_and_counter(seed)]


@operation("StatelessRandomUniformV2")
def uniform_v2(node: NodeView, shape: Array, key: Array, counter: Array, alg: Array) -> Array:
    _check_generator(node, alg)
    dtype, sizes = type_of(node, "dtype", np.float32), _shape(node, shape)
    return _drawn(sizes, uniform_of(_words(sizes, key, counter, dtype), dtype))


@operation("StatelessRandomNormalV2")
def normal_v2(node: NodeView, shape: Array, key: Array, counter: Array, alg: Array) -> Array:
    _check_generator(node, alg)
    dtype, sizes = type_of(node, "dtype", np.float32), _shape(node, shape)
    return _drawn(sizes, normal_of(_words(sizes, key, counter, dtype), dtype))


@operation("StatelessRandomUniformFullIntV2")
def full_int_v2(node: NodeView, shape: Array, key: Array, counter: Array, alg: Array) -> Array:
    _check_generator(node, alg)
    dtype, sizes = type_of(node, "dtype", np.uint64), _shape(node, shape)
    return _drawn(sizes, integer_of(_words(sizes, key, counter, dtype), dtype))


@operation("StatelessRandomUniformIntV2")
def int_v2(
    node: NodeView,
    shape: Array,
    key: Array,
    counter: Array,
    alg: Array,
    least: Array,
    end: Array,
) -> Array:
    _check_generator(node, alg)
    sizes = _shape(node, shape)
    words = _words(sizes, key, counter, least.dtype)
    return _drawn(sizes, bounded_integer_of(words, least, end))


GENERATOR = np.array(PHILOX, np.int32)


@operation("StatelessRandomUniform")
def uniform(node: NodeView, shape: Array, seed: Array) -> Array:
    return uniform_v2(node, shape, *key_and_counter(seed), GENERATOR)


@operation("StatelessRandomNormal")
def normal(node: NodeView, shape: Array, seed: Array) -> Array:
    return normal_v2(node, shape, *key_and_counter(seed), GENERATOR)


@operation("StatelessRandomUniformFullInt")
def full_int(node: NodeView, shape: Array, seed: Array) -> Array:
    return full_int_v2(node, shape, *key_and_counter(seed), GENERATOR)


@operation("StatelessRandomUniformInt")
def uniform_int(node: NodeView, shape: Array, seed: Array, least: Array, end: Array) -> Array:
    return int_v2(node, shape, *key_and_counter(seed), GENERATOR, least, end)


UNSEEDED = {
    "RandomStandardNormal": normal_v2,
    "RandomUniform": uniform_v2,
    "RandomUniformInt": int_v2,
}
"""The operations that draw anew each time, with those that draw under a key."""


def draw(node: NodeView, inputs: Sequence[Array], key: Array, counter: Array) -> Array:
    """Return what an operation of `UNSEEDED` draws under a key and a counter, of one and two 64-bit
    numbers.

    TensorFlow draws all of them from numbers of equal likelihood.
    """
    shape, *bounds = inputs
    if bounds and not (all(map(is_known, bounds)) and bounds[0] < bounds[1]):
        raise NotLoweredError(f"{node.op} of bounds that may be empty")
    return UNSEEDED[node.op](node, shape, key, counter, GENERATOR, *bounds)
