"""Functions of a GraphDef copied to where they are called.

TensorFlow does so too when it prepares a graph, but puts a node around every argument and result,
which in the body of a loop runs each time, and does it too late for what is made of datasets here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tffc.graphdef.functions import rename_edges
from tffc.linking.attributes import VARIANT
from tffc.operations import op_table

CALL = "StatefulPartitionedCall"
CALLS = frozenset({CALL, "PartitionedCall"})
KEPT = ("_noinline", "_XlaMustCompile")
"""The attributes of functions that are to stay as they are."""


def inline_dataset_calls(graph: Any) -> None:
    """Replace each call of a function that is given a dataset by the function's nodes, so that they
    stand beside what the dataset is made of.  The GraphDef is one of TensorFlow's own."""
    inline_given(graph, VARIANT)


def inline_given(graph: Any, type: int) -> None:
    """Replace each call of a function that is given something of an element type, which is meant by
    its number, by the function's nodes.  The GraphDef is one of TensorFlow's own."""
    library = {function.signature.name: function for function in graph.library.function}
    waiting = list(graph.node)
    while waiting:
        # What a function calls may be given the dataset too, so its calls wait in turn.
        call = waiting.pop()
        if call.op in CALLS and type in call.attr["Tin"].list.type:
            called = library[call.attr["f"].func.name]
            if _is_plain(called) and all(op_table.find(node.op) for node in called.node_def):
                waiting += _open(call, called, graph)


def _open(call: Any, called: Any, graph: Any) -> list[Any]:
    """Add the nodes of what is called, below the name of the call, which then gives their results.
    The new nodes are returned."""
    arguments = [edge for edge in call.input if not edge.startswith("^")]
    controls = [edge for edge in call.input if edge.startswith("^")]
    inside, ports = _renaming(called, call.name, arguments), _ports(called)

    def moved(edge: str) -> str:
        return inside(ports.get(edge, edge))

    added = [_add(node, call.name, moved, graph.node) for node in called.node_def]
    # All that the call waited for comes before any of it, also before what has no other input.
    for node in added:
        node.input.extend(controls)
    types = list(call.attr["Tout"].list.type)
    results = [moved(called.ret[result.name]) for result in called.signature.output_arg]
    effects = sorted({moved(f"^{name}") for name in called.control_ret.values()})
    # The call's name stays, so that nothing that uses its results has to change.
    call.op = "IdentityN" if types else "NoOp"
    call.input[:] = [*results, *effects, *controls]
    call.attr.clear()
    if types:
        call.attr["T"].list.type.extend(types)
    return added


def _ports(called: Any) -> dict[str, str]:
    """Return the outputs of nodes in a function as a graph writes them: it counts those of a node
    through, where the function counts within each that has a name."""
    ports: dict[str, str] = {}
    for node in called.node_def:
        for port, edge in enumerate(op_table.function_edges(node)):
            ports[edge] = f"{node.name}:{port}"
    return ports


def inline_calls(function: Any, library: Mapping[str, Any]) -> None:
    """Replace each call in a FunctionDef of TensorFlow's own by the nodes of what it calls.

    Calls in these nodes stay, as do those of functions that ask for it or take types.
    """
    replaced: dict[str, str] = {}

    def current(edge: str) -> str:
        return replaced.get(edge, edge)

    calls = [node for node in function.node_def if node.op == CALL]
    for call in calls:
        called = library[call.attr["f"].func.name]
        if not _is_plain(called):
            continue
        # An argument may be the result of a call that is no longer there.
        results, copies = _copy(called, function, call, current)
        replaced.update((f"{call.name}:output:{port}", edge) for port, edge in enumerate(results))
        if any(f"^{call.name}" in node.input for node in function.node_def):
            # What waits for the call waits for all of it.
            call.op = "NoOp"
            call.input[:] = [f"^{name}" for name in copies]
            call.attr.clear()
        else:
            function.node_def.remove(call)
    rename_edges(function, current)


def _copy(
    called: Any, function: Any, call: Any, current: Callable[[str], str]
) -> tuple[list[str], list[str]]:
    """Copy the nodes of a function into another, below the name of its call, and give the edges of
    results and the names of the copies."""
    name = call.name
    arguments = [current(edge) for edge in call.input if not edge.startswith("^")]
    controls = [edge for edge in call.input if edge.startswith("^")]
    moved = _renaming(called, name, arguments)
    copies = [_add(node, name, moved, function.node_def) for node in called.node_def]
    for node in copies:
        node.input.extend(controls)
    for control, source in called.control_ret.items():
        function.signature.control_output.append(f"{name}_{control}")
        function.control_ret[f"{name}_{control}"] = f"{name}/{source}"
    results = [moved(called.ret[result.name]) for result in called.signature.output_arg]
    return results, [node.name for node in copies]


def _is_plain(called: Any) -> bool:
    """Return whether a function is nothing but its nodes."""
    return not called.signature.attr and not any(name in called.attr for name in KEPT)


def _renaming(called: Any, name: str, arguments: Sequence[str]) -> Callable[[str], str]:
    """Return what an edge in a function is once the function is copied below `name`."""
    parameters = [parameter.name for parameter in called.signature.input_arg]
    given = dict(zip(parameters, arguments, strict=True))

    def moved(edge: str) -> str:
        mark = "^" if edge.startswith("^") else ""
        source, colon, port = edge.removeprefix("^").partition(":")
        if source not in given:
            return f"{mark}{name}/{source}{colon}{port}"
        return f"^{given[source].partition(':')[0]}" if mark else given[source]

    return moved


def _add(node: Any, name: str, moved: Callable[[str], str], nodes: Any) -> Any:
    """Add a copy of a node below a name to others."""
    copy = nodes.add()
    copy.CopyFrom(node)
    copy.name = f"{name}/{node.name}"
    copy.input[:] = map(moved, node.input)
    # Which nodes are on one device: there is only one.
    copy.attr.pop("_class", None)
    return copy
