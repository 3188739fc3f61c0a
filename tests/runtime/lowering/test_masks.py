"""Batches with rows that do not count, beside TensorFlow's own results on the real rows alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tffc as tff
from tffc.language.nodes import Compiled
from tffc.linking.section import read_section
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.jax_tracer import JaxTracer
from tffc.runtime.lowering.masking import tracer as masking
from tffc.runtime.lowering.masking.values import Masks, Padded
from tffc.runtime.lowering.retrace import Retrace

SIZE = 5
GARBAGE = (np.nan, np.inf, -np.inf, 1e38)

Work = Callable[..., Any]


def columns_of(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return floats, labels from 0 to 2, and images of a batch."""
    random = np.random.RandomState(seed)
    return (
        random.normal(size=(SIZE, 3)).astype(np.float32),
        random.randint(0, 3, SIZE).astype(np.int32),
        random.normal(size=(SIZE, 4, 4, 2)).astype(np.float32),
    )


TYPES = tuple(
    tff.TensorType(column.dtype.type, [None, *column.shape[1:]]) for column in columns_of()
)


class Masked:
    """A function of a batch as it is computed where only the first rows are real."""

    def __init__(self, work: Work) -> None:
        section = tff.tf_computation(*TYPES)(lambda x, y, z: tf.nest.flatten(work(x, y, z)))
        assert isinstance(section.node, Compiled)
        self._content = read_section(section.node)
        self._padded: list[tuple[int, int] | None] = []
        self._compute = jax.jit(self._traced)

    def _traced(self, count: Any, columns: Any) -> Any:
        tracer, inputs = JaxTracer().masked(count, columns)
        retrace = Retrace(tracer)
        results = retrace.run(self._content, inputs)
        self._padded = [(r.axis, r.unit) if isinstance(r, Padded) else None for r in results]
        arrays = [r.array if isinstance(r, Padded) else tracer.plain(r) for r in results]
        return arrays, retrace.holds()

    def __call__(self, columns: Any, count: int) -> tuple[list[np.ndarray], bool]:
        """Return the real part of the results, and whether checks hold."""
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            arrays, holds = self._compute(np.int64(count), columns)
        real = []
        for array, way in zip(map(np.asarray, arrays), self._padded, strict=True):
            real.append(array if way is None else array.take(range(way[1] * count), way[0]))
        return real, bool(holds)


def spoilt(columns: Any, count: int, garbage: float) -> list[np.ndarray]:
    """Return a batch with garbage in place of all rows but the first."""
    batch = [column.copy() for column in columns]
    for column in batch:
        column[count:] = garbage if column.dtype.kind == "f" else 2**31 - 1
    return batch


def check(work: Work, *, seed: int = 0, atol: float = 1e-6) -> None:
    """Check a function for each number of rows, and that its checks hold where rows are real."""
    masked = Masked(work)
    columns = columns_of(seed)
    for count in range(1, SIZE + 1):
        real = [tf.constant(column[:count]) for column in columns]
        expected = [np.asarray(value) for value in tf.nest.flatten(work(*real))]
        results, holds = masked(columns, count)
        assert holds
        batches = [columns, *(spoilt(columns, count, number) for number in GARBAGE)]
        for results in (masked(batch, count)[0] for batch in batches):
            for one, other in zip(results, expected, strict=True):
                assert (one.dtype, one.shape) == (other.dtype, other.shape)
                if one.dtype.kind == "f":
                    np.testing.assert_allclose(one, other, rtol=1e-5, atol=atol)
                else:
                    np.testing.assert_array_equal(one, other)


WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
FILTERS = np.linspace(-1, 1, 36, dtype=np.float32).reshape(3, 3, 2, 2)
SEED = (3, 4)


