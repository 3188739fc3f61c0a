"""Rounds whose noise JAX draws from a key that TensorFlow draws, and faults in such rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.programs.rounds import PAIR, SIZE, process

CLIP = 3.0
SCALE = 6.0
KEY = tff.TensorType(np.uint32, [2])
VECTOR = tff.TensorType(np.float32, [SIZE])


def drawn_words(count: int = 2) -> Callable[[], Any]:
    """A function that draws words in TensorFlow."""
    return lambda: tf.bitcast(
        tf.random.uniform([count], tf.int32.min, tf.int32.max, tf.int32), tf.uint32
    )


def by_norm(tree: Any) -> Any:
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in jax.tree.leaves(tree)))
    return jax.tree.map(lambda x: x * jnp.minimum(1.0, CLIP / norm), tree)


def by_sum(x: Any) -> Any:
    return x * jnp.minimum(1.0, CLIP / jnp.sum(jnp.abs(x)))


def round_of(
    release: Any,
    data: Any = VECTOR,
    seed: Any = None,
    contribution: Any = by_norm,
) -> Any:
    """Rounds that release what a function in JAX makes of the sum and of a seed."""
    contribute = tff.jax.computation(contribution, data)
    draw = tff.tf_computation(seed or drawn_words())
    total = contribute.type_signature.result
    finish = tff.jax.computation(release, total, draw.type_signature.result)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(data))
    def next_sum(state: Any, values: Any) -> Any:
        total: Any = tff.federated_sum(tff.federated_map(contribute, values))
        drawn = tff.federated_eval(draw, tff.SERVER)
        return state, tff.federated_map(finish, (total, drawn))

    return process((), next_sum)


def key_of(words: Any) -> Any:
    return jax.random.wrap_key_data(words)


def normal(key: Any, shape: Any = (SIZE,)) -> Any:
    return SCALE * jax.random.normal(key, shape)


def threefry(key: Any, first: Any, second: Any, rounds: int = 5, parity: int = 0x1BD11BDA) -> Any:
    """Threefry of four times as many rounds as `rounds`, written out."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(parity))
    x, y = first + schedule[0], second + schedule[1]
    for turn in range(rounds):
        for bits in ((13, 15, 26, 6), (17, 29, 16, 24))[turn % 2]:
            x = x + y
            y = ((y << bits) | (y >> (32 - bits))) ^ x
        x, y = x + schedule[(turn + 1) % 3], y + schedule[(turn + 2) % 3] + jnp.uint32(turn + 1)
    return x, y


def uniform_of(words: Any, bits: int = 9) -> Any:
    """Numbers from 0 to 1 of random words."""
    ones = (words >> bits) | jnp.uint32(0x3F800000)
    return jax.lax.bitcast_convert_type(ones, jnp.float32) - 1.0


def normal_of(words: Any) -> Any:
    tiny = jnp.float32(2.0**-24)
    return SCALE * jnp.sqrt(2.0) * jax.lax.erf_inv(2.0 * uniform_of(words) - 1.0 + tiny)


COUNTERS = np.arange(SIZE, dtype=np.uint32)
NOUGHTS = np.zeros(SIZE, np.uint32)


class Fault(NamedTuple):
    """What is released of a sum and a seed, and how the seed is drawn, if not as words."""

    release: Any
    seed: Any = None
    data: Any = VECTOR
    counts_from_zero: bool = False
    """Whether it is none unless the words of a key are those at one counter after the other."""


# Seeds that are no secret, or not a long one.


def number_alone(total: Any, seed: Any) -> Any:
    return total + normal(jax.random.key(seed))


def one_word_twice(total: Any, seed: Any) -> Any:
    return total + normal(key_of(jnp.stack([seed[0], seed[0]])))


def word_and_constant(total: Any, seed: Any) -> Any:
    return total + normal(key_of(jnp.stack([jnp.uint32(7), seed[1]])))


def halves_of_words(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed >> 16))


def words_of_two_seeds(total: Any, seeds: Any) -> Any:
    """Each of the words may be in another key too."""
    left, right = threefry((seeds["one"][0], seeds["other"][0]), NOUGHTS, COUNTERS)
    return total + normal_of(left ^ right)


def sum_of_words(total: Any, seed: Any) -> Any:
    return total + normal(key_of(jnp.stack([seed[0] + seed[1], seed[1]])))


def product_with_constant(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed * jnp.uint32(1 << 16)))


def constant_key(total: Any, seed: Any) -> Any:
    return total + normal(jax.random.key(3))


