"""Reading of graphs that anybody may have written, checked where they are read.

Whoever walks over a graph that was read here may rely on this, in the graph and in each function of
its library: names are unique and edges can have them, whatever an edge names exists, nodes have as
many inputs as their operations take, functions return what their signatures say, no node depends on
itself except through a loop of TensorFlow 1, and no function calls itself.  TensorFlow refuses
other graphs too, or crashes.  The graph's resources say which arrays they are, and its functions
have none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from google.protobuf.message import DecodeError

from tffc.graphs.functions import named_functions
from tffc.graphs.node import port_of, source
from tffc.graphs.operations import op_table
from tffc.graphs.proto import FunctionDef, GraphDef, NodeDef
from tffc.graphs.resources import check_resource, is_resource, refuse_in_function
from tffc.support.errors import GraphError, reader

MOST_OUTPUTS = 2**22
"""The most outputs that all nodes of a graph may have together: a node of a few bytes may claim to
have any number."""

LOOP_ENDS = frozenset({"NextIteration", "RefNextIteration"})
LOOP_STARTS = frozenset({"Merge", "RefMerge", "_XlaMerge"})
"""The operations between which the circle of a loop of TensorFlow 1 is closed."""

MOST_REMEMBERED = 4096

_checked: Final[set[bytes]] = set()
"""The digests of graphs that passed; a command reads a graph several times."""


@reader("a graph of TensorFlow", GraphError)
def read_graph(content: bytes) -> GraphDef:
    """Return a GraphDef.

    Raises:
      GraphError: it is none, or none that TensorFlow would load.
    """
    try:
        graph = GraphDef.FromString(content)
    except DecodeError:
        raise GraphError(
            "E331", f"the graph's {len(content)} bytes are not serialized GraphDef"
        ) from None
    digest = hashlib.sha256(content).digest()
    if digest not in _checked:
        check_graph(graph)
        if len(_checked) >= MOST_REMEMBERED:
            _checked.clear()
        _checked.add(digest)
    return graph


@reader("a graph of TensorFlow", GraphError)
def check_graph(graph: GraphDef) -> None:
    """Check a graph and all functions of its library, called or not.

    Raises:
      GraphError: the graph is malformed.
    """
    functions = {function.signature.name: function for function in graph.library.function}
    if len(functions) < len(graph.library.function):
        raise _malformed("two functions of its library have one name")
    scopes = {name: _FunctionScope(function, functions) for name, function in functions.items()}
    whole = _Scope(graph.node, functions)
    if sum(scope.output_count for scope in (whole, *scopes.values())) > MOST_OUTPUTS:
        raise _malformed(f"its nodes have more than {MOST_OUTPUTS} outputs")
    whole.check()
    for scope in scopes.values():
        scope.check()
    name = _circular({name: scope.calls() for name, scope in scopes.items()})
    if name is not None:
        raise _malformed(f"its function {name!r} calls itself")


class _Scope:
    """The nodes of a graph, whose edges have the numbers of outputs."""

    notes: tuple[str, ...] = ()
    has_resources = True

    def __init__(self, nodes: Sequence[NodeDef], functions: Mapping[str, FunctionDef]) -> None:
        self.functions = functions
        self.nodes = {node.name: node for node in nodes}
        if len(self.nodes) < len(nodes):
            names: set[str] = set()
            twice = next(n.name for n in nodes if n.name in names or names.add(n.name))
            raise GraphError("E331", f"the graph has two nodes named {twice!r}", notes=self.notes)
        for name in self.nodes:
            self.check_name(name)
        self._counts = {name: self._outputs_of(node) for name, node in self.nodes.items()}

    def check_name(self, name: str) -> None:
        """Check that edges can name a node, argument or function.

        Raises:
          GraphError: they cannot.
        """
        if not name or ":" in name or name.startswith("^"):
            raise _malformed(f"{name!r} cannot be a name", self.notes)

    @property
    def output_count(self) -> int:
        """The number of known outputs of all nodes."""
        return sum(count or 0 for count in self._counts.values())

    def check(self) -> None:
        """Check the inputs of all nodes.

        Raises:
          GraphError: the graph is malformed.
        """
        before: dict[str, list[str]] = {}
        is_sorted = True  # each node comes after its inputs, as in most graphs
        for name, node in self.nodes.items():
            starts: list[str] = []
            count = 0
            for edge in node.input:
                if not self.has(edge):
                    raise self.missing(f"node {name!r} has the input {edge!r}")
                count += not edge.startswith("^")
                if (start := source(edge)) in self.nodes:
                    starts.append(start)
            if node.op in LOOP_STARTS:
                starts = [start for start in starts if self.nodes[start].op not in LOOP_ENDS]
            is_sorted = is_sorted and all(map(before.__contains__, starts))
            before[name] = starts
            self._check_count(node, count)
            if is_resource(node):
                if not self.has_resources:
                    raise refuse_in_function(node, self.notes)
                check_resource(node, self.notes)
        circular = None if is_sorted else _circular(before)
        if circular is not None:
            raise _malformed(f"node {circular!r} depends on itself", self.notes)

    def has(self, edge: str) -> bool:
        """Return whether the scope has what an edge names."""
        start = source(edge)
        if start not in self.nodes:
            return False
        return edge.startswith("^") or self.has_output(self.nodes[start], edge)

    def has_output(self, node: NodeDef, edge: str) -> bool:
        """Return whether a node has the output of an edge `node` or `node:number`."""
        port = port_of(edge) if ":" in edge else 0
        count = self._counts[node.name]
        return port is not None and (count is None or port < count)

    def missing(self, what: str) -> GraphError:
        """Return the refusal of an edge from nowhere."""
        return GraphError("E331", f"{what}, which the graph does not have", notes=self.notes)

    def _outputs_of(self, node: NodeDef) -> int | None:
        """Return the number of a node's outputs; None if its operation is not known."""
        operation = op_table.find(node.op)
        if operation is not None:
            return operation.output_count(node.attr)
        return _length(self.functions[node.op], "output_arg") if node.op in self.functions else None

    def _inputs_of(self, node: NodeDef) -> int | None:
        operation = op_table.find(node.op)
        if operation is not None:
            return operation.input_count(node.attr)
        return _length(self.functions[node.op], "input_arg") if node.op in self.functions else None

    def _check_count(self, node: NodeDef, count: int) -> None:
        expected = self._inputs_of(node)
        if expected not in (None, count):
            message = f"node {node.name!r} has {count} inputs, and {node.op} takes {expected}"
            raise _malformed(message, self.notes)


