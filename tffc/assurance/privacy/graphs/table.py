"""Tables of operations of TensorFlow, with what each computes of known quantities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np

from tffc.assurance.privacy.quantities import bounds
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.bounds import Bounds
from tffc.assurance.privacy.quantities.quantity import Quantity, Shape
from tffc.graphs.body import Body

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView

Outputs: TypeAlias = "list[Quantity] | None"
"""The outputs of a node, or None if a rule does not describe it."""


class Walk(Protocol):
    """The evaluation of a graph, as rules use it."""

    algebra: Algebra

    def draw(
        self,
        node: NodeView,
        body: Body,
        distribution: str,
        shape: Shape | None,
        limits: Bounds = bounds.ANY,
    ) -> Quantity:
        """Return what an operation with seeds in its attributes draws."""
        ...


class NodeUse(NamedTuple):
    """A node of a body that is applied to inputs."""

    walk: Walk
    node: NodeView
    inputs: list[Quantity]
    body: Body

    @property
    def algebra(self) -> Algebra:
        """The algebra of the walk."""
        return self.walk.algebra

    def draw(self, distribution: str, shape: Shape | None, limits: Bounds = bounds.ANY) -> Quantity:
        """Return what the node draws, which has its seeds in its attributes."""
        return self.walk.draw(self.node, self.body, distribution, shape, limits)


Rule = Callable[[NodeUse], Outputs]


class RuleTable:
    """Rules by the names of operations."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}

    def rule(self, *names: str) -> Callable[[Rule], Rule]:
        """Return a decorator that enters a rule under the names of its operations."""

        def enter(rule: Rule) -> Rule:
            self.rules.update(dict.fromkeys(names, rule))
            return rule

        return enter

    def plain(self, function: Callable[..., Quantity], *names: str) -> None:
        """Enter operations whose output is a function of the algebra and of all their inputs."""
        self.rule(*names)(lambda use: [function(use.algebra, *use.inputs)])


def sizes_of(value: Quantity) -> Shape | None:
    """Return the sizes that a constant lists."""
    if value.content is None:
        return None
    return tuple(int(size) for size in np.ravel(value.content))
