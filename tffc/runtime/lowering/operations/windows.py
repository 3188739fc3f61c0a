"""Convolutions and pools: operations on windows that move over an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    NotLoweredError,
    Operation,
    definitions,
    jax,
    jnp,
    lax,
    numbers,
    scalar,
    text,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)


def _list(node: NodeView, attribute: str) -> tuple[int, ...]:
    return tuple(node.attr[attribute].list.i) if attribute in node.attr else ()


def _layout(node: NodeView) -> str:
    return text(node, "data_format", "NHWC") or "NHWC"


def _spatial(node: NodeView, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what belongs to height and width of what is listed for all axes."""
    layout = _layout(node)
    return values[layout.index("H")], values[layout.index("W")]


def _padding(node: NodeView) -> Any:
    """Return the padding of all axes, or the name of the rule for it."""
    name = text(node, "padding")
    if name != "EXPLICIT":
        return name
    widths = _list(node, "explicit_paddings")
    return tuple(zip(widths[::2], widths[1::2], strict=True))


def _convolution(node: NodeView, groups: int) -> Callable[[Array, Array], Array]:
    """Return the convolution of a node, a function of images and filters."""
    padding = _padding(node)
    dilations = _list(node, "dilations") or (1, 1, 1, 1)

    def convolution(images: Array, filters: Array) -> Array:
        return lax.conv_general_dilated(
            images,
            filters,
            window_strides=_spatial(node, _list(node, "strides")),
            padding=padding if isinstance(padding, str) else _spatial(node, padding),
            rhs_dilation=_spatial(node, dilations),
            dimension_numbers=(_layout(node), "HWIO", _layout(node)),
            feature_group_count=groups,
        )

    return convolution


def _in_turn(function: Callable[..., Array], *arrays: Array) -> Array:
    """Compute a convolution, under `vmap` on a CPU one after another if all arrays differ.

    There XLA takes several times as long for many images with many filters at once.
    """
    one = jax.custom_batching.custom_vmap(function)

    @one.def_vmap
    def many(size: int, batched: list[bool], *arrays: Array) -> tuple[Array, bool]:
        at_once = jax.vmap(function, [0 if each else None for each in batched])
        if not all(batched):
            return at_once(*arrays), True
        result = lax.platform_dependent(
            *arrays,
            cpu=lambda *arrays: lax.map(lambda each: one(*each), arrays),
            default=at_once,
        )
        return result, True

    return one(*arrays)


def _groups(node: NodeView, images: tuple[int, ...], filters: tuple[int, ...]) -> int:
    channels = images[_layout(node).index("C")]
    if channels % filters[2]:
        raise NotLoweredError(f"{node.op} of {channels} channels with filters of {filters[2]}")
    return channels // filters[2]


def _transposed(function: Callable[[Array], Array], shape: tuple[int, ...], y: Array) -> Array:
    """Return what a linear function's transpose makes of a value; `shape` is its argument's."""
    (result,) = jax.linear_transpose(function, jax.ShapeDtypeStruct(shape, y.dtype))(jnp.asarray(y))
    return result


def _input_gradient(convolution: Any, shape: tuple[int, ...]) -> Callable[..., Array]:
    def function(filters: Array, gradient: Array) -> Array:
        return _transposed(lambda images: convolution(images, filters), shape, gradient)

    return function


def _filter_gradient(convolution: Any, shape: tuple[int, ...]) -> Callable[..., Array]:
    def function(images: Array, gradient: Array) -> Array:
        return _transposed(lambda filters: convolution(images, filters), shape, gradient)

    return function


@operation("Conv2D")
def conv2d(node: NodeView, images: Array, filters: Array) -> Array:
    groups = _groups(node, images.shape, filters.shape)
    return _in_turn(_convolution(node, groups), images, filters)


@operation("Conv2DBackpropInput")
def conv2d_backprop_input(node: NodeView, sizes: Array, filters: Array, gradient: Array) -> Array:
    shape = numbers(node, sizes, "a shape that is")
    convolution = _convolution(node, _groups(node, shape, filters.shape))
    return _in_turn(_input_gradient(convolution, shape), filters, gradient)


@operation("Conv2DBackpropFilter")
def conv2d_backprop_filter(node: NodeView, images: Array, sizes: Array, gradient: Array) -> Array:
    shape = numbers(node, sizes, "a shape that is")
    convolution = _convolution(node, _groups(node, images.shape, shape))
    return _in_turn(_filter_gradient(convolution, shape), images, gradient)


def _depthwise(node: NodeView, channels: int) -> Callable[[Array, Array], Array]:
    """Return the convolution of each channel with filters of its own."""
    convolution = _convolution(node, channels)

    def depthwise(images: Array, filters: Array) -> Array:
        height, width, _, count = filters.shape
        return convolution(images, jnp.reshape(filters, (height, width, 1, channels * count)))

    return depthwise


@operation("DepthwiseConv2dNative")
def depthwise_conv2d(node: NodeView, images: Array, filters: Array) -> Array:
    return _in_turn(_depthwise(node, filters.shape[2]), images, filters)


@operation("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(
    node: NodeView, sizes: Array, filters: Array, gradient: Array
) -> Array:
    convolution = _depthwise(node, filters.shape[2])
    shape = numbers(node, sizes, "a shape that is")
    return _in_turn(_input_gradient(convolution, shape), filters, gradient)


@operation("DepthwiseConv2dNativeBackpropFilter")
def depthwise_backprop_filter(
    node: NodeView, images: Array, sizes: Array, gradient: Array
) -> Array:
    shape = numbers(node, sizes, "a shape that is")
    convolution = _depthwise(node, shape[2])
    return _in_turn(_filter_gradient(convolution, shape), images, gradient)


def _pooled(node: NodeView, x: Array, initial: Any, combine: Any) -> Array:
    """Return what the elements of each window combine to."""
    windows, strides = _list(node, "ksize"), _list(node, "strides")
    return lax.reduce_window(x, initial, combine, windows, strides, _padding(node))


def _max_pool(node: NodeView, x: Array) -> Array:
    least = -np.inf if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.iinfo(x.dtype).min
    return _pooled(node, x, scalar(least, x)[()], lax.max)


@operation("MaxPool")
def max_pool(node: NodeView, x: Array) -> Array:
    return _max_pool(node, jnp.asarray(x))


@operation("MaxPoolGrad")
def max_pool_grad(node: NodeView, x: Array, y: Array, gradient: Array) -> Array:
    """Give the gradient of each window to the first of its greatest elements."""
    _, transpose = jax.vjp(lambda images: _max_pool(node, images), jnp.asarray(x))
    (result,) = transpose(jnp.asarray(gradient))
    return result


def _window_sum(node: NodeView, x: Array) -> Array:
    return _pooled(node, x, scalar(0, x)[()], lax.add)


def _window_sizes(node: NodeView, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return how many elements each window has, without those of the padding."""
    return _window_sum(node, jnp.ones(shape, dtype))


@operation("AvgPool")
def avg_pool(node: NodeView, x: Array) -> Array:
    return _window_sum(node, x) / _window_sizes(node, x.shape, x.dtype)


@operation("AvgPoolGrad")
def avg_pool_grad(node: NodeView, sizes: Array, gradient: Array) -> Array:
    shape = numbers(node, sizes, "a shape that is")
    shares = gradient / _window_sizes(node, shape, gradient.dtype)
    return _transposed(lambda images: _window_sum(node, images), shape, shares)
