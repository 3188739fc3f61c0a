"""The keys of the kernels that clients need, by the shapes of their data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from tffc.runtime.batching.compilers import Compiler
from tffc.runtime.batching.kernels import DataLayout, Key
from tffc.runtime.batching.limits import Limits
from tffc.runtime.batching.pieces import shapes_of
from tffc.runtime.data.groups import ClientGroup
from tffc.runtime.lowering.sequences import Order

FindOrders: TypeAlias = Callable[[Key], tuple[Order, ...] | None]
"""A function that finds the orders in which the work of clients like those of a key reads
sequences; None if they cannot be computed in batches."""


class KernelKeys:
    """The keys of the kernels of one program; `orders` are those in which sequences are read."""

    def __init__(self, layout: DataLayout, compiler: Compiler, limits: Limits) -> None:
        self.orders: tuple[Order, ...] | None = None
        self._layout = layout
        self._compiler = compiler
        self._limits = limits
        self._most: dict[int, int] = {}

    def make_room(self, groups: Sequence[ClientGroup], find_orders: FindOrders) -> None:
        """Give the arrays of kernels room for the longest sequences of all groups, and find the
        orders in which sequences are read."""
        lengths = [self._layout.lengths(shapes_of(group)) for group in groups]
        for own in lengths:
            for at, length in enumerate(own):
                most = max(length, self._most.get(at, 1))
                self._most[at] = 1 << (most - 1).bit_length()
        if self.orders is None and groups:
            longest = max(range(len(groups)), key=lambda at: sum(lengths[at]))
            self.orders = find_orders(self.equal(groups[longest]))

    def of(
        self, groups: Sequence[ClientGroup], *, ragged: bool
    ) -> dict[Key | None, list[ClientGroup]]:
        """Return the groups that share each key; with None as key, those that no kernel computes.

        With `ragged`, clients of different lengths share keys, as far as `make_room` has seen them.
        """
        lengths = [self._layout.lengths(shapes_of(group)) for group in groups]
        rests = tuple(self.rests(order, lengths) for order in self.orders or () if ragged)
        keyed: dict[Key | None, list[ClientGroup]] = {}
        for group in groups:
            key = self.ragged(group, rests) if ragged else self.equal(group)
            keyed.setdefault(key, []).append(group)
        return keyed

    def equal(self, group: ClientGroup) -> Key:
        """Return the key of a kernel for clients with sequences as long as those of a group."""
        shapes = shapes_of(group)
        return Key(shapes, self._layout.lengths(shapes))

    def ragged(self, group: ClientGroup, rests: tuple[tuple[int, ...], ...]) -> Key | None:
        """Return the key of a kernel for clients of different lengths, those of a group among them,
        or None if there is none."""
        if self.orders is None:
            return None
        shapes = shapes_of(group)
        lengths = self._layout.lengths(shapes)
        runs = [order.runs(lengths[order.number]) for order in self.orders]
        if None in runs:
            return None
        sizes = tuple(
            (order.size,) if rest else tuple(size for _, size in run or ())
            for order, run, rest in zip(self.orders, runs, rests, strict=True)
        )
        padded = self._layout.padded(shapes, [self._most[at] for at in range(len(lengths))])
        return Key(padded, lengths, self.orders, sizes, rests)

    def rests(self, order: Order, lengths: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the sizes of last batches that one kernel computes for clients of some lengths, or
        none if each needs a kernel of its own.

        They depend on these clients alone, and few kernels are enough for all rounds: they are
        either one size, or all that there may be.
        """
        if not self._compiler.has_rests:
            return ()
        possible = order.rests(self._most[order.number])
        here = {order.rest(own[order.number]) for own in lengths} - {0}
        if len(here) > 1:
            return possible if len(possible) <= self._limits.most_rests else ()
        return tuple(here)
