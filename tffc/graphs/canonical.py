"""A TensorFlow graph as bytes that do not depend on names or order.

Nodes are numbered in the order in which a walk from the results through their inputs meets them;
functions and resources by first use.  The order of control inputs has no meaning, so these are
sorted by labels: hashes of all that leads into a node and out of it.  Everything is linear in the
size of the graph.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tffc.graphs.functions import Library
from tffc.graphs.node import (
    Attributes,
    encoded,
    hash_of,
    inputs_first,
    tokens,
)
from tffc.graphs.proto import (
    AttrValue,
    DataType,
    FunctionDef,
    FunctionDefLibrary,
    GraphDef,
    NameAttrList,
    NodeDef,
    TensorProto,
)
from tffc.graphs.resources import ATTRIBUTE as RESOURCE

IGNORED_ATTRIBUTES = frozenset(
    {"config", "config_proto", "debug_name", "executor_type", "metadata"}
)
"""Attributes that have no effect on results, besides all that begin with `_`, except for the one
that names a resource.

Where kernels of functions keep state, others have an effect too; see `_Canon`."""

INSTANTIATING = frozenset({"config", "config_proto", "executor_type"})
"""Attributes of calls; two calls of a function for which they differ do not share its kernels."""

NEVER_NEEDED = frozenset(
    {
        *("_class", "_construction_context", "_gradient_op_type", "_input_shapes"),
        *("_output_shapes", "_read_only_resource_inputs", "_user_specified_name"),
    }
)
"""Attributes beginning with `_` that say nothing about how calls are inlined or instantiated."""

RESOURCE_NAMES = frozenset({"container", "shared_name", "stack_name", "tensor_array_name"})
"""Attributes that name a resource; only whether two names are equal has a meaning."""

STRUCT_CODES = {
    DataType.DT_FLOAT: ("float_val", "f"),
    DataType.DT_DOUBLE: ("double_val", "d"),
    DataType.DT_INT32: ("int_val", "i"),
    DataType.DT_UINT8: ("int_val", "B"),
    DataType.DT_INT16: ("int_val", "h"),
    DataType.DT_INT8: ("int_val", "b"),
    DataType.DT_COMPLEX64: ("scomplex_val", "ff"),
    DataType.DT_INT64: ("int64_val", "q"),
    DataType.DT_BOOL: ("bool_val", "?"),
    DataType.DT_BFLOAT16: ("half_val", "H"),
    DataType.DT_UINT16: ("int_val", "H"),
    DataType.DT_COMPLEX128: ("dcomplex_val", "dd"),
    DataType.DT_HALF: ("half_val", "H"),
    DataType.DT_UINT32: ("uint32_val", "I"),
    DataType.DT_UINT64: ("uint64_val", "Q"),
}
"""The field of a TensorProto that holds the elements of each type, halves as their sixteen bits and
complex numbers as two, and how `struct` packs one."""


def canonical_graph(
    graph: GraphDef, parameters: list[str], results: list[str], initialize_op: str
) -> bytes:
    """Return the canonical form of what a graph computes for `results`, and in `initialize_op` if
    there is one.

    Parameters and results are names of tensors, such as `x:0`.  The form has a parameter's
    position, not its name.
    """
    return _Canon(graph.library).write(graph_scope(graph, parameters, results, initialize_op))


class GraphScope:
    """A graph or the body of a function: the positions of its arguments by name, its other nodes by
    name, and the results and nodes that have to run."""

    def __init__(
        self,
        arguments: dict[str, int],
        nodes: Iterable[NodeDef],
        results: list[tuple[str, str]],
        controls: list[str],
    ) -> None:
        self.arguments = arguments
        self.nodes = {node.name: ScopeNode(node) for node in nodes if node.name not in arguments}
        self.results = results
        self.controls = controls

    def inputs(self, name: str) -> tuple[list[tuple[str, str]], list[str]]:
        """Return the data inputs of a node, and the nodes that it waits for."""
        node = self.nodes.get(name)
        return ([], []) if node is None else (node.data, node.waits)


class ScopeNode:
    """A node of a scope: its message, what it reads and what it waits for."""

    def __init__(self, message: NodeDef) -> None:
        self.message = message
        self._attributes: list[_Attribute] | None = None
        self.data: list[tuple[str, str]] = []
        self.waits: list[str] = []
        for edge in message.input:
            if edge.startswith("^"):
                self.waits.append(edge[1:])
            else:
                self.data.append(_source(edge))

    @property
    def attributes(self) -> list[_Attribute]:
        """The attributes that matter, sorted by name."""
        # Not a cached property, whose lock takes longer than most nodes.
        if self._attributes is None:
            self._attributes = []
            for name, value in lasting_attributes(self.message.attr):
                parts = None if _is_varied(name, value) else list(_value_parts(value, str))
                self._attributes.append(_Attribute(name, value, parts))
        return self._attributes

    def parts(
        self, function: Callable[[str], str], resource: Callable[[bytes], Iterable[object]]
    ) -> list[object]:
        """Return the node without its inputs; the functions give what stands for names."""
        parts: list[object] = [function(self.message.op), self.message.device]
        for attribute in self.attributes:
            parts.append(attribute.name)
            if attribute.parts is not None:
                parts += attribute.parts
            elif attribute.name in RESOURCE_NAMES:
                parts += resource(attribute.value.s)
            else:
                parts += _value_parts(attribute.value, function)
        return parts


class _Attribute(NamedTuple):
    """An attribute of a node.  Its parts are None if they are made each time: names, for which
    others stand, and constants, which may be large."""

    name: str
    value: AttrValue
    parts: list[object] | None


def _is_varied(name: str, value: AttrValue) -> bool:
    if name in RESOURCE_NAMES or value.WhichOneof("value") in ("func", "tensor"):
        return True
    return bool(value.list.func or value.list.tensor)


def graph_scope(
    graph: GraphDef, parameters: list[str], results: list[str], initialize_op: str
) -> GraphScope:
    """Return the scope of the graph itself; for the arguments see `canonical_graph`."""
    arguments = positions(_source(name)[0] for name in parameters)
    return GraphScope(
        arguments,
        graph.node,
        results=[_source(name) for name in results],
        controls=[initialize_op] if initialize_op else [],
    )


def function_scope(function: FunctionDef) -> GraphScope:
    """Return the scope of a function.  All nodes have to run, because some run for their
    effects."""
    signature = function.signature
    arguments = positions(argument.name for argument in signature.input_arg)
    return GraphScope(
        arguments,
        function.node_def,
        results=[_source(function.ret.get(out.name, "")) for out in signature.output_arg],
        controls=[node.name for node in function.node_def],
    )


def positions(names: Iterable[str]) -> dict[str, int]:
    """Return the names without repetitions, each with its position."""
    return {name: position for position, name in enumerate(dict.fromkeys(names))}


def _source(tensor: str) -> tuple[str, str]:
    """Return the node that a tensor comes from, and the number of its output."""
    node, _, port = tensor.partition(":")
    return node, port or "0"


class NumberedFunctions(Library):
    """The functions of a library, numbered by first use."""

    def __init__(self, library: FunctionDefLibrary) -> None:
        super().__init__(library)
        self.met: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int | None:
        """Return the number of a function, or None for another name."""
        if name not in self.functions:
            return None
        if name not in self._numbers:
            self._numbers[name] = len(self.met)
            self.met.append(name)
        return self._numbers[name]

    def sketch(self, name: str) -> str:
        """Return what stands for a function before it has a number: the operations in it."""
        if name not in self.functions:
            return name
        return ",".join(sorted(node.op for node in self.nodes(name).values()))


class _Canon:
    """Writes scopes, and numbers functions and resources by first use.

    A call that is inlined has kernels of its own, and others share those of their function.  So
    where kernels of functions keep state, what decides about that is written too.
    """

    def __init__(self, library: FunctionDefLibrary) -> None:
        self._functions = NumberedFunctions(library)
        self._resources: dict[bytes, int] = {}
        self._configurations: dict[bytes, int] = {}
        self._written = bytearray()

    def write(self, scope: GraphScope) -> bytes:
        """Return the canonical form of a scope and of all functions that it calls."""
        self._write_scope(scope)
        for name in self._functions.met:  # which grows while functions are written
            function = self._functions.functions[name]
            self._token("function", *(argument.type for argument in function.signature.input_arg))
            self._token(self._function(self._functions.gradients.get(name, "")))
            self._write_scope(function_scope(function))
        if any(map(self._functions.keeps_state, self._functions.met)):
            self._write_calls(scope)
            for name in self._functions.met:
                function = self._functions.functions[name]
                self._write_call("function", function.attr)
                self._write_calls(function_scope(function))
        return bytes(self._written)

    def _write_calls(self, scope: GraphScope) -> None:
        """Write how the functions that the nodes of a scope call are inlined and instantiated."""
        for name in number_nodes(scope, self._functions):
            if name in scope.nodes:
                self._write_call("call", scope.nodes[name].message.attr)

    def _write_call(self, kind: str, attributes: Attributes) -> None:
        self._token(kind)
        for name in sorted(attributes):
            value = encoded(attributes[name])
            if name in INSTANTIATING:
                self._token(name, self._configurations.setdefault(value, len(self._configurations)))
            elif name.startswith("_") and name not in NEVER_NEEDED:
                self._token(name, value)

    def _token(self, *parts: object) -> None:
        self._written += tokens(parts)

    def _write_scope(self, scope: GraphScope) -> None:
        numbers = number_nodes(scope, self._functions)
        self._token("scope", len(scope.arguments), len(numbers))
        for name in list(numbers)[len(scope.arguments) :]:
            if name in scope.nodes:
                self._write_node(scope.nodes[name], numbers)
            else:
                self._token("missing", name)
        for source, port in scope.results:
            self._token(numbers[source], port)
        self._token(*sorted(numbers[name] for name in scope.controls))

    def _write_node(self, node: ScopeNode, numbers: dict[str, int]) -> None:
        parts = ["node", *node.parts(self._function, self._resource)]
        for source, port in node.data:
            parts += (numbers[source], port)
        self._token(*parts, "after", *sorted(numbers[source] for source in node.waits))

    def _resource(self, name: bytes) -> tuple[int]:
        return (self._resources.setdefault(name, len(self._resources)),)

    def _function(self, name: str) -> str:
        """Return the number of a function, or another name as it is."""
        number = self._functions.number(name)
        return name if number is None else f"#{number}"


def number_nodes(scope: GraphScope, functions: NumberedFunctions) -> dict[str, int]:
    """Return the numbers of the arguments and of all nodes that are needed, in that order."""
    labels = functools.cache(lambda: _labels(scope, functions.sketch))
    numbers = dict(scope.arguments)
    # The stack has nodes and lists of nodes that are waited for.  Labels take longest, and only
    # tell which of the latter comes first, so they are made where two are left without a number.
    stack: list[str | list[str]] = [scope.controls]
    stack += reversed([source for source, _ in scope.results])
    while stack:
        name = stack.pop()
        if isinstance(name, list):
            left = [wait for wait in name if wait not in numbers]
            if len(left) > 1:
                left.sort(key=labels().__getitem__)
            stack += reversed(left)
        elif name not in numbers:
            numbers[name] = len(numbers)
            data, waits = scope.inputs(name)
            stack.append(waits)
            stack += reversed([source for source, _ in data])
    return numbers


def _labels(scope: GraphScope, sketch: Callable[[str], str]) -> dict[str, bytes]:
    """Return for each node a hash of what leads into it and what it leads to.

    Hashes are made from the inputs to the results, back again, and from the inputs once more, so
    that nodes with equal hashes hardly differ.
    """

    def before(name: str) -> list[str]:
        data, waits = scope.inputs(name)
        return [*(source for source, _ in data), *waits]

    roots = [*(source for source, _ in scope.results), *scope.controls]
    # From the last root on: on a loop, hashes depend on the node where it is entered.
    order = inputs_first(reversed(roots), before)
    own = {name: _own_label(scope, name, sketch) for name in order}
    uses = _upstream(scope, order, _downstream(scope, order, own))
    return _downstream(scope, order, {name: own[name] + uses[name] for name in order})


def _own_label(scope: GraphScope, name: str, sketch: Callable[[str], str]) -> bytes:
    if name in scope.arguments:
        return hash_of(["argument", scope.arguments[name]])
    node = scope.nodes.get(name)
    if node is None:
        return hash_of(["missing", name])
    return hash_of(node.parts(sketch, lambda resource: ()))


def _downstream(scope: GraphScope, order: list[str], own: dict[str, bytes]) -> dict[str, bytes]:
    """Return hashes of the nodes and of all that leads into each."""
    labels: dict[str, bytes] = {}
    for name in order:
        data, waits = scope.inputs(name)
        parts: list[object] = [own[name]]
        for source, port in data:
            parts.extend((labels.get(source, b""), port))
        parts.extend(sorted(labels.get(source, b"") for source in waits))
        labels[name] = hash_of(parts)
    return labels


def _upstream(scope: GraphScope, order: list[str], labels: dict[str, bytes]) -> dict[str, bytes]:
    """Return hashes of the nodes and of all that each leads to."""
    uses: dict[str, list[bytes]] = {name: [] for name in order}
    for index, (source, port) in enumerate(scope.results):
        uses[source].append(hash_of(["result", index, port]))
    for source in scope.controls:
        uses[source].append(b"control")
    hashes: dict[str, bytes] = {}
    for name in reversed(order):
        hashes[name] = hash_of([labels[name], *sorted(uses[name])])
        data, waits = scope.inputs(name)
        for index, (source, port) in enumerate(data):
            uses[source].append(hash_of([hashes[name], index, port]))
        for source in waits:
            uses[source].append(hashes[name])
    return hashes


def lasting_attributes(attributes: Attributes) -> Iterator[tuple[str, AttrValue]]:
    """Yield the attributes that matter, sorted by name.

    Attributes that are false or empty are left out: another version of TensorFlow may not write
    them.
    """
    for name in sorted(attributes):
        value = attributes[name]
        if name in IGNORED_ATTRIBUTES or (name.startswith("_") and name != RESOURCE):
            continue
        kind = value.WhichOneof("value")
        if kind == "list":
            is_empty = not value.list.ByteSize()
        else:
            is_empty = kind in ("s", "b") and not (value.s or value.b)
        if not is_empty:
            yield name, value


def _value_parts(value: AttrValue, function: Callable[[str], str]) -> Iterator[object]:
    calls: Sequence[NameAttrList] = ()
    tensors: Sequence[TensorProto] = ()
    match value.WhichOneof("value"):
        case "func":
            calls = [value.func]
        case "tensor":
            tensors = [value.tensor]
        case "list":
            calls, tensors = value.list.func, value.list.tensor
        case _:
            pass
    for call in calls:
        yield function(call.name)
        for name, inner in lasting_attributes(call.attr):
            yield name
            yield from _value_parts(inner, function)
    for tensor in tensors:
        yield from _tensor_parts(tensor)
    if not (calls or tensors):
        yield encoded(value)


def _tensor_parts(tensor: TensorProto) -> Iterator[object]:
    """Yield a constant by its elements, without the repetitions of the last one."""
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    yield from (tensor.dtype, shape)
    try:
        yield from tensor_elements(tensor, math.prod(shape))
    except struct.error:
        yield encoded(tensor)


def tensor_elements(tensor: TensorProto, count: int) -> list[bytes]:
    """Return the elements of a constant without the repetitions of the last one: its strings, or
    the bytes of all its numbers in one piece.

    Raises:
      struct.error: an element does not fit its type.
    """
    if tensor.dtype == DataType.DT_STRING and not tensor.tensor_content:
        strings = list(tensor.string_val)[:count] or [b""] * min(count, 1)
        while len(strings) > 1 and strings[-1] == strings[-2]:
            strings.pop()
        return strings
    if tensor.dtype not in STRUCT_CODES:
        return [encoded(tensor)]
    field, code = STRUCT_CODES[tensor.dtype]
    size = struct.calcsize(f"<{code}")
    content = tensor.tensor_content
    if not content:
        values = getattr(tensor, field)
        content = struct.pack(f"<{len(values)}{code[0]}", *values) or bytes(size)
    return [_without_run(content[: count * size], size)]


def _without_run(content: bytes, size: int) -> bytes:
    """Return the elements, without the repetitions of the last one at the end."""
    if not content.endswith(content[-size:] * 2):  # such as trained weights, which may be large
        return content
    # The highest bit in which the elements differ from those after them is where the run begins.
    elements, following = content[:-size], content[size:]
    differing = int.from_bytes(elements, "little") ^ int.from_bytes(following, "little")
    return content[: ((differing.bit_length() - 1) // (8 * size) + 2) * size]
