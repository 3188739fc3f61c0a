"""Rules of slices, of gathering and of scattering."""

from __future__ import annotations

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
from tffc.runtime.lowering.operations.definition import Array, integer, is_known, jnp
from tffc.runtime.lowering.operations.indexing import SlicePart, slice_parts

RULES: dict[str, Rule] = {}
rule = rules(RULES)


@rule("Slice")
def slice_of(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, begin, size = inputs
    if not isinstance(x, Padded) or known_numbers(node, begin)[x.axis] != 0:
        raise refused(node, "that leaves out rows")
    sizes, axis, unit = masks.layout(node, size)
    if (axis, unit) != (x.axis, x.unit) and (axis >= 0 or sizes[x.axis] != -1):
        raise refused(node, "that leaves out rows")
    (output,), check = masks.compute(node, [x.array, begin, np.array(sizes, np.int64)])
    return [Padded(output, x.axis, x.unit)], check


def _check_whole(
    masks: Masks, node: NodeView, bounds: Sequence[Any], part: SlicePart, unit: int
) -> None:
    """Check that a part is all rows.

    Raises:
      NotLoweredError: it leaves out rows, or another part depends on their number.
    """
    begin, end, strides = bounds
    steps = known_numbers(node, strides)
    tables = [each.table if isinstance(each, Sizes) else None for each in (begin, end)]
    for table in tables:
        moving = np.ptp(table, axis=0).nonzero()[0] if table is not None else ()
        if any(int(place) != part.place for place in moving):
            raise refused(node, "with bounds that depend on the number of rows")
    if part.place < 0:
        return
    free = [integer(node, f"{name}_mask") >> part.place & 1 for name in ("begin", "end")]
    starts = free[0] or (is_known(begin) and int(begin[part.place]) == 0)
    rows = unit * np.arange(1, masks.size + 1)
    ends = free[1] or (tables[1] is not None and np.array_equal(tables[1][:, part.place], rows))
    if part.sliced < 0 or not starts or not ends or steps[part.place] != 1:
        raise refused(node, "that leaves out rows")


@rule("StridedSlice")
def strided_slice(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, *bounds = inputs
    if not isinstance(x, Padded):
        raise refused(node, "with bounds that depend on the number of rows")
    parts = slice_parts(node, len(bounds[2]), x.array.ndim)
    (part,) = [part for part in parts if part.axis == x.axis]
    _check_whole(masks, node, bounds, part, x.unit)
    (output,), check = masks.compute(node, [x.array, *map(masks.full, bounds)])
    return [Padded(output, part.sliced, x.unit)], check


@rule("StridedSliceGrad")
def strided_slice_grad(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    shape, *bounds, gradient = inputs
    sizes, axis, unit = masks.layout(node, shape)
    (part,) = [p for p in slice_parts(node, len(bounds[2]), len(sizes)) if p.axis == axis] or [None]
    if part is None or not isinstance(gradient, Padded):
        raise refused(node, "of a fixed number of rows")
    if (part.sliced, unit) != (gradient.axis, gradient.unit):
        raise refused(node, "of other rows")
    _check_whole(masks, node, bounds, part, unit)
    full = [np.array(sizes, np.int64), *map(masks.full, bounds), gradient.array]
    (output,), check = masks.compute(node, full)
    return [Padded(output, axis, unit)], check


# Gathering.


def _real_indices(masks: Masks, indices: Any) -> Any:
    """Return indices, with 0 for those that are not real."""
    return masks.filled(indices, 0) if isinstance(indices, Padded) else indices


@rule("Gather", "GatherV2")
def gather(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, indices, *last = inputs
    ndim = np.ndim(*arrays([x]))
    axis = known_numbers(node, last[0])[0] % ndim if last else 0
    if integer(node, "batch_dims"):
        place, unit = same_way(node, x, indices)
        if not 0 <= place < min(integer(node, "batch_dims"), axis):
            raise refused(node, "that mixes rows")
        indices = Padded(_real_indices(masks, indices), place, unit)
        (output,), check = masks.compute(node, [x.array, indices.array, *last])
        return [Padded(output, place, unit)], check
    if isinstance(x, Padded) and x.axis != axis:
        if isinstance(indices, Padded):
            raise refused(node, "that mixes rows")
        (output,), check = masks.compute(node, [x.array, indices, *last])
        moved = np.ndim(indices) - 1 if x.axis > axis else 0
        return [Padded(output, x.axis + moved, x.unit)], check
    real = _real_indices(masks, indices)
    (output,), check = masks.compute(node, [*arrays([x]), real, *last])
    if isinstance(x, Padded):
        end = masks.amount(x.unit, real.dtype)
        check = ((jnp.asarray(real) >= 0) & (real < end)).all()
    if isinstance(indices, Padded):
        output = Padded(output, axis + indices.axis, indices.unit)
    return [output], check


@rule("GatherNd")
def gather_nd(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, indices = inputs
    real = _real_indices(masks, indices)
    if isinstance(indices, Padded) and indices.axis == indices.array.ndim - 1:
        raise refused(node, "whose axes are rows")
    (output,), check = masks.compute(node, [*arrays([x]), real])
    if isinstance(x, Padded):
        check = _inside(masks, node, x.array.shape, x.axis, x.unit, real)
    if isinstance(indices, Padded):
        output = Padded(output, indices.axis, indices.unit)
    return [output], check


def _inside(
    masks: Masks, node: NodeView, shape: Sequence[int], axis: int, unit: int, rows: Array
) -> Array:
    """Return whether rows of indices are inside of the real entries of a shape."""
    ends: list[Any] = [np.int64(size) for size in shape]
    ends[axis] = masks.amount(unit, np.int64)
    depth = rows.shape[-1]
    if axis >= depth:
        raise refused(node, "that leaves rows together")
    return ((jnp.asarray(rows) >= 0) & (rows < jnp.stack(ends[:depth]))).all()


# Scattering: what is not real is added as nothing.


@rule("ScatterNd")
def scatter_nd(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    indices, updates, shape = inputs
    sizes, axis, unit = masks.layout(node, shape)
    if isinstance(indices, Padded) or isinstance(updates, Padded):
        place, _ = same_way(node, indices, updates)
        if place >= indices.array.ndim - 1:
            raise refused(node, "whose axes are rows")
        updates = masks.filled(updates, 0)
    real = _real_indices(masks, indices)
    (output,), check = masks.compute(node, [real, updates, np.array(sizes, np.int64)])
    if axis >= 0:
        check = _inside(masks, node, sizes, axis, unit, real)
        output = Padded(output, axis, unit)
    return [output], check


@rule("UnsortedSegmentSum")
def unsorted_segment_sum(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    x, segments, count = inputs
    place, _ = same_way(node, x, segments)
    sizes, axis, unit = masks.layout(node, count)
    if place >= segments.array.ndim:
        raise refused(node, "whose sums are rows")
    real = masks.filled(segments, 0)
    number = np.array(sizes[0], np.int64)
    (output,), check = masks.compute(node, [masks.filled(x, 0), real, number])
    if axis >= 0:
        check = (real < masks.amount(unit, real.dtype)).all()
        output = Padded(output, 0, unit)
    return [output], check


@rule("OneHot")
def one_hot(masks: Masks, node: NodeView, inputs: Sequence[Any]) -> Outcome:
    indices, *others = inputs
    if not isinstance(indices, Padded) or others != arrays(others):
        raise refused(node, "with other numbers for each row")
    place = integer(node, "axis", -1)
    (output,), check = masks.compute(node, [indices.array, *others])
    moved = 0 <= place <= indices.axis
    return [Padded(output, indices.axis + moved, indices.unit)], check


SHAPED = frozenset(["Slice", "StridedSlice", "StridedSliceGrad", "ScatterNd", "UnsortedSegmentSum"])
"""Operations whose rules take sizes as they are."""
