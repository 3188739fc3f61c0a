"""TensorFlow's operations that move elements, and those about shapes."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tffc.assurance.privacy.graphs import clocks, poisson
from tffc.assurance.privacy.graphs.constants import DTYPES, MOST_ELEMENTS
from tffc.assurance.privacy.graphs.table import NodeUse, Outputs, RuleTable, sizes_of
from tffc.assurance.privacy.quantities import bounds, residues
from tffc.assurance.privacy.quantities.quantity import Quantity
from tffc.language.dtypes import DType

if TYPE_CHECKING:
    pass


LAYOUTS = RuleTable()
"""The rules of this module."""


# The same elements, perhaps in other places.


@LAYOUTS.rule(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "CheckNumerics",
    "CheckNumericsV2",
    "EnsureShape",
    "IdentityN",
    "DeepCopy",
)
def _identity(use: NodeUse) -> Outputs:
    return use.inputs


@LAYOUTS.rule("Reshape")
def _reshape(use: NodeUse) -> Outputs:
    shape, size = sizes_of(use.inputs[1]), use.inputs[0].size
    if shape is not None and -1 in shape:
        rest = -math.prod(shape)
        shape = None
        if size is not None and rest and size % rest == 0:
            sizes = sizes_of(use.inputs[1]) or ()
            shape = tuple(size // rest if length < 0 else length for length in sizes)
    return [use.algebra.same(use.inputs[0], shape)]


@LAYOUTS.rule("ExpandDims")
def _expand(use: NodeUse) -> Outputs:
    value, axes = use.inputs[0], sizes_of(use.inputs[1])
    if value.shape is None or axes is None or len(axes) != 1:
        return [use.algebra.same(value)]
    axis = axes[0] if axes[0] >= 0 else len(value.shape) + 1 + axes[0]
    return [use.algebra.same(value, (*value.shape[:axis], 1, *value.shape[axis:]))]


@LAYOUTS.rule("Squeeze")
def _squeeze(use: NodeUse) -> Outputs:
    value = use.inputs[0]
    if value.shape is None:
        return [use.algebra.same(value)]
    rank = len(value.shape)
    axes = {axis % rank for axis in use.node.attr["squeeze_dims"].list.i} if rank else set[int]()
    shape = tuple(
        length
        for axis, length in enumerate(value.shape)
        if not (axis in axes if axes else length == 1)
    )
    return [use.algebra.same(value, shape)]


@LAYOUTS.rule("Transpose")
def _transpose(use: NodeUse) -> Outputs:
    return [use.algebra.transposed(use.inputs[0], sizes_of(use.inputs[1]))]


@LAYOUTS.rule("BroadcastTo")
def _broadcast_to(use: NodeUse) -> Outputs:
    shape = sizes_of(use.inputs[1])
    if shape is not None and shape == use.inputs[0].shape:
        return [use.inputs[0]]
    wide = use.algebra.unknown(use.inputs[:1], "broadcast", shape, shape=shape)
    return [dataclasses.replace(wide, bounds=use.inputs[0].bounds)]


@LAYOUTS.rule("Cast")
def _cast(use: NodeUse) -> Outputs:
    value, kind = use.inputs[0], DTYPES.get(use.node.attr["DstT"].type)
    source = DTYPES.get(use.node.attr["SrcT"].type)
    if kind is None or source is None:
        return None
    if kind is source:
        return [value]
    if clocks.is_clock(value):
        return [clocks.converted(use, source, kind)]
    if kind.is_floating and kind.size < 4:
        return None
    if kind.is_floating and (source.is_floating or source.is_integer or source is DType.BOOL):
        content = None if value.content is None else value.content.astype(kind.dtype)
        span = float(np.iinfo(source.dtype).max) + 1 if source.is_integer else value.span
        is_whole = value.is_whole or not source.is_floating
        return [
            dataclasses.replace(
                value, is_integer=False, content=content, span=span, is_whole=is_whole
            )
        ]
    if kind.is_integer and source is DType.BOOL:
        content = None if value.content is None else value.content.astype(kind.dtype)
        return [dataclasses.replace(value, content=content)]
    if kind.is_integer and source.is_integer and kind.size >= source.size:
        if kind.kind == source.kind:
            # Digits that a smaller type has lost are missing in a larger one.
            return [value if value.quotient is None else dataclasses.replace(value, quotient=None)]
    if kind.is_integer and source.is_floating:
        limits = np.iinfo(kind.dtype)
        if value.quotient is not None and residues.fits(value.quotient, float(limits.max)):
            return [dataclasses.replace(value, is_integer=True)]
        return [use.algebra.truncated(value, float(limits.min), float(limits.max))]
    if value.content is not None:
        return [use.algebra.constant(value.content.astype(kind.dtype))]
    if kind is DType.INT32 and source is DType.INT64:
        return poisson.narrowed(use)
    return None


# Tensors of several, and parts of them.


@LAYOUTS.rule("Pack")
def _pack(use: NodeUse) -> Outputs:
    first, shape = use.inputs[0].shape, None
    axis = use.node.attr["axis"].i if "axis" in use.node.attr else 0
    if first is not None and all(value.shape == first for value in use.inputs):
        axis = axis if axis >= 0 else len(first) + 1 + axis
        shape = (*first[:axis], len(use.inputs), *first[axis:])
    stack = use.algebra.stacked(use.inputs, "pack", axis, shape=shape)
    if shape is not None and len(shape) == 1:
        stack = dataclasses.replace(stack, seed=clocks.joined(use))
    return [dataclasses.replace(stack, content=None) if axis else stack]


@LAYOUTS.rule("ConcatV2")
def _concatenate(use: NodeUse) -> Outputs:
    *values, axis = use.inputs
    axes, shape = sizes_of(axis), None
    if axes is not None and all(value.shape for value in values):
        shapes = [value.shape or () for value in values]
        place = axes[0] % len(shapes[0])
        length = sum(each[place] for each in shapes)
        shape = (*shapes[0][:place], length, *shapes[0][place + 1 :])
    if axes is None:
        return None
    stack = use.algebra.stacked(values, "concatenate", axes, shape=shape)
    is_flat = shape is not None and len(shape) == 1
    return [stack if is_flat else dataclasses.replace(stack, content=None)]


def _some_of(use: NodeUse, value: Quantity, *key: Any) -> Quantity:
    """Return elements of a tensor, each at most once, of which other inputs say which they are."""
    part = use.algebra.unknown(use.inputs, *key, is_integer=value.is_integer)
    if value.sums or value.signal or value.noise:
        return part
    return dataclasses.replace(part, bounds=value.bounds, within=(value,))


@LAYOUTS.rule("Unpack")
def _unpack(use: NodeUse) -> Outputs:
    value, count = use.inputs[0], use.node.attr["num"].i
    axis = use.node.attr["axis"].i if "axis" in use.node.attr else 0
    if not axis and len(value.parts) == count and all(p.size == 1 for p in value.parts):
        return list(value.parts)
    shape = None
    if value.shape:
        place = axis % len(value.shape)
        shape = (*value.shape[:place], *value.shape[place + 1 :])
    return [
        use.algebra.part_of(value, "unpack", axis, number, shape=shape) for number in range(count)
    ]


@LAYOUTS.rule("Split", "SplitV")
def _split(use: NodeUse) -> Outputs:
    count = use.node.attr["num_split"].i
    if use.node.op == "Split":
        axes, value, lengths = sizes_of(use.inputs[0]), use.inputs[1], None
    else:
        value, lengths, axes = use.inputs[0], sizes_of(use.inputs[1]), sizes_of(use.inputs[2])
    is_even = use.node.op == "Split"
    if axes is None or not value.shape or not (lengths or is_even):
        return [_some_of(use, value, "split", count, number) for number in range(count)]
    axis = axes[0] % len(value.shape)
    if lengths is None:
        lengths = (value.shape[axis] // max(count, 1),) * count
    if -1 in lengths:
        rest = value.shape[axis] - sum(length for length in lengths if length >= 0)
        lengths = tuple(rest if length < 0 else length for length in lengths)
    parts: list[Quantity] = []
    start = 0
    for number, length in enumerate(lengths):
        shape = (*value.shape[:axis], length, *value.shape[axis + 1 :])
        part = use.algebra.part_of(value, "split", axis, number, lengths, shape=shape)
        if len(value.shape) == 1:
            part = dataclasses.replace(part, section=(value, start, start + length))
        parts.append(part)
        start += length
    return parts


@LAYOUTS.rule("StridedSlice")
def _strided_slice(use: NodeUse) -> Outputs:
    value, *limits = use.inputs
    masks = {
        name: use.node.attr[f"{name}_mask"].i if f"{name}_mask" in use.node.attr else 0
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    sizes = [sizes_of(limit) for limit in limits]
    key = ("slice", *sizes, *masks.values())
    if any(size is None for size in sizes):
        return [_some_of(use, value, "slice", *masks.values())]
    if value.shape is None:
        return [use.algebra.part_of(value, *key, shape=None)]
    index: list[Any] = []
    for axis, (begin, end, step) in enumerate(zip(*(s or () for s in sizes), strict=True)):
        bit = 1 << axis
        if masks["ellipsis"] & bit:
            index.append(...)
        elif masks["new_axis"] & bit:
            index.append(np.newaxis)
        elif masks["shrink_axis"] & bit:
            index.append(begin)
        else:
            first = None if masks["begin"] & bit else begin
            index.append(slice(first, None if masks["end"] & bit else end, step))
    if value.content is not None:
        try:
            return [use.algebra.constant(value.content[tuple(index)])]
        except IndexError:
            return None
    if (value.size or 0) > MOST_ELEMENTS:
        return [_some_of(use, value, *key)]
    try:
        places = np.arange(value.size or 0).reshape(value.shape)[tuple(index)]
    except (IndexError, ValueError, MemoryError):
        return None
    part = use.algebra.part_of(value, *key, shape=places.shape)
    part = poisson.column(use, value, places, part)
    if places.size and places.size == np.ptp(places) + 1 and len(value.shape) == 1:
        part = dataclasses.replace(part, section=(value, int(places.min()), int(places.max()) + 1))
    return [part]


@LAYOUTS.rule("Slice")
def _slice(use: NodeUse) -> Outputs:
    value, begin, size = use.inputs
    begins, lengths = sizes_of(begin), sizes_of(size)
    if begins is None or lengths is None or value.shape is None:
        return [_some_of(use, value, "slice of")]
    shape = tuple(
        whole - first if length < 0 else length
        for whole, first, length in zip(value.shape, begins, lengths, strict=True)
    )
    part = use.algebra.part_of(value, "slice of", begins, shape, shape=shape)
    if len(shape) == 1:
        part = dataclasses.replace(part, section=(value, begins[0], begins[0] + shape[0]))
    return [part]


# Shapes and constants.


@LAYOUTS.rule("Shape", "ShapeN")
def _shape(use: NodeUse) -> Outputs:
    return [
        use.algebra.unknown([value], "shape of")
        if value.shape is None
        else use.algebra.constant(np.array(value.shape, np.int64))
        for value in use.inputs
    ]


@LAYOUTS.rule("Size")
def _size(use: NodeUse) -> Outputs:
    size = use.inputs[0].size
    return None if size is None else [use.algebra.constant(np.int64(size))]


@LAYOUTS.rule("Rank")
def _rank(use: NodeUse) -> Outputs:
    value = use.inputs[0]
    if value.shape is not None:
        return [use.algebra.constant(np.int64(len(value.shape)))]
    rank = use.algebra.unknown([value], "rank", is_integer=True)
    use.algebra.ranks[rank.term] = value.term
    return [rank]


@LAYOUTS.rule("Range")
def _range(use: NodeUse) -> Outputs:
    contents = [
        v.content.item() if v.content is not None and v.size == 1 else None for v in use.inputs
    ]
    start, limit, step = contents
    if start is not None and limit is not None and step is not None:
        if step and abs((limit - start) / step) <= MOST_ELEMENTS:
            return [use.algebra.constant(np.arange(start, limit, step))]
    axes = use.algebra.unknown(use.inputs, "range")
    if start == 0 and step == 1:
        term = use.algebra.axes_of_rank(use.inputs[1].term)
        if term:
            return [dataclasses.replace(axes, term=term)]
    return [axes]


@LAYOUTS.rule("Fill")
def _fill(use: NodeUse) -> Outputs:
    shape, value = sizes_of(use.inputs[0]), use.inputs[1]
    wide = use.algebra.unknown([value], "fill", shape, shape=shape)
    filled = dataclasses.replace(wide, bounds=value.bounds, is_integer=value.is_integer)
    if shape is None or value.content is None or math.prod(shape) > MOST_ELEMENTS:
        return [dataclasses.replace(filled, term=use.algebra.fresh())]
    return [use.algebra.constant(np.full(shape, value.content))]


@LAYOUTS.rule("ZerosLike", "OnesLike")
def _like(use: NodeUse) -> Outputs:
    number = 0.0 if use.node.op == "ZerosLike" else 1.0
    shape = use.inputs[0].shape
    if shape is None:
        return [Quantity(use.algebra.fresh(), bounds=bounds.constant(number))]
    return [use.algebra.constant(np.broadcast_to(np.float32(number), shape))]
