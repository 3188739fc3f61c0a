"""Rules of softmax, losses, convolutions, pools and random draws."""

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
    Sizes,
    arrays,
    one_axis,
    refused,
    same_way,
)
from tffc.runtime.lowering.operations.draws import OPERATIONS as DRAWS

RULES: dict[str, Rule] = {}
rule = rules(RULES)


@rule("Softmax", "LogSoftmax")
def softmax(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    """Fill rows with minus infinity, of which no class has a probability."""
    (x,) = inputs
    last = x.axis == x.array.ndim - 1
    (output,), check = masks.compute(node, [masks.filled(x, -np.inf) if last else x.array])
    return [Padded(output, x.axis, x.unit)], check


@rule("SoftmaxCrossEntropyWithLogits")
def cross_entropy(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    axis, unit = one_axis(node, inputs)
    if axis != -2 or any(np.ndim(value) != 2 for value in arrays(inputs)):
        raise refused(node, "whose classes are rows")
    outputs, check = masks.compute(node, arrays(inputs))
    return [Padded(output, 0, unit) for output in outputs], check


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    axis, unit = same_way(node, *inputs)
    if axis != 0 or inputs[0].array.ndim != 2:
        raise refused(node, "whose classes are rows")
    labels = masks.filled(inputs[1], 0)
    outputs, check = masks.compute(node, [inputs[0].array, labels])
    return [Padded(output, 0, unit) for output in outputs], check


# Images: each row is one.


def _of_images(masks: Masks, node: NodeView, inputs: Sequence[Any], *images: int) -> Outcome:
    """Return what an operation makes of each image; `images` are the places of the inputs that have
    one for each, and no other input is padded."""
    axis, unit = same_way(node, *(inputs[place] for place in images))
    others = [value for place, value in enumerate(inputs) if place not in images]
    if axis != 0 or any(isinstance(value, Padded) for value in others):
        raise refused(node, "whose images are not rows")
    for attribute in ("ksize", "strides", "dilations"):
        values = [*node.attr[attribute].list.i] if attribute in node.attr else []
        if values and values[0] != 1:
            raise refused(node, "whose windows are of several images")
    pads = [*node.attr["explicit_paddings"].list.i] if "explicit_paddings" in node.attr else []
    if any(pads[:2]):
        raise refused(node, "with images added")
    (output,), check = masks.compute(node, arrays(inputs))
    return [Padded(output, 0, unit)], check


@rule("Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool")
def window(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    return _of_images(masks, node, inputs, 0)


@rule("MaxPoolGrad")
def max_pool_grad(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    return _of_images(masks, node, inputs, 0, 1, 2)


@rule("Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput", "AvgPoolGrad")
def image_gradient(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    shape, *others, gradient = inputs
    _, axis, unit = masks.layout(node, shape)
    if axis != 0 or not isinstance(gradient, Padded) or gradient.unit != unit:
        raise refused(node, "with a fixed number of images")
    return _of_images(masks, node, [masks.full(shape), *others, gradient], len(inputs) - 1)


@rule("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter")
def filter_gradient(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    images, sizes, gradient = inputs
    if same_way(node, images, gradient)[0] != 0 or isinstance(sizes, (Padded, Sizes)):
        raise refused(node, "whose images are not rows")
    return masks.compute(node, [masks.filled(images, 0), sizes, masks.filled(gradient, 0)])


# Draws.


def drawn(masks: Masks, node: NodeView, shape: Sizes, array: Any) -> Padded:
    """Return numbers that were drawn for all rows as those of the real ones, which are the first.

    Numbers are drawn in the order in which arrays are laid out, each from the next of a stream.
    """
    sizes, axis, unit = masks.layout(node, shape)
    if math.prod(sizes[:axis]) != 1:
        raise refused(node, "whose numbers are not drawn row by row")
    return Padded(array, axis, unit)


@rule(*sorted(name for name in DRAWS if name.startswith("StatelessRandom")))
def draw(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    shape, *others = inputs
    if not isinstance(shape, Sizes) or any(isinstance(value, Padded) for value in others):
        raise refused(node, "whose rows decide about it")
    masks.layout(node, shape)
    numbers = [masks.number(value) for value in others]
    (output,), check = masks.compute(node, [masks.full(shape), *numbers])
    return [drawn(masks, node, shape, output)], check
