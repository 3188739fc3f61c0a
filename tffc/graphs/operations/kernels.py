"""State that a node's kernel keeps from one run to the next, such as where a seeded generator is.

TensorFlow makes one kernel for each node of a graph, and one for each node of a function that is
called, however many calls of the function there are.  So calls of one function share its kernels,
and calls of two functions of equal content do not.
"""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from tffc.graphs.operations import op_table
from tffc.graphs.operations.effects import (
    MODULE,
    SEEDS,
    Effect,
    effect_of_module,
    is_seeded_by_attributes,
    keeps_unknown_seed,
    read_table,
)

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


STATELESS = pathlib.Path(__file__).with_suffix(".txt")
FILLED_ONCE = frozenset({"HashTable", "HashTableV2"})
"""Tables that only their initialization fills, which fails if a later one has other entries."""


def keeps_state(node: NodeView) -> bool:
    """Tell whether the kernel of a node keeps state, not counting the functions that it calls.

    It does unless it is known not to.  Generators that begin with a seed that TensorFlow chooses
    count as keeping none: no run can tell one from two, unless it draws the same again.
    """
    op = node.op
    if op == MODULE:
        module = node.attr["module"].s if "module" in node.attr else b""
        return effect_of_module(module) is Effect.OTHER
    operation = op_table.find(op)
    if operation is None:
        return True
    if is_seeded_by_attributes(op) and keeps_unknown_seed(node):
        return True
    if not operation.is_stateful or op in read_table(STATELESS):
        return False
    if is_seeded_by_attributes(op) and not operation.has_named_state:
        return is_seeded(node)
    return True


def remembers_runs(node: NodeView) -> bool:
    """Tell whether a later run of a node can find what an earlier one left in its kernel."""
    return keeps_state(node) and node.op not in FILLED_ONCE


def is_seeded(node: NodeView) -> bool:
    """Tell whether an attribute gives a node a seed, or the caller of its function may."""
    seeds = [node.attr[name] for name in SEEDS if name in node.attr]
    return any(seed.i or seed.placeholder for seed in seeds)
