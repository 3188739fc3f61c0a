"""Iterations over datasets: which operations give a dataset the same elements each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tffc.graphs.operations.effects import Effect, effect_of

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


STEADY = frozenset(
    {
        *("MapDataset", "PartitionedCall", "RangeDataset", "ReduceDataset", "TensorDataset"),
        *("TensorSliceDataset",),
    }
)
"""Operations that count as keeping state of their own, and give the same each time."""

CALLS = frozenset({"Case", "If", "StatefulPartitionedCall", "While"})
"""Operations that have only the effects of the functions that they call."""

ONE_BY_ONE = frozenset(
    {
        *("BatchDataset", "BatchDatasetV2", "FilterDataset", "FlatMapDataset", "Identity"),
        *("MapDataset", "OptionsDataset", "PaddedBatchDatasetV2", "ParallelMapDatasetV2"),
        *("PrefetchDataset", "ScanDataset", "ShuffleDataset", "ShuffleDatasetV3", "SkipDataset"),
        *("TakeDataset", "TakeWhileDataset"),
    }
)
"""Operations whose first input is iterated over once when their output is."""

READERS = frozenset(
    {
        *("AnonymousHashTable", "HashTable", "HashTableV2", "LookupTableExportV2"),
        *("LookupTableFindV2", "LookupTableSizeV2", "ReadVariableOp", "ResourceGather"),
        *("ResourceGatherNd", "StatelessRandomGetAlg", "VarHandleOp", "VariableShape"),
    }
)
"""Operations that make a state, or read what others have written."""

INFINITE = -1
"""What `DatasetCardinality` gives for a dataset without end."""

WITHOUT_END = (
    b"a sequence without end, whose elements differ in each iteration, is iterated over more than "
    b"once; take a part of it in the computation that returns it"
)
"""What a graph fails with where the elements of such a sequence would have to be computed once."""


def is_steady(node: NodeView, nodes: Mapping[str, NodeView]) -> bool:
    """Tell whether a node computes the same from the same inputs each time, not counting the
    functions that it calls.

    What is not known counts as changing.  For `nodes` see `effect_of`.
    """
    return node.op in STEADY or node.op in CALLS or effect_of(node, nodes) is None


def is_ordered(node: NodeView, nodes: Mapping[str, NodeView]) -> bool:
    """Tell whether something may depend on what ran before a node, or after it, not counting the
    functions that it calls.  For `nodes` see `effect_of`."""
    if is_steady(node, nodes) or node.op in READERS:
        return False
    return effect_of(node, nodes) is not Effect.RANDOM