def key_folded_into_constant(total: Any, seed: Any) -> Any:
    return total + normal(jax.random.fold_in(jax.random.key(3), seed[0]))


def words_of_the_seed_themselves(total: Any, seed: Any) -> Any:
    return total + normal_of(seed)


# Numbers that are used twice.


def key_used_twice(total: Any, seed: Any) -> Any:
    return jax.tree.map(lambda x: x + normal(key_of(seed), x.shape), total)


def noise_released(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)), normal(key_of(seed))


def key_released(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)), seed


def reversed_key_released(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)), seed[::-1]


def subkey_released(total: Any, seed: Any) -> Any:
    first, _ = jax.random.split(key_of(seed))
    return total + normal(first), jax.random.key_data(first)


def parent_of_subkey_released(total: Any, seed: Any) -> Any:
    first, _ = jax.random.split(key_of(seed))
    return total + normal(first), jax.random.key_data(jax.random.fold_in(key_of(seed), 0))


def bits_released(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)), jax.random.bits(key_of(seed), (SIZE,))


def low_bits_released(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)), jax.random.bits(key_of(seed), (SIZE,)) & 0xFF


def larger_array_released(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)), normal(key_of(seed), (SIZE + 2,))


def smaller_array_released(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)), jax.random.uniform(key_of(seed), (SIZE - 1,))


def bits_of_a_split_key(total: Any, seed: Any) -> Any:
    """The words of the first subkey are those of the first numbers of the key."""
    first, _ = jax.random.split(key_of(seed))
    return total + normal(first), jax.random.bits(key_of(seed), (1,))


def noise_of_a_split_key(total: Any, seed: Any) -> Any:
    first, _ = jax.random.split(key_of(seed))
    kernel, bias = total["kernel"], total["bias"]
    return kernel + normal(first, (2, 3)), bias + normal(key_of(seed), (3,))


def same_place_by_split_and_fold(total: Any, seed: Any) -> Any:
    first, _ = jax.random.split(key_of(seed))
    second = jax.random.fold_in(key_of(seed), 0)
    return total["kernel"] + normal(first, (2, 3)), total["bias"] + normal(second, (3,))


def same_number_folded_in(total: Any, seed: Any) -> Any:
    keys = [jax.random.fold_in(key_of(seed), number) for number in (4, 4)]
    return total["kernel"] + normal(keys[0], (2, 3)), total["bias"] + normal(keys[1], (3,))


def overlapping_parts(total: Any, seed: Any) -> Any:
    bits = jax.random.bits(key_of(seed), (8,))
    kernel = total["kernel"] + normal_of(bits[:6].reshape(2, 3))
    return kernel, total["bias"] + normal_of(bits[5:])


def words_with_swapped_key(total: Any, seed: Any) -> Any:
    kernel = total["kernel"] + normal(key_of(seed), (2, 3))
    return kernel, total["bias"] + normal(key_of(seed[::-1]), (3,))


def key_of_overlapping_words(total: Any, seed: Any) -> Any:
    kernel = total["kernel"] + normal(key_of(seed[:2]), (2, 3))
    return kernel, total["bias"] + normal(key_of(seed[1:]), (3,))


def noise_taken_away(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)) - normal(key_of(seed))


def reversed_noise_taken_away(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)) - normal(key_of(seed))[::-1]


def sign_of_noise(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)), jnp.sign(normal(key_of(seed))[0])


# Elements that are not independent of each other.


def one_number_for_all(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed), ())


def one_number_repeated(total: Any, seed: Any) -> Any:
    return total + jnp.repeat(normal(key_of(seed), (1,)), SIZE)


def tiled(total: Any, seed: Any) -> Any:
    return total + jnp.tile(normal(key_of(seed), (2,)), 2)


def tiled_bits(total: Any, seed: Any) -> Any:
    return total + normal_of(jnp.tile(jax.random.bits(key_of(seed), (2,)), 2))


def constant_counter(total: Any, seed: Any) -> Any:
    left, right = threefry(seed, NOUGHTS, NOUGHTS)
    return total + normal_of(left ^ right)


def counters_that_wrap(total: Any, seed: Any) -> Any:
    counters = jnp.asarray(COUNTERS) * jnp.uint32(1 << 31)
    left, right = threefry(seed, NOUGHTS, counters)
    return total + normal_of(left ^ right)


def counters_that_repeat(total: Any, seed: Any) -> Any:
    left, right = threefry(seed, NOUGHTS, jnp.asarray(COUNTERS) & jnp.uint32(1))
    return total + normal_of(left ^ right)


