"""The evaluation of graphs by value, with loops and branches, as far as a first state decides it.

What clients have is not known here.  Numbers that follow from constants alone are; draws of noise
are followed as combinations, and the seeds that they follow from by what was added to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tffc.assurance.privacy.graphs.constants import constant_of_node
from tffc.assurance.privacy.graphs.sections import (
    CALLS,
    CONDITIONALS,
    DEEPEST,
    LOOPS,
    UNREADABLE,
    Place,
    function_named,
)
from tffc.assurance.privacy.quantities.combinations import Combination, nothing
from tffc.assurance.privacy.unrolled.operations import VALUES, ValueUse
from tffc.assurance.privacy.unrolled.values import MOST_ELEMENTS, UNKNOWN, NormalDraws
from tffc.graphs.body import ANY_PORT, Body, Edge
from tffc.graphs.functions import Library
from tffc.language.nodes import Compiled
from tffc.linking.section import read_section

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


class ValueWalk:
    """The evaluation of one section; `seen` gets the noise that what is not known
    is made of."""

    def __init__(
        self, library: Library, draws: NormalDraws, seen: dict[Place, Combination]
    ) -> None:
        self.draws = draws
        self._library = library
        self._seen: dict[Place, Combination] | None = seen
        self._path: tuple[str, ...] = ()

    def run(self, body: Body, arguments: Sequence[Any], depth: int = 0) -> list[Any]:
        """Return the results of a graph or of a function for arguments.

        Raises:
          StepsError: they take too many steps, or a seed is used in two ways.
        """
        values: dict[Edge, Any] = dict(zip(body.arguments, arguments, strict=False))
        if body.has_loops or depth > DEEPEST:
            return [UNKNOWN] * len(body.results)
        replaced = {edge.node for edge in body.arguments}
        for name, node in body.nodes.items():
            if name in replaced and body.name == "":
                continue
            self.draws.step()
            inputs = [values.get(edge, UNKNOWN) for edge in body.inputs[name]]
            outputs = self._node(name, node, inputs, body, depth)
            if any(value is UNKNOWN for value in outputs):
                self._record(body.inputs[name], inputs)
            values.update((Edge(name, port), value) for port, value in enumerate(outputs))
            if len(outputs) == 1:
                values[Edge(name, ANY_PORT)] = outputs[0]
        return [values.get(edge, UNKNOWN) for edge in body.results]

    def _record(self, edges: Sequence[Edge], inputs: Sequence[Any]) -> None:
        """Note the noise that goes into what is not known."""
        if self._seen is not None:
            for edge, value in zip(edges, inputs, strict=True):
                if isinstance(value, Combination) and not value.outer:
                    self._seen[self._path, edge] = value
                elif isinstance(value, np.ndarray) and np.isfinite(value).all():
                    self._seen[self._path, edge] = nothing(value.shape)

    def _node(
        self, name: str, node: NodeView, inputs: list[Any], body: Body, depth: int
    ) -> list[Any]:
        if node.op == "Const":
            content = constant_of_node(node)
            return [UNKNOWN if content is None else content]
        if node.op in CALLS:
            before, self._path = self._path, (*self._path, name)
            results = self._function(function_named(node, "f"), inputs, depth)
            self._path = before
            return results
        if node.op in CONDITIONALS or node.op in LOOPS:
            before, self._seen = self._seen, None
            follow = self._branch if node.op in CONDITIONALS else self._loop
            results = follow(node, inputs, depth)
            self._seen = before
            return results
        if node.op not in VALUES:
            return [UNKNOWN]
        try:
            with np.errstate(all="ignore"):
                outputs = VALUES[node.op](ValueUse(self.draws, node, inputs, body))
        except UNREADABLE:
            return [UNKNOWN]
        return [UNKNOWN] if outputs is None else list(map(_small, outputs))

    def _function(self, name: str, inputs: Sequence[Any], depth: int) -> list[Any]:
        if name not in self._library.functions:
            return [UNKNOWN]
        return self.run(self._library.body(name), inputs, depth + 1)

    def _branch(self, node: NodeView, inputs: Sequence[Any], depth: int) -> list[Any]:
        condition, *rest = inputs
        if not isinstance(condition, np.ndarray) or condition.shape != ():
            return [UNKNOWN]
        name = "then_branch" if condition else "else_branch"
        return self._function(function_named(node, name), rest, depth)

    def _loop(self, node: NodeView, inputs: Sequence[Any], depth: int) -> list[Any]:
        values = list(inputs)
        names = function_named(node, "cond"), function_named(node, "body")
        while True:
            self.draws.step()
            going = self._function(names[0], values, depth)
            if len(going) != 1 or not isinstance(going[0], np.ndarray) or going[0].shape != ():
                return [UNKNOWN] * len(values)
            if not going[0]:
                return values
            values = self._function(names[1], values, depth)
            if len(values) != len(inputs):
                return [UNKNOWN] * len(inputs)


def _small(value: Any) -> Any:
    """Return a value, or that it is not known if it is none, or too large."""
    is_large = isinstance(value, np.ndarray) and value.size > MOST_ELEMENTS
    return UNKNOWN if is_large or value is None else value


def values_of_graph(
    section: Compiled, arguments: Sequence[Any], draws: NormalDraws, seen: dict[Place, Combination]
) -> list[Any]:
    """Return the leaves of a section's result by value; `seen` gets the noise that what
    is not known is made of.

    Raises:
      GraphError: the section is malformed.
      StepsError: it takes too many steps, or a seed is used in two ways.
    """
    content = read_section(section)
    walk = ValueWalk(Library(content.graph.library), draws, seen)
    return walk.run(content.body(), arguments)
