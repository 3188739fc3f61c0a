"""What a traced TensorFlow graph does besides giving its result: it initialises its variables,
prints, checks, calls into Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tffc.graphs.functions import Library

VISIBLE_EFFECTS = frozenset({"Assert", "EagerPyFunc", "Print", "PrintV2", "PyFunc", "WriteFile"})
"""Operations that are noticed outside of the graph, unlike changes of its own variables."""


def free_initializers(graph_def: Any, initialize_op: str) -> None:
    """Takes away what initialisers wait for, other than the values that they need.

    TensorFlow adds operations that read a variable before the one that initialises it, so in
    program order the initialiser would wait for a variable that has no value yet.
    """
    nodes = {node.name: node for node in graph_def.node}
    pending = [initialize_op]
    while pending:
        node = nodes[pending.pop()]
        if node.op == "NoOp":
            pending.extend(edge.removeprefix("^") for edge in node.input)
        else:
            node.input[:] = [edge for edge in node.input if not edge.startswith("^")]


def require_visible_effects(graph_def: Any, results: Iterable[str]) -> None:
    """Makes the operations `results` wait for every visible effect, which nothing else may need.

    Without that TensorFlow leaves out a check whose outcome no result depends on.
    """
    library = Library(graph_def.library)
    functions = _functions_with_effects(graph_def, library)
    effects = [node.name for node in graph_def.node if _has_effect(node, functions, library)]
    if not effects:
        return
    taken = {node.name for node in graph_def.node}
    name = "side_effects"
    while name in taken:
        name += "_"
    waiting = set(results)
    for node in graph_def.node:
        if node.name in waiting:
            node.input.append(f"^{name}")
    graph_def.node.add(name=name, op="NoOp", input=[f"^{effect}" for effect in effects])


def _functions_with_effects(graph_def: Any, library: Library) -> set[str]:
    """The functions of the library that have a visible effect, themselves or in what they call."""
    nodes = {f.signature.name: f.node_def for f in graph_def.library.function}
    found: set[str] = set()
    for group in library.groups(nodes):
        if any(_has_effect(node, found, library) for name in group for node in nodes[name]):
            found.update(group)
    return found


def _has_effect(node: Any, functions: set[str], library: Library) -> bool:
    return node.op in VISIBLE_EFFECTS or not functions.isdisjoint(library.called_by(node))
