"""Operations that reduce axes, or run along one."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    Operation,
    check_fit,
    definitions,
    flag,
    floating,
    inexact,
    library,
    number,
    numbers,
    scalar,
    type_of,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)


def _axes(node: NodeView, axes: Array) -> dict[str, Any]:
    """Return the arguments that name the axes of a reduction."""
    return {
        "axis": numbers(node, axes, "axes"),
        "keepdims": flag(node, "keep_dims"),
    }


@operation("Sum")
def sum_of(node: NodeView, x: Array, axes: Array) -> Array:
    return _sum(x, **_axes(node, axes))


def _sum(x: Array, **axes: Any) -> Array:
    if x.dtype == np.dtype(np.float16) or x.dtype.name == "bfloat16":
        return library(x).sum(x.astype(np.float32), **axes).astype(x.dtype)
    return library(x).sum(x, dtype=x.dtype, **axes)


@operation("Prod")
def product(node: NodeView, x: Array, axes: Array) -> Array:
    return library(x).prod(x, dtype=x.dtype, **_axes(node, axes))


@operation("Mean")
def mean(node: NodeView, x: Array, axes: Array) -> Array:
    arguments = _axes(node, axes)
    count = reduce(operator.mul, (x.shape[axis] for axis in arguments["axis"]), 1)
    if inexact(x.dtype):
        return library(x).true_divide(_sum(x, **arguments), scalar(count, x))
    # TensorFlow adds up integers in 64 bits, and gives 0 for none.
    wide = x.astype(np.uint64 if x.dtype.kind == "u" else np.int64)
    lib, total = library(x), _sum(wide, **arguments)
    divisor = scalar(max(count, 1), wide)
    quotient = lib.floor_divide(total, divisor)
    below = (total < scalar(0, wide)) & (quotient * divisor != total)
    return lib.add(quotient, below.astype(wide.dtype)).astype(x.dtype)


@operation("Max")
def max_of(node: NodeView, x: Array, axes: Array) -> Array:
    return library(x).max(x, initial=bound(x, 0), **_axes(node, axes))


@operation("Min")
def min_of(node: NodeView, x: Array, axes: Array) -> Array:
    return library(x).min(x, initial=bound(x, 1), **_axes(node, axes))


def bound(x: Array, which: int) -> Any:
    """Return the least value of an element type, or the greatest."""
    if floating(x.dtype):
        return scalar((-np.inf, np.inf)[which], x)[()]
    limits = np.iinfo(x.dtype)
    return scalar((limits.min, limits.max)[which], x)[()]


@operation("All")
def all_of(node: NodeView, x: Array, axes: Array) -> Array:
    return library(x).all(x, **_axes(node, axes))


@operation("Any")
def any_of(node: NodeView, x: Array, axes: Array) -> Array:
    return library(x).any(x, **_axes(node, axes))


@operation("EuclideanNorm")
def euclidean_norm(node: NodeView, x: Array, axes: Array) -> Array:
    lib = library(x)
    squares = lib.multiply(x, lib.conj(x))
    return lib.sqrt(_sum(squares, **_axes(node, axes))).astype(x.dtype)


@operation("L2Loss")
def l2_loss(node: NodeView, x: Array) -> Array:
    return _sum(library(x).square(x)) * scalar(0.5, x)


@operation("ArgMax")
def arg_max(node: NodeView, x: Array, axis: Array) -> Array:
    place = library(x).argmax(x, axis=number(node, axis, "an axis"))
    return place.astype(type_of(node, "output_type", np.int64))


@operation("ArgMin")
def arg_min(node: NodeView, x: Array, axis: Array) -> Array:
    place = library(x).argmin(x, axis=number(node, axis, "an axis"))
    return place.astype(type_of(node, "output_type", np.int64))


@operation("Cumsum")
def cumsum(node: NodeView, x: Array, axis: Array) -> Array:
    return _running(node, library(x).cumsum, x, number(node, axis, "an axis"), 0)


@operation("Cumprod")
def cumprod(node: NodeView, x: Array, axis: Array) -> Array:
    return _running(node, library(x).cumprod, x, number(node, axis, "an axis"), 1)


def _running(node: NodeView, run: Any, x: Array, axis: int, neutral: int) -> Array:
    """Return the results of all that comes before each element, and of the element if inclusive."""
    lib = library(x)
    if flag(node, "reverse"):
        x = lib.flip(x, axis)
    if flag(node, "exclusive"):
        last = (slice(None),) * (axis % x.ndim)
        first = lib.full_like(x[(*last, slice(0, 1))], neutral)
        x = lib.concatenate([first, x[(*last, slice(0, -1))]], axis)
    result = run(x, axis=axis, dtype=x.dtype)
    return lib.flip(result, axis) if flag(node, "reverse") else result


@operation("BiasAddGrad")
def bias_add_grad(node: NodeView, gradient: Array) -> Array:
    axis = channel_axis(node, gradient)
    others = tuple(place for place in range(gradient.ndim) if place != axis)
    return _sum(gradient, axis=others)


@operation("BiasAdd")
def bias_add(node: NodeView, x: Array, bias: Array) -> Array:
    axis = channel_axis(node, x)
    check_fit(node, bias.shape == (x.shape[axis],))
    shape = [1] * x.ndim
    shape[axis] = -1
    return library(x, bias).add(x, bias.reshape(shape))


def channel_axis(node: NodeView, x: Array) -> int:
    """Return the axis of the channels: the last, or the second if the node says so."""
    first = "data_format" in node.attr and node.attr["data_format"].s.startswith(b"NC")
    return 1 if first else x.ndim - 1
