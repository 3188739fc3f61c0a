"""Single edits of components, as a faulty compiler or an attacker could make them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from tests.assurance.proof.program_edits import PROGRAM_EDITS, ProgramEdit, edited_program
from tffc.graphs.proto import GraphDef
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import rewrite, walk
from tffc.language.wire import StructBinding, TensorBinding, read_tensorflow, write_tensorflow

OPERATIONS = {
    "Add": "Sub",
    "AddV2": "Sub",
    "Sub": "AddV2",
    "Mul": "AddV2",
    "RealDiv": "Mul",
    "Minimum": "Maximum",
    "Maximum": "Minimum",
    "Greater": "GreaterEqual",
    "Less": "LessEqual",
    "ReadVariableOp": "Identity",
    "AssignAddVariableOp": "AssignSubVariableOp",
    "AssignVariableOp": "AssignAddVariableOp",
    "Sum": "Prod",
    "Min": "Max",
    "Max": "Min",
    "RandomUniform": "RandomStandardNormal",
    "RandomStandardNormal": "RandomUniform",
    "LogicalAnd": "LogicalOr",
    "Floor": "Ceil",
}


class Draft:
    """A section being edited: its content, its graph, and the lists of its nodes."""

    def __init__(self, section: Compiled, choose: random.Random) -> None:
        self.section = section
        self.choose = choose
        self.content = read_tensorflow(section.payload)
        self.graph = GraphDef.FromString(self.content.graph_def)

    def bodies(self) -> list[Any]:
        """The nodes of the graph, and those of each function."""
        return [self.graph.node, *(f.node_def for f in self.graph.library.function)]

    def node(self, fits: Callable[[Any], bool]) -> Any:
        """A random node that fits, or None."""
        found = [node for body in self.bodies() for node in body if fits(node)]
        return self.choose.choice(found) if found else None

    def finish(self, **changes: Any) -> Compiled:
        """The section after the edit."""
        content = self.content._replace(
            graph_def=self.graph.SerializeToString(deterministic=True), **changes
        )
        return dataclasses.replace(self.section, payload=write_tensorflow(content))


Edit = Callable[[Draft], "Compiled | None"]


def _data(node: Any) -> list[int]:
    return [i for i, edge in enumerate(node.input) if not edge.startswith("^")]


def swap_inputs(draft: Draft) -> Compiled | None:
    """Two different inputs of a node change places."""
    node = draft.node(lambda n: len({n.input[i] for i in _data(n)}) > 1)
    if node is None:
        return None
    first, second = draft.choose.sample(_data(node), 2)
    node.input[first], node.input[second] = node.input[second], node.input[first]
    return draft.finish()


def other_input(draft: Draft) -> Compiled | None:
    """An input of a node comes from somewhere else."""
    body = draft.choose.choice(draft.bodies())
    nodes = [node for node in body if _data(node)]
    edges = [node.input[i] for node in nodes for i in _data(node)]
    edges += [node.name for node in body] if body is draft.graph.node else []
    if not nodes:
        return None
    node = draft.choose.choice(nodes)
    node.input[draft.choose.choice(_data(node))] = draft.choose.choice(edges)
    return draft.finish()


def other_operation(draft: Draft) -> Compiled | None:
    """A node has another operation."""
    node = draft.node(lambda n: n.op in OPERATIONS)
    if node is None:
        return None
    node.op = OPERATIONS[node.op]
    return draft.finish()


def other_constant(draft: Draft) -> Compiled | None:
    """One bit of a constant is flipped."""
    node = draft.node(lambda n: n.op == "Const")
    if node is None:
        return None
    tensor = node.attr["value"].tensor
    if tensor.tensor_content:
        content = bytearray(tensor.tensor_content)
        place = draft.choose.randrange(8 * len(content))
        content[place // 8] ^= 1 << place % 8
        tensor.tensor_content = bytes(content)
    elif tensor.int_val:
        tensor.int_val[draft.choose.randrange(len(tensor.int_val))] ^= 1
    elif tensor.int64_val:
        tensor.int64_val[draft.choose.randrange(len(tensor.int64_val))] ^= 1
    elif tensor.float_val:
        tensor.float_val[draft.choose.randrange(len(tensor.float_val))] += 0.5
    elif tensor.string_val:
        tensor.string_val[draft.choose.randrange(len(tensor.string_val))] += b"x"
    elif tensor.bool_val:
        tensor.bool_val[0] = not tensor.bool_val[0]
    else:
        return None
    return draft.finish()


def other_attribute(draft: Draft) -> Compiled | None:
    """An attribute has another value."""
    node = draft.node(lambda n: n.op not in ("Const", "Placeholder") and bool(n.attr))
    if node is None:
        return None
    name = draft.choose.choice(sorted(node.attr))
    value = node.attr[name]
    match value.WhichOneof("value"):
        case "b":
            value.b = not value.b
        case "i":
            value.i += draft.choose.choice([-1, 1])
        case "f":
            value.f += 1
        case "s":
            value.s += b"x"
        case "type":
            value.type = draft.choose.choice([t for t in (1, 2, 3, 9) if t != value.type])
        case "shape":
            value.shape.dim.add().size = 2
        case "list" if len(value.list.type):
            value.list.type[0] = 2 if value.list.type[0] == 1 else 1
        case "list" if len(value.list.i):
            value.list.i[0] += 1
        case _:
            return None
    return draft.finish()


def no_attribute(draft: Draft) -> Compiled | None:
    """An attribute is removed."""
    node = draft.node(lambda n: bool(n.attr) and n.op != "Placeholder")
    if node is None:
        return None
    del node.attr[draft.choose.choice(sorted(node.attr))]
    return draft.finish()


def no_control(draft: Draft) -> Compiled | None:
    """A node no longer waits for another."""
    node = draft.node(lambda n: any(edge.startswith("^") for edge in n.input))
    if node is None:
        return None
    node.input.remove(draft.choose.choice([e for e in node.input if e.startswith("^")]))
    return draft.finish()


def other_port(draft: Draft) -> Compiled | None:
    """An input is another output of its node."""
    node = draft.node(lambda n: any(":" in edge for edge in n.input))
    if node is None:
        return None
    place = draft.choose.choice([i for i, edge in enumerate(node.input) if ":" in edge])
    name, _, port = node.input[place].rpartition(":")
    node.input[place] = f"{name}:{int(port) + 1}" if port == "0" else f"{name}:0"
    return draft.finish()


def no_initialization(draft: Draft) -> Compiled | None:
    """Nothing is initialized."""
    return draft.finish(initialize_op="") if draft.content.initialize_op else None


def less_initialization(draft: Draft) -> Compiled | None:
    """Only some state is initialized."""
    name = draft.content.initialize_op
    node = next((n for n in draft.graph.node if n.name == name and len(n.input)), None)
    if node is None:
        return None
    return draft.finish(initialize_op=draft.choose.choice(list(node.input)).removeprefix("^"))


def shared_state(draft: Draft) -> Compiled | None:
    """All variables, or all tables, become one."""
    nodes = [node for node in draft.graph.node if "shared_name" in node.attr]
    if len(nodes) < 2:
        return None
    for node in nodes:
        node.attr["shared_name"].s = b"one"
    return draft.finish()


def other_function(draft: Draft) -> Compiled | None:
    """A node calls another function."""
    names = [function.signature.name for function in draft.graph.library.function]
    node = draft.node(lambda n: any(a.func.name in names for a in n.attr.values()))
    if node is None or len(names) < 2:
        return None
    called = next(a.func for a in node.attr.values() if a.func.name in names)
    called.name = draft.choose.choice([name for name in names if name != called.name])
    return draft.finish()


def other_return(draft: Draft) -> Compiled | None:
    """A function returns something else."""
    functions = [f for f in draft.graph.library.function if len(f.ret)]
    if not functions:
        return None
    function = draft.choose.choice(functions)
    edges = [*function.ret.values(), *(a.name for a in function.signature.input_arg)]
    function.ret[draft.choose.choice(sorted(function.ret))] = draft.choose.choice(edges)
    return draft.finish()


def _leaves(binding: Any) -> Iterator[TensorBinding]:
    stack = [binding]
    while stack:
        each = stack.pop()
        if isinstance(each, StructBinding):
            stack.extend(reversed(each.elements))
        elif isinstance(each, TensorBinding):
            yield each


def _rebound(binding: Any, new: Mapping[Any, Any]) -> Any:
    if isinstance(binding, StructBinding):
        return StructBinding(tuple(_rebound(each, new) for each in binding.elements))
    return (
        TensorBinding(new.get(binding.tensor, binding.tensor))
        if isinstance(binding, TensorBinding)
        else binding
    )


def _swapped(draft: Draft, which: str) -> Compiled | None:
    binding = getattr(draft.content, which)
    names = [] if binding is None else sorted({leaf.tensor for leaf in _leaves(binding)})
    if len(names) < 2:
        return None
    first, second = draft.choose.sample(names, 2)
    return draft.finish(**{which: _rebound(binding, {first: second, second: first})})


def swap_results(draft: Draft) -> Compiled | None:
    """Two results change places."""
    return _swapped(draft, "result")


def swap_parameters(draft: Draft) -> Compiled | None:
    """Two tensors of the parameter change places."""
    return _swapped(draft, "parameter")


def one_result_twice(draft: Draft) -> Compiled | None:
    """One result replaces another."""
    names = sorted({leaf.tensor for leaf in _leaves(draft.content.result)}, key=str)
    if len(names) < 2:
        return None
    first, second = draft.choose.sample(names, 2)
    return draft.finish(result=_rebound(draft.content.result, {first: second}))


def copied_node(draft: Draft) -> Compiled | None:
    """One reader of a node reads a copy of it."""
    body = draft.choose.choice(draft.bodies())
    readers = [(n, i) for n in body for i in _data(n)]
    if not readers:
        return None
    node, place = draft.choose.choice(readers)
    name, colon, port = node.input[place].partition(":")
    origin = next((each for each in body if each.name == name), None)
    if origin is None or origin.op == "Placeholder":
        return None
    copy = body.add()
    copy.CopyFrom(origin)
    copy.name = f"{name}_copy"
    node.input[place] = f"{copy.name}{colon}{port}"
    return draft.finish()


def renamed_node(draft: Draft) -> Compiled | None:
    """A node outside the parameter is renamed, which matters only to state found by name."""
    node = draft.node(lambda n: any(each.name == n.name for each in draft.graph.node))
    bound = {str(leaf.tensor).partition(":")[0] for leaf in _leaves(draft.content.result)}
    if draft.content.parameter is not None:
        bound |= {str(leaf.tensor).partition(":")[0] for leaf in _leaves(draft.content.parameter)}
    if node is None or node.name in bound or node.name == draft.content.initialize_op:
        return None
    old, new = node.name, f"{node.name}_renamed"
    for each in draft.graph.node:
        each.name = new if each.name == old else each.name
        edges = []
        for edge in each.input:
            mark = "^" if edge.startswith("^") else ""
            name, colon, port = edge.removeprefix("^").partition(":")
            edges.append(f"{mark}{new if name == old else name}{colon}{port}")
        each.input[:] = edges
    return draft.finish()


EDITS: tuple[Edit, ...] = (
    swap_inputs,
    other_input,
    other_operation,
    other_constant,
    other_attribute,
    no_attribute,
    no_control,
    other_port,
    no_initialization,
    less_initialization,
    shared_state,
    other_function,
    other_return,
    swap_results,
    swap_parameters,
    one_result_twice,
    copied_node,
    renamed_node,
)


def edited(
    components: Mapping[str, Node], edit: Edit | ProgramEdit, choose: random.Random
) -> tuple[str, dict[str, Node]] | None:
    """The components after one edit of one of them, and which; None if it cannot be made."""
    name = choose.choice(list(components))
    part = components[name]
    if edit in PROGRAM_EDITS:
        made = edited_program(part, cast(ProgramEdit, edit), choose)
    else:
        made = _with_edited_section(part, cast(Edit, edit), choose)
    return None if made is None else (name, {**components, name: made})


def _with_edited_section(part: Node, edit: Edit, choose: random.Random) -> Node | None:
    sections = [n for n in walk(part) if isinstance(n, Compiled) and n.kind == "tensorflow"]
    if not sections:
        return None
    section = choose.choice(sections)
    made = edit(Draft(section, choose))
    if made is None or made.payload == section.payload:
        return None
    return rewrite(part, lambda node: made if node == section else None)
