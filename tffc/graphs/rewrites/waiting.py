"""Moving the control edges of datasets to their readers.

A node that makes a dataset computes nothing: elements are computed when they are read.  So its
control inputs have to precede only its readers, and a dataset without control edges of its own can
be analysed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tffc.graphs.node import Nodes, control_edges, data_edges, source
from tffc.graphs.operations.datasets import DATASETS

if TYPE_CHECKING:
    from tffc.graphs.proto import NodeDef


def let_readers_wait(nodes: Nodes) -> None:
    """Move the control edges of nodes that make datasets to the nodes that use them."""
    by_name = {node.name: node for node in nodes}
    waits = {f"^{node.name}" for node in nodes if node.op in DATASETS}
    readers: dict[str, list[NodeDef]] = {}
    for node in nodes:
        for name in set(map(source, node.input)):
            if name in by_name and by_name[name].op in DATASETS:
                readers.setdefault(name, []).append(node)
    # A reader that makes a dataset itself passes its control edges on.
    waiting = [node for node in nodes if node.op in DATASETS]
    while waiting:
        node = waiting.pop()
        controls = control_edges(node)
        if not controls or node.name not in readers:
            continue
        node.input[:] = data_edges(node)
        for reader in readers[node.name]:
            reader.input.extend(edge for edge in controls if edge not in reader.input)
            if reader.op in DATASETS:
                waiting.append(reader)
    for node in nodes:
        if not waits.isdisjoint(node.input):
            node.input[:] = [edge for edge in node.input if edge not in waits]
