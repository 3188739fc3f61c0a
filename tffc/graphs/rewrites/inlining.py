"""Inlining functions of a GraphDef into their callers.

TensorFlow's own inlining adds a node around every argument and result, which in the body of a loop
runs in each step, and comes too late for the analysis of datasets here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tffc.graphs.body import Body, Edge
from tffc.graphs.functions import Library, rename_edges
from tffc.graphs.node import Nodes, control_edges, data_edges, source
from tffc.graphs.operations import op_table

if TYPE_CHECKING:
    from tffc.graphs.proto import FunctionDef, GraphDef, NodeDef


CALL = "StatefulPartitionedCall"
CALLS = frozenset({CALL, "PartitionedCall"})
KEPT = ("_noinline", "_XlaMustCompile")
"""Attributes of functions that must not be inlined."""


def inline_given(graph: GraphDef, type: int) -> None:
    """Inline each call with an argument of this element type, given by TensorFlow's number.

    The GraphDef is TensorFlow's own class, and changed in place.
    """
    library = Library(graph.library)
    waiting = list(graph.node)
    while waiting:
        # The inlined nodes may include calls with such an argument, so they are visited in turn.
        call = waiting.pop()
        if call.op in CALLS and type in call.attr["Tin"].list.type:
            name = call.attr["f"].func.name
            are_known = all(op_table.find(node.op) for node in library.nodes(name).values())
            if _is_plain(library.functions[name]) and are_known:
                waiting += _open(call, library.functions[name], library.body(name), graph)


def _open(call: NodeDef, function: FunctionDef, called: Body, graph: GraphDef) -> list[NodeDef]:
    """Add the nodes of the called function, which has the body `called`, named below the call, and
    make the call return their results.

    Returns the new nodes.
    """
    arguments = dict(zip(called.arguments, data_edges(call), strict=True))
    controls = control_edges(call)

    def data(edges: Iterable[Edge]) -> list[str]:
        return [arguments.get(edge, f"{call.name}/{edge.node}:{edge.port}") for edge in edges]

    def waits(names: Iterable[str]) -> list[str]:
        known = {edge.node: source(text) for edge, text in arguments.items()}
        return [f"^{known.get(name, f'{call.name}/{name}')}" for name in names]

    nodes = {node.name: node for node in function.node_def}
    added: list[NodeDef] = []
    for name, edges in called.inputs.items():  # in the order of the function
        # What the call waited for must come before all new nodes, also those without inputs.
        inputs = [*data(edges), *waits(called.controls[name]), *controls]
        added.append(_add(nodes[name], call.name, inputs, graph.node))
    types = list(call.attr["Tout"].list.type)
    # The call keeps its name, so that nothing that uses its results has to change.
    call.op = "IdentityN" if types else "NoOp"
    call.input[:] = [*data(called.results), *sorted(set(waits(called.awaited))), *controls]
    call.attr.clear()
    if types:
        call.attr["T"].list.type.extend(types)
    return added


def inline_calls(function: FunctionDef, library: Mapping[str, FunctionDef]) -> None:
    """Inline the calls in a FunctionDef of TensorFlow's own class.

    Calls inside the inlined nodes stay, as do calls of functions that forbid inlining or are
    polymorphic.
    """
    replaced: dict[str, str] = {}

    def current(edge: str) -> str:
        return replaced.get(edge, edge)

    calls = [node for node in function.node_def if node.op == CALL]
    for call in calls:
        called = library[call.attr["f"].func.name]
        if not _is_plain(called):
            continue
        # An argument may be the result of a call that was already replaced.
        results, copies = _copy(called, function, call, current)
        replaced.update((f"{call.name}:output:{port}", edge) for port, edge in enumerate(results))
        if any(f"^{call.name}" in node.input for node in function.node_def):
            # What waits for the call has to wait for all of its nodes.
            call.op = "NoOp"
            call.input[:] = [f"^{name}" for name in copies]
            call.attr.clear()
        else:
            function.node_def.remove(call)
    rename_edges(function, current)


def _copy(
    called: FunctionDef, function: FunctionDef, call: NodeDef, current: Callable[[str], str]
) -> tuple[list[str], list[str]]:
    """Copy the nodes of a function into another, named below the call.

    Returns the edges of the results and the names of the copies.
    """
    name = call.name
    controls = control_edges(call)
    moved = _renaming(called, name, [*map(current, data_edges(call))])
    copies = [
        _add(node, name, [*map(moved, node.input), *controls], function.node_def)
        for node in called.node_def
    ]
    for control, node in called.control_ret.items():
        function.signature.control_output.append(f"{name}_{control}")
        function.control_ret[f"{name}_{control}"] = f"{name}/{node}"
    results = [moved(called.ret[result.name]) for result in called.signature.output_arg]
    return results, [node.name for node in copies]


def _is_plain(called: FunctionDef) -> bool:
    """Return whether a function may be inlined and has no attributes to substitute."""
    return not called.signature.attr and not any(name in called.attr for name in KEPT)


def _renaming(called: FunctionDef, name: str, arguments: Sequence[str]) -> Callable[[str], str]:
    """Return a function that maps edges of a function to edges of its copy below `name`."""
    parameters = [parameter.name for parameter in called.signature.input_arg]
    values = dict(zip(parameters, arguments, strict=True))

    def moved(edge: str) -> str:
        mark = "^" if edge.startswith("^") else ""
        source, colon, port = edge.removeprefix("^").partition(":")
        if source not in values:
            return f"{mark}{name}/{source}{colon}{port}"
        return f"^{values[source].partition(':')[0]}" if mark else values[source]

    return moved


def _add(node: NodeDef, name: str, inputs: Iterable[str], nodes: Nodes) -> NodeDef:
    """Add a copy of a node with these inputs, named below `name`."""
    copy = nodes.add()
    copy.CopyFrom(node)
    copy.name = f"{name}/{node.name}"
    copy.input[:] = inputs
    # Colocation constraints name nodes by their old names; there is only one device.
    copy.attr.pop("_class", None)
    return copy
