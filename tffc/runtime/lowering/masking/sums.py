"""Rules of operations on each element, of reductions and of products of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.masking.rules import Rule, rules
from tffc.runtime.lowering.masking.values import (
    Masks,
    Outcome,
    Padded,
    arrays,
    known_numbers,
    one_axis,
    refused,
    same_way,
)
from tffc.runtime.lowering.operations import activations, elementwise
from tffc.runtime.lowering.operations.definition import Array, flag, inexact, text
from tffc.runtime.lowering.operations.reductions import OPERATIONS, bound, channel_axis

RULES: dict[str, Rule] = {}
rule = rules(RULES)

ELEMENTWISE = (
    {*elementwise.OPERATIONS, *activations.OPERATIONS}
    | {"Identity", "Snapshot", "StopGradient", "PreventGradient", "ZerosLike", "OnesLike"}
) - {"Select"}
"""Operations whose elements depend on those at the same place alone, after broadcasting."""


@rule(*sorted(ELEMENTWISE))
def on_each(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    axis, unit = one_axis(node, inputs)
    (output,), check = masks.compute(node, arrays(inputs))
    if output.ndim + axis < 0:
        raise refused(node, "that gives no rows")
    return [Padded(output, output.ndim + axis, unit)], check


@rule("Select")
def select(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    """Choose whole rows if the condition is a vector."""
    condition, one, other = arrays(inputs)
    if np.ndim(condition) != 1 or np.ndim(one) <= 1:
        return on_each(masks, node, inputs)
    axis, unit = same_way(node, *inputs)
    if axis != 0 or np.ndim(one) != np.ndim(other):
        raise refused(node, "with a condition of other rows")
    (output,), check = masks.compute(node, [condition, one, other])
    return [Padded(output, 0, unit)], check


@rule("BiasAdd")
def bias_add(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, bias = inputs
    if not isinstance(x, Padded) or isinstance(bias, Padded) or x.axis == _channels(node, x):
        raise refused(node, "whose channels are rows")
    (output,), check = masks.compute(node, [x.array, bias])
    return [Padded(output, x.axis, x.unit)], check


def _channels(node: NodeView, x: Padded) -> int:
    return channel_axis(node, x.array)


def _neutral(op: str, x: Array) -> Any:
    """Return the number that changes no result of a reduction."""
    if op in ("Max", "ArgMax"):
        return bound(x, 0)
    if op in ("Min", "ArgMin"):
        return bound(x, 1)
    return 1 if op in ("Prod", "All") else 0


@rule("Sum", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm", "Mean")
def reduction(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, axes = inputs
    if not isinstance(x, Padded):
        raise refused(node, "over other axes for each row")
    places = {axis % x.array.ndim for axis in known_numbers(node, axes)}
    if x.axis not in places:
        (output,), check = masks.compute(node, [x.array, axes])
        before = 0 if flag(node, "keep_dims") else sum(place < x.axis for place in places)
        return [Padded(output, x.axis - before, x.unit)], check
    if node.op == "Mean":
        return [_mean(masks, node, x, axes, places)], None
    return masks.compute(node, [masks.filled(x, _neutral(node.op, x.array)), axes])


def _mean(masks: Masks, node: NodeView, x: Padded, axes: Array, places: set[int]) -> Array:
    """Return the sum of the real entries by their number."""
    if not inexact(x.array.dtype):
        raise refused(node, "of integers")
    (total,) = OPERATIONS["Sum"](node, [masks.filled(x, 0), axes])
    others = math.prod(x.array.shape[place] for place in places - {x.axis})
    return total / masks.amount(x.unit * others, x.array.dtype)


@rule("L2Loss")
def l2_loss(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    return masks.compute(node, [masks.filled(inputs[0], 0)])


@rule("BiasAddGrad")
def bias_add_grad(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    (gradient,) = inputs
    if gradient.axis == _channels(node, gradient):
        raise refused(node, "whose channels are rows")
    return masks.compute(node, [masks.filled(gradient, 0)])


@rule("ArgMax", "ArgMin")
def place_of_bound(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    """Give the first of equal elements, which is real."""
    x, axis = inputs
    if not isinstance(x, Padded):
        raise refused(node, "along another axis for each row")
    place = known_numbers(node, axis)[0] % x.array.ndim
    if place == x.axis:
        return masks.compute(node, [masks.filled(x, _neutral(node.op, x.array)), axis])
    (output,), check = masks.compute(node, [x.array, axis])
    return [Padded(output, x.axis - (place < x.axis), x.unit)], check


@rule("Cumsum", "Cumprod")
def running(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    """Run over neutral numbers where no row is real, which change nothing."""
    x, axis = inputs
    if not isinstance(x, Padded):
        raise refused(node, "along another axis for each row")
    place = known_numbers(node, axis)[0] % x.array.ndim
    neutral = int(node.op == "Cumprod")
    array = masks.filled(x, neutral) if place == x.axis else x.array
    (output,), check = masks.compute(node, [array, axis])
    return [Padded(output, x.axis, x.unit)], check


# Products of matrices.


def _product(
    masks: Masks, node: NodeView, inputs: Sequence[Any], turned: tuple[bool, bool]
) -> Outcome:
    """Return the product of matrices, of which each may be turned around before."""
    x, y = inputs
    left, right = (_place(value, turn) for value, turn in zip(inputs, turned, strict=True))
    if left == -1 or right == -2:
        if left != -1 or right != -2 or x.unit != y.unit:
            raise refused(node, "with a fixed number of rows")
        return masks.compute(node, [masks.filled(x, 0), masks.filled(y, 0)])
    outer = [axis for axis in (left, right) if axis is not None and axis >= -2]
    if outer:
        if left is not None and right is not None:
            raise refused(node, "with rows and columns that are padded")
        axis, unit = (left, x.unit) if left is not None else (right, y.unit)
    else:
        axis, unit = one_axis(node, inputs)
    assert axis is not None
    (output,), check = masks.compute(node, arrays(inputs))
    return [Padded(output, output.ndim + axis, unit)], check


def _place(value: Any, turned: bool) -> int | None:
    """Return the padded axis of a factor, from the end, after it is turned around."""
    if not isinstance(value, Padded):
        return None
    axis = value.axis - value.array.ndim
    return -3 - axis if turned and axis >= -2 else axis


@rule("MatMul")
def mat_mul(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    turned = flag(node, "transpose_a"), flag(node, "transpose_b")
    return _product(masks, node, inputs, turned)


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    return _product(masks, node, inputs, (flag(node, "adj_x"), flag(node, "adj_y")))


@rule("Einsum")
def einsum(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    equation = text(node, "equation").replace(" ", "")
    terms, arrow, result = equation.partition("->")
    labels = terms.split(",")
    if "." in equation or not arrow or len(labels) != len(inputs):
        raise refused(node, "with axes that have no labels")
    pairs = [*zip(labels, inputs, strict=True)]
    ways = {(term[v.axis], v.unit) for term, v in pairs if isinstance(v, Padded)}
    ((label, unit),) = ways if len(ways) == 1 else (("", 0),)
    for term, value in pairs:
        if not label or term.count(label) != (1 if isinstance(value, Padded) else 0):
            raise refused(node, "with a fixed number of rows")
    if label in result:
        (output,), check = masks.compute(node, arrays(inputs))
        return [Padded(output, result.index(label), unit)], check
    return masks.compute(node, [masks.filled(v, 0) if isinstance(v, Padded) else v for v in inputs])
