"""Side effects of a traced TensorFlow graph: initialisation, printing, checks, calls of Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tffc.graphs.functions import Library
from tffc.graphs.node import NodeView, data_edges, reached, source

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef


VISIBLE_EFFECTS = frozenset({"Assert", "EagerPyFunc", "Print", "PrintV2", "PyFunc", "WriteFile"})
"""Operations whose effect is visible outside of the graph, unlike changes to its variables."""


def free_initializers(graph_def: GraphDef, initialize_op: str) -> None:
    """Remove the control inputs of initializers, which only need their values.

    TensorFlow adds operations that read a variable before the one that initialises it, so in
    program order the initializer would wait for a read of a variable that has no value yet.
    """
    nodes = {node.name: node for node in graph_def.node}
    pending = [initialize_op]
    while pending:
        node = nodes[pending.pop()]
        if node.op == "NoOp":
            pending.extend(edge.removeprefix("^") for edge in node.input)
        else:
            node.input[:] = data_edges(node)


def release_from_placeholders(graph_def: GraphDef, inputs: Collection[str]) -> set[str]:
    """Make no node wait for nodes that cannot run; return the names of the latter.

    These are all nodes that need a placeholder other than the `inputs` ones.  Keras first calls the
    layers of a model on placeholders of its own; changes made there, such as to the averages of a
    normalization, precede the model's use in the order of effects.  A node that waited for such a
    node waits for its predecessors instead.
    """
    stuck = _computed_from_placeholders(graph_def, inputs)
    nodes = {node.name: node for node in graph_def.node}
    names = _NewNames(nodes)
    places: dict[str, str] = {}
    waiting: list[str] = []

    def place_of(name: str) -> str:
        if name not in places:
            places[name] = names.new(f"{name}_order")
            waiting.append(name)
        return places[name]

    for node in nodes.values():
        if node.name not in stuck:
            node.input[:] = [
                f"^{place_of(edge[1:])}" if edge.startswith("^") and edge[1:] in stuck else edge
                for edge in node.input
            ]
    # The list grows during the loop.
    for name in waiting:
        before = dict.fromkeys(map(source, nodes[name].input))
        edges = [f"^{place_of(source) if source in stuck else source}" for source in before]
        graph_def.node.add(name=places[name], op="NoOp", input=edges)
    return stuck


def _computed_from_placeholders(graph_def: GraphDef, inputs: Collection[str]) -> set[str]:
    """Return the placeholders that are not given, and the nodes that depend on them."""
    users: dict[str, list[str]] = defaultdict(list)
    for node in graph_def.node:
        for edge in data_edges(node):
            users[source(edge)].append(node.name)
    roots = [n.name for n in graph_def.node if n.op == "Placeholder" and n.name not in inputs]
    return set(reached(roots, users.__getitem__))


def require_visible_effects(
    graph_def: GraphDef, results: Iterable[str], stuck: Collection[str] = ()
) -> None:
    """Make the `results` wait for every visible effect, except those of `stuck` nodes.

    Otherwise TensorFlow prunes a check that no result depends on.
    """
    library = Library(graph_def.library)
    functions = _functions_with_effects(library)
    effects = [
        node.name
        for node in graph_def.node
        if node.name not in stuck and _has_effect(node, functions, library)
    ]
    if not effects:
        return
    name = _NewNames(node.name for node in graph_def.node).new("side_effects")
    waiting = set(results)
    for node in graph_def.node:
        if node.name in waiting:
            node.input.append(f"^{name}")
    graph_def.node.add(name=name, op="NoOp", input=[f"^{effect}" for effect in effects])


class _NewNames:
    """Generates names that no node has yet."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def new(self, wanted: str) -> str:
        while wanted in self._taken:
            wanted += "_"
        self._taken.add(wanted)
        return wanted


def _functions_with_effects(library: Library) -> set[str]:
    """Return the functions that have a visible effect, themselves or through calls."""
    functions: set[str] = set()
    for group in library.groups(library.functions):
        nodes = (node for name in group for node in library.nodes(name).values())
        if any(_has_effect(node, functions, library) for node in nodes):
            functions.update(group)
    return functions


def _has_effect(node: NodeView, functions: set[str], library: Library) -> bool:
    return node.op in VISIBLE_EFFECTS or not functions.isdisjoint(library.called_by(node))
