"""The functions of a graph, and what its results need, as verification itself finds them.

The compiler has its own ways to find and rename functions, in `tffc.graphs` and `tffc.linking`.
Nothing of them is used here, so that a fault in them cannot hide itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tffc.graphs.operations import hlo
from tffc.graphs.operations.effects import Effect, effect_of
from tffc.language.nodes import Compiled
from tffc.language.wire import read_xla
from tffc.runtime.frameworks.tensorflow.graph_content import read_graph

if TYPE_CHECKING:
    from tffc.graphs.node import Attributes
    from tffc.graphs.proto import FunctionDef, GraphDef, NameAttrList, NodeDef


class GraphFunctions:
    """The functions of a graph by name."""

    def __init__(self, graph: GraphDef) -> None:
        self.bodies: dict[str, FunctionDef] = {
            function.signature.name: function for function in graph.library.function
        }
        self._gradients = {
            gradient.function_name: gradient.gradient_func for gradient in graph.library.gradient
        }

    def called_by(self, node: NodeDef) -> list[str]:
        """Return the functions that a node calls or hands on, each once."""
        names = [node.op, *(call.name for call in calls(node.attr))]
        return [name for name in dict.fromkeys(names) if name in self.bodies]

    def called_from(self, name: str) -> set[str]:
        """Return the functions that a function calls, and the one that computes its gradient."""
        called = {callee for node in self.bodies[name].node_def for callee in self.called_by(node)}
        gradient = self._gradients.get(name)
        return called | ({gradient} if gradient in self.bodies else set())

    def leading_to(self, has: Callable[[str], bool]) -> frozenset[str]:
        """Return the functions for which `has` is true, and those that call such functions."""
        callers: dict[str, set[str]] = {name: set() for name in self.bodies}
        for name in self.bodies:
            for called in self.called_from(name):
                callers[called].add(name)
        leading: set[str] = set()
        pending = [name for name in self.bodies if has(name)]
        while pending:
            name = pending.pop()
            if name not in leading:
                leading.add(name)
                pending.extend(callers[name])
        return frozenset(leading)


def calls(attributes: Attributes) -> Iterator[NameAttrList]:
    """Yield the NameAttrLists in a map of attributes, also those in the attributes of others."""
    pending = [attributes]
    while pending:
        current = pending.pop()
        for name in sorted(current):
            value = current[name]
            for call in [value.func] if value.HasField("func") else value.list.func:
                yield call
                pending.append(call.attr)


def rename_called(node: NodeDef, names: Mapping[str, str]) -> None:
    """Rename the functions that a node calls or hands on."""
    node.op = names.get(node.op, node.op)
    for call in calls(node.attr):
        call.name = names.get(call.name, call.name)


def rename_all_edges(function: FunctionDef, names: Mapping[str, str]) -> None:
    """Rename edges between the nodes of a function, and to its results."""
    for node in function.node_def:
        node.input[:] = [names.get(edge, edge) for edge in node.input]
    for outputs in (function.ret, function.control_ret):
        for name in list(outputs):
            outputs[name] = names.get(outputs[name], outputs[name])


def needed_effects(section: Compiled) -> Iterator[tuple[str, Effect | None]]:
    """Yield the operations that the results and the initialization of a section need, those in
    functions included, each with what it does besides computing.

    Raises:
      WireError: a message in the section is malformed.
      UnreadableGraph: it has no graph that fits its type.
    """
    if section.kind == "xla":
        for opcode, target in hlo.instructions(read_xla(section.payload).hlo_module):
            yield opcode, hlo.effect_of(opcode, target)
        return
    content = read_graph(section)
    functions = GraphFunctions(content.graph)
    taken = {name.partition(":")[0] for name, _ in content.parameter}
    pending = [name for name, _ in content.result] + [content.initialize_op]
    names: set[str] = set()
    while pending:
        name = pending.pop().removeprefix("^").partition(":")[0]
        if name in content.nodes and name not in names and name not in taken:
            names.add(name)
            pending.extend(content.nodes[name].input)
    # An argument may replace a constant, whose value is not that of the node then.
    beside = {name: node for name, node in content.nodes.items() if name not in taken}
    main = [node for node in content.graph.node if node.name in names]
    yield from _effects(main, beside, functions)
    reached: set[str] = set()
    called = [name for node in main for name in functions.called_by(node)]
    while called:
        name = called.pop()
        if name not in reached:
            reached.add(name)
            called.extend(functions.called_from(name))
    for name in sorted(reached):
        nodes = functions.bodies[name].node_def
        yield from _effects(nodes, {node.name: node for node in nodes}, functions)


def _effects(
    nodes: Iterable[NodeDef], beside: Mapping[str, NodeDef], functions: GraphFunctions
) -> Iterator[tuple[str, Effect | None]]:
    for node in nodes:
        yield node.op, None if node.op in functions.bodies else effect_of(node, beside)
