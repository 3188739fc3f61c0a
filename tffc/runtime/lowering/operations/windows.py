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
    check_fit,
    definitions,
    inexact,
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


def _pads(node: NodeView, sizes: Any, windows: Any, strides: Any) -> list[tuple[int, int]]:
    """Return the padding before and after height and width."""
    padding = _padding(node)
    if isinstance(padding, str):
        return lax.padtype_to_pads(sizes, windows, strides, padding)
    return [*_spatial(node, padding)]


def _convolution(node: NodeView, groups: int) -> Callable[[Array, Array], Array]:
    """Return the convolution of a node, a function of images and filters."""
    padding = _padding(node)
    dilations = _list(node, "dilations") or (1, 1, 1, 1)

    def convolution(images: Array, filters: Array) -> Array:
        result = lax.conv_general_dilated(
            images,
            filters,
            window_strides=_spatial(node, _list(node, "strides")),
            padding=padding if isinstance(padding, str) else _spatial(node, padding),
            rhs_dilation=_spatial(node, dilations),
            dimension_numbers=(_layout(node), "HWIO", _layout(node)),
            feature_group_count=groups,
        )
        check_fit(node, result.size > 0)
        return result

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
    """Return the gradient of a convolution's images, a function of the filters and of that of the
    result."""

    def function(filters: Array, gradient: Array) -> Array:
        return _transposed(lambda images: convolution(images, filters), shape, gradient)

    return function


def _filter_gradient(convolution: Any, shape: tuple[int, ...]) -> Callable[..., Array]:
    """Return the gradient of a convolution's filters, a function of the images and of that of the
    result."""

    def function(images: Array, gradient: Array) -> Array:
        return _transposed(lambda filters: convolution(images, filters), shape, gradient)

    return function


class _Plain:
    """A convolution of one group whose channels are last, and its gradients.

    They are written as convolutions of the same layout.  In a loop, XLA would compute those of
    another, which JAX derives, fifty times slower on a CPU.
    """

    def __init__(self, node: NodeView, images: tuple[int, ...], filters: tuple[int, ...]) -> None:
        self.strides = _spatial(node, _list(node, "strides"))
        self.dilations = _spatial(node, _list(node, "dilations") or (1, 1, 1, 1))
        self.images = images[1:3]
        self.filters = filters[:2]
        reach = [(k - 1) * d + 1 for k, d in zip(self.filters, self.dilations, strict=True)]
        self.starts = [low for low, _ in _pads(node, self.images, reach, self.strides)]

    def _padding(self, gradient: Array, sizes: Any, starts: Any, images: bool) -> Any:
        """Return the padding after which a gradient's convolution has these sizes."""
        pads: list[tuple[int, int]] = []
        for axis, (size, start) in enumerate(zip(sizes, starts, strict=True)):
            reach = (self.filters[axis] - 1) * self.dilations[axis]
            spread = (gradient.shape[axis + 1] - 1) * self.strides[axis]
            least = size - 1 + reach - spread if images else reach + spread + 1 - size
            pads.append((start, least - start))
        return pads

    def input_gradient(self, filters: Array, gradient: Array) -> Array:
        """Return the gradient of the images."""
        turned = jnp.transpose(jnp.flip(filters, (0, 1)), (0, 1, 3, 2))
        reach = [(k - 1) * d for k, d in zip(self.filters, self.dilations, strict=True)]
        starts = [size - start for size, start in zip(reach, self.starts, strict=True)]
        return lax.conv_general_dilated(
            gradient,
            turned,
            window_strides=(1, 1),
            padding=self._padding(gradient, self.images, starts, True),
            lhs_dilation=self.strides,
            rhs_dilation=self.dilations,
            dimension_numbers=CHANNELS_LAST,
        )

    def filter_gradient(self, images: Array, gradient: Array) -> Array:
        """Return the gradient of the filters, for which images and channels change places."""
        result = lax.conv_general_dilated(
            jnp.transpose(images, (3, 1, 2, 0)),
            jnp.transpose(gradient, (1, 2, 0, 3)),
            window_strides=self.dilations,
            padding=self._padding(gradient, self.images, self.starts, False),
            rhs_dilation=self.strides,
            dimension_numbers=CHANNELS_LAST,
        )
        return jnp.transpose(result, (1, 2, 0, 3))


CHANNELS_LAST = ("NHWC", "HWIO", "NHWC")


def _is_plain(node: NodeView, groups: int) -> bool:
    return groups == 1 and _layout(node) == "NHWC"


@operation("Conv2D")
def conv2d(node: NodeView, images: Array, filters: Array) -> Array:
    groups = _groups(node, images.shape, filters.shape)
    return _in_turn(_convolution(node, groups), images, filters)


