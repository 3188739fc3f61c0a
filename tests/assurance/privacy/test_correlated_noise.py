"""Noise that is correlated between rounds: the matrix mechanism, and how it can be spoiled."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.derivations import VECTOR, derivation
from tffc.assurance.privacy.derivation import Derivation
from tffc.assurance.privacy.quantities.streams import Row as RoundNoise
from tffc.assurance.privacy.quantities.streams import largest_change, precision_of, stream_of
from tffc.assurance.privacy.question import Neighbours

STATE = tff.to_type(
    collections.OrderedDict(
        noise=VECTOR,
        count=tff.TensorType(np.int32),
        seed=tff.TensorType(np.int64, [2]),
        memory=VECTOR,
    )
)

SCALE = 2.0


def clock() -> Any:
    return tf.cast(
        tf.stack([tf.floor(tf.timestamp() * 1e6), tf.constant(0.0, tf.float64)]), tf.int64
    )


def state(noise: Any = None, count: Any = 0, seed: Any = None, memory: Any = None) -> Any:
    return collections.OrderedDict(
        noise=tf.zeros([4]) if noise is None else noise,
        count=tf.constant(0) + count,
        seed=tf.zeros([2], tf.int64) if seed is None else seed,
        memory=tf.zeros([4]) if memory is None else memory,
    )


def begin() -> Any:
    return state()


def normal() -> Any:
    return SCALE * tf.random.normal([4])


def stateless(seed: Any) -> Any:
    return SCALE * tf.random.stateless_normal([4], seed=seed)


def process_of(
    finish: Callable[[Any, Any], Any],
    first: Callable[[], Any] = begin,
    clip: Callable[[Any], Any] = lambda x: tf.clip_by_norm(x, 1.0),
) -> Any:
    starts = tff.tf_computation(first)
    end = tff.tf_computation(STATE, VECTOR)(finish)
    work = tff.tf_computation(VECTOR)(clip)

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(starts, tff.SERVER)

    @tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(VECTOR))
    def following(memory: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(work, values))
        result = tff.federated_map(end, (memory, total))
        return result[0], result[1]

    return tff.templates.IterativeProcess(initialize, following)


def of(
    process: Any,
    rounds: int = 4,
    participations: int | None = 1,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    vouches: bool = True,
) -> Derivation:
    return derivation(
        process,
        neighbours,
        has_secret_seeds=vouches,
        rounds=rounds,
        participations=participations,
    )


def multiplier(process: Any, *args: Any, **kwargs: Any) -> float:
    result = of(process, *args, **kwargs)
    assert result.is_shown, result.missing
    (part,) = result.once
    assert not result.parts
    return part.multiplier


def change(released: np.ndarray, participations: int | None) -> float:
    """The largest squared change for noise of rounds, in the scale of a draw."""
    inverse = np.linalg.inv(released @ released.T)
    return float(np.diag(inverse).max() if participations == 1 else np.abs(inverse).sum())


def differences(rounds: int, share: float) -> np.ndarray:
    """The noise of a round, less a share of that of the round before."""
    return np.eye(rounds) - share * np.eye(rounds, k=-1)


def less(share: float) -> Callable[[Any, Any], Any]:
    def finish(s: Any, total: Any) -> Any:
        noise = normal()
        return state(noise), total + noise - share * s["noise"]

    return finish


@pytest.mark.parametrize("participations", [1, None])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_noise_of_the_round_before_is_taken_away(
    rounds: int, participations: int | None
) -> None:
    expected = SCALE / change(differences(rounds, 0.5), participations) ** 0.5
    actual = multiplier(process_of(less(0.5)), rounds, participations, vouches=False)
    assert actual == pytest.approx(expected, rel=1e-6)


def test_replacing_a_client_changes_twice_as_much() -> None:
    process = process_of(less(0.5))
    once = multiplier(process)
    assert multiplier(process, neighbours=Neighbours.REPLACE) == pytest.approx(once / 2)
    assert multiplier(process, neighbours=Neighbours.ZERO_OUT) == pytest.approx(once)


def test_a_loop_whose_length_the_state_decides() -> None:
    """In round t, the noise is the sum of t + 1 draws, with seeds that the state counts."""

    def finish(s: Any, total: Any) -> Any:
        _, seed, noise = tf.while_loop(
            lambda number, seed, noise: number <= s["count"],
            lambda number, seed, noise: (number + 1, seed + 1, noise + stateless(seed)),
            (0, s["seed"], tf.zeros([4])),
        )
        return state(noise, s["count"] + 1, seed), (total + noise) / 3.0

    process = process_of(finish, lambda: state(seed=clock()))
    rows = np.zeros((4, 10))
    for number, start in enumerate((0, 1, 3, 6)):
        rows[number, start : start + number + 1] = 1.0
    for participations in (1, None):
        expected = SCALE / change(rows, participations) ** 0.5
        actual = multiplier(process, participations=participations)
        assert actual == pytest.approx(expected, rel=1e-6)
    assert of(process, vouches=False).missing


def test_branches_that_the_state_decides() -> None:
    def finish(s: Any, total: Any) -> Any:
        noise = normal()
        taken = tf.cond(s["count"] % 2 > 0, lambda: s["noise"], lambda: tf.zeros([4]))
        return state(noise, s["count"] + 1), total + (noise - taken)

    rows = differences(4, 1.0)
    rows[2, 1] = 0.0
    expected = SCALE / change(rows, 1) ** 0.5
    assert multiplier(process_of(finish)) == pytest.approx(expected, rel=1e-6)


def test_what_is_released_may_be_used_again() -> None:
    """A model follows from what is released, and clients from the model."""
    starts = tff.tf_computation(begin)
    add = tff.tf_computation(STATE, VECTOR)(
        lambda s, total: (
            lambda noise: state(
                noise, memory=tf.tanh(s["memory"] + total + noise - 0.5 * s["noise"])
            )
        )(normal())
    )
    work = tff.tf_computation(VECTOR, VECTOR)(lambda m, x: tf.clip_by_norm(x - m, 1.0))

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(starts, tff.SERVER)

    @tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(VECTOR))
    def following(memory: Any, values: Any) -> Any:
        model = tff.federated_broadcast(memory["memory"])
        total = tff.federated_sum(tff.federated_map(work, (model, values)))
        new = tff.federated_map(add, (memory, total))
        return new, new["memory"]

    process = tff.templates.IterativeProcess(initialize, following)
    expected = SCALE / change(differences(4, 0.5), 1) ** 0.5
    assert multiplier(process) == pytest.approx(expected, rel=1e-6)


def test_functions_are_followed() -> None:
    inner = tf.function(less(0.5), autograph=False)

    def finish(s: Any, total: Any) -> Any:
        return tf.function(lambda s, total: inner(s, total), autograph=False)(s, total)

    expected = SCALE / change(differences(4, 0.5), 1) ** 0.5
    assert multiplier(process_of(finish)) == pytest.approx(expected, rel=1e-6)


def test_noise_of_sums_that_is_correlated_in_other_ways() -> None:
    def finish(s: Any, total: Any) -> Any:
        noise, other = normal(), normal()
        new = state(noise, memory=other)
        return new, (total + noise - 0.5 * s["noise"], 3.0 * total + other + s["memory"])

    result = of(process_of(finish))
    assert result.is_shown
    expected = [
        SCALE / change(differences(4, 0.5), 1) ** 0.5,
        SCALE / 3.0 / change(differences(4, -1.0), 1) ** 0.5,
    ]
    assert [part.multiplier for part in result.once] == pytest.approx(expected, rel=1e-6)


ATTACKS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[], Any]]] = {}


def attack(
    name: str, first: Callable[[], Any] = begin
) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    def enter(finish: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        ATTACKS[name] = finish, first
        return finish

    return enter


@attack("all noise is taken away")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise), total + noise - noise + 0.0 * s["noise"]


@attack("the noise repeats", lambda: state(noise=normal()))
def _(s: Any, total: Any) -> Any:
    return state(s["noise"]), total + s["noise"]


@attack("the noise of every second round repeats", lambda: state(normal(), memory=normal()))
def _(s: Any, total: Any) -> Any:
    return state(s["memory"], memory=s["noise"]), total + s["noise"]


@attack("what is kept is released later")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise), (total + noise - 0.5 * s["noise"], s["noise"])


@attack("what is kept is released at once")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise), (total + noise - 0.5 * s["noise"], noise)


@attack("a function of what is kept is released")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise, memory=tf.sign(noise)), (total + noise - 0.5 * s["noise"], s["memory"])


@attack("noise of the first state is released", lambda: state(normal(), memory=normal()))
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise + s["memory"], memory=s["memory"]), (
        total + noise - 0.5 * s["noise"],
        s["memory"],
    )


@attack("the same noise hides two sums")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    taken = noise - 0.5 * s["noise"]
    return state(noise), (total + taken, 2.0 * total + taken)


@attack("the noise of the last round hides another sum")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise), (total + noise - 0.5 * s["noise"], 2.0 * total + s["noise"])


@attack("the sum is released before noise is taken away")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise), (total + noise, total + noise - 0.5 * s["noise"])


@attack("elements change their places")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    square = tf.transpose(tf.reshape(noise, [2, 2]))
    return state(tf.reshape(square, [4])), total + noise - 0.5 * s["noise"]


@attack("one element of the noise for all")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise), total + (noise - 0.5 * s["noise"])[0] * tf.ones([4])


@attack("noise of another shape")
def _(s: Any, total: Any) -> Any:
    noise = SCALE * tf.random.normal([1])
    return state(s["noise"] + noise), total + (s["noise"] + noise)


@attack("noise that is no combination")
def _(s: Any, total: Any) -> Any:
    noise = tf.tanh(normal())
    return state(noise), total + noise - 0.5 * s["noise"]


@attack("the sum decides about the noise")
def _(s: Any, total: Any) -> Any:
    noise = tf.where(total[0] > 0, normal(), tf.zeros([4]))
    return state(noise), total + noise - 0.5 * s["noise"]


@attack("the sum decides about the next noise")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    memory = tf.cond(total[0] > 0, lambda: noise, lambda: tf.zeros([4]))
    return state(memory), total + noise - 0.5 * s["noise"]


@attack("the sum is kept and released")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise, memory=total), (total + noise - 0.5 * s["noise"], s["memory"])


@attack("the noise stops")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    going = tf.cast(s["count"] < 3, tf.float32)
    return state(noise, s["count"] + 1), total + going * (noise - 0.5 * s["noise"])


@attack("a seed for two shapes", lambda: state(seed=clock()))
def _(s: Any, total: Any) -> Any:
    noise = stateless(s["seed"])
    other = tf.random.stateless_normal([9], seed=s["seed"])
    memory = state(noise, seed=s["seed"] + 1, memory=other[4:8])
    return memory, total + noise - 0.5 * s["noise"]


@attack("a seed that is drawn from again", lambda: state(seed=clock()))
def _(s: Any, total: Any) -> Any:
    noise = stateless(s["seed"] + s["noise"].shape[0])
    memory = state(noise, s["count"] + 1, s["seed"] + tf.cast(s["count"] < 2, tf.int64))
    return memory, total + noise


@attack("the seed is released", lambda: state(seed=clock()))
def _(s: Any, total: Any) -> Any:
    noise = stateless(s["seed"])
    return state(noise, seed=s["seed"] + 1), (total + noise - 0.5 * s["noise"], s["seed"])


@attack("other numbers of the seed are released", lambda: state(seed=clock()))
def _(s: Any, total: Any) -> Any:
    noise = stateless(s["seed"])
    other = tf.random.stateless_uniform([4], seed=s["seed"])
    return state(noise, seed=s["seed"] + 1), (total + noise - 0.5 * s["noise"], other)


@attack("the time that is the seed is released")
def _(s: Any, total: Any) -> Any:
    seed = clock()
    noise = stateless(seed)
    return state(noise), (total + noise - 0.5 * s["noise"], seed + 3)


@attack("two seeds of one time")
def _(s: Any, total: Any) -> Any:
    time = tf.floor(tf.timestamp() * 1e6)
    seeds = [
        tf.cast(tf.stack([time, tf.constant(number, tf.float64)]), tf.int64)
        for number in (0.0, 0.0)
    ]
    noise = stateless(seeds[0])
    return state(stateless(seeds[1])), total + noise - 0.5 * s["noise"]


@attack("a given seed", lambda: state(seed=tf.constant([3, 4], tf.int64)))
def _(s: Any, total: Any) -> Any:
    noise = stateless(s["seed"])
    return state(noise, seed=s["seed"] + 1), total + noise - 0.5 * s["noise"]


@attack("the noise is printed")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    with tf.control_dependencies([tf.raw_ops.PrintV2(input=tf.as_string(s["noise"][0]))]):
        return state(tf.identity(noise)), total + noise - 0.5 * s["noise"]


@attack("noise of two kinds")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    uniform = tf.random.uniform([4], -0.5, 0.5)
    laplace = -tf.sign(uniform) * tf.math.log(1.0 - 2.0 * tf.abs(uniform))
    return state(noise), (total + noise - 0.5 * s["noise"], total + 9.0 * laplace)


@attack("noise is taken away a round later")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    noisy = total + noise
    return state(noise, memory=noisy), s["memory"] - s["noise"]


@attack("an operation with a given seed")
def _(s: Any, total: Any) -> Any:
    noise = SCALE * tf.random.normal([4], seed=3)
    return state(noise), total + noise - 0.5 * s["noise"]


@attack("noise is added to the noise of the sum, in part")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    some = tf.concat([noise[:2], tf.zeros([2])], 0)
    return state(noise), total + some - 0.5 * s["noise"]


@attack("the sum of the noise is released")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise), (total + noise - 0.5 * s["noise"], tf.reduce_sum(noise))


@attack("more numbers than there is memory for")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    large = tf.fill([100_000, 100_000], 1.0) * tf.reshape(tf.range(100_000.0), [1, 100_000])
    return state(noise), total + noise - large[0, 1] * s["noise"]


@attack("endless loop")
def _(s: Any, total: Any) -> Any:
    noise = tf.while_loop(lambda n: s["count"] < 1, lambda n: [n + normal()], [tf.zeros([4])])[0]
    return state(noise), total + noise


@attack("infinite numbers")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    return state(noise), total + (noise - 0.5 * s["noise"] + tf.constant(np.inf))


@attack("the noise is scaled by a variable number")
def _(s: Any, total: Any) -> Any:
    noise = normal()
    number = tf.reduce_sum(tf.tanh(s["memory"]))
    return state(noise, memory=s["memory"] + 1.0), total + number * (noise - 0.5 * s["noise"])


SLOW = {"endless loop"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in ATTACKS]
)
def test_attacks(name: str) -> None:
    result = of(process_of(*ATTACKS[name]), rounds=5)
    assert result.missing
    steps = {"noise", "noise drawn once", "noise kept secret", "no other release"}
    assert {step.step for step in result.missing} <= steps


def test_noise_is_not_for_clients() -> None:
    starts = tff.tf_computation(begin)
    end = tff.tf_computation(STATE, VECTOR)(less(0.5))
    work = tff.tf_computation(VECTOR, VECTOR)(lambda memory, x: tf.clip_by_norm(x + memory, 1.0))

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(starts, tff.SERVER)

    @tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(VECTOR))
    def following(memory: Any, values: Any) -> Any:
        noise = tff.federated_broadcast(memory["noise"])
        total = tff.federated_sum(tff.federated_map(work, (noise, values)))
        result = tff.federated_map(end, (memory, total))
        return result[0], result[1]

    result = of(tff.templates.IterativeProcess(initialize, following))
    assert "noise kept secret" in {step.step for step in result.missing}


def test_clients_without_a_bound() -> None:
    result = of(process_of(less(0.5), clip=lambda x: x))
    assert [step.step for step in result.missing] == ["bound of each contribution"]


def test_the_matrix_mechanism() -> None:
    generator = np.random.default_rng(1)
    weights = np.tril(generator.normal(size=(6, 6))) + 3 * np.eye(6)
    rows = [RoundNoise(np.flatnonzero(row), row[np.flatnonzero(row)], (4,)) for row in weights]
    stream = stream_of(rows)
    assert stream is not None
    precision = precision_of(stream)
    assert precision == pytest.approx(np.linalg.inv(weights @ weights.T))
    whole = largest_change(precision, None)
    assert whole == pytest.approx(np.abs(precision).sum())
    assert largest_change(precision, 1) == pytest.approx(np.diag(precision).max())
    for count in range(1, 7):
        most = largest_change(precision, count)
        assert most <= whole * (1 + 1e-12)
        for _ in range(200):
            rounds = generator.choice(6, count, replace=False)
            vectors = np.zeros((6, 3))
            vectors[rounds] = generator.normal(size=(count, 3))
            vectors[rounds] /= np.linalg.norm(vectors[rounds], axis=1, keepdims=True)
            squares = np.einsum("si,st,ti", vectors, precision, vectors)
            assert squares <= most * (1 + 1e-12)


def test_noise_that_leaves_a_combination_bare() -> None:
    rows = [RoundNoise(np.array([0]), np.array([1.0]), (4,))] * 2
    stream = stream_of(rows)
    assert stream is not None
    assert precision_of(stream) is None
    assert precision_of(stream.scaled(0.0)) is None
