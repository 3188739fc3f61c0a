"""Which steps of a round always give the same for the same operands."""

from __future__ import annotations

from tffc.backends.stages import Step
from tffc.graphs.inspect import is_pure
from tffc.ir.nodes import Compiled, Node
from tffc.ir.traverse import walk


def is_pure_node(root: Node) -> bool:
    """Whether every compiled section in `root` is pure."""
    return all(is_pure(node) for node in walk(root) if isinstance(node, Compiled))


def is_pure_step(step: Step) -> bool:
    """Whether running a step twice gives the same value twice."""
    return is_pure_node(step.call)