def same_words_twice(total: Any, seed: Any) -> Any:
    left, _ = threefry(seed, NOUGHTS[:2], COUNTERS[:2])
    return total + normal_of(jnp.concatenate([left, left]))


def words_and_their_mix(total: Any, seed: Any) -> Any:
    """The third part is the exclusive or of the others."""
    left, right = threefry(seed, NOUGHTS[:1], COUNTERS[:1])
    words = jnp.concatenate([left, right, left ^ right])
    return total["bias"] + normal_of(words)


def same_half_with_itself(total: Any, seed: Any) -> Any:
    left, _ = threefry(seed, NOUGHTS, COUNTERS)
    return total + normal_of(left ^ left)


# Functions that are not Threefry.


def too_few_rounds(total: Any, seed: Any) -> Any:
    left, right = threefry(seed, NOUGHTS, COUNTERS, rounds=4)
    return total + normal_of(left ^ right)


def one_round_more(total: Any, seed: Any) -> Any:
    left, right = threefry(seed, NOUGHTS, COUNTERS, rounds=6)
    return total + normal_of(left ^ right)


def another_parity(total: Any, seed: Any) -> Any:
    left, right = threefry(seed, NOUGHTS, COUNTERS, parity=0)
    return total + normal_of(left ^ right)


def nothing_but_an_addition(total: Any, seed: Any) -> Any:
    return total + normal_of(seed[0] + COUNTERS)


def other_generator(total: Any, seed: Any) -> Any:
    key = jax.random.wrap_key_data(seed, impl="unsafe_rbg")
    return total + normal(key)


def counter_of_data(total: Any, seed: Any) -> Any:
    place = total[0].astype(jnp.uint32)
    return total + normal(jax.random.fold_in(key_of(seed), place))


# Numbers that are not distributed as they should be.


def truncated(total: Any, seed: Any) -> Any:
    return total + SCALE * jax.random.truncated_normal(key_of(seed), -2.0, 2.0, (SIZE,))


def uniform(total: Any, seed: Any) -> Any:
    return total + jax.random.uniform(key_of(seed), (SIZE,), minval=-9.0, maxval=9.0)


def one_side_of_laplace(total: Any, seed: Any) -> Any:
    return total + SCALE * jax.random.exponential(key_of(seed), (SIZE,))


def magnitude(total: Any, seed: Any) -> Any:
    return total + jnp.abs(normal(key_of(seed)))


def clipped_noise(total: Any, seed: Any) -> Any:
    return total + jnp.clip(normal(key_of(seed)), -12.0, 12.0)


def noise_with_a_hole(total: Any, seed: Any) -> Any:
    noise = normal(key_of(seed))
    return total + jnp.where(jnp.abs(noise) < 0.001, 0.0, noise)


def noise_with_a_spike(total: Any, seed: Any) -> Any:
    noise = normal(key_of(seed))
    return total + jnp.where(noise > 31.3, 1e6, noise)


def laplace_with_a_spike(total: Any, seed: Any) -> Any:
    noise = jax.random.laplace(key_of(seed), (SIZE,))
    return total + SCALE * jnp.where(noise > 16.0, 1e6, noise)


def narrow_uniform(total: Any, seed: Any) -> Any:
    u = jax.random.uniform(key_of(seed), (SIZE,), minval=-0.9999, maxval=0.9999)
    return total + SCALE * jnp.sqrt(2.0) * jax.lax.erf_inv(u)


def interval_of_one_side(total: Any, seed: Any) -> Any:
    u = jax.random.uniform(key_of(seed), (SIZE,), minval=-0.5, maxval=0.51)
    return total + SCALE * jnp.sign(u) * jnp.log1p(-1.9 * jnp.abs(u))


def few_bits(total: Any, seed: Any) -> Any:
    words = jax.random.bits(key_of(seed), (SIZE,))
    return total + normal_of(words & jnp.uint32(0xFFFF0000))


def number_of(words: Any) -> Any:
    return jax.lax.bitcast_convert_type(words | jnp.uint32(0x3F800000), jnp.float32)


def chosen_by_low_bits(total: Any, seed: Any) -> Any:
    """Noise for one word of 512, and nothing for the others."""
    words = jax.random.bits(key_of(seed), (SIZE,))
    return total + jnp.where(number_of(words & jnp.uint32(0x1FF)) == 1.0, normal_of(words), 0.0)


