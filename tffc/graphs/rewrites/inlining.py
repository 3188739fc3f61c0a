"""Inlining functions of a GraphDef into their callers.

TensorFlow's own inlining adds a node around every argument and result, which in the body of a loop
runs in each step, and comes too late for the analysis of datasets here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tffc.graphs.functions import rename_edges
from tffc.graphs.node import control_edges, data_edges
from tffc.graphs.operations import op_table

CALL = "StatefulPartitionedCall"
CALLS = frozenset({CALL, "PartitionedCall"})
KEPT = ("_noinline", "_XlaMustCompile")
"""Attributes of functions that must not be inlined."""


def inline_given(graph: Any, type: int) -> None:
    """Inline each call with an argument of this element type, given by TensorFlow's number.

    The GraphDef is TensorFlow's own class, and changed in place.
    """
    library = {function.signature.name: function for function in graph.library.function}
    waiting = list(graph.node)
    while waiting:
        # The inlined nodes may include calls with such an argument, so they are visited in turn.
        call = waiting.pop()
        if call.op in CALLS and type in call.attr["Tin"].list.type:
            called = library[call.attr["f"].func.name]
            if _is_plain(called) and all(op_table.find(node.op) for node in called.node_def):
                waiting += _open(call, called, graph)


def _open(call: Any, called: Any, graph: Any) -> list[Any]:
    """Add the called function's nodes, named below the call, and make the call return their
    results.

    Returns the new nodes.
    """
    controls = control_edges(call)
    inside, ports = _renaming(called, call.name, data_edges(call)), _ports(called)

    def moved(edge: str) -> str:
        return inside(ports.get(edge, edge))

    added = [_add(node, call.name, moved, graph.node) for node in called.node_def]
    # Everything that the call waited for must come before all new nodes, also those without inputs.
    for node in added:
        node.input.extend(controls)
    types = list(call.attr["Tout"].list.type)
    results = [moved(called.ret[result.name]) for result in called.signature.output_arg]
    effects = sorted({moved(f"^{name}") for name in called.control_ret.values()})
    # The call keeps its name, so that nothing that uses its results has to change.
    call.op = "IdentityN" if types else "NoOp"
    call.input[:] = [*results, *effects, *controls]
    call.attr.clear()
    if types:
        call.attr["T"].list.type.extend(types)
    return added


def _ports(called: Any) -> dict[str, str]:
    """Map outputs from the notation of functions to that of graphs.

    A function numbers the tensors within each named output of a node, a graph all tensors of the
    node.
    """
    ports: dict[str, str] = {}
    for node in called.node_def:
        for port, edge in enumerate(op_table.function_edges(node)):
            ports[edge] = f"{node.name}:{port}"
    return ports


def inline_calls(function: Any, library: Mapping[str, Any]) -> None:
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
    called: Any, function: Any, call: Any, current: Callable[[str], str]
) -> tuple[list[str], list[str]]:
    """Copy the nodes of a function into another, named below the call.

    Returns the edges of the results and the names of the copies.
    """
    name = call.name
    controls = control_edges(call)
    moved = _renaming(called, name, [*map(current, data_edges(call))])
    copies = [_add(node, name, moved, function.node_def) for node in called.node_def]
    for node in copies:
        node.input.extend(controls)
    for control, source in called.control_ret.items():
        function.signature.control_output.append(f"{name}_{control}")
        function.control_ret[f"{name}_{control}"] = f"{name}/{source}"
    results = [moved(called.ret[result.name]) for result in called.signature.output_arg]
    return results, [node.name for node in copies]


def _is_plain(called: Any) -> bool:
    """Return whether a function may be inlined and has no attributes to substitute."""
    return not called.signature.attr and not any(name in called.attr for name in KEPT)


def _renaming(called: Any, name: str, arguments: Sequence[str]) -> Callable[[str], str]:
    """Return a function that maps edges of a function to edges of its copy below `name`."""
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
    """Add a copy of a node, named below `name`."""
    copy = nodes.add()
    copy.CopyFrom(node)
    copy.name = f"{name}/{node.name}"
    copy.input[:] = map(moved, node.input)
    # Colocation constraints name nodes by their old names; there is only one device.
    copy.attr.pop("_class", None)
    return copy
