"""Rules of shapes, and of operations that lay elements out anew."""

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
    known_numbers,
    refused,
    same_way,
)
from tffc.runtime.lowering.operations.arrays import ensured_sizes
from tffc.runtime.lowering.operations.definition import integer, type_of

RULES: dict[str, Rule] = {}
rule = rules(RULES)


@rule("Shape", "ShapeN")
def shape_of(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    dtype = type_of(node, "out_type", np.int32)
    return [masks.sizes_of(masks.number(value), dtype) for value in inputs], None


@rule("Size")
def size_of(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    dtype = type_of(node, "out_type", np.int32)
    shape = masks.sizes_of(masks.number(inputs[0]), dtype)
    if isinstance(shape, Sizes):
        return [Sizes(shape.table.prod(axis=1, dtype=dtype))], None
    return [np.array(shape.prod(), dtype)], None


@rule("Rank")
def rank(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    return [np.array(np.ndim(masks.number(*arrays(inputs))), np.int32)], None


@rule("EnsureShape")
def ensure_shape(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    (x,) = inputs
    if ensured_sizes(node)[x.axis] != -1:
        raise refused(node, "to a fixed number of rows")
    (output,), check = masks.compute(node, [x.array])
    return [Padded(output, x.axis, x.unit)], check


@rule("Reshape")
def reshape(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    """Keep the real entries those of the first blocks: as many lie before and after the axis."""
    x, shape = inputs
    if not isinstance(x, Padded):
        raise refused(node, "makes rows of a fixed number of elements")
    before, after = x.array.shape[: x.axis], x.array.shape[x.axis + 1 :]
    block = x.unit * math.prod(after)
    per_row = math.prod(before) * block
    sizes, axis, unit = masks.layout(node, shape)
    if -1 in sizes:
        place = sizes.index(-1)
        others = -math.prod(sizes) // (masks.size if axis >= 0 else 1)
        if others < 1 or per_row % others:
            raise refused(node, "to rows of another size")
        left = per_row // others
        if axis < 0:
            axis, unit, left = place, left, left * masks.size
        sizes = (*sizes[:place], left, *sizes[place + 1 :])
    if axis < 0 or not per_row:
        raise refused(node, "to a fixed number of rows")
    outer, inner = math.prod(sizes[:axis]), unit * math.prod(sizes[axis + 1 :])
    if (outer, inner) != (math.prod(before), block):
        raise refused(node, "that mixes rows")
    (output,), check = masks.compute(node, [x.array, np.array(sizes, np.int64)])
    return [Padded(output, axis, unit)], check


@rule("Squeeze")
def squeeze(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    (x,) = inputs
    axes = node.attr["squeeze_dims"].list.i if "squeeze_dims" in node.attr else []
    places = {axis % x.array.ndim for axis in axes}
    if not places or x.axis in places:
        raise refused(node, "of what may be one row")
    (output,), check = masks.compute(node, [x.array])
    return [Padded(output, x.axis - sum(place < x.axis for place in places), x.unit)], check


@rule("ExpandDims")
def expand_dims(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, axis = inputs
    (place,) = known_numbers(node, axis)
    place %= x.array.ndim + 1
    (output,), check = masks.compute(node, [x.array, axis])
    return [Padded(output, x.axis + (place <= x.axis), x.unit)], check


@rule("Transpose")
def transpose(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, order = inputs
    places = [axis % x.array.ndim for axis in known_numbers(node, order)]
    (output,), check = masks.compute(node, [x.array, order])
    return [Padded(output, places.index(x.axis), x.unit)], check


@rule("ReverseV2")
def reverse(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, axes = inputs
    if x.axis in {axis % x.array.ndim for axis in known_numbers(node, axes)}:
        raise refused(node, "that turns rows around")
    (output,), check = masks.compute(node, [x.array, axes])
    return [Padded(output, x.axis, x.unit)], check


@rule("Pad", "PadV2", "MirrorPad", "MirrorPadGrad")
def pad(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, widths, *value = inputs
    pairs = np.reshape(known_numbers(node, widths), (-1, 2))
    if not isinstance(x, Padded) or pairs[x.axis].any() or value != arrays(value):
        raise refused(node, "that adds rows")
    (output,), check = masks.compute(node, [x.array, widths, *value])
    return [Padded(output, x.axis, x.unit)], check


@rule("Tile")
def tile(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, multiples = inputs
    counts, axis, unit = masks.layout(node, multiples)
    if isinstance(x, Padded):
        if axis >= 0 or counts[x.axis] != 1:
            raise refused(node, "that repeats rows")
        axis, unit = x.axis, x.unit
    elif axis < 0:
        raise refused(node, "of a fixed number of rows")
    else:
        unit *= np.shape(x)[axis]
    (output,), check = masks.compute(node, [*arrays([x]), np.array(counts, np.int64)])
    return [Padded(output, axis, unit)], check


@rule("BroadcastTo")
def broadcast_to(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, shape = inputs
    sizes, axis, unit = masks.layout(node, shape)
    ((array,), from_end) = arrays([x]), axis - len(sizes)
    if axis < 0:
        raise refused(node, "to a fixed number of rows")
    if isinstance(x, Padded):
        if (x.axis - array.ndim, x.unit) != (from_end, unit):
            raise refused(node, "that moves rows")
    elif np.ndim(array) >= -from_end and np.shape(array)[from_end] != 1:
        raise refused(node, "of a fixed number of rows")
    (output,), check = masks.compute(node, [array, np.array(sizes, np.int64)])
    return [Padded(output, axis, unit)], check


@rule("Fill")
def fill(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    shape, value = inputs
    sizes, axis, unit = masks.layout(node, shape)
    if axis < 0 or isinstance(value, Padded):
        raise refused(node, "with a value for each row")
    (output,), check = masks.compute(node, [np.array(sizes, np.int64), masks.number(value)])
    return [Padded(output, axis, unit)], check


@rule("Range")
def range_of(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    start, limit, step = inputs
    sizes, axis, unit = masks.layout(node, limit)
    numbers = known_numbers(node, start), known_numbers(node, step)
    if axis != 0 or numbers != ((0,), (1,)) or start.dtype.kind not in "iu":
        raise refused(node, "that does not count rows")
    return [Padded(np.arange(sizes[0], dtype=start.dtype), 0, unit)], None


@rule("BroadcastGradientArgs")
def broadcast_gradient_args(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    """Leave out the axis of one row, which may be summed over: the sum is that of one element."""
    tables: list[np.ndarray] = []
    for value in inputs:
        if not isinstance(value, Sizes):
            known_numbers(node, value)
            value = Sizes(np.tile(value, (masks.size, 1)))
        tables.append(value.table)
    # Of all numbers of rows above 1, whether a size is 1 does not depend on the number.
    outcomes = [masks.compute(node, [*pair])[0] for pair in zip(*tables, strict=True)][1:]
    for outcome in outcomes:
        for one, first in zip(outcome, outcomes[0], strict=True):
            if not np.array_equal(one, first):
                raise refused(node, "whose axes depend on the number of rows")
    return outcomes[0], None


# Joining and splitting.


@rule("Pack")
def pack(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    axis, unit = same_way(node, *inputs)
    (output,), check = masks.compute(node, arrays(inputs))
    place = integer(node, "axis") % output.ndim
    return [Padded(output, axis + (place <= axis), unit)], check


@rule("Unpack")
def unpack(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    (x,) = inputs
    place = integer(node, "axis") % x.array.ndim
    if place == x.axis:
        raise refused(node, "into rows")
    outputs, check = masks.compute(node, [x.array])
    return [Padded(output, x.axis - (place < x.axis), x.unit) for output in outputs], check


def _along(
    masks: Masks, node: NodeView, inputs: Sequence[Any], parts: Sequence[Any], axis: Any
) -> Outcome:
    """Return what joins or splits tensors, its `parts`, along an axis that is not that of rows."""
    place, unit = same_way(node, *parts)
    if known_numbers(node, axis)[0] % parts[0].array.ndim == place:
        raise refused(node, "along the rows")
    outputs, check = masks.compute(node, arrays(inputs))
    return [Padded(output, place, unit) for output in outputs], check


@rule("ConcatV2")
def concat_v2(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    return _along(masks, node, inputs, inputs[:-1], inputs[-1])


@rule("Concat")
def concat(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    return _along(masks, node, inputs, inputs[1:], inputs[0])


@rule("Split")
def split(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    return _along(masks, node, inputs, inputs[1:], inputs[0])


@rule("SplitV")
def split_v(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    known_numbers(node, inputs[1])
    return _along(masks, node, inputs, inputs[:1], inputs[2])


SHAPED: frozenset[str] = frozenset(
    ["Shape", "ShapeN", "Size", "Rank", "Reshape", "Tile", "BroadcastTo", "Fill", "Range"]
) | {"BroadcastGradientArgs"}
"""Operations whose rules take sizes as they are."""
