"""What is shown of noise that JAX draws from a key: what holds by hand, and nothing of faults."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.derivations import derivation
from tests.assurance.privacy.programs.rounds import PAIR, SIZE, process
from tests.test_growth import check_growth, counted
from tffc.assurance.privacy.accounting import Gaussian, Laplacian
from tffc.assurance.privacy.modules import walk as modules
from tffc.assurance.privacy.modules import word_instructions
from tffc.assurance.privacy.modules.noise import ROUNDED
from tffc.assurance.privacy.quantities import threefry, word_functions
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.bounds import constant
from tffc.assurance.privacy.quantities.noises import EXPONENTIAL
from tffc.assurance.privacy.quantities.quantity import Noise, Provenance, Quantity
from tffc.assurance.privacy.question import Neighbours

jax: Any = pytest.importorskip("jax", reason="needs tffc[jax]")
jnp: Any = pytest.importorskip("jax.numpy")

from tests.assurance.privacy import keyed_rounds as rounds  # noqa: E402 - it imports JAX.

NOISE = rounds.SCALE / rounds.CLIP


def multiplier(process: Any, neighbours: Neighbours = Neighbours.ADD_OR_REMOVE) -> float:
    """The noise multiplier that is shown."""
    derived = derivation(process, neighbours)
    assert derived.is_shown, derived.missing
    (part,) = derived.parts
    assert isinstance(part, Gaussian | Laplacian)
    return part.multiplier


def is_noise(shown: float, expected: float = NOISE) -> bool:
    return math.isclose(shown, expected, rel_tol=1e-6)


def keyed(total: Any, seed: Any) -> Any:
    return total + rounds.normal(rounds.key_of(seed))


@pytest.mark.parametrize("is_partitionable", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_normal_noise(size: int, is_partitionable: bool) -> None:
    def release(total: Any, seed: Any) -> Any:
        return total + rounds.normal(rounds.key_of(seed), (size,))

    with jax.threefry_partitionable(is_partitionable):
        process = rounds.round_of(release, tff.TensorType(np.float32, [size]))
        assert is_noise(multiplier(process))


@pytest.mark.parametrize("is_partitionable", [True, False])
def test_a_key_of_its_own_for_each_tensor(is_partitionable: bool) -> None:
    def release(total: Any, seed: Any) -> Any:
        leaves, structure = jax.tree.flatten(total)
        keys = jax.random.split(rounds.key_of(seed), len(leaves))
        noisy = [x + rounds.normal(k, x.shape) for x, k in zip(leaves, keys, strict=True)]
        return jax.tree.unflatten(structure, noisy)

    with jax.threefry_partitionable(is_partitionable):
        assert is_noise(multiplier(rounds.round_of(release, PAIR)))


@pytest.mark.parametrize("is_partitionable", [True, False])
def test_keys_that_numbers_are_folded_into(is_partitionable: bool) -> None:
    def release(total: Any, seed: Any) -> Any:
        keys = [jax.random.fold_in(rounds.key_of(seed), number) for number in (4, 9)]
        kernel = total["kernel"] + rounds.normal(keys[0], (2, 3))
        return kernel, total["bias"] + rounds.normal(jax.random.fold_in(keys[1], 4), (3,))

    with jax.threefry_partitionable(is_partitionable):
        assert is_noise(multiplier(rounds.round_of(release, PAIR)))


def test_parts_of_an_array() -> None:
    """The noise of all tensors together, as one array of random words."""

    def release(total: Any, seed: Any) -> Any:
        noise = rounds.normal(rounds.key_of(seed), (9,))
        return total["kernel"] + noise[:6].reshape(3, 2).T, total["bias"] + noise[6:][::-1]

    assert is_noise(multiplier(rounds.round_of(release, PAIR)))


def test_threefry_that_a_program_writes_out() -> None:
    def release(total: Any, seed: Any) -> Any:
        left, right = rounds.threefry(seed, rounds.NOUGHTS[:2], 5 + rounds.COUNTERS[:2])
        return total + rounds.normal_of(jnp.concatenate([right, left]))

    assert is_noise(multiplier(rounds.round_of(release)))


def test_two_keys_of_one_draw() -> None:
    def release(total: Any, seed: Any) -> Any:
        kernel = total["kernel"] + rounds.normal(rounds.key_of(seed[:2]), (2, 3))
        return kernel, total["bias"] + rounds.normal(rounds.key_of(seed[2:]), (3,))

    assert is_noise(multiplier(rounds.round_of(release, PAIR, rounds.drawn_words(4))))


def test_a_subkey_that_is_released_tells_nothing_of_others() -> None:
    def release(total: Any, seed: Any) -> Any:
        first, second = jax.random.split(rounds.key_of(seed))
        return total + rounds.normal(first), jax.random.key_data(second)

    assert is_noise(multiplier(rounds.round_of(release)))


def full_range() -> Any:
    seed = tf.random.uniform([2], -(2**31), 2**31 - 1, tf.int32)
    draw: Any = tf.random.stateless_uniform
    return draw([2], seed, None, None, tf.uint32)


def positive_integers() -> Any:
    return tf.bitcast(tf.random.uniform([2], 0, 2**31 - 1, tf.int32), tf.uint32)


@pytest.mark.parametrize("seed", [full_range, positive_integers], ids=lambda each: each.__name__)
def test_seeds(seed: Any) -> None:
    assert is_noise(multiplier(rounds.round_of(keyed, seed=seed)))


def test_seeds_with_signs() -> None:
    def draw() -> Any:
        return tf.random.uniform([2], tf.int32.min, tf.int32.max, tf.int32)

    def release(total: Any, seed: Any) -> Any:
        return keyed(total, jax.lax.bitcast_convert_type(seed, jnp.uint32))

    assert is_noise(multiplier(rounds.round_of(release, seed=draw)))


@pytest.mark.parametrize("most", [2**16, 2**30])
def test_seeds_that_can_be_tried_out(most: int) -> None:
    def draw() -> Any:
        return tf.bitcast(tf.random.uniform([2], 0, most, tf.int32), tf.uint32)

    assert not derivation(rounds.round_of(keyed, seed=draw)).is_shown


def test_a_seed_of_the_program() -> None:
    def draw() -> Any:
        return tf.bitcast(tf.random.uniform([2], 0, 2**31 - 1, tf.int32, seed=3), tf.uint32)

    tf.random.set_seed(3)
    assert not derivation(rounds.round_of(keyed, seed=draw)).is_shown


def laplace_of_jax(key: Any) -> Any:
    return rounds.SCALE * jax.random.laplace(key, (SIZE,))


def laplace_of_exponentials(key: Any) -> Any:
    one, other = jax.random.split(key)
    one, other = (jax.random.exponential(each, (SIZE,)) for each in (one, other))
    return rounds.SCALE * (one - other)


def laplace_by_inverse(key: Any) -> Any:
    u = jax.random.uniform(key, (SIZE,), minval=-0.5 + 2.0**-25, maxval=0.5)
    return -rounds.SCALE * jnp.sign(u) * jnp.log1p(-2.0 * jnp.abs(u))


@pytest.mark.parametrize(
    "draw",
    [laplace_of_jax, laplace_of_exponentials, laplace_by_inverse],
    ids=lambda each: each.__name__,
)
def test_laplace_noise(draw: Any) -> None:
    def release(total: Any, seed: Any) -> Any:
        return total + draw(rounds.key_of(seed))

    process = rounds.round_of(release, contribution=rounds.by_sum)
    assert is_noise(multiplier(process))
    assert is_noise(multiplier(process, Neighbours.REPLACE), NOISE / 2)


def test_noise_at_clients_with_a_scale_of_the_server() -> None:
    """Each client clips and adds noise in one computation, scaled by a number of the state."""
    draw = tff.tf_computation(rounds.drawn_words())
    state_type = tff.TensorType(np.float32)

    @tff.jax.computation(state_type, rounds.VECTOR, rounds.KEY)
    def contribute(clip: Any, x: Any, seed: Any) -> Any:
        clipped = x * jnp.minimum(1.0, clip / jnp.linalg.norm(x))
        return clipped + 4.0 * clip * jax.random.normal(rounds.key_of(seed), (SIZE,))

    @tff.federated_computation(tff.types.at_server(state_type), tff.types.at_clients(rounds.VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        seeds = tff.federated_eval(draw, tff.CLIENTS)
        clip = tff.federated_broadcast(state)
        return state, tff.federated_sum(tff.federated_map(contribute, (clip, values, seeds)))

    noisy = process(np.float32(3.0), next_sum)
    assert is_noise(multiplier(noisy, Neighbours.REPLACE), 4.0 / 2)


def test_subkeys_for_other_computations() -> None:
    draw = tff.tf_computation(rounds.drawn_words())
    contribute = tff.jax.computation(rounds.by_norm, rounds.VECTOR)
    finish = tff.jax.computation(keyed, rounds.VECTOR, rounds.KEY)

    split = tff.jax.computation(lambda seed: jax.random.key_data(second_of(seed)), rounds.KEY)

    def released(is_used_twice: bool) -> Any:
        @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(rounds.VECTOR))
        def next_sum(state: Any, values: Any) -> Any:
            total = tff.federated_sum(tff.federated_map(contribute, values))
            seed = tff.federated_eval(draw, tff.SERVER)
            subkey = tff.federated_map(split, seed)
            noisy = tff.federated_map(finish, (total, subkey))
            if not is_used_twice:
                return state, noisy
            again = tff.federated_map(split, seed)
            return state, (noisy, tff.federated_map(finish, (total, again)))

        return process((), next_sum)

    assert is_noise(multiplier(released(False)))
    assert not derivation(released(True)).is_shown


def second_of(seed: Any) -> Any:
    return jax.random.split(rounds.key_of(seed))[1]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_subkey_in_a_computation_and_in_another(is_first: bool) -> None:
    """The same subkey of it makes the same noise twice."""
    draw = tff.tf_computation(rounds.drawn_words())
    contribute = tff.jax.computation(rounds.by_norm, rounds.VECTOR)

    @tff.jax.computation(rounds.KEY)
    def split(seed: Any) -> Any:
        return jax.random.key_data(second_of(seed))

    @tff.jax.computation(rounds.VECTOR, rounds.KEY)
    def inside(total: Any, seed: Any) -> Any:
        return total + rounds.normal(jax.random.fold_in(second_of(seed), 5))

    @tff.jax.computation(rounds.VECTOR, rounds.KEY)
    def outside(total: Any, subkey: Any) -> Any:
        return total + rounds.normal(jax.random.fold_in(rounds.key_of(subkey), 5))

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(rounds.VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(contribute, values))
        seed = tff.federated_eval(draw, tff.SERVER)
        if is_first:
            one = tff.federated_map(inside, (total, seed))
            other = tff.federated_map(outside, (total, tff.federated_map(split, seed)))
        else:
            other = tff.federated_map(outside, (total, tff.federated_map(split, seed)))
            one = tff.federated_map(inside, (total, seed))
        return state, (one, other)

    assert not derivation(process((), next_sum)).is_shown


def test_noise_of_a_seed_that_is_sent() -> None:
    """The server's key is the clients' key too, who all add the same noise."""
    draw = tff.tf_computation(rounds.drawn_words())

    @tff.jax.computation(rounds.VECTOR, rounds.KEY)
    def contribute(x: Any, seed: Any) -> Any:
        return keyed(rounds.by_norm(x), seed)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(rounds.VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        seed = tff.federated_broadcast(tff.federated_eval(draw, tff.SERVER))
        return state, tff.federated_sum(tff.federated_map(contribute, (values, seed)))

    derived = derivation(process((), next_sum), Neighbours.REPLACE)
    assert "noise kept secret" in {missing.step for missing in derived.missing}


def test_seeds_of_clients_that_are_added_up() -> None:
    draw = tff.tf_computation(rounds.drawn_words())

    @tff.jax.computation(rounds.VECTOR, rounds.KEY)
    def contribute(x: Any, seed: Any) -> Any:
        return keyed(rounds.by_norm(x), seed), seed

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(rounds.VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        seeds = tff.federated_eval(draw, tff.CLIENTS)
        return state, tff.federated_sum(tff.federated_map(contribute, (values, seeds)))

    assert not derivation(process((), next_sum), Neighbours.REPLACE).is_shown


def test_a_key_that_is_kept_in_the_state() -> None:
    """It is drawn in one round, and released in the next."""
    draw = tff.tf_computation(rounds.drawn_words())
    contribute = tff.jax.computation(rounds.by_norm, rounds.VECTOR)
    finish = tff.jax.computation(keyed, rounds.VECTOR, rounds.KEY)

    @tff.federated_computation(tff.types.at_server(rounds.KEY), tff.types.at_clients(rounds.VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(contribute, values))
        seed = tff.federated_eval(draw, tff.SERVER)
        return seed, (tff.federated_map(finish, (total, seed)), state)

    assert not derivation(process(np.zeros(2, np.uint32), next_sum)).is_shown


def test_noise_of_tensorflow_and_of_jax_from_one_seed() -> None:
    def both(total: Any, seed: Any) -> Any:
        return total + 6.0 * tf.random.stateless_normal([SIZE], tf.bitcast(seed, tf.int32))

    draw = tff.tf_computation(rounds.drawn_words())
    contribute = tff.jax.computation(rounds.by_norm, rounds.VECTOR)
    finish = tff.jax.computation(keyed, rounds.VECTOR, rounds.KEY)
    other = tff.tf_computation(both, rounds.VECTOR, rounds.KEY)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(rounds.VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(contribute, values))
        seed = tff.federated_eval(draw, tff.SERVER)
        noisy = tff.federated_map(finish, (total, seed))
        return state, (noisy, tff.federated_map(other, (total, seed)))

    derived = derivation(process((), next_sum))
    assert {missing.step for missing in derived.missing} == {"noise drawn once"}


def test_a_seed_in_another_tensor() -> None:
    """The key is the same, though TensorFlow passes it on as another tensor."""
    draw = tff.tf_computation(rounds.drawn_words())
    contribute = tff.jax.computation(rounds.by_norm, rounds.VECTOR)
    finish = tff.jax.computation(keyed, rounds.VECTOR, rounds.KEY)
    twice = tff.tf_computation(
        lambda seed: tf.bitcast(tf.bitcast(seed, tf.int32), tf.uint32), rounds.KEY
    )

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(rounds.VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(contribute, values))
        seed = tff.federated_eval(draw, tff.SERVER)
        noisy = tff.federated_map(finish, (total, seed))
        again = tff.federated_map(finish, (total, tff.federated_map(twice, seed)))
        return state, (noisy, again)

    assert not derivation(process((), next_sum)).is_shown


def test_draws_that_follow_from_each_other_are_not_independent() -> None:
    algebra = Algebra()
    first, second = (algebra.drawn(EXPONENTIAL, (SIZE,)) for _ in range(2))
    assert first.noise is not None

    def taken_away(draw: int) -> Quantity:
        noise = Noise(EXPONENTIAL, constant(-1.0), frozenset((draw,)), "")
        return Quantity(algebra.fresh(), Provenance(draws=noise.draws), shape=(SIZE,), noise=noise)

    (draw,) = first.noise.draws
    following = taken_away(algebra.derived((draw,), ""))
    assert algebra.add(first, following).noise is None
    assert algebra.add(first, taken_away(draw)).noise is None
    assert algebra.add(second, following).noise is not None


def test_a_seed_with_a_noisy_sum_in_it() -> None:
    """What is known of the sum is not forgotten."""
    contribute = tff.jax.computation(rounds.by_norm, rounds.VECTOR)
    finish = tff.jax.computation(keyed, rounds.VECTOR, rounds.KEY)

    def draw_with(total: Any) -> Any:
        noisy = tf.cast(total + tf.random.normal([SIZE], stddev=1e-3), tf.int32)[:2]
        drawn = tf.random.uniform([2], tf.int32.min, tf.int32.max, tf.int32)
        return tf.bitcast(drawn + noisy, tf.uint32)

    draw = tff.tf_computation(draw_with, rounds.VECTOR)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(rounds.VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(contribute, values))
        seed = tff.federated_map(draw, total)
        return state, tff.federated_map(finish, (total, seed))

    assert not derivation(process((), next_sum)).is_shown


def tensors_with_keys(count: int) -> Any:
    """Rounds with as many tensors, each with noise of a key of its own."""

    def release(total: Any, seed: Any) -> Any:
        keys = jax.random.split(rounds.key_of(seed), count)
        return tuple(x + rounds.normal(k, (3,)) for x, k in zip(total, keys, strict=True))

    data = tff.StructWithPythonType([tff.TensorType(np.float32, [3])] * count, tuple)
    return rounds.round_of(release, data)


@pytest.mark.slow
def test_work_grows_in_step_with_the_keys() -> None:
    counts = [
        counted(functools.partial(derivation, tensors_with_keys(count))) for count in (8, 16, 32)
    ]
    check_growth(counts)


LIMITS = (
    (word_instructions, "MOST_WORDS"),
    (word_instructions, "MOST_ELEMENTS"),
    (threefry, "MOST_BLOCKS"),
    (word_functions, "MOST_FUNCTIONS"),
    (word_functions, "MOST_OPERATIONS"),
    (modules, "MOST_ITERATIONS"),
)


@pytest.mark.parametrize(("module", "name"), LIMITS, ids=[name for _, name in LIMITS])
def test_limits(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    process = rounds.round_of(keyed)
    assert is_noise(multiplier(process))
    monkeypatch.setattr(module, name, 0)
    assert not derivation(process).is_shown


def test_what_it_rests_on() -> None:
    assert ROUNDED in derivation(rounds.round_of(keyed)).assumptions


@pytest.mark.slow
@pytest.mark.parametrize("is_partitionable", [True, False])
@pytest.mark.parametrize("name", rounds.FAULTS)
def test_faults(name: str, is_partitionable: bool) -> None:
    fault = rounds.FAULTS[name]
    if fault.counts_from_zero and not is_partitionable:
        return
    with jax.threefry_partitionable(is_partitionable):
        process = rounds.round_of(fault.release, fault.data, fault.seed)
        assert not derivation(process).is_shown


def test_number_of_faults() -> None:
    assert len(rounds.FAULTS) >= 60
