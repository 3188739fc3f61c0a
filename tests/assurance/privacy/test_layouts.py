"""What is known of tensors that were reshaped, cut, or reduced from datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.derivations import VECTOR, derivation, round_by
from tffc.assurance.privacy.accounting import Gaussian
from tffc.assurance.privacy.question import Neighbours

VECTORS = tff.SequenceType(tff.TensorType(np.float32, [4]))


def with_noise(total: Any) -> Any:
    return total + tf.random.normal(tf.shape(total), stddev=2.0)


def multiplier(process: Any) -> float:
    """Return the noise multiplier of a round."""
    (part,) = derivation(process).parts
    assert isinstance(part, Gaussian)
    return part.multiplier


def test_a_reduced_dataset_has_the_shape_that_tensorflow_checks() -> None:
    def work(vectors: Any) -> Any:
        return tf.clip_by_norm(vectors.reduce(tf.zeros([4]), tf.add), 0.5)

    assert multiplier(round_by(work, with_noise, VECTORS)) == pytest.approx(4)


def test_a_reduction_that_grows_has_no_known_size() -> None:
    def work(vectors: Any) -> Any:
        grown = vectors.reduce(tf.zeros([0]), lambda state, row: tf.concat([state, row[:1]], 0))
        return tf.reduce_sum(tf.clip_by_value(grown, -1.0, 1.0))

    (missing,) = derivation(round_by(work, with_noise, VECTORS)).missing
    assert missing.step == "bound of each contribution"


@pytest.mark.parametrize("cut", [np.s_[tf.newaxis, :], np.s_[..., tf.newaxis], np.s_[0:3, None]])
def test_a_tensor_with_a_new_axis_has_a_norm(cut: Any) -> None:
    def work(vector: Any) -> Any:
        return tf.clip_by_norm(vector[cut], 0.5)

    assert multiplier(round_by(work, with_noise)) == pytest.approx(4)


def test_elements_that_are_spread_along_a_new_axis_count_as_often() -> None:
    def work(vector: Any) -> Any:
        spread = tf.clip_by_value(vector, -1.0, 1.0)[tf.newaxis, :] * tf.ones([5, 1])
        return tf.reduce_sum(spread)

    assert multiplier(round_by(work, with_noise)) == pytest.approx(2 / 20)


TABLE = np.arange(40, dtype=np.float32)


def looked_up(x: Any) -> Any:
    """Four numbers of a public table, from a place that a client's data says."""
    start = tf.cast(x[0], tf.int32)
    return tf.slice(tf.constant(TABLE), [start], [4])


def taken(x: Any) -> Any:
    start = tf.cast(x[0], tf.int32)
    return tf.ensure_shape(tf.constant(TABLE)[start : start + 4], [4])


@pytest.mark.parametrize("work", [looked_up, taken])
def test_places_that_data_says_are_data(work: Any) -> None:
    following = round_by(work, lambda total: total + tf.random.normal([4], stddev=10.0))
    (part,) = derivation(following, Neighbours.REPLACE).parts
    assert isinstance(part, Gaussian)
    assert part.multiplier == pytest.approx(10 / 78)


def test_a_place_in_released_numbers_is_data() -> None:
    """Two clients may choose different elements of what all of them know."""
    table = tff.TensorType(np.float32, [40])
    choose = tff.tf_computation(table, VECTOR)(
        lambda table, x: tf.slice(table, [tf.cast(x[0], tf.int32)], [4])
    )
    add = tff.tf_computation(table, VECTOR)(
        lambda table, total: (
            tf.concat([table[4:], total], 0),
            total + tf.random.normal([4], stddev=10.0),
        )
    )
    zeros = tff.tf_computation(lambda: tf.zeros([40]))

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(zeros, tff.SERVER)

    @tff.federated_computation(tff.types.at_server(table), tff.types.at_clients(VECTOR))
    def next_round(state: Any, values: Any) -> Any:
        sent = tff.federated_broadcast(state)
        total = tff.federated_sum(tff.federated_map(choose, (sent, values)))
        done = tff.federated_map(add, (state, total))
        memory = tff.federated_map(add, (state, done[1]))
        return memory[0], done[1]

    process = tff.templates.IterativeProcess(initialize, next_round)
    assert not derivation(process, Neighbours.REPLACE).is_shown


def test_one_draw_for_all_elements_hides_none_of_them() -> None:
    process = round_by(
        lambda x: tf.clip_by_norm(x, 1.0), lambda total: total + tf.random.normal([], stddev=9.0)
    )
    (step,) = derivation(process).missing
    assert "it is not known that each element has noise of its own" in step.reason