class _FunctionScope(_Scope):
    """The nodes of a function, whose edges have the names of outputs, and its arguments."""

    has_resources = False

    def __init__(self, function: FunctionDef, functions: Mapping[str, FunctionDef]) -> None:
        self._function = function
        self._arguments = {argument.name for argument in function.signature.input_arg}
        self.notes = (f"in the function {function.signature.name!r} of its library",)
        for name in (function.signature.name, *self._arguments):
            self.check_name(name)
        super().__init__(function.node_def, functions)
        if not self._arguments.isdisjoint(self.nodes):
            raise _malformed("a node and an argument have one name", self.notes)

    def calls(self) -> list[str]:
        """Return the functions of the library that the nodes name, each once."""
        return list(dict.fromkeys(filter(self.functions.__contains__, self._names())))

    def check(self) -> None:
        super().check()
        function, signature = self._function, self._function.signature
        for output in signature.output_arg:
            edge = function.ret.get(output.name, "")
            if edge.startswith("^") or not self.has(edge):
                raise self.missing(f"its result {output.name!r} is {edge!r}")
        for name in signature.control_output:
            node = function.control_ret.get(name, "")
            if node not in self.nodes:
                raise self.missing(f"it returns when {node!r} has run")

    def has(self, edge: str) -> bool:
        if source(edge) not in self._arguments:
            return super().has(edge)
        return edge.startswith("^") or port_of(edge) is not None

    def has_output(self, node: NodeDef, edge: str) -> bool:
        """Return whether a node has the output of an edge `node:name` or `node:name:number`."""
        name, colon, number = edge.partition(":")[2].partition(":")
        index = port_of(f":{number}") if colon else 0
        operation = op_table.find(node.op)
        if operation is not None:
            sizes = {output.name: output.count(node.attr) for output in operation.outputs}
        elif node.op in self.functions:
            sizes = {argument.name: 1 for argument in self.functions[node.op].signature.output_arg}
        else:
            return index is not None
        return index is not None and index < sizes.get(name, 0)

    def _names(self) -> Iterator[str]:
        for node in self.nodes.values():
            yield node.op
            if op_table.names_functions(node.op):
                yield from (function.name for function in named_functions(node.attr))


def _length(function: FunctionDef, field: str) -> int | None:
    """Return the number of arguments or results of a function; None if its attributes tell it."""
    arguments = getattr(function.signature, field)
    return None if any(a.number_attr or a.type_list_attr for a in arguments) else len(arguments)


def _circular(before: Mapping[str, Sequence[str]]) -> str | None:
    """Return something that waits for itself, by what each waits for; None if nothing does."""
    after: dict[str, list[str]] = {name: [] for name in before}
    for name, starts in before.items():
        for start in starts:
            after[start].append(name)
    waiting = {name: len(starts) for name, starts in before.items()}
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        name = ready.pop()
        del waiting[name]
        for follower in after[name]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    # Whatever is left waits for something that is left.
    name, passed = min(waiting, default=None), set[str]()
    while name is not None and name not in passed:
        passed.add(name)
        name = min(start for start in before[name] if start in waiting)
    return name


def _malformed(message: str, notes: Iterable[str] = ()) -> GraphError:
    return GraphError("E331", f"the graph is malformed: {message}", notes=tuple(notes))
