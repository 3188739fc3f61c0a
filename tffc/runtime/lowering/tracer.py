"""What tracing a section needs of a framework: JAX or TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from tffc.graphs.node import NodeView
from tffc.support.guards import Array

Tensor: TypeAlias = Any
"""A tensor of the framework, or an array or a number where the framework takes one."""


class Tracer(Protocol):
    """Computes with tensors of one framework.

    Every method but `known` takes numbers and arrays for tensors.  All raise:
      NotLoweredError: the framework cannot compute it.
    """

    draws: bool
    """Whether `draw` can draw."""

    selects: bool
    """Whether all branches are computed, and the results of one are selected, as XLA does where
    clients are vectorised."""

    def known(self, tensor: Tensor) -> Array | None:
        """Return the value of a tensor that is known now, before anything runs."""
        ...

    def masked(self, count: Tensor, columns: Sequence[Tensor]) -> tuple[Tracer, tuple[Tensor, ...]]:
        """Return a tracer that computes as if the columns had their first `count` rows only, at
        least one, and the columns as its tensors."""
        ...

    def plain(self, tensor: Tensor) -> Tensor:
        """Return a tensor as one of the tracer that `masked` was called of.

        Raises:
          NotLoweredError: the number of its rows is that of the columns.
        """
        ...

    def apply(self, node: NodeView, inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Tensor]:
        """Return the outputs of an operation without state, and whether TensorFlow accepts these
        inputs and computes what XLA does: None if that is always so."""
        ...

    def call(
        self, node: NodeView, inputs: Sequence[Tensor], *, is_shared: bool
    ) -> Sequence[Tensor]:
        """Return the outputs of a node that runs a module of StableHLO; with `is_shared`, it is
        computed also for clients that are not in the branch or loop where it stands.

        Raises:
          NotLoweredError: it might not end for those.
        """
        ...

    def draw(self, node: NodeView, inputs: Sequence[Tensor], key: Tensor, count: Tensor) -> Tensor:
        """Return what a random operation of any seed draws: the draw `count` under a key of two
        64-bit numbers."""
        ...

    def is_truth(self, tensor: Tensor) -> bool:
        """Return whether a tensor is one truth value."""
        ...

    def both(self, truths: Sequence[Tensor]) -> Tensor:
        """Return whether all of some truth values hold."""
        ...

    def is_finite(self, tensor: Tensor) -> Tensor:
        """Return whether all numbers of a tensor are finite."""
        ...

    def branch(
        self,
        condition: Tensor,
        one: Callable[[], Sequence[Tensor]],
        other: Callable[[], Sequence[Tensor]],
    ) -> list[Tensor]:
        """Return the results of one of two functions."""
        ...

    def switch(
        self, index: Tensor, branches: Sequence[Callable[[], Sequence[Tensor]]]
    ) -> list[Tensor]:
        """Return the results of the function at an index."""
        ...

    def loop(
        self,
        again: Callable[..., Tensor],
        step: Callable[..., Sequence[Tensor]],
        start: Sequence[Tensor],
    ) -> list[Tensor]:
        """Return the last values of a loop, whose step keeps their types.

        Raises:
          NotLoweredError: a step changes a type.
        """
        ...

    def holds_lists(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether one of some tensors is a list of tensors."""
        ...

    def shape(self, tensor: Tensor) -> Sequence[int | None]:
        """Return the shape of a tensor."""
        ...

    def long(self, number: Tensor) -> Tensor:
        """Return a whole number as a 64-bit one."""
        ...

    def least(self, one: Tensor, other: Tensor) -> Tensor:
        """Return the smaller of two numbers."""
        ...

    def most(self, one: Tensor, other: Tensor) -> Tensor:
        """Return the larger of two numbers."""
        ...

    def numbers(self, count: int) -> Tensor:
        """Return the 64-bit numbers from 0 to below `count`."""
        ...

    def rows(self, column: Tensor, at: Tensor) -> Tensor:
        """Return the rows of a tensor at some indices."""
        ...

    def slice(self, column: Tensor, begin: Tensor, size: int, *, in_step: bool) -> Tensor:
        """Return `size` consecutive rows of a tensor, which has them; with `in_step`, `begin` is
        the same for all clients of a batch."""
        ...
