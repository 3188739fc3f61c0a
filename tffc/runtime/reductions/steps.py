"""The functions applied to each element of a dataset: by maps and scans, and finally by the
reduction.

tf.data instantiates the function of a mapped dataset again for each client, which takes longer than
most clients' work.  In a loop they are ordinary nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tffc.graphs.node import control_edges, data_edges
from tffc.graphs.operations.datasets import APPLYING, UNCHANGED


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A function of a state, an element and other tensors that returns the next state and element.

    `states` and `others` are edges of the initial values; the other lists are element types.
    """

    function: Any
    states: list[str]
    others: list[str]
    state_types: list[int]
    other_types: list[int]
    given: list[int]
    results: list[int]


def find_steps(
    node: Any, nodes: Mapping[str, Any], signatures: Mapping[str, Any]
) -> tuple[str, list[Step]]:
    """Return the dataset that a reduction gets its elements from, and its steps, the reduction
    first."""
    steps = [_step(node, signatures)]
    source = edge = node.input[0]
    while (node := nodes.get(edge.partition(":")[0])) is not None:
        if control_edges(node):
            break
        if node.op in APPLYING:
            steps.append(_step(node, signatures))
            source = node.input[0]
        elif node.op not in UNCHANGED:
            break
        # An unchanging operation is skipped between two steps; after the last one it is part of the
        # source.
        edge = node.input[0]
    return source, steps


def _step(node: Any, signatures: Mapping[str, Any]) -> Step:
    signature = signatures[node.attr["f"].func.name]
    data = data_edges(node)[1:]
    states = list(node.attr["Tstate"].list.type) if "Tstate" in node.attr else []
    others = list(node.attr["Targuments"].list.type)
    given = [argument.type for argument in signature.input_arg]
    return Step(
        function=node.attr["f"],
        states=data[: len(states)],
        others=data[len(states) : len(states) + len(others)],
        state_types=states,
        other_types=others,
        given=given[len(states) : len(given) - len(others)],
        results=[result.type for result in signature.output_arg[len(states) :]],
    )