def word_as_a_number(total: Any, seed: Any) -> Any:
    words = jax.random.bits(key_of(seed), (SIZE,))
    is_rare = words.astype(jnp.float32) * 2.0**-9 % 1.0 < 1e-3
    return total + jnp.where(is_rare, normal_of(words), 0.0)


def fewer_bits(total: Any, seed: Any) -> Any:
    words = jax.random.bits(key_of(seed), (SIZE,))
    u = (words >> 12).astype(jnp.float32) * 2.0**-19 - 1.0 + 2.0**-20
    return total + SCALE * jnp.sqrt(2.0) * jax.lax.erf_inv(u)


def only_low_bits(total: Any, seed: Any) -> Any:
    words = jax.random.bits(key_of(seed), (SIZE,))
    return total + normal_of(words << 16)


def sixteen_bits(total: Any, seed: Any) -> Any:
    noise = jax.random.normal(key_of(seed), (SIZE,), jnp.bfloat16)
    return total + SCALE * noise.astype(jnp.float32)


def half_precision(total: Any, seed: Any) -> Any:
    noise = normal(key_of(seed)).astype(jnp.float16)
    return total + noise.astype(jnp.float32)


def cauchy(total: Any, seed: Any) -> Any:
    return total + SCALE * jax.random.cauchy(key_of(seed), (SIZE,))


def scaled_by_the_sum(total: Any, seed: Any) -> Any:
    return total + total[0] * normal(key_of(seed))


def chosen_by_the_sum(total: Any, seed: Any) -> Any:
    return total + jnp.where(total > 0, normal(key_of(seed)), 0.0)


def nothing_for_an_element(total: Any, seed: Any) -> Any:
    return total + normal(key_of(seed)) * jnp.array([1.0, 1.0, 1.0, 0.0])


def two_seeds() -> Any:
    draw = drawn_words()
    return {"one": draw(), "other": draw()}


def number() -> Any:
    return tf.random.uniform([], tf.int32.min, tf.int32.max, tf.int32)


FAULTS: dict[str, Fault] = {
    "number_alone": Fault(number_alone, number),
    "words_of_two_seeds": Fault(words_of_two_seeds, two_seeds),
    "key_used_twice": Fault(key_used_twice, data=PAIR),
    "noise_of_a_split_key": Fault(noise_of_a_split_key, data=PAIR),
    "same_place_by_split_and_fold": Fault(
        same_place_by_split_and_fold, data=PAIR, counts_from_zero=True
    ),
    "parent_of_subkey_released": Fault(parent_of_subkey_released, counts_from_zero=True),
    "words_of_the_seed_themselves": Fault(words_of_the_seed_themselves, drawn_words(4)),
    "same_number_folded_in": Fault(same_number_folded_in, data=PAIR),
    "overlapping_parts": Fault(overlapping_parts, data=PAIR),
    "words_with_swapped_key": Fault(words_with_swapped_key, data=PAIR),
    "words_and_their_mix": Fault(words_and_their_mix, data=PAIR),
    "key_of_overlapping_words": Fault(key_of_overlapping_words, drawn_words(3), PAIR),
}
FAULTS |= {
    release.__name__: Fault(release)
    for release in (
        one_word_twice,
        word_and_constant,
        halves_of_words,
        sum_of_words,
        product_with_constant,
        constant_key,
        key_folded_into_constant,
        noise_released,
        key_released,
        reversed_key_released,
        subkey_released,
        bits_released,
        low_bits_released,
        larger_array_released,
        smaller_array_released,
        bits_of_a_split_key,
        noise_taken_away,
        reversed_noise_taken_away,
        sign_of_noise,
        one_number_for_all,
        one_number_repeated,
        tiled,
        tiled_bits,
        constant_counter,
        counters_that_wrap,
        counters_that_repeat,
        same_words_twice,
        same_half_with_itself,
        too_few_rounds,
        one_round_more,
        another_parity,
        nothing_but_an_addition,
        counter_of_data,
        truncated,
        uniform,
        one_side_of_laplace,
        magnitude,
        clipped_noise,
        noise_with_a_hole,
        noise_with_a_spike,
        laplace_with_a_spike,
        narrow_uniform,
        interval_of_one_side,
        few_bits,
        only_low_bits,
        chosen_by_low_bits,
        word_as_a_number,
        fewer_bits,
        sixteen_bits,
        half_precision,
        cauchy,
        scaled_by_the_sum,
        chosen_by_the_sum,
        nothing_for_an_element,
    )
}
FAULTS["other_generator"] = Fault(other_generator, drawn_words(4))
