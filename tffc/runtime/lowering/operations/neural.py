"""Normalization, softmax and losses of neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    Operation,
    check_fit,
    definitions,
    jnp,
    lax,
    scalar,
)
from tffc.runtime.lowering.operations.reductions import channel_axis

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)

EPSILON = 1e-4
"""What batch normalization adds to variances if its node does not say."""


def _shifted(x: Array) -> Array:
    """Return values less the greatest of their row, whose exponential is then 1."""
    return x - jnp.max(x, axis=-1, keepdims=True)


def _widened(x: Array) -> Array:
    """Return 16-bit numbers as 32-bit ones, in which they are summed."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


@operation("Softmax")
def softmax(node: NodeView, x: Array) -> Array:
    power = jnp.exp(_shifted(_widened(x)))
    return (power / jnp.sum(power, axis=-1, keepdims=True)).astype(x.dtype)


@operation("LogSoftmax")
def log_softmax(node: NodeView, x: Array) -> Array:
    shifted = _shifted(_widened(x))
    total = jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True)
    return (shifted - jnp.log(total)).astype(x.dtype)


@operation("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(node: NodeView, x: Array, labels: Array) -> Array:
    """Return the loss of each row, and its gradient."""
    logits, wide = jnp.broadcast_arrays(_widened(x), _widened(labels))
    return [value.astype(x.dtype) for value in _cross_entropy(logits, wide)]


def _cross_entropy(logits: Array, labels: Array) -> list[Array]:
    shifted = _shifted(logits)
    power = jnp.exp(shifted)
    total = jnp.sum(power, axis=-1, keepdims=True)
    terms = labels * (jnp.log(total) - shifted)
    # A class without probability adds nothing, even if its logit is infinite.
    terms = jnp.where(labels == scalar(0, labels), scalar(0, labels), terms)
    return [jnp.sum(terms, axis=-1), power / total - labels]


@operation("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(node: NodeView, x: Array, labels: Array) -> Array:
    check_fit(node, labels.shape == x.shape[:1])
    classes = np.arange(x.shape[-1]).astype(labels.dtype)
    wide = _widened(x)
    rows = (jnp.asarray(labels)[..., None] == classes).astype(wide.dtype)
    return [value.astype(x.dtype) for value in _cross_entropy(wide, rows)]


def _epsilon(node: NodeView) -> float:
    return float(node.attr["epsilon"].f) if "epsilon" in node.attr else EPSILON


def _training(node: NodeView) -> bool:
    return "is_training" not in node.attr or bool(node.attr["is_training"].b)


def _by_channel(x: Array, axis: int, ndim: int) -> Array:
    """Return one number for each channel in the shape that fits a tensor."""
    shape = [1] * ndim
    shape[axis] = -1
    return jnp.reshape(x, shape)


def _others(x: Array, axis: int) -> tuple[int, ...]:
    return tuple(place for place in range(x.ndim) if place != axis)


@operation("FusedBatchNormV3")
def fused_batch_norm(
    node: NodeView, x: Array, scale: Array, offset: Array, mean: Array, variance: Array
) -> Array:
    """Return the result, the running mean and variance, and what the gradient reads of them."""
    axis = channel_axis(node, x)
    check_fit(node, scale.shape == offset.shape == (x.shape[axis],))
    wide = _widened(x)
    old = mean, variance
    if _training(node):
        others = _others(x, axis)
        mean = jnp.mean(wide, axis=others)
        centred = wide - _by_channel(mean, axis, x.ndim)
        variance = jnp.mean(jnp.square(centred), axis=others)
    else:
        centred = wide - _by_channel(mean, axis, x.ndim)
    factor = lax.rsqrt(variance + scalar(_epsilon(node), variance)) * scale
    result = centred * _by_channel(factor, axis, x.ndim) + _by_channel(offset, axis, x.ndim)
    running = _running(node, old, mean, variance, x.size // x.shape[axis])
    spare = jnp.zeros((), scale.dtype)
    return [result.astype(x.dtype), *running, mean, variance, spare]


def _running(node: NodeView, old: Any, mean: Array, variance: Array, count: int) -> list[Array]:
    if not _training(node):
        return [mean, variance]
    # Samples understate the variance of what they are drawn from.
    unbiased = variance * scalar(count / max(count - 1, 1), variance)
    share = node.attr["exponential_avg_factor"].f if "exponential_avg_factor" in node.attr else 1.0
    if share == 1.0:
        return [mean, unbiased]
    kept, new = scalar(1, mean) - scalar(share, mean), scalar(share, mean)
    return [kept * old[0] + new * mean, kept * old[1] + new * unbiased]


@operation("FusedBatchNormGradV3")
def fused_batch_norm_grad(
    node: NodeView,
    gradient: Array,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    spare: Array,
) -> Array:
    """Return the gradients of the input, the scale and the offset; `spare` is unused."""
    axis = channel_axis(node, x)
    others = _others(x, axis)
    wide, gradients = _widened(x), _widened(gradient)
    centred = wide - _by_channel(mean, axis, x.ndim)
    inverse = lax.rsqrt(variance + scalar(_epsilon(node), variance))
    total = jnp.sum(gradients, axis=others)
    product = jnp.sum(gradients * centred, axis=others)
    rest = gradients
    if _training(node):
        count = scalar(x.size // x.shape[axis], total)
        slope = product / count * inverse * inverse
        rest = gradients - _by_channel(total / count, axis, x.ndim)
        rest = rest - centred * _by_channel(slope, axis, x.ndim)
    result = rest * _by_channel(scale * inverse, axis, x.ndim)
    empty = jnp.zeros((0,), scale.dtype)
    return [result.astype(x.dtype), product * inverse, total, empty, empty]
