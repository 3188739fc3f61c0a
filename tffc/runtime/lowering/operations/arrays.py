"""Constants, shapes, and operations that lay elements out anew: joining, splitting, padding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.language.dtypes import DType
from tffc.runtime.lowering.operations.definition import (
    Array,
    NotLoweredError,
    Operation,
    check_fit,
    definitions,
    integer,
    known,
    library,
    library_for,
    number,
    numbers,
    scalar,
    text,
    type_of,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)

SHAPE = "a shape that is"

FIELDS = {
    DType.BOOL: "bool_val",
    DType.INT8: "int_val",
    DType.INT16: "int_val",
    DType.INT32: "int_val",
    DType.INT64: "int64_val",
    DType.UINT8: "int_val",
    DType.UINT16: "int_val",
    DType.UINT32: "uint32_val",
    DType.UINT64: "uint64_val",
    DType.FLOAT16: "half_val",
    DType.BFLOAT16: "half_val",
    DType.FLOAT32: "float_val",
    DType.FLOAT64: "double_val",
    DType.COMPLEX64: "scomplex_val",
    DType.COMPLEX128: "dcomplex_val",
    DType.STRING: "string_val",
}
"""The field of a TensorProto that lists elements of each type."""


@operation("Const")
def constant(node: NodeView) -> Array:
    """Return a constant; the last element listed stands for all that follow."""
    dtype = type_of(node, "dtype")
    tensor = node.attr["value"].tensor
    shape = tuple(dim.size for dim in tensor.tensor_shape.dim)
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype).reshape(shape)
    element = next(item for item in FIELDS if item.number == node.attr["dtype"].type)
    values = _listed(element, getattr(tensor, FIELDS[element]), dtype)
    size = math.prod(shape)
    if not len(values):
        values = np.zeros(1, dtype)
    rest = np.repeat(values[-1:], max(size - len(values), 0))
    return np.concatenate([values, rest])[:size].reshape(shape)


def _listed(element: DType, values: Any, dtype: np.dtype) -> np.ndarray:
    """Return the elements that a TensorProto lists, halves as integers and complexes as pairs."""
    if element is DType.STRING:
        return np.array([*values], object)
    if element in (DType.FLOAT16, DType.BFLOAT16):
        return np.array(values, np.uint16).view(dtype)
    if element.kind == "complex":
        return np.array(values, np.dtype(f"float{element.size * 4}")).view(dtype)
    return np.array(values, dtype)


@operation("Identity", "Snapshot", "StopGradient", "PreventGradient")
def identity(node: NodeView, x: Array) -> Array:
    return x


@operation("EnsureShape")
def ensure_shape(node: NodeView, x: Array) -> Array:
    sizes = ensured_sizes(node)
    is_alike = all(size in (-1, own) for own, size in zip(x.shape, sizes, strict=False))
    check_fit(node, len(sizes) == x.ndim and is_alike)
    return x


def ensured_sizes(node: NodeView) -> list[int]:
    """Return the sizes that an EnsureShape asks for; -1 is any."""
    return [dim.size for dim in node.attr["shape"].shape.dim]


@operation("IdentityN")
def identity_n(node: NodeView, *inputs: Array) -> Array:
    return [*inputs]


@operation("Shape")
def shape_of(node: NodeView, x: Array) -> Array:
    return np.array(x.shape, type_of(node, "out_type", np.int32))


@operation("ShapeN")
def shape_n(node: NodeView, *inputs: Array) -> Array:
    return [shape_of(node, x) for x in inputs]


@operation("Rank")
def rank(node: NodeView, x: Array) -> Array:
    return np.array(x.ndim, np.int32)


@operation("Size")
def size_of(node: NodeView, x: Array) -> Array:
    return np.array(x.size, type_of(node, "out_type", np.int32))


@operation("ZerosLike")
def zeros_like(node: NodeView, x: Array) -> Array:
    return library_for(x.size, x).zeros(x.shape, x.dtype)


@operation("OnesLike")
def ones_like(node: NodeView, x: Array) -> Array:
    return library_for(x.size, x).ones(x.shape, x.dtype)


@operation("Fill")
def fill(node: NodeView, dims: Array, value: Array) -> Array:
    shape = numbers(node, dims, SHAPE)
    return library_for(math.prod(shape), value).full(shape, value, value.dtype)


@operation("Range")
def range_of(node: NodeView, start: Array, limit: Array, delta: Array) -> Array:
    first, end, step = (known(node, value, "bounds") for value in (start, limit, delta))
    dtype = first.dtype
    if step == 0 or (first > end if step > 0 else first < end):
        raise NotLoweredError(f"Range from {first} to {end} by {step}")
    if dtype.kind in "iu":
        return np.arange(int(first), int(end), int(step), dtype=dtype)
    count = math.ceil(abs((float(end) - float(first)) / float(step)))
    return (first + np.arange(count).astype(dtype) * step).astype(dtype)


@operation("LinSpace")
def lin_space(node: NodeView, start: Array, stop: Array, num: Array) -> Array:
    count = number(node, num, "a number of steps")
    if count < 1:
        raise NotLoweredError(f"LinSpace of {count} steps")
    lib = library(start, stop)
    start = lib.reshape(start, (1,))
    if count == 1:
        return start
    step = (lib.reshape(stop, (1,)) - start) / scalar(count - 1, start)
    inner = start + step * np.arange(count - 1).astype(start.dtype)
    return lib.concatenate([inner, lib.reshape(stop, (1,))])


@operation("Reshape")
def reshape(node: NodeView, x: Array, shape: Array) -> Array:
    return library(x).reshape(x, numbers(node, shape, SHAPE))


@operation("Squeeze")
def squeeze(node: NodeView, x: Array) -> Array:
    axes = tuple(node.attr["squeeze_dims"].list.i) if "squeeze_dims" in node.attr else ()
    return library(x).squeeze(x, axes or None)


@operation("ExpandDims")
def expand_dims(node: NodeView, x: Array, axis: Array) -> Array:
    return library(x).expand_dims(x, number(node, axis, "an axis"))


@operation("Transpose")
def transpose(node: NodeView, x: Array, axes: Array) -> Array:
    return library(x).transpose(x, numbers(node, axes, "an order of axes"))


@operation("ReverseV2")
def reverse(node: NodeView, x: Array, axes: Array) -> Array:
    return library(x).flip(x, numbers(node, axes, "axes"))


@operation("Tile")
def tile(node: NodeView, x: Array, multiples: Array) -> Array:
    counts = numbers(node, multiples, "multiples")
    return library_for(x.size * math.prod(counts), x).tile(x, counts)


@operation("BroadcastTo")
def broadcast_to(node: NodeView, x: Array, shape: Array) -> Array:
    sizes = numbers(node, shape, SHAPE)
    return library_for(math.prod(sizes), x).broadcast_to(x, sizes)


@operation("BroadcastArgs")
def broadcast_args(node: NodeView, left: Array, right: Array) -> Array:
    shapes = numbers(node, left, SHAPE), numbers(node, right, SHAPE)
    return np.array(np.broadcast_shapes(*shapes), left.dtype)


@operation("BroadcastGradientArgs")
def broadcast_gradient_args(node: NodeView, left: Array, right: Array) -> Array:
    """Return the axes that the gradient of each of two broadcast inputs must be summed over."""
    shapes = numbers(node, left, SHAPE), numbers(node, right, SHAPE)
    length = max(map(len, shapes))
    padded = [(1,) * (length - len(shape)) + shape for shape in shapes]
    axes: list[list[int]] = [[], []]
    if shapes[0] == shapes[1]:
        return [np.array(side, left.dtype) for side in axes]
    for axis, sizes in enumerate(zip(*padded, strict=True)):
        for side in (0, 1):
            # Where both sizes are 1, either sum is that of one element.
            if sizes[side] == 1:
                axes[side].append(axis)
    return [np.array(side, left.dtype) for side in axes]


@operation("Pack")
def pack(node: NodeView, *inputs: Array) -> Array:
    return library(*inputs).stack(inputs, integer(node, "axis"))


@operation("Unpack")
def unpack(node: NodeView, x: Array) -> Array:
    rows = library(x).moveaxis(x, integer(node, "axis"), 0)
    check_fit(node, len(rows) == integer(node, "num"))
    return [rows[place] for place in range(len(rows))]


@operation("ConcatV2")
def concat_v2(node: NodeView, *inputs: Array) -> Array:
    axis = number(node, inputs[-1], "an axis")
    return library(*inputs[:-1]).concatenate(inputs[:-1], axis)


@operation("Concat")
def concat(node: NodeView, axis: Array, *inputs: Array) -> Array:
    return library(*inputs).concatenate(inputs, number(node, axis, "an axis"))


@operation("ConcatOffset")
def concat_offset(node: NodeView, axis: Array, *shapes: Array) -> Array:
    """Return where each tensor starts in their concatenation."""
    place = number(node, axis, "an axis")
    offset = 0
    offsets: list[Array] = []
    for shape in shapes:
        sizes = known(node, shape, SHAPE)
        starts = np.zeros_like(sizes)
        starts[place] = offset
        offset += int(sizes[place])
        offsets.append(starts)
    return offsets


@operation("Split")
def split(node: NodeView, axis: Array, x: Array) -> Array:
    count = integer(node, "num_split")
    return [*library(x).split(x, count, number(node, axis, "an axis"))]


@operation("SplitV")
def split_v(node: NodeView, x: Array, sizes: Array, axis: Array) -> Array:
    place = number(node, axis, "an axis")
    lengths = [*numbers(node, sizes, "sizes")]
    if -1 in lengths:
        lengths[lengths.index(-1)] = x.shape[place] - sum(lengths) - 1
    check_fit(node, sum(lengths) == x.shape[place] and min(lengths) >= 0)
    return [*library(x).split(x, [*np.cumsum(lengths)[:-1]], place)]


@operation("Pad")
def pad(node: NodeView, x: Array, paddings: Array) -> Array:
    return pad_v2(node, x, paddings, np.zeros((), x.dtype))


@operation("PadV2")
def pad_v2(node: NodeView, x: Array, paddings: Array, value: Array) -> Array:
    widths = _widths(node, paddings)
    return library(x, value).pad(x, widths, constant_values=value)


def _widths(node: NodeView, paddings: Array) -> list[tuple[int, int]]:
    """Return the number of elements before and after each axis."""
    return [(int(pair[0]), int(pair[1])) for pair in known(node, paddings, "paddings")]


@operation("MirrorPad")
def mirror_pad(node: NodeView, x: Array, paddings: Array) -> Array:
    mode, widths = text(node, "mode"), _widths(node, paddings)
    pairs = zip(x.shape, widths, strict=True)
    # Each element is mirrored once.
    check_fit(node, all(max(width) <= size - (mode == "REFLECT") for size, width in pairs))
    return library(x).pad(x, widths, mode=mode.lower())


@operation("MirrorPadGrad")
def mirror_pad_grad(node: NodeView, gradient: Array, paddings: Array) -> Array:
    """Add what reached the padding to the elements that it mirrors."""
    skipped = 1 if text(node, "mode") == "REFLECT" else 0
    lib = library(gradient)
    for axis, (before, after) in enumerate(_widths(node, paddings)):
        rows = lib.moveaxis(gradient, axis, 0)
        size = len(rows) - before - after
        inner = rows[before : before + size]
        first = _placed(lib, rows[:before][::-1], skipped, size)
        last = _placed(lib, rows[before + size :][::-1], size - after - skipped, size)
        gradient = lib.moveaxis(inner + first + last, 0, axis)
    return gradient


def _placed(lib: Any, rows: Array, place: int, size: int) -> Array:
    """Return so many rows of zeros with these rows at a place."""
    widths = [(place, size - place - len(rows))] + [(0, 0)] * (rows.ndim - 1)
    return lib.pad(rows, widths)


@operation("InvertPermutation")
def invert_permutation(node: NodeView, x: Array) -> Array:
    return library(x).argsort(x).astype(x.dtype)


@operation("MatrixBandPart")
def matrix_band_part(node: NodeView, x: Array, lower: Array, upper: Array) -> Array:
    """Keep so many diagonals below and above the main one; a negative number keeps all."""
    lib = library(x, lower, upper)
    rows, columns = np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])
    below = (lower < scalar(0, lower)) | ((rows - columns).astype(lower.dtype) <= lower)
    above = (upper < scalar(0, upper)) | ((columns - rows).astype(upper.dtype) <= upper)
    return lib.where(below & above, x, scalar(0, x))


@operation("MatrixDiag")
def matrix_diag(node: NodeView, x: Array) -> Array:
    return library(x).where(np.eye(x.shape[-1], dtype=bool), x[..., None], scalar(0, x))


@operation("MatrixDiagPart")
def matrix_diag_part(node: NodeView, x: Array) -> Array:
    return library(x).diagonal(x, axis1=-2, axis2=-1)


@operation("OneHot")
def one_hot(node: NodeView, indices: Array, depth: Array, on: Array, off: Array) -> Array:
    count = number(node, depth, "a depth")
    if count < 0:
        raise NotLoweredError(f"OneHot of depth {count}")
    axis = integer(node, "axis", -1)
    if indices.dtype.itemsize < 4:
        # Their type may not hold the depth.
        indices = indices.astype(np.int32)
    lib = library_for(indices.size * count, indices, on, off)
    places = np.arange(count).astype(indices.dtype)
    if axis != -1:
        places = places.reshape((-1,) + (1,) * (indices.ndim - axis))
    hits = lib.equal(lib.expand_dims(indices, axis), places)
    return lib.where(hits, on, off)


@operation("DynamicStitch")
def dynamic_stitch(node: NodeView, *inputs: Array) -> Array:
    """Put rows at places; of rows for the same place, the last stays."""
    half = len(inputs) // 2
    indices = [known(node, value, "places") for value in inputs[:half]]
    data = inputs[half:]
    places = np.concatenate([value.reshape(-1) for value in indices])
    rows = [
        value.reshape((-1, *value.shape[index.ndim :]))
        for index, value in zip(indices, data, strict=True)
    ]
    sources = np.full(int(places.max(initial=-1)) + 1, -1)
    for row, place in enumerate(places):
        sources[place] = row
    if (sources < 0).any():
        raise NotLoweredError("DynamicStitch of places that leave gaps")
    return library(*data).concatenate(rows)[sources]
