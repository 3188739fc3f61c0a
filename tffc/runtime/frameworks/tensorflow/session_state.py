"""What a TensorFlow session has to provide for a graph: fresh memory for each run, and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tffc.graphs.node import all_nodes, data_edges, reached, source
from tffc.graphs.operations import op_table
from tffc.graphs.operations.kernels import keeps_state
from tffc.runtime.frameworks.tensorflow.graph_content import GraphContent

if TYPE_CHECKING:
    from tffc.graphs.proto import NodeDef


TABLE_INITIALIZERS = frozenset(
    {"InitializeTableFromTextFileV2", "InitializeTableV2", "LookupTableImportV2"}
)

WAITING_FAMILIES = (
    "Accumulator", "Barrier", "ConsumeMutexLock", "MapPeek", "MapStage", "MapUnstage", "MutexLock",
    "OrderedMap", "Queue", "ReaderRead", "ResourceAccumulator", "SparseAccumulator", "Stage",
    "Unstage",
)  # fmt: skip
"""Beginnings of the names of operations that may wait until another operation has run."""


def waits(section: GraphContent) -> bool:
    """Return whether an operation may wait for another that needs a thread of its own."""
    return any(node.op.startswith(WAITING_FAMILIES) for node in all_nodes(section.graph))


def remembers(section: GraphContent) -> bool:
    """Return whether a second run in the same session could tell that there was a first one.

    It cannot if every variable is assigned by the initialisation, or by the graph before anything
    else uses it, and if the initialisation fills every table with entries that depend on no
    argument.
    """
    functions = {function.signature.name for function in section.graph.library.function}
    initial = _ancestors(section, section.initialize_op)
    reset = _reset_by(section, initial) | _assigned_before_use(section)
    for node in section.graph.node:
        if node.name not in reset and _has_memory(node, functions):
            return True
    return any(
        _has_memory(node, functions)
        for function in section.graph.library.function
        for node in function.node_def
    )


def _has_memory(node: NodeDef, functions: set[str]) -> bool:
    operation = op_table.find(node.op)
    if operation is None:
        return node.op not in functions
    # Without a seed, a random operation draws new numbers in each session; with a seed it
    # continues where the last run stopped.
    return operation.has_named_state or keeps_state(node)


def _ancestors(section: GraphContent, root: str) -> set[str]:
    """Return the nodes that `root` depends on, itself included; none for an empty name."""
    nodes = section.nodes

    def before(name: str) -> list[str]:
        return [other for other in map(source, nodes[name].input) if other in nodes]

    return set(reached([root] if root else [], before))


def _reset_by(section: GraphContent, initial: set[str]) -> set[str]:
    """Return the variables and tables that have the same content after every initialisation."""
    parameters = {source(tensor) for tensor, _ in section.parameter}
    resources: set[str] = set()
    for name in initial:
        node = section.nodes[name]
        if not node.input:
            continue
        resource = source(node.input[0])
        kind = section.nodes[resource].op if resource in section.nodes else ""
        if node.op == "AssignVariableOp" and kind == "VarHandleOp":
            resources.add(resource)
        elif node.op in TABLE_INITIALIZERS and kind == "HashTableV2":
            if parameters.isdisjoint(_ancestors(section, name)):
                resources.add(resource)
    return resources


def _assigned_before_use(section: GraphContent) -> set[str]:
    """Return the variables that a single node assigns and that all their other users wait for.

    Linking makes such variables: an initialisation that has to wait for the section before it
    becomes part of the graph.
    """
    assigns: dict[str, str] = {}
    for node in section.graph.node:
        if node.op == "AssignVariableOp":
            assigns.setdefault(source(node.input[0]), node.name)
    for node in section.graph.node:
        for name in {source(edge) for edge in data_edges(node)}:
            if name in assigns and node.name != assigns[name]:
                # Only direct control edges count.  A user that is ordered after the assignment in
                # another way costs a fresh session, nothing more.
                if f"^{assigns[name]}" not in node.input:
                    del assigns[name]
    return {name for name in assigns if section.nodes[name].op == "VarHandleOp"}
