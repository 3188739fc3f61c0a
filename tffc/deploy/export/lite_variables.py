"""Replacing the variables of a graph by values.

LiteRT has variables, but not in loops.  The variables of an exported component live for one call,
so a read returns the last value assigned in the order of the control edges.  In a loop they become
loop variables, and a branch returns their values as additional results.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Set
from typing import TYPE_CHECKING

from tffc.graphs.body import Body, Edge, body_of_graph
from tffc.graphs.functions import Library, rename_outputs
from tffc.graphs.node import Nodes, control_edges, data_edges, inputs_first, source
from tffc.graphs.order import Accesses
from tffc.graphs.rewrites.inlining import CALLS, inline_calls, inline_given

if TYPE_CHECKING:
    from tffc.graphs.proto import FunctionDef, GraphDef, NodeDef


RESOURCE = 20
"""TensorFlow's number for the element type of handles."""

PARTS = {
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
}
"""The operations that run functions, with the attributes that name the functions."""

BRANCHED = frozenset({"If", "StatelessIf"})
CHANGES = {"AssignAddVariableOp": "AddV2", "AssignSubVariableOp": "Sub"}
"""The operations that update a variable, each with the operation that computes the new value from
the old one and the operand."""

ACCESSES = frozenset({"ReadVariableOp", "AssignVariableOp", *CHANGES})


class VariablesError(ValueError):
    """The variables of a graph cannot be replaced by values."""


def hand_on_variables(graph: GraphDef) -> None:
    """Replace the variables of a TensorFlow GraphDef in place.

    Raises:
      VariablesError: another operation uses them, or the order of their uses is not determined.
    """
    inline_given(graph, RESOURCE)
    library = {function.signature.name: function for function in graph.library.function}
    for function in library.values():
        while any(map(_is_given_variable, function.node_def)):
            count = len(function.node_def)
            inline_calls(function, library)
            if len(function.node_def) == count:
                break
    variables = [node for node in graph.node if node.op == "VarHandleOp"]
    handles = {node.name: node.attr["dtype"].type for node in variables}
    nodes = {node.name: node for node in graph.node}
    _check(body_of_graph(nodes), {Edge(name, 0) for name in handles}, Library(graph.library))
    _Body(graph.node, library, is_inside=False).hand_on(handles, {})
    for node in list(graph.node):
        if node.name in handles:
            graph.node.remove(node)
        else:
            node.input[:] = [edge for edge in node.input if edge.removeprefix("^") not in handles]


def _is_given_variable(node: NodeDef) -> bool:
    return node.op in CALLS and RESOURCE in node.attr["Tin"].list.type


def _check(body: Body, handles: Set[Edge], library: Library) -> None:
    """Check that only reads, assignments, loops and branches use variables, in a determined order.

    Raises:
      VariablesError: another operation uses them, or their order is not determined.
    """
    accesses = Accesses()
    for name, node in body.nodes.items():
        inputs = body.inputs[name]
        used = [edge for edge in inputs if edge in handles]
        if used and node.op in PARTS:
            for part in PARTS[node.op]:
                inside = library.body(node.attr[part].func.name)
                passed = zip(inside.arguments, inputs[node.op in BRANCHED :], strict=False)
                arguments = {argument for argument, edge in passed if edge in handles}
                _check(inside, arguments, library)
            if len(set(used)) < len(used):
                raise VariablesError("a loop or a branch is given a variable twice")
        elif used and (node.op not in ACCESSES or len(used) > 1):
            raise VariablesError(f"LiteRT has no variables for {node.op}")
        changes = node.op != "ReadVariableOp"
        states: dict[Hashable, bool] = dict.fromkeys(used, changes)
        if not accesses.enter(name, body.before(name), states):
            raise VariablesError("a variable is read and changed in an undefined order")


def _functions(node: NodeDef, library: dict[str, FunctionDef]) -> Iterator[FunctionDef]:
    return (library[node.attr[part].func.name] for part in PARTS[node.op])


