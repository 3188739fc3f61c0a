"""The pieces of a round's work, and the arrays of clients that are computed together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from tffc.runtime.batching.kernels import DataLayout, Kernel, Key
from tffc.runtime.data.groups import ClientGroup
from tffc.runtime.lowering.tracer import Tensor
from tffc.support.guards import Array


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Clients that are computed together, by a kernel that has their data as tensors."""

    clients: tuple[str, ...]
    kernel: Kernel
    tensors: list[Tensor]


@dataclasses.dataclass(frozen=True, slots=True)
class OneByOne:
    """Clients that are computed one after another."""

    clients: tuple[str, ...]


Stacked: TypeAlias = tuple[Array, tuple[list[Array], Array, list[Array]]]
"""The positions of some clients, and their arrays, lengths and counts as a kernel takes them."""

Piece: TypeAlias = Batch | OneByOne
"""The unit of work of one worker."""


class PlannedPiece(NamedTuple):
    """A piece, with the number of its window of clients, its number in that window, and whether it
    is the last piece there."""

    window: int
    number: int
    is_last: bool
    piece: Piece


def place(windows: Iterable[Iterable[Piece]]) -> Iterator[PlannedPiece]:
    """Yield the pieces of windows, each of which has at least one.

    A piece is yielded when it is known whether its window has another.
    """
    for window, pieces in enumerate(windows):
        before: Piece | None = None
        number = -1
        for number, piece in enumerate(pieces):
            if before is not None:
                yield PlannedPiece(window, number - 1, False, before)
            before = piece
        if before is not None:
            yield PlannedPiece(window, number, True, before)


def stack(layout: DataLayout, key: Key, groups: Sequence[ClientGroup]) -> Stacked:
    """Return the positions of the clients of some groups, and their arrays, lengths and counts
    as a kernel takes them."""
    positions = np.concatenate([group.positions for group in groups])
    order = np.argsort(positions, kind="stable")
    columns = [
        np.concatenate([_fitted(group.columns[at], shape) for group in groups])[order]
        if len(groups) > 1
        else _fitted(groups[0].columns[at], shape)
        for at, shape in enumerate(key.shapes)
    ]
    own_lengths = [layout.lengths(shapes_of(group)) for group in groups]
    times = [len(group.positions) for group in groups]
    lengths = np.repeat(np.array(own_lengths, np.int64), times, axis=0)[order]
    counts = [
        np.repeat(
            np.array([_counts(key, at, own[read.number]) for own in own_lengths], np.int64),
            times,
            axis=0,
        )[order]
        for at, read in enumerate(key.orders)
    ]
    return positions[order], (columns, lengths, counts)


def _counts(key: Key, at: int, length: int) -> list[int]:
    """Return the counts of an order for a sequence of some length, as `Kernel.tensors` takes
    them."""
    order = key.orders[at]
    if not key.rests or not key.rests[at]:
        return order.counts(length)
    (whole, _), *last = order.runs(length) or ((0, 0),)
    return [whole, last[0][1] if last else 0]


def shapes_of(group: ClientGroup) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the arrays of each client of a group."""
    return tuple(column.shape[1:] for column in group.columns)


def _fitted(column: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of clients padded with zeros to rows of this shape."""
    if column.shape[1:] == shape:
        return column
    padded = np.zeros((len(column), *shape), column.dtype)
    padded[:, : column.shape[1]] = column
    return padded


def bytes_of(piece: Piece) -> int:
    """Return the bytes of the tensors of a piece."""
    if isinstance(piece, OneByOne):
        return 0
    return sum(
        np.dtype(tensor.dtype.name).itemsize * math.prod(tensor.shape) for tensor in piece.tensors
    )
