"""Slices, gathering and scattering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    NotLoweredError,
    Operation,
    check_fit,
    definitions,
    integer,
    is_known,
    jnp,
    known,
    lax,
    library,
    library_for,
    number,
    numbers,
    text,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)

INSIDE = {"mode": "drop", "wrap_negative_indices": False}
"""How elements are scattered: those outside are left out, also those at negative places."""


@operation("Slice")
def slice_of(node: NodeView, x: Array, begin: Array, size: Array) -> Array:
    sizes = numbers(node, size, "sizes that are")
    if is_known(begin):
        starts = numbers(node, begin, "places")
        return x[
            tuple(
                slice(start, None if length < 0 else start + length)
                for start, length in zip(starts, sizes, strict=True)
            )
        ]
    if -1 in sizes:
        raise NotLoweredError("Slice of all that follows a place known only when it runs")
    return lax.dynamic_slice(x, [begin[axis] for axis in range(x.ndim)], sizes)


class SlicePart(NamedTuple):
    """One dimension of a StridedSlice: its place in the node's inputs, the axis of the whole
    tensor, and that of the slice; -1 where there is none."""

    place: int
    axis: int
    sliced: int


def slice_parts(node: NodeView, count: int, ndim: int) -> Iterator[SlicePart]:
    """Yield the parts of a StridedSlice with `count` dimensions of a tensor with `ndim`; those that
    an ellipsis stands for have the place -1."""

    def masked(name: str, place: int) -> bool:
        return bool(integer(node, f"{name}_mask") >> place & 1)

    added = sum(masked("new_axis", place) or masked("ellipsis", place) for place in range(count))
    spread = ndim - (count - added)
    axis = sliced = 0
    for place in range(count):
        if masked("ellipsis", place):
            for _ in range(spread):
                yield SlicePart(-1, axis, sliced)
                axis, sliced = axis + 1, sliced + 1
            spread = 0
        elif masked("new_axis", place):
            yield SlicePart(place, -1, sliced)
            sliced += 1
        elif masked("shrink_axis", place):
            yield SlicePart(place, axis, -1)
            axis += 1
        else:
            yield SlicePart(place, axis, sliced)
            axis, sliced = axis + 1, sliced + 1
    for _ in range(spread):
        yield SlicePart(-1, axis, sliced)
        axis, sliced = axis + 1, sliced + 1


class _Bounds:
    """The inputs and masks of a StridedSlice, asked for one of its dimensions at a time."""

    def __init__(self, node: NodeView, begin: Array, end: Array, strides: Array) -> None:
        self.node = node
        self.begin = begin
        self.end = end
        self.steps = numbers(node, strides, "strides")

    def _masked(self, name: str, place: int) -> bool:
        return bool(integer(self.node, f"{name}_mask") >> place & 1)

    def index(self) -> tuple[Any, ...]:
        """Return what NumPy would be given as an index."""
        items = [self._item(place) for place in range(len(self.steps))]
        return tuple(items) if Ellipsis in map(_kind, items) else (*items, Ellipsis)

    def _item(self, place: int) -> Any:
        if self._masked("ellipsis", place):
            return Ellipsis
        if self._masked("new_axis", place):
            return None
        if self._masked("shrink_axis", place):
            return int(self.begin[place]) if is_known(self.begin) else self.begin[place]
        first = None if self._masked("begin", place) else self._bound(self.begin, place)
        last = None if self._masked("end", place) else self._bound(self.end, place)
        return slice(first, last, self.steps[place])

    def _bound(self, bounds: Array, place: int) -> int:
        return int(known(self.node, bounds, "bounds")[place])


def _kind(item: Any) -> Any:
    return item if item is Ellipsis else None


@operation("StridedSlice")
def strided_slice(node: NodeView, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    return x[_Bounds(node, begin, end, strides).index()]


@operation("StridedSliceGrad")
def strided_slice_grad(
    node: NodeView, shape: Array, begin: Array, end: Array, strides: Array, gradient: Array
) -> Array:
    sizes = numbers(node, shape, "a shape that is")
    index = _Bounds(node, begin, end, strides).index()
    if library(gradient, begin) is np:
        result = np.zeros(sizes, gradient.dtype)
        result[index] = gradient
        return result
    return jnp.zeros(sizes, gradient.dtype).at[index].set(gradient)


@operation("Gather")
def gather(node: NodeView, x: Array, indices: Array) -> Array:
    return _gathered(x, indices, 0, 0)


@operation("GatherV2")
def gather_v2(node: NodeView, x: Array, indices: Array, axis: Array) -> Array:
    place = number(node, axis, "an axis") % x.ndim
    batch = integer(node, "batch_dims")
    batch = batch + indices.ndim if batch < 0 else batch
    check_fit(node, x.shape[:batch] == indices.shape[:batch])
    return _gathered(x, indices, place, batch)


def _gathered(x: Array, indices: Array, axis: int, batch: int) -> Array:
    """Return slices of an axis, for each element of the first axes those that its indices name."""
    lib = library(x, indices)
    rows = lib.moveaxis(x, axis, batch)
    grid = [
        np.arange(size).reshape((-1,) + (1,) * (indices.ndim - place - 1))
        for place, size in enumerate(indices.shape[:batch])
    ]
    result = _rows(rows, (*grid, indices))
    before = axis - batch
    moved = [*range(indices.ndim, indices.ndim + before)]
    return lib.moveaxis(result, moved, range(batch, batch + before))


def _rows(x: Array, index: tuple[Array, ...]) -> Array:
    """Return the rows at the places that an index for each of the first axes names."""
    if library(x, *index) is np:
        return x[index]
    return jnp.asarray(x).at[index].get(mode="clip", wrap_negative_indices=False)


@operation("GatherNd")
def gather_nd(node: NodeView, x: Array, indices: Array) -> Array:
    return _rows(x, _columns(node, indices))


def _columns(node: NodeView, indices: Array) -> tuple[Array, ...]:
    """Return the last axis of indices as a tuple, which indexes the first axes of a tensor.

    Raises:
      NotLoweredError: it is empty, or the node is asked to pass over indices out of range.
    """
    if text(node, "bad_indices_policy") not in ("", "DEFAULT", "ERROR"):
        raise NotLoweredError(f"{node.op} that passes over indices out of range")
    if not indices.shape[-1]:
        raise NotLoweredError(f"{node.op} with indices of no axis")
    return tuple(indices[..., place] for place in range(indices.shape[-1]))


@operation("ScatterNd")
def scatter_nd(node: NodeView, indices: Array, updates: Array, shape: Array) -> Array:
    zeros = np.zeros(numbers(node, shape, "a shape that is"), updates.dtype)
    return tensor_scatter_add(node, zeros, indices, updates)


@operation("TensorScatterAdd")
def tensor_scatter_add(node: NodeView, x: Array, indices: Array, updates: Array) -> Array:
    return _written(node, "add", x, indices, updates)


@operation("TensorScatterSub")
def tensor_scatter_sub(node: NodeView, x: Array, indices: Array, updates: Array) -> Array:
    return _written(node, "subtract", x, indices, updates)


@operation("TensorScatterUpdate")
def tensor_scatter_update(node: NodeView, x: Array, indices: Array, updates: Array) -> Array:
    return _written(node, "set", x, indices, updates)


def _written(node: NodeView, how: str, x: Array, indices: Array, updates: Array) -> Array:
    """Return a tensor with a row of updates for each row of indices."""
    index = _columns(node, indices)
    check_fit(node, updates.shape == (*indices.shape[:-1], *x.shape[len(index) :]))
    return _scattered(how, x, index, updates)


def _scattered(how: str, x: Array, index: tuple[Array, ...], updates: Array) -> Array:
    if library_for(x.size, x, *index, updates) is not np:
        return getattr(jnp.asarray(x).at[index], how)(updates, **INSIDE)
    result = x.copy()
    if how == "set":
        result[index] = updates
    else:
        getattr(np, how).at(result, index, updates)
    return result


@operation("UnsortedSegmentSum")
def unsorted_segment_sum(node: NodeView, x: Array, segments: Array, count: Array) -> Array:
    """Add rows to those of their segments; rows of negative segments are left out."""
    check_fit(node, x.shape[: segments.ndim] == segments.shape)
    length = number(node, count, "a number of segments")
    zeros = np.zeros((length, *x.shape[segments.ndim :]), x.dtype)
    if library(x, segments) is np:
        kept = segments >= 0
        return _scattered("add", zeros, (segments[kept],), x[kept])
    return _scattered("add", zeros, (segments,), x)