def gradient(loss: Work) -> Work:
    """Return the gradients of a loss in a weight matrix, filters and the batch itself."""

    def work(x: Any, labels: Any, images: Any) -> Any:
        weights, filters = tf.constant(WEIGHTS), tf.constant(FILTERS)
        with tf.GradientTape() as tape:
            tape.watch([weights, filters, x, images])
            value = loss(x, labels, images, weights, filters)
        slope = tape.gradient(
            value, [weights, filters, x, images], unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return [value, *map(tf.convert_to_tensor, slope)]

    return work


def rows_in(x: Any) -> Any:
    return tf.shape(x)[0]


def counted(rows: Any) -> Any:
    return tf.while_loop(lambda n, s: n < rows, lambda n, s: (n + 1, s + 1.5), [0, 0.0])


RULES: dict[str, Work] = {
    "elementwise": lambda x, y, i: [
        tf.sin(x) * 2 + x,
        tf.maximum(x, 0),
        x - tf.constant([1.0] * 3),
    ],
    "of a shape": lambda x, y, i: tf.ensure_shape(x, [None, 3]) * 2,
    "columns": lambda x, y, i: [x[:, 0] * x[:, 1], x[:, :2], x[..., 1], x[:, ::-1], x[:]],
    "new axes": lambda x, y, i: [x[:, None] * x[:, :, None], x[None], tf.expand_dims(x, -1)],
    "sum": lambda x, y, i: [tf.reduce_sum(x), tf.reduce_sum(x, 0), tf.reduce_sum(x, 1)],
    "kept": lambda x, y, i: [tf.reduce_sum(x, 0, True), tf.reduce_sum(i, [0, 2], True)],
    "mean": lambda x, y, i: [tf.reduce_mean(x), tf.reduce_mean(x, 0), tf.reduce_mean(i, [1, 2])],
    "product": lambda x, y, i: [tf.reduce_prod(x, 0), tf.reduce_prod(y + 1)],
    "bounds": lambda x, y, i: [tf.reduce_max(x, 0), tf.reduce_min(x), tf.reduce_max(y)],
    "bounds of whole numbers": lambda x, y, i: [tf.reduce_min(y), tf.reduce_min(x, 1)],
    "truths": lambda x, y, i: [tf.reduce_all(x > -9), tf.reduce_any(x > 1.2, 0)],
    "places of bounds": lambda x, y, i: [tf.argmax(x, 0), tf.argmin(x, 0), tf.argmax(x, 1)],
    "norms": lambda x, y, i: [tf.nn.l2_loss(x), tf.norm(x), tf.norm(x, axis=1)],
    "deviations": lambda x, y, i: [tf.math.reduce_variance(x, 0), tf.math.reduce_std(x)],
    "centred": lambda x, y, i: x - tf.reduce_mean(x, 0, keepdims=True),
    "running": lambda x, y, i: [
        tf.cumsum(x, 0),
        tf.cumsum(x, 0, True, True),
        tf.math.cumprod(x, 0, reverse=True),
        tf.cumsum(x, 1),
    ],
    "product of matrices": lambda x, y, i: [
        x @ WEIGHTS,
        tf.matmul(x, x, transpose_a=True),
        tf.matmul(WEIGHTS, x, True, True),
    ],
    "batches of matrices": lambda x, y, i: [
        tf.matmul(i, i, transpose_b=True),
        tf.matmul(tf.transpose(i, [1, 2, 3, 0]), i[:, 0, 0]),
    ],
    "einsum": lambda x, y, i: [
        tf.einsum("bi,bj->ij", x, x),
        tf.einsum("bi,ij->bj", x, WEIGHTS),
        tf.einsum("bi->", x),
    ],
    "reshape": lambda x, y, i: [
        tf.reshape(i, [-1, 32]),
        tf.reshape(i, [-1, 2]),
        tf.reshape(i, [-1]),
        tf.reshape(i, [rows_in(i), 8, -1]),
        tf.reshape(x, [1, -1, 3]),
    ],
    "merged rows": lambda x, y, i: tf.reduce_mean(tf.reshape(i, [-1, 2]) * [1.0, 2.0], 0),
    "transpose": lambda x, y, i: [tf.transpose(x), tf.transpose(i, [3, 1, 0, 2])],
    "squeeze": lambda x, y, i: [tf.squeeze(x[:, :1], 1), tf.squeeze(x[:, None], [1])],
    "reverse": lambda x, y, i: tf.reverse(x, [1]),
    "joined": lambda x, y, i: [tf.stack([x, x], 1), tf.stack([x, x]), tf.concat([x, x], 1)],
    "split": lambda x, y, i: [tf.split(i, 2, 1), tf.split(x, [1, 2], 1), tf.unstack(x, axis=1)],
    "padded": lambda x, y, i: [
        tf.pad(x, [[0, 0], [1, 2]]),
        tf.pad(i, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"),
    ],
    "counts": lambda x, y, i: [
        rows_in(x),
        tf.size(i),
        tf.shape(x),
        tf.cast(rows_in(x), tf.float32) / 3,
    ],
    "reciprocal count": lambda x, y, i: 1.0 / tf.cast(rows_in(x) * 2 + 1, tf.float32),
    "filled": lambda x, y, i: [
        tf.ones_like(x),
        tf.zeros([rows_in(x), 2]),
        tf.fill([3, rows_in(x)], 2),
    ],
    "repeated": lambda x, y, i: [
        tf.tile(x, [1, 2]),
        tf.tile(tf.constant([[1.0, 2.0]]), [rows_in(x), 1]),
        tf.broadcast_to([1, 2], [rows_in(x), 2]),
    ],
    "numbered": lambda x, y, i: [tf.range(rows_in(x)) * 2, tf.reduce_sum(tf.range(rows_in(x)))],
    "one hot": lambda x, y, i: [tf.one_hot(y, 4), tf.one_hot(y, 3, axis=0)],
    "gathered": lambda x, y, i: [
        tf.gather(WEIGHTS, y),
        tf.gather(WEIGHTS, y, axis=0),
        tf.gather(x, [2, 0], axis=1),
        tf.gather(x, [0]),
        tf.gather(x, tf.range(rows_in(x))),
        tf.gather(x, y, axis=1, batch_dims=1),
    ],
    "gathered by pairs": lambda x, y, i: tf.gather_nd(x, tf.stack([tf.range(rows_in(x)), y], 1)),
    "scattered": lambda x, y, i: [
        tf.scatter_nd(y[:, None], x, [3, 3]),
        tf.math.unsorted_segment_sum(x, y, 3),
    ],
    "slices": lambda x, y, i: [tf.slice(x, [0, 1], [-1, 2]), x[: rows_in(x), 1:]],
    "softmax": lambda x, y, i: [tf.nn.softmax(x), tf.nn.log_softmax(x), tf.nn.softmax(x, 0)],
    "chosen": lambda x, y, i: [
        tf.where(x > 0, x, -x),
        tf.where(y > 0, 1.0, 0.0),
        tf.raw_ops.Select(condition=y > 0, x=x, y=-x),
    ],
    "cast": lambda x, y, i: [tf.cast(y, tf.float32), tf.cast(x * 3, tf.int32)],
    "accuracy": lambda x, y, i: (
        tf.reduce_sum(tf.cast(tf.equal(tf.argmax(x, 1, tf.int32), y), tf.float32))
        / tf.cast(tf.size(y), tf.float32)
    ),
    "draws": lambda x, y, i: [
        x * tf.random.stateless_uniform(tf.shape(x), SEED),
        x + tf.random.stateless_normal(tf.shape(x), SEED),
        tf.random.stateless_uniform([rows_in(x)], SEED, 0, 9, tf.int32),
        tf.cast(
            tf.random.stateless_uniform([1, rows_in(x), 3], SEED, dtype=tf.float64) * 8, tf.int32
        ),
    ],
    "dropout": lambda x, y, i: tf.nn.experimental.stateless_dropout(x, 0.4, seed=SEED),
    "pools": lambda x, y, i: [tf.nn.max_pool2d(i, 2, 2, "SAME"), tf.nn.avg_pool2d(i, 3, 1, "SAME")],
    "convolutions": lambda x, y, i: [
        tf.nn.conv2d(i, FILTERS, 1, "SAME"),
        tf.nn.depthwise_conv2d(i, FILTERS, [1, 1, 1, 1], "VALID"),
    ],
    "a condition": lambda x, y, i: tf.cond(
        rows_in(x) > 2, lambda: tf.reduce_sum(x), lambda: tf.reduce_max(x)
    ),
    "a loop": lambda x, y, i: counted(rows_in(x)),
}

LOSSES: dict[str, Work] = {
    "squares": lambda x, y, i, w, f: tf.reduce_mean(tf.square(x @ w)),
    "mean of means": lambda x, y, i, w, f: tf.reduce_mean(tf.reduce_mean(tf.sin(x @ w), 1)),
    "sums": lambda x, y, i, w, f: tf.reduce_sum(x @ w) + tf.nn.l2_loss(x) + tf.nn.l2_loss(w),
    "labels": lambda x, y, i, w, f: tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ w)
    ),
    "probabilities": lambda x, y, i, w, f: tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(y, 4), tf.nn.bias_add(x @ w, w[0]))
    ),
    "logistic": lambda x, y, i, w, f: tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(y > 1, tf.float32), (x @ w)[:, 0])
    ),
    "a network of images": lambda x, y, i, w, f: tf.reduce_mean(
        tf.reshape(
            tf.nn.max_pool2d(
                tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(i, f, 1, "SAME"), f[0, 0, 0])), 2, 2, "VALID"
            ),
            [-1, 8],
        )
        ** 2
    ),
    "means of windows": lambda x, y, i, w, f: tf.reduce_sum(
        tf.nn.avg_pool2d(tf.nn.conv2d(i, f, 2, "SAME"), 2, 1, "SAME") ** 2
    ),
    "each channel": lambda x, y, i, w, f: tf.reduce_mean(
        tf.nn.depthwise_conv2d(i, f, [1, 1, 1, 1], "SAME") ** 2
    ),
    "standardized": lambda x, y, i, w, f: tf.reduce_sum(
        ((x - tf.reduce_mean(x, 0)) / (tf.math.reduce_variance(x, 0) + 1) @ w) ** 2
    ),
    "embedded": lambda x, y, i, w, f: tf.reduce_mean(tf.gather(w, y) ** 2),
    "slices": lambda x, y, i, w, f: tf.reduce_sum(x[:, 1:] ** 2 @ w[1:]),
    "chosen classes": lambda x, y, i, w, f: (
        -tf.reduce_mean(
            tf.gather_nd(tf.nn.log_softmax(x @ w), tf.stack([tf.range(rows_in(y)), y], 1))
        )
    ),
    "greatest": lambda x, y, i, w, f: tf.reduce_mean(tf.reduce_max(x @ w, 1)),
    "broadcast rows": lambda x, y, i, w, f: tf.reduce_mean((x[:, :, None] * w) ** 2),
    "clipped": lambda x, y, i, w, f: tf.reduce_mean(tf.clip_by_norm(x @ w, 1.0)),
    "einsum": lambda x, y, i, w, f: tf.reduce_mean(tf.einsum("bi,ij->bj", x, w) ** 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_rows_that_do_not_count_change_nothing(name: str) -> None:
    check(RULES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name: str) -> None:
    check(gradient(LOSSES[name]))


REFUSED: dict[str, Work] = {
    "turned around": lambda x, y, i: tf.reverse(x, [0]),
    "a fixed number of rows": lambda x, y, i: tf.ensure_shape(x, [SIZE, 3]),
    "fixed rows": lambda x, y, i: x + tf.ones([SIZE, 3]),
    "a part of the rows": lambda x, y, i: x[:2],
    "all but the first": lambda x, y, i: x[1:],
    "every other": lambda x, y, i: x[::2],
    "mixed": lambda x, y, i: tf.reshape(tf.transpose(x), [-1, 3]),
    "other sizes": lambda x, y, i: tf.reshape(x, [-1, 2]),
    "joined rows": lambda x, y, i: tf.concat([x, x], 0),
    "repeated rows": lambda x, y, i: tf.tile(x, [2, 1]),
    "squared rows": lambda x, y, i: tf.matmul(x, x, transpose_b=True),
    "each with each": lambda x, y, i: x[:, None] * x[None],
    "rows in a loop": lambda x, y, i: tf.while_loop(
        lambda n, s: n < 3, lambda n, s: (n + 1, s + tf.reduce_sum(x)), [0, 0.0]
    ),
    "sorted": lambda x, y, i: tf.sort(x, 0),
    "draws in columns": lambda x, y, i: tf.random.stateless_uniform([3, rows_in(x)], SEED),
    "squeezed": lambda x, y, i: tf.squeeze(x),
    "mean of whole numbers": lambda x, y, i: tf.reduce_mean(y),
    "rows as shape": lambda x, y, i: tf.zeros([rows_in(x) + 1]),
    "two axes of rows": lambda x, y, i: tf.zeros([rows_in(x), rows_in(x)]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_rule_describes_is_refused(name: str) -> None:
    with pytest.raises(NotLoweredError):
        Masked(REFUSED[name])(columns_of(), 2)


FAULTS = {
    "reduction": ["sum", "mean", "product", "bounds", "truths"],
    "place_of_bound": ["places of bounds"],
    "l2_loss": ["norms"],
    "running": ["running"],
    "mat_mul": ["product of matrices"],
    "batch_mat_mul": ["batches of matrices"],
    "einsum": ["einsum"],
    "softmax": ["softmax"],
    "scatter_nd": ["scattered"],
}
"""The rules that mask, with what is computed wrong without."""


@pytest.mark.parametrize(
    ("rule", "name"), [(rule, name) for rule, names in FAULTS.items() for name in names]
)
def test_a_mask_left_out_is_seen(rule: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = Masks.filled

    def unmasked(self: Masks, value: Padded, neutral: Any) -> Any:
        return value.array if broken else filled(self, value, neutral)

    broken = False

    def wrong(wrapped: Any) -> Any:
        def run(*arguments: Any) -> Any:
            nonlocal broken
            broken = True
            try:
                return wrapped(*arguments)
            finally:
                broken = False

        return run

    monkeypatch.setattr(Masks, "filled", unmasked)
    rules = {
        op: wrong(each) if each.__name__ == rule else each for op, each in masking.RULES.items()
    }
    monkeypatch.setattr(masking, "RULES", rules)
    with pytest.raises(AssertionError):
        check(RULES[name])


@pytest.mark.parametrize("name", ["labels", "a network of images", "embedded"])
def test_gradients_without_masks_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Masks, "filled", lambda self, value, neutral: value.array)
    with pytest.raises(AssertionError):
        check(gradient(LOSSES[name]))


def step_of(place: int, x: Any, labels: Any) -> Any:
    """Return rows that come from rows of floats in the way of a number."""
    width = int(x.shape[1])
    ways: list[Work] = [
        tf.sin,
        lambda x: x - tf.reduce_mean(x, 0),
        lambda x: x * tf.nn.softmax(x),
        lambda x: x @ tf.ones([width, 2]) / 3,
        lambda x: tf.nn.relu(x) + tf.cast(labels, tf.float32)[:, None],
        lambda x: tf.concat([x, tf.square(x)], 1)[:, 1:4],
        lambda x: tf.reshape(tf.reshape(x, [-1]) / 2, [-1, width]),
        lambda x: tf.transpose(tf.transpose(x) + tf.range(1.0, width + 1)[:, None]),
        lambda x: tf.where(x > 0, x, tf.reduce_max(x, 0)),
        lambda x: x + tf.gather(tf.constant([1.0, 0.5, -2.0]), labels)[:, None],
        lambda x: x * tf.random.stateless_uniform(tf.shape(x), SEED),
        lambda x: tf.cumsum(x, 0) / tf.cast(tf.size(x), tf.float32),
        lambda x: x @ tf.matmul(x, x, transpose_a=True) / 9,
        lambda x: x - tf.reduce_logsumexp(x, 1, keepdims=True),
    ]
    return ways[place](x)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=12, deadline=None)
def test_programs(data: st.DataObject) -> None:
    """Whatever steps follow each other, also their gradients are those of the real rows."""
    places = data.draw(st.lists(st.integers(0, 13), min_size=1, max_size=5))

    def loss(x: Any, labels: Any, images: Any, weights: Any, filters: Any) -> Any:
        x = x @ weights
        for place in places:
            x = step_of(place, x, labels)
        return tf.reduce_mean(tf.square(x))

    check(gradient(loss), seed=data.draw(st.integers(0, 99)))