class _Body:
    """The nodes of a graph or, with `is_inside`, of a function; edges in functions have another
    format."""

    def __init__(self, nodes: Nodes, library: dict[str, FunctionDef], *, is_inside: bool) -> None:
        self._nodes = nodes
        self._library = library
        self._is_inside = is_inside

    def hand_on(self, types: dict[str, int], values: dict[str, str]) -> dict[str, str]:
        """Replace all accesses to variables of these element types by edges of values.

        `values` are the initial values' edges; returns the edges of the final values.
        """
        for node in list(_in_order(self._nodes)):
            if not any(source(edge) in types for edge in data_edges(node)):
                continue
            if node.op in BRANCHED:
                self._branch(node, types, values)
            elif node.op in PARTS:
                self._loop(node, types, values)
            else:
                self._access(node, source(node.input[0]), values)
        return values

    def _output(self, node: str, name: str, port: int) -> str:
        return f"{node}:{name}:{port}" if self._is_inside else f"{node}:{port}"

    def _access(self, node: NodeDef, variable: str, values: dict[str, str]) -> None:
        operands, controls = data_edges(node)[1:], control_edges(node)
        kind = node.attr["dtype"].type
        node.attr.clear()
        if node.op == "AssignVariableOp":
            # Other nodes only have control edges from an assignment, so a NoOp can replace it.
            node.op = "NoOp"
            values[variable] = operands[0]
            node.input[:] = [*controls, *self._waits_for(operands[0])]
        elif node.op in CHANGES:
            changed = self._nodes.add(name=f"{node.name}/changed", op=CHANGES[node.op])
            changed.input.extend([values[variable], operands[0], *controls])
            changed.attr["T"].type = kind
            node.op = "NoOp"
            node.input[:] = [f"^{changed.name}"]
            values[variable] = self._output(changed.name, "z", 0)
        elif node.op == "ReadVariableOp":
            node.op = "Identity"
            node.attr["T"].type = kind
            node.input[:] = [values[variable], *controls]

    def _waits_for(self, edge: str) -> list[str]:
        """Return the control edge from the source of a value; none if the value is a parameter."""
        names = {node.name for node in self._nodes}
        return [f"^{source(edge)}"] if source(edge) in names else []

    def _loop(self, node: NodeDef, types: dict[str, int], values: dict[str, str]) -> None:
        condition, body = _functions(node, self._library)
        places = {i: source(edge) for i, edge in enumerate(node.input) if source(edge) in types}
        for index, variable in places.items():
            node.input[index] = values[variable]
            node.attr["T"].list.type[index] = types[variable]
            values[variable] = self._output(node.name, "output", index)
        for function in (condition, body):
            final = self._inside(function, {i: types[variable] for i, variable in places.items()})
            if function is body:
                for index, edge in final.items():
                    result = function.signature.output_arg[index]
                    result.type = function.signature.input_arg[index].type
                    function.ret[result.name] = edge

    def _branch(self, node: NodeDef, types: dict[str, int], values: dict[str, str]) -> None:
        """Make both branches return the final values of their variables after their own results."""
        count = len(node.attr["Tout"].list.type)
        edges = list(enumerate(node.input[1:]))
        places = {i: source(edge) for i, edge in edges if source(edge) in types}
        for function in _functions(node, self._library):
            final = self._inside(function, {i: types[variable] for i, variable in places.items()})
            for index, edge in final.items():
                name = f"variable_{index}"
                kind = function.signature.input_arg[index].type
                function.signature.output_arg.add(name=name, type=kind)
                function.ret[name] = edge
        node.attr.pop("output_shapes", None)
        node.attr["Tout"].list.type.extend(types[variable] for variable in places.values())
        for port, (index, variable) in enumerate(places.items(), start=count):
            node.input[1 + index] = values[variable]
            node.attr["Tin"].list.type[index] = types[variable]
            values[variable] = self._output(node.name, "output", port)

    def _inside(self, function: FunctionDef, places: dict[int, int]) -> dict[int, str]:
        """Replace the variables among a function's parameters, given by position with their element
        types.

        Returns the edges of their final values, by position.
        """
        arguments = function.signature.input_arg
        for index, kind in places.items():
            if arguments[index].type != RESOURCE:
                raise VariablesError("two loops or branches with variables share a function")
            arguments[index].type = kind
        names = {arguments[index].name: index for index in places}
        inside = _Body(function.node_def, self._library, is_inside=True)
        types = {name: places[index] for name, index in names.items()}
        final = inside.hand_on(types, {name: name for name in names})
        # Reads of variables have become Identity operations, whose output has another name.
        rename_outputs(function, "Identity", "value")
        return {names[name]: edge for name, edge in final.items()}


def _in_order(nodes: Sequence[NodeDef]) -> Iterator[NodeDef]:
    """Yield nodes in topological order, control edges included."""
    by_name = {node.name: node for node in nodes}

    def inputs(name: str) -> Iterator[str]:
        return (input for input in map(source, by_name[name].input) if input in by_name)

    return (by_name[name] for name in inputs_first(by_name, inputs))
