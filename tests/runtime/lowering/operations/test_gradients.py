"""Whole graphs with gradients as TensorFlow writes them are computed through the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.runtime.lowering.operations.samples import close, compiled, computing, floats, integers
from tffc.runtime.lowering.operations.table import OPERATIONS


def evaluate(graph: Any, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The results of a graph, node by node."""
    values: dict[str, Any] = {}
    rest = iter(inputs)
    for node in graph.get_operations():
        if node.type == "Placeholder":
            outputs = [next(rest)]
        else:
            outputs = OPERATIONS[node.type](
                node.node_def, [values[item.name] for item in node.inputs]
            )
        values |= {item.name: value for item, value in zip(node.outputs, outputs, strict=True)}
    return [values[item.name] for item in results]


def gradients(loss: Callable[..., Any]) -> Callable[..., Any]:
    """The loss and its gradients, and the weights after a step."""

    def step(x: Any, y: Any, *weights: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            value = loss(x, y, *weights)
        slopes: Any = tape.gradient(value, weights)
        return [
            value,
            *slopes,
            *(w - 0.1 * slope for w, slope in zip(weights, slopes, strict=True)),
        ]

    return step


def dense(x: Any, y: Any, w: Any, b: Any, v: Any) -> Any:
    hidden = tf.nn.relu(tf.matmul(x, w) + b)
    logits = tf.nn.bias_add(tf.matmul(hidden, v), tf.reduce_sum(v, 0))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))


def convolution(x: Any, y: Any, w: Any, d: Any, v: Any) -> Any:
    image = tf.reshape(x, (-1, 4, 4, 1))
    maps = tf.nn.max_pool2d(tf.nn.elu(tf.nn.conv2d(image, w, 1, "SAME")), 2, 2, "VALID")
    maps = tf.nn.depthwise_conv2d(maps, d, (1, 1, 1, 1), "SAME")
    maps, _, _ = tf.compat.v1.nn.fused_batch_norm(maps, tf.ones(3), tf.zeros(3))
    maps = tf.nn.avg_pool2d(tf.pad(maps, [[0, 0], [1, 1], [0, 0], [0, 0]]), 2, 1, "SAME")
    logits = tf.matmul(tf.reshape(maps, (tf.shape(x)[0], -1)), v)
    return tf.reduce_sum(tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(y, 3), logits))


def attention(x: Any, y: Any, q: Any, k: Any, e: Any) -> Any:
    words = tf.gather(e, tf.cast(y, tf.int64)) + x[:, :4]
    scores = tf.einsum("ia,ja->ij", words @ q, words @ k) / tf.sqrt(
        tf.cast(tf.shape(x)[1], tf.float32)
    )
    scores = tf.where(tf.linalg.band_part(tf.ones_like(scores), -1, 0) > 0, scores, -1e9)
    mixed = tf.matmul(tf.nn.softmax(scores), words)
    mean, variance = tf.nn.moments(mixed, 1, keepdims=True)
    normal = (mixed - mean) * tf.math.rsqrt(variance + 1e-5)
    joined = tf.concat([normal, tf.tanh(mixed[:, ::-1]), tf.stack([x[:, 0], x[:, 5]], 1)], 1)
    return tf.reduce_mean(tf.square(joined)) + 0.1 * tf.nn.l2_loss(e) + tf.norm(q)


def varied(x: Any, y: Any, a: Any, b: Any) -> Any:
    left, right = tf.split(tf.transpose(a), 2)
    total = tf.math.unsorted_segment_sum(x[:, :4], y, 3)
    total = total * tf.sigmoid(left[0, 0]) + tf.math.divide_no_nan(total, tf.maximum(b, 0.0))
    total += tf.cumsum(tf.tile(b[None], (3, 1)), 0, exclusive=True)
    pieces = tf.unstack(tf.math.log1p(tf.exp(total)), axis=0)
    picked = tf.gather_nd(total, tf.stack([y[:2], y[1:3]], 1))
    logs = tf.math.xlogy(tf.abs(b), tf.abs(b) + 1.0) + tf.pow(tf.abs(b) + 0.5, 1.5)
    some = tf.reduce_max(right) + tf.reduce_sum(tf.math.cumprod(b)) + tf.reduce_min(tf.abs(left))
    mirrored = tf.pad(b, [[1, 2]], "REFLECT") * tf.clip_by_value(tf.pad(b, [[2, 1]]), -0.5, 0.5)
    last = tf.reduce_logsumexp(pieces[0]) + tf.math.erf(picked[0]) + tf.nn.softplus(picked[1])
    return last + some + tf.reduce_sum(logs) + tf.reduce_sum(mirrored) + tf.reduce_mean(pieces[1])


WEIGHTS: dict[Callable[..., Any], list[np.ndarray]] = {
    dense: [floats(16, 5), floats(5), floats(5, 3)],
    convolution: [floats(3, 3, 1, 3), floats(2, 2, 3, 1), floats(24, 3)],
    attention: [floats(4, 4), floats(4, 4, seed=1), floats(3, 4)],
    varied: [floats(4, 4), floats(4)],
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", WEIGHTS)
def test_steps_of_networks_are_those_of_tensorflow(loss: Callable[..., Any]) -> None:
    inputs = [floats(6, 16, seed=5), integers(6, least=0, end=3), *WEIGHTS[loss]]
    traced = tf.function(gradients(loss)).get_concrete_function(
        *(tf.TensorSpec(value.shape, value.dtype) for value in inputs)
    )
    graph = traced.graph
    with computing():
        values = compiled(lambda inputs: evaluate(graph, inputs, graph.outputs), inputs)
        for wanted, value in zip(traced(*map(tf.constant, inputs)), values, strict=True):
            assert value.dtype == wanted.dtype.as_numpy_dtype
            close(np.asarray(value), wanted.numpy(), 2e-5, loss.__name__)
