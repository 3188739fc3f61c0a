"""Changes to graphs that leave most of them graphs: other edges, operations, attributes,
functions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tffc.graphs.operations import op_table
from tffc.graphs.proto import GraphDef

CHANGES = (1, 1, 1, 2, 3)
"""The numbers of changes to a graph, one of which is chosen."""

OPERATIONS = tuple(line.split()[0] for line in op_table.TABLE.read_text().splitlines())
"""The names of TensorFlow's operations."""

NAMES = ("", "x", "^x", "missing:0", "x:99", "x:-1", "a/b", "\u202e", "\n", "x" * 300, "_", "0")
NUMBERS = (0, 1, -1, 2, 3, 7, 100, 2**31 - 1, 2**40, 2**63 - 1, -(2**63))
TYPES = (0, 1, 3, 4, 7, 9, 10, 14, 20, 21, 22, 101, 9999)
TEXTS = (b"", b"x", b"\xff", b"file:///x", b"{", b"9" * 300, b"clients")


def damaged_graph(generator: random.Random, content: bytes) -> bytes:
    """Return a serialized graph after a few changes."""
    graph = GraphDef.FromString(content)
    for _ in range(generator.choice(CHANGES)):
        generator.choice(KINDS)(generator, graph)
    return graph.SerializeToString(deterministic=True)


def _scope(generator: random.Random, graph: Any) -> Any:
    """Return the nodes of the graph or of one of its functions."""
    scopes = [graph.node, *(function.node_def for function in graph.library.function)]
    return generator.choice([each for each in scopes if len(each)] or scopes)


def _node(generator: random.Random, graph: Any) -> Any | None:
    nodes = _scope(generator, graph)
    return generator.choice(nodes) if len(nodes) else None


def _edge(generator: random.Random, nodes: Any) -> str:
    if not len(nodes) or generator.random() < 0.1:
        return generator.choice(NAMES)
    name = generator.choice(nodes).name
    edges = (name, f"{name}:0", f"{name}:1", f"^{name}", f"{name}:output:0", f"{name}:y:0")
    used = [edge for node in nodes for edge in node.input]
    return generator.choice((generator.choice(edges), generator.choice(used or [name])))


def change_inputs(generator: random.Random, graph: Any) -> None:
    """Add, remove, replace or reorder inputs of a node; other ones may close a circle."""
    nodes = _scope(generator, graph)
    if not len(nodes):
        return
    inputs = list((node := generator.choice(nodes)).input)
    at = generator.randrange(len(inputs) + 1)
    match generator.randrange(4):
        case 0:
            inputs.insert(at, _edge(generator, nodes))
        case 1:
            del inputs[at : at + 1]
        case 2:
            inputs[at : at + 1] = [_edge(generator, nodes)]
        case _:
            generator.shuffle(inputs)
    node.input[:] = inputs


def change_operation(generator: random.Random, graph: Any) -> None:
    """Make a node another operation, or a call of a function."""
    node = _node(generator, graph)
    if node is not None:
        names = (*OPERATIONS, *(each.signature.name for each in graph.library.function))
        node.op = generator.choice((generator.choice(names), *NAMES[:2]))


def change_attribute(generator: random.Random, graph: Any) -> None:
    """Change an attribute of a node, remove it, or take that of another node."""
    node, other = _node(generator, graph), _node(generator, graph)
    if node is None or other is None:
        return
    keys, others = sorted(node.attr), sorted(other.attr)
    if not keys or generator.random() < 0.2:
        if others:
            key = generator.choice(others)
            node.attr[key].CopyFrom(other.attr[key])
        return
    key = generator.choice(keys)
    if generator.random() < 0.2:
        del node.attr[key]
        return
    functions = [each.signature.name for each in graph.library.function]
    _set(generator, node.attr[key], [*functions, *NAMES])


def _set(generator: random.Random, value: Any, names: list[str]) -> None:
    kind = value.WhichOneof("value")
    if generator.random() < 0.1:
        kind = generator.choice(("i", "type", "s", "func", "shape", "b", "list", "placeholder"))
    match kind:
        case "i":
            value.i = generator.choice(NUMBERS)
        case "type":
            value.type = generator.choice(TYPES)
        case "s":
            value.s = generator.choice(TEXTS)
        case "func":
            value.func.name = generator.choice(names)
        case "shape":
            value.shape.dim.add(size=generator.choice(NUMBERS))
        case "b":
            value.b = not value.b
        case "tensor":
            _change_tensor(generator, value.tensor)
        case "list":
            value.list.type.append(generator.choice(TYPES))
            value.list.i.append(generator.choice(NUMBERS))
            value.list.func.add(name=generator.choice(names))
        case _:
            value.placeholder = generator.choice(NAMES[:2])


def _change_tensor(generator: random.Random, tensor: Any) -> None:
    match generator.randrange(4):
        case 0:
            tensor.dtype = generator.choice(TYPES)
        case 1:
            tensor.tensor_shape.dim.add(size=generator.choice(NUMBERS))
        case 2:
            tensor.tensor_content = generator.choice(TEXTS)
        case _:
            tensor.string_val.append(generator.choice(TEXTS))


def change_nodes(generator: random.Random, graph: Any) -> None:
    """Remove, repeat or rename a node."""
    nodes = _scope(generator, graph)
    if not len(nodes):
        return
    at = generator.randrange(len(nodes))
    match generator.randrange(3):
        case 0:
            del nodes[at]
        case 1:
            copy = nodes.add()
            copy.CopyFrom(nodes[at])
            if generator.random() < 0.7:
                copy.name += "_copy"
        case _:
            nodes[at].name = generator.choice((generator.choice(nodes).name, *NAMES))


def change_functions(generator: random.Random, graph: Any) -> None:
    """Remove, repeat or rename a function, or change its arguments, results or nodes."""
    functions = graph.library.function
    if not len(functions):
        return
    at = generator.randrange(len(functions))
    function = functions[at]
    signature = function.signature
    match generator.randrange(8):
        case 0:
            del functions[at]
        case 1:
            functions.add().CopyFrom(function)
        case 2:
            signature.name = generator.choice((generator.choice(functions).signature.name, *NAMES))
        case 3 if len(signature.input_arg):
            del signature.input_arg[generator.randrange(len(signature.input_arg))]
        case 4 if len(signature.output_arg):
            generator.choice(signature.output_arg).type = generator.choice(TYPES)
        case 5 if function.ret:
            key = generator.choice(sorted(function.ret))
            function.ret[key] = _edge(generator, function.node_def)
        case 6:
            other = generator.choice(functions)
            del function.node_def[:]
            function.node_def.extend(other.node_def)
        case _:
            signature.input_arg.add(name=generator.choice(NAMES), type=generator.choice(TYPES))


def call_in_a_circle(generator: random.Random, graph: Any) -> None:
    """Make a function call itself, or one that calls it."""
    functions = graph.library.function
    if len(functions):
        node = _node(generator, graph)
        if node is not None:
            node.op = generator.choice(("PartitionedCall", "StatefulPartitionedCall"))
            node.attr["f"].func.name = generator.choice(functions).signature.name


def place_node(generator: random.Random, graph: Any) -> None:
    """Place a node on a device."""
    node = _node(generator, graph)
    if node is not None:
        node.device = generator.choice(("/job:worker/task:1", "/gpu:0", "x", *NAMES))


KINDS: tuple[Callable[[random.Random, Any], None], ...] = (
    change_inputs,
    change_inputs,
    change_operation,
    change_attribute,
    change_attribute,
    change_nodes,
    change_functions,
    call_in_a_circle,
    place_node,
)
