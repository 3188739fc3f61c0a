"""Functions of a GraphDef copied to where they are called.

TensorFlow does so too when it prepares a graph, but puts a node around every argument and result,
which in the body of a loop runs each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CALL = "StatefulPartitionedCall"
KEPT = ("_noinline", "_XlaMustCompile")
"""The attributes of functions that are to stay as they are."""


def inline_calls(function: Any, library: Mapping[str, Any]) -> None:
    """Replaces each call in a FunctionDef of TensorFlow's own by the nodes of what it calls.

    Calls in these nodes stay, as do those of functions that ask for it or take types.
    """
    moved: dict[str, str] = {}

    def current(edge: str) -> str:
        return moved.get(edge, edge)

    calls = [node for node in function.node_def if node.op == CALL]
    for call in calls:
        called = library[call.attr["f"].func.name]
        if called.signature.attr or any(name in called.attr for name in KEPT):
            continue
        results = _copy(called, function, call.name, [current(edge) for edge in call.input])
        moved.update((f"{call.name}:output:{port}", edge) for port, edge in enumerate(results))
        function.node_def.remove(call)
    for node in function.node_def:
        node.input[:] = map(current, node.input)
    # A map that is written to meanwhile skips some of its names.
    for name, edge in dict(function.ret).items():
        function.ret[name] = current(edge)


def _copy(called: Any, function: Any, name: str, arguments: Sequence[str]) -> list[str]:
    """Copies the nodes of a function into another, below `name`, and gives the edges of results."""
    parameters = [parameter.name for parameter in called.signature.input_arg]
    given = dict(zip(parameters, arguments, strict=True))

    def moved(edge: str) -> str:
        mark = "^" if edge.startswith("^") else ""
        source, colon, port = edge.removeprefix("^").partition(":")
        if source not in given:
            return f"{mark}{name}/{source}{colon}{port}"
        return f"^{given[source].partition(':')[0]}" if mark else given[source]

    for node in called.node_def:
        copy = function.node_def.add()
        copy.CopyFrom(node)
        copy.name = f"{name}/{node.name}"
        copy.input[:] = map(moved, node.input)
        # Which nodes are on one device: there is only one.
        copy.attr.pop("_class", None)
    for control, source in called.control_ret.items():
        function.signature.control_output.append(f"{name}_{control}")
        function.control_ret[f"{name}_{control}"] = f"{name}/{source}"
    return [moved(called.ret[result.name]) for result in called.signature.output_arg]
