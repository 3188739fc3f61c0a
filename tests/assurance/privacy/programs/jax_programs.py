"""Differentially private rounds whose computations are JAX."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.programs.rounds import (
    CLIP,
    EXPECTED,
    NOISE,
    PAIR,
    SIZE,
    VECTOR,
    process,
)

SCALE = 0.5
SEED = tff.TensorType(np.uint32, [2])


@tff.tf_computation
def draw_seed() -> Any:
    """A key of JAX: JAX itself draws nothing new in a round."""
    return tf.bitcast(tf.random.uniform([2], -(2**31), 2**31 - 1, tf.int32), tf.uint32)


def noised(data: Any, contribution: Any, release: Any) -> Any:
    """Rounds that release a sum with noise drawn by JAX at the server."""
    contribute = tff.jax.computation(contribution, data)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(data))
    def next_sum(state: Any, values: Any) -> Any:
        total: Any = tff.federated_sum(tff.federated_map(contribute, values))
        seed = tff.federated_eval(draw_seed, tff.SERVER)
        finish = tff.jax.computation(release, total.type_signature.member, SEED)
        return state, tff.federated_map(finish, (total, seed))

    return process((), next_sum)


def normal(total: Any, seed: Any) -> Any:
    """Adds normal noise, from a key of its own for each tensor."""
    leaves, structure = jax.tree.flatten(total)
    keys = jax.random.split(jax.random.wrap_key_data(seed), len(leaves))
    noisy = [
        x + NOISE * CLIP * jax.random.normal(key, x.shape)
        for x, key in zip(leaves, keys, strict=True)
    ]
    return jax.tree.unflatten(structure, noisy)


def mean_of_normal(total: Any, seed: Any) -> Any:
    return jax.tree.map(lambda x: x / EXPECTED, normal(total, seed))


def laplace(total: Any, seed: Any) -> Any:
    return total + SCALE * jax.random.laplace(jax.random.wrap_key_data(seed), (SIZE,))


def clipped_together(pair: Any) -> Any:
    """As optax clips: what is short enough stays as it is."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in jax.tree.leaves(pair)))
    is_short = norm < CLIP
    return jax.tree.map(lambda x: jnp.where(is_short, x, (x / norm) * CLIP), pair)


def scaled_by_minimum(x: Any) -> Any:
    return x * jnp.minimum(1.0, CLIP / jnp.maximum(jnp.linalg.norm(x), 1e-12))


def clipped_by_sum(x: Any) -> Any:
    return x / jnp.maximum(1.0, jnp.sum(jnp.abs(x)))


def clipped_to_a_box(x: Any) -> Any:
    return jnp.clip(x, -1.0, 1.0)


jax_clip_by_global_norm = noised(PAIR, clipped_together, mean_of_normal)
jax_minimum_formula = noised(VECTOR, scaled_by_minimum, normal)
jax_laplace = noised(VECTOR, clipped_by_sum, laplace)
jax_clip_by_value = noised(VECTOR, clipped_to_a_box, normal)
