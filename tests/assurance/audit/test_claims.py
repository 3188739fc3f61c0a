"""What a report says of a value holds where others than its elements carry what it depends on:
sizes of variants, failures that something catches, draws, and shapes of state and of aggregates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.audit.test_sections import S, flows
from tffc.assurance.audit.audit import audit
from tffc.assurance.audit.sections import Draw
from tffc.assurance.audit.text import audit_text
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()
raw = tf.raw_ops

RAGGED = tff.TensorType(np.float32, [None])


def place(s: Any) -> Any:
    return tf.clip_by_value(tf.cast(s, tf.int32), 0, 1)


def empty(size: int) -> Any:
    none = tf.constant([], tf.int32)
    return raw.TensorListReserve(element_shape=none, num_elements=size, element_dtype=tf.int32)


def zeros_of_list(s: Any) -> Any:
    chosen = tf.gather(tf.stack([empty(2), empty(5)]), place(s))
    return raw.TensorListLength(input_handle=raw.ZerosLike(x=chosen))


def zeros_of_ragged(s: Any) -> Any:
    rows = tf.RaggedTensor.from_row_splits([1, 2, 3, 4], tf.constant([0, 1, 4], tf.int64))
    variants = raw.RaggedTensorToVariant(
        rt_nested_splits=rows.nested_row_splits, rt_dense_values=rows.values, batched_input=True
    )
    chosen = raw.ZerosLike(x=tf.gather(variants, place(s)))
    read = raw.RaggedTensorFromVariant(
        encoded_ragged=chosen, input_ragged_rank=0, output_ragged_rank=0, Tvalues=tf.int32
    )
    return tf.size(read[1])


def zeros_of_optional(s: Any) -> Any:
    both = tf.stack([raw.OptionalNone(), raw.OptionalFromValue(components=[1])])
    chosen = raw.ZerosLike(x=tf.gather(both, place(s)))
    return tf.cast(raw.OptionalHasValue(optional=chosen), tf.int32)


@pytest.mark.parametrize("body", [zeros_of_list, zeros_of_ragged, zeros_of_optional])
def test_sizes_of_variants_are_no_shapes(body: Any) -> None:
    assert flows(lambda a, b, s, t, u, d: body(s)) == [S]


def count(dataset: Any) -> Any:
    return dataset.reduce(0, lambda total, _: total + 1)


def checked(s: Any) -> Any:
    with tf.control_dependencies([tf.debugging.assert_greater(s, 1.0)]):
        return tf.constant(1)


def looked_up(s: Any) -> Any:
    with tf.control_dependencies([tf.gather([1, 2], tf.cast(s, tf.int32))]):
        return tf.constant(1)


def ended(s: Any) -> Any:
    kind: dict[str, Any] = {"output_types": [tf.int64], "output_shapes": [[]]}
    numbers = tf.data.Dataset.range(tf.cast(s, tf.int64))
    iterator = raw.AnonymousIteratorV3(**kind)
    started = raw.MakeIterator(dataset=numbers._variant_tensor, iterator=iterator)
    with tf.control_dependencies([started]):
        first = raw.IteratorGetNext(iterator=iterator, **kind)
    with tf.control_dependencies(first):
        return tf.constant(1)


@pytest.mark.parametrize("step", [checked, looked_up, ended])
@pytest.mark.parametrize(
    "dataset",
    [
        lambda step: tf.data.Dataset.range(3).map(step).ignore_errors(),
        lambda step: tf.data.Dataset.range(3).map(step).batch(1).take(2).ignore_errors(),
        lambda step: tf.data.Dataset.range(3).filter(lambda i: step(i) > 0).ignore_errors(),
        lambda step: (
            tf.data.Dataset.range(2)
            .map(lambda _: tf.data.Dataset.range(3).map(step))
            .flat_map(lambda inner: inner)
            .ignore_errors()
        ),
        lambda step: tf.compat.v1.data.Dataset.range(3).map(step),
    ],
    ids=["map", "batch", "filter", "nested", "legacy"],
)
def test_a_failure_that_is_caught_tells_what_it_depends_on(dataset: Any, step: Any) -> None:
    (found,) = flows(lambda a, b, s, t, u, d: count(dataset(lambda _: step(s))))
    assert found & S


def test_a_failure_of_another_section_that_is_caught_tells_what_it_depends_on() -> None:
    numbers = tff.SequenceType(np.int32)

    @tff.tf_computation(np.float32)
    def failing(user: Any) -> Any:
        return tf.data.Dataset.range(3).map(lambda _: checked(user))

    @tff.tf_computation(numbers)
    def left(data: Any) -> Any:
        return count(data.ignore_errors())

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.float32))
    def round_(state: Any, user: Any) -> Any:
        made = tff.federated_map(failing, user)
        return state, tff.federated_sum(tff.federated_map(left, made))

    (channel,) = audit(round_.node, "mapreduce").channels
    assert channel.depends.elements == ("user",)


def pooled(operation: Any) -> Any:
    ratio = [1.0, 1.4, 1.4, 1.0]
    return operation(value=tf.ones([1, 5, 5, 1]), pooling_ratio=ratio, pseudo_random=True)[0]


@pytest.mark.parametrize(
    "body",
    [
        lambda: raw.NonDeterministicInts(shape=[2]),
        lambda: pooled(raw.FractionalMaxPool),
        lambda: pooled(raw.FractionalAvgPool),
        lambda: (
            raw.SampleDistortedBoundingBoxV2(
                image_size=[20, 20, 3],
                bounding_boxes=[[[0.0, 0.0, 1.0, 1.0]]],
                min_object_covered=0.1,
            ).begin
        ),
    ],
)
def test_every_operation_that_draws_is_a_draw(body: Any) -> None:
    drawn: list[Draw] = []
    flows(lambda a, b, s, t, u, d: body(), drawn)
    assert [each.is_fresh for each in drawn] == [True]


@tff.tf_computation(RAGGED)
def size(values: Any) -> Any:
    return tf.shape(values)[0]


def test_the_shape_of_state_depends_on_the_state() -> None:
    @tff.tf_computation(RAGGED, np.float32)
    def size_of_first(model: Any, _: Any) -> Any:
        return tf.shape(model)[0]

    @tff.federated_computation(tff.types.at_server(RAGGED), tff.types.at_clients(np.float32))
    def round_(model: Any, data: Any) -> Any:
        both = (tff.federated_broadcast(model), data)
        return model, tff.federated_sum(tff.federated_map(size_of_first, both))

    (channel,) = audit(round_.node, "mapreduce").channels
    assert channel.depends.state == ("model",)


@pytest.mark.parametrize("is_in_report", [True, False])
def test_the_shape_of_an_aggregate_depends_on_its_channel(is_in_report: bool) -> None:
    @tff.tf_computation
    def nothing() -> Any:
        return tf.zeros([0])

    @tff.tf_computation(RAGGED, RAGGED)
    def both(first: Any, second: Any) -> Any:
        return tf.concat([first, second], 0)

    @tff.tf_computation(RAGGED)
    def same(values: Any) -> Any:
        return values

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(RAGGED))
    def round_(state: Any, data: Any) -> Any:
        report = size if is_in_report else same
        total = tff.federated_aggregate(data, nothing(), both, both, report)
        return state, total if is_in_report else tff.federated_map(size, total)

    found = audit(round_.node, "mapreduce")
    assert found.channels[0].goes_to == ("output",)
    assert found.output[0].depends.channels == (found.channels[0].name,)


def test_random_numbers_of_xla_are_draws() -> None:
    import jax

    @tff.jax.computation(np.float32)
    def drawn(_: Any) -> Any:
        return jax.lax.rng_uniform(np.float32(0), np.float32(1), ())

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.float32))
    def round_(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(drawn, data))

    (channel,) = audit(round_.node, "distribute-aggregate").channels
    assert [(each.operation, each.is_fresh) for each in channel.depends.draws] == [("rng", True)]


def test_what_comes_from_a_file_is_not_called_a_constant() -> None:
    @tff.tf_computation(np.float32)
    def read(_: Any) -> Any:
        return tf.strings.to_number(tf.io.read_file("factor.txt"))

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.float32))
    def round_(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(read, data))

    text = audit_text(audit(round_.node, "mapreduce"), str)
    assert "depends on no data, state, channel or draw" in text
    assert "constant" not in text
    assert "at the clients: ReadFile 'factor.txt', files" in text


def test_the_line_about_errors_says_that_it_lists_no_shapes() -> None:
    @tff.tf_computation(RAGGED)
    def added(values: Any) -> Any:
        return values + tf.constant([1.0, 2.0, 3.0])

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(RAGGED))
    def round_(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(added, data))

    text = audit_text(audit(round_.node, "mapreduce"), str)
    assert "may be in the texts of a client's errors, besides shapes: nothing" in text


# Datasets that keep something between iterations.


def ordered(dataset: Any) -> Any:
    return dataset.reduce(tf.constant(0, tf.int64), lambda total, x: 3 * total + x)


def shuffled() -> Any:
    return tf.data.Dataset.range(5).shuffle(5, seed=3)


def random_numbers() -> Any:
    return tf.data.Dataset.random(seed=3, rerandomize_each_iteration=True).take(3)


def limit(s: Any) -> Any:
    return tf.clip_by_value(tf.cast(s, tf.int64), 0, 9)


ITERATING = {
    "a condition": lambda x, s: tf.cond(s > 1.0, lambda: ordered(x), lambda: limit(0.0)),
    "a loop": lambda x, s: tf.while_loop(
        lambda i: i < s, lambda i: [i + 1.0 + 0.0 * tf.cast(ordered(x), tf.float32)], [0.0]
    ),
    "another dataset": lambda x, s: ordered(
        tf.data.Dataset.zip((x.repeat(3), tf.data.Dataset.range(limit(s)))).map(lambda a, b: a)
    ),
    "taking some": lambda x, s: ordered(x.repeat(3).take(limit(s))),
    "an inner dataset": lambda x, s: ordered(tf.data.Dataset.range(limit(s)).flat_map(lambda _: x)),
}


@pytest.mark.parametrize("iterate", ITERATING.values(), ids=ITERATING)
@pytest.mark.parametrize(
    "dataset",
    [
        shuffled,
        lambda: shuffled().take(3).map(lambda x: x + 1),
        lambda: shuffled().cache(),
        lambda: tf.data.experimental.shuffle_and_repeat(3, 1, seed=2)(tf.data.Dataset.range(4)),
        random_numbers,
    ],
    ids=["shuffled", "behind others", "cached", "repeated", "random"],
)
def test_an_iteration_changes_those_after_it(dataset: Any, iterate: Any) -> None:
    def body(s: Any) -> Any:
        numbers = dataset()
        with tf.control_dependencies(tf.nest.flatten(iterate(numbers, s))):
            return ordered(numbers)

    (found,) = flows(lambda a, b, s, t, u, d: body(s))
    assert found & S


@pytest.mark.parametrize("iterate", ITERATING.values(), ids=ITERATING)
def test_an_iteration_over_what_keeps_nothing_changes_nothing(iterate: Any) -> None:
    def body(s: Any) -> Any:
        numbers = tf.data.Dataset.range(5).skip(1).map(lambda x: x * x).prefetch(1)
        with tf.control_dependencies(tf.nest.flatten(iterate(numbers, s))):
            return ordered(numbers)

    assert flows(lambda a, b, s, t, u, d: body(s)) == [0]