@operation("Conv2DBackpropInput")
def conv2d_backprop_input(node: NodeView, sizes: Array, filters: Array, gradient: Array) -> Array:
    shape = numbers(node, sizes, "a shape that is")
    groups = _groups(node, shape, filters.shape)
    if _is_plain(node, groups):
        plain = _Plain(node, shape, filters.shape)
        return _in_turn(plain.input_gradient, filters, gradient)
    return _in_turn(_input_gradient(_convolution(node, groups), shape), filters, gradient)


@operation("Conv2DBackpropFilter")
def conv2d_backprop_filter(node: NodeView, images: Array, sizes: Array, gradient: Array) -> Array:
    shape = numbers(node, sizes, "a shape that is")
    groups = _groups(node, images.shape, shape)
    if _is_plain(node, groups):
        plain = _Plain(node, images.shape, shape)
        return _in_turn(plain.filter_gradient, images, gradient)
    return _in_turn(_filter_gradient(_convolution(node, groups), shape), images, gradient)


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
    result = lax.reduce_window(x, initial, combine, windows, strides, _padding(node))
    check_fit(node, result.size > 0)
    return result


def _max_pool(node: NodeView, x: Array) -> Array:
    return _pooled(node, x, _least(x)[()], lax.max)


def _least(x: Array) -> Array:
    """Return the least value of an element type."""
    return scalar(-np.inf if inexact(x.dtype) else jnp.iinfo(x.dtype).min, x)


@operation("MaxPool")
def max_pool(node: NodeView, x: Array) -> Array:
    return _max_pool(node, jnp.asarray(x))


@operation("MaxPoolGrad")
def max_pool_grad(node: NodeView, x: Array, y: Array, gradient: Array) -> Array:
    """Give the gradient of each window to the first of its greatest elements."""
    x, gradient = jnp.asarray(x), jnp.asarray(gradient)
    windows = _list(node, "ksize")
    if _layout(node) == "NHWC" and windows[0] == windows[3] == 1 and max(windows) <= WIDEST:
        return _shared_out(node, x, gradient)
    _, transpose = jax.vjp(lambda images: _max_pool(node, images), x)
    (result,) = transpose(gradient)
    return result


WIDEST = 4
"""Wider windows are not taken apart, which would make a long program."""


def _shared_out(node: NodeView, x: Array, gradient: Array) -> Array:
    """Return the gradient of a pool, by comparing each place in the windows with the greatest.

    XLA's own operation for that takes many times as long on a CPU.
    """
    windows, strides = _spatial(node, _list(node, "ksize")), _spatial(node, _list(node, "strides"))
    pads = _pads(node, x.shape[1:3], windows, strides)
    spans = [(n - 1) * step + 1 for n, step in zip(gradient.shape[1:3], strides, strict=True)]
    covered = [span + size - 1 for span, size in zip(spans, windows, strict=True)]
    lows = [low for low, _ in pads]
    highs = [c - n - low for c, n, low in zip(covered, x.shape[1:3], lows, strict=True)]
    padded = _resized(x, lows, highs, _least(x))
    greatest = _max_pool(node, x)
    taken = jnp.zeros(gradient.shape, bool)
    shares: list[Array] = []
    for top, left in np.ndindex(*windows):
        rows = slice(top, top + spans[0], strides[0])
        hit = (padded[:, rows, left : left + spans[1] : strides[1]] == greatest) & ~taken
        taken = taken | hit
        shares.append(jnp.where(hit, gradient, scalar(0, gradient)))
    result = _laid_out(shares, windows, strides, covered)
    return _resized(result, [-low for low in lows], [-high for high in highs], scalar(0, x))


def _resized(x: Array, lows: list[int], highs: list[int], value: Any) -> Array:
    """Return images with so much more before and after height and width, or less if negative."""
    inner = [(low, high, 0) for low, high in zip(lows, highs, strict=True)]
    return lax.pad(x, value, [(0, 0, 0), *inner, (0, 0, 0)])


def _laid_out(shares: list[Array], windows: Any, strides: Any, covered: list[int]) -> Array:
    """Return the sum of what each place in the windows has, at the places of the image."""
    count, height, width, channels = shares[0].shape
    if windows == strides:
        parts = jnp.stack(shares).reshape((*windows, count, height, width, channels))
        return parts.transpose((2, 3, 0, 4, 1, 5)).reshape((count, *covered, channels))
    total = jnp.zeros((count, *covered, channels), shares[0].dtype)
    steps = [step - 1 for step in strides]
    for share, place in zip(shares, np.ndindex(*windows), strict=True):
        ends = [size - 1 - start for size, start in zip(windows, place, strict=True)]
        inner = [*zip(place, ends, steps, strict=True)]
        total = total + lax.pad(share, scalar(0, share), [(0, 0, 0), *inner, (0, 0, 0)])
    return total


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
