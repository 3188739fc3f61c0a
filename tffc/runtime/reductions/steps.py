"""The functions applied to each element of a dataset: by maps and scans, and finally by the
reduction.

tf.data instantiates the function of a mapped dataset again for each client, which takes longer than
most clients' work.  In a loop they are ordinary nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tffc.graphs.node import control_edges, data_edges
from tffc.graphs.operations.datasets import APPLYING, UNCHANGED

if TYPE_CHECKING:
    from tffc.graphs.proto import NameAttrList, NodeDef, OpDef


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A function of a state, an element and other tensors that returns the next state and element.

    `states` and `others` are edges of the initial values; the other lists are element types.
    """

    function: NameAttrList
    states: list[str]
    others: list[str]
    state_types: list[int]
    other_types: list[int]
    given: list[int]
    results: list[int]


def find_steps(
    node: NodeDef, nodes: Mapping[str, NodeDef], signatures: Mapping[str, OpDef]
) -> tuple[str, list[Step]]:
    """Return the dataset that a reduction gets its elements from, and its steps, the reduction
    first."""
    steps = [_step(node, signatures)]
    source = edge = node.input[0]
    while (before := nodes.get(edge.partition(":")[0])) is not None:
        if control_edges(before):
            break
        if before.op in APPLYING:
            steps.append(_step(before, signatures))
            source = before.input[0]
        elif before.op not in UNCHANGED:
            break
        # An unchanging operation is skipped between two steps; after the last one it is part of the
        # source.
        edge = before.input[0]
    return source, steps


def _step(node: NodeDef, signatures: Mapping[str, OpDef]) -> Step:
    signature = signatures[node.attr["f"].func.name]
    data = data_edges(node)[1:]
    states = list(node.attr["Tstate"].list.type) if "Tstate" in node.attr else []
    others = list(node.attr["Targuments"].list.type)
    types = [argument.type for argument in signature.input_arg]
    return Step(
        function=node.attr["f"].func,
        states=data[: len(states)],
        others=data[len(states) : len(states) + len(others)],
        state_types=states,
        other_types=others,
        given=types[len(states) : len(types) - len(others)],
        results=[result.type for result in signature.output_arg[len(states) :]],
    )
