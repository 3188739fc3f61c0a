"""What datasets wait for, handed on to what reads them.

A node that makes a dataset computes nothing: elements are computed where they are read.  So what
comes before it has to come before its readers alone, and without such edges of its own a dataset is
seen for what it is made of.
"""

from __future__ import annotations

from typing import Any

from tffc.engines.reductions.slices import ARRANGED, BATCHED, UNCHANGED
from tffc.engines.reductions.steps import APPLYING

DATASETS = frozenset({*UNCHANGED, *ARRANGED, BATCHED, *APPLYING, "TensorSliceDataset"}) - {
    "Identity"
}
"""The operations that give a dataset and compute none of its elements."""


def let_readers_wait(nodes: Any) -> None:
    """Move the control edges of nodes that make datasets to the nodes that use them."""
    by_name = {node.name: node for node in nodes}
    made = {f"^{node.name}" for node in nodes if node.op in DATASETS}
    readers: dict[str, list[Any]] = {}
    for node in nodes:
        for source in {edge.removeprefix("^").partition(":")[0] for edge in node.input}:
            if source in by_name and by_name[source].op in DATASETS:
                readers.setdefault(source, []).append(node)
    # Readers that make datasets themselves hand on what they are given.
    waiting = [node for node in nodes if node.op in DATASETS]
    while waiting:
        node = waiting.pop()
        controls = [edge for edge in node.input if edge.startswith("^")]
        if not controls or node.name not in readers:
            continue
        node.input[:] = [edge for edge in node.input if not edge.startswith("^")]
        for reader in readers[node.name]:
            reader.input.extend(edge for edge in controls if edge not in reader.input)
            if reader.op in DATASETS:
                waiting.append(reader)
    for node in nodes:
        if not made.isdisjoint(node.input):
            node.input[:] = [edge for edge in node.input if edge not in made]
