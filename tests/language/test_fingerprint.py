"""Fingerprints of compiled sections: what moves them and what does not."""

from __future__ import annotations

import pathlib
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.graphs.proto import messages as proto
from tffc.language import Compiled, DType, FunctionType, SequenceType, StructType, TensorType
from tffc.language.fingerprint import fingerprint
from tffc.language.wire import (
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    XlaSection,
    write_tensorflow,
    write_xla,
)

INT = TensorType(DType.INT32)
PAIR = StructType([INT, INT])
INT_NUMBER = proto.DataType.DT_INT32
Graph = Any


def add(nodes: Any, name: str, op: str, *inputs: str, **attributes: Any) -> Any:
    """Adds a node; attributes are types, integers, text, booleans or messages."""
    node = nodes.add(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        attribute = node.attr[key]
        if isinstance(value, bool):
            attribute.b = value
        elif isinstance(value, int):
            attribute.i = value
        elif isinstance(value, str):
            attribute.s = value.encode()
        else:
            attribute.CopyFrom(value)
    return node


def of_type(number: int = INT_NUMBER) -> Any:
    return proto.AttrValue(type=number)


def constant(nodes: Any, name: str, value: int) -> None:
    tensor = proto.TensorProto(dtype=INT_NUMBER, int_val=[value])
    add(nodes, name, "Const", dtype=of_type(), value=proto.AttrValue(tensor=tensor))


def calls(name: str) -> Any:
    return proto.AttrValue(func=proto.NameAttrList(name=name))


def example() -> Graph:
    """x, y -> (double(x) - (y + 3), table lookups), with a variable set up before."""
    graph = proto.GraphDef()
    graph.versions.producer = 1575
    add(graph.node, "session_token_tensor", "Placeholder", dtype=of_type(7))
    add(graph.node, "x", "Placeholder", dtype=of_type())
    add(graph.node, "y", "Placeholder", dtype=of_type())
    constant(graph.node, "three", 3)
    add(graph.node, "sum", "AddV2", "y", "three", T=of_type())
    call = add(graph.node, "twice", "PartitionedCall", "x", f=calls("__inference_double_12"))
    call.attr["Tin"].list.type.append(INT_NUMBER)
    call.attr["Tout"].list.type.extend([INT_NUMBER, INT_NUMBER])
    add(graph.node, "left", "VarHandleOp", shared_name="left_7", dtype=of_type())
    add(graph.node, "right", "VarHandleOp", shared_name="right_7", dtype=of_type())
    add(graph.node, "set_left", "AssignVariableOp", "left", "three")
    add(graph.node, "set_right", "AssignVariableOp", "right", "three")
    add(graph.node, "read", "ReadVariableOp", "left", "^set_left", "^set_right")
    add(graph.node, "other", "ReadVariableOp", "right", "^read")
    add(graph.node, "difference", "Sub", "twice:0", "sum", T=of_type())
    add(graph.node, "init", "NoOp", "^set_left", "^set_right")
    function = graph.library.function.add()
    function.signature.name = "__inference_double_12"
    function.signature.input_arg.add(name="v", type=INT_NUMBER)
    function.signature.output_arg.add(name="identity", type=INT_NUMBER)
    function.signature.output_arg.add(name="other", type=INT_NUMBER)
    add(function.node_def, "double", "AddV2", "v", "v", T=of_type())
    noted = add(function.node_def, "noted", "Print", "double:z:0", "double:z:0")
    noted.attr["U"].list.type.append(INT_NUMBER)
    add(function.node_def, "result", "Identity", "double:z:0", "^noted", T=of_type())
    function.ret["identity"] = "result:output:0"
    function.ret["other"] = "v"
    return graph


RESULTS = ("difference:0", "read:0", "other:0")


def section(
    graph: Graph,
    results: tuple[str, ...] = RESULTS,
    parameters: tuple[str, ...] = ("x:0", "y:0"),
    init: str = "init",
    token: str = "session_token_tensor:0",
) -> Compiled:
    bindings = StructBinding(tuple(map(TensorBinding, parameters)))
    result = StructBinding(tuple(map(TensorBinding, results)))
    content = TensorFlowSection(
        graph.SerializeToString(deterministic=True), bindings, result, init, token
    )
    type_ = FunctionType(StructType([INT] * len(parameters)), StructType([INT] * len(results)))
    return Compiled("tensorflow", write_tensorflow(content), type_)


def renamed(graph: Graph, rename: Callable[[str], str]) -> Graph:
    """The graph with other names of nodes, functions, arguments and resources."""
    made = proto.GraphDef.FromString(graph.SerializeToString())
    names = {node.name for node in made.node}

    def of_input(text: str, known: set[str]) -> str:
        mark, bare = ("^", text[1:]) if text.startswith("^") else ("", text)
        head, colon, port = bare.partition(":")
        return mark + (rename(head) if head in known else head) + colon + port

    def rename_nodes(nodes: Any, known: set[str]) -> None:
        for node in nodes:
            node.name = rename(node.name)
            node.input[:] = [of_input(text, known) for text in node.input]
            if "f" in node.attr:
                node.attr["f"].func.name = rename(node.attr["f"].func.name)
            if "shared_name" in node.attr:
                node.attr["shared_name"].s = rename(node.attr["shared_name"].s.decode()).encode()

    rename_nodes(made.node, names)
    for function in made.library.function:
        function.signature.name = rename(function.signature.name)
        inner = {node.name for node in function.node_def}
        inner |= {argument.name for argument in function.signature.input_arg}
        rename_nodes(function.node_def, inner)
        for argument in function.signature.input_arg:
            argument.name = rename(argument.name)
        for key in list(function.ret):
            function.ret[key] = of_input(function.ret[key], inner)
    return made


def rename(name: str) -> str:
    return f"n{name[::-1]}"


def rename_tensor(name: str) -> str:
    return rename(name.removesuffix(":0")) + ":0"


def shuffled(graph: Graph, seed: int) -> Graph:
    made = proto.GraphDef.FromString(graph.SerializeToString())
    generator = random.Random(seed)
    for holder, name in [(made, "node"), *((f, "node_def") for f in made.library.function)]:
        nodes = list(getattr(holder, name))
        generator.shuffle(nodes)
        holder.ClearField(name)
        for node in nodes:
            controls = [text for text in node.input if text.startswith("^")]
            generator.shuffle(controls)
            node.input[:] = [text for text in node.input if not text.startswith("^")] + controls
        getattr(holder, name).extend(nodes)
    return made


@pytest.mark.parametrize("seed", range(10))
def test_order_of_nodes_and_of_control_inputs_does_not_matter(seed: int) -> None:
    assert fingerprint(section(shuffled(example(), seed))) == fingerprint(section(example()))


@pytest.mark.parametrize("seed", range(5))
def test_names_do_not_matter(seed: int) -> None:
    other = shuffled(renamed(example(), rename), seed)
    named = section(
        other,
        tuple(map(rename_tensor, RESULTS)),
        tuple(map(rename_tensor, ("x:0", "y:0"))),
        rename("init"),
        rename_tensor("session_token_tensor:0"),
    )
    assert named.payload != section(example()).payload
    assert fingerprint(named) == fingerprint(section(example()))


def unused_node(graph: Graph) -> None:
    constant(graph.node, "unused", 9)


def other_version(graph: Graph) -> None:
    graph.versions.producer = 2345


def device_hints(graph: Graph) -> None:
    for node in graph.node:
        node.attr["_class"].list.s.append(b"loc:@x")
        if node.op == "PartitionedCall":
            node.attr["config_proto"].s = b"abc"
            node.attr["executor_type"].s = b""
    graph.library.function[0].attr["_noinline"].b = True


def new_attribute(graph: Graph) -> None:
    node_of(graph, "sum").attr["a_later_version_knows_this"].b = False


def other_encoding(graph: Graph) -> None:
    tensor = node_of(graph, "three").attr["value"].tensor
    tensor.ClearField("int_val")
    tensor.tensor_content = struct.pack("<i", 3)


def node_of(graph: Graph, name: str) -> Any:
    return next(node for node in graph.node if node.name == name)


@pytest.mark.parametrize(
    "change", [unused_node, other_version, device_hints, new_attribute, other_encoding]
)
def test_what_does_not_matter(change: Callable[[Graph], None]) -> None:
    graph = example()
    change(graph)
    assert section(graph).payload != section(example()).payload
    assert fingerprint(section(graph)) == fingerprint(section(example()))


def changed_constant(graph: Graph) -> None:
    node_of(graph, "three").attr["value"].tensor.int_val[0] = 4


def swapped_inputs(graph: Graph) -> None:
    node_of(graph, "difference").input[:] = ["sum", "twice:0"]


def other_output(graph: Graph) -> None:
    node_of(graph, "difference").input[0] = "twice:1"


def dropped_control_edge(graph: Graph) -> None:
    del node_of(graph, "other").input[-1]


def other_operation(graph: Graph) -> None:
    node_of(graph, "sum").op = "Mul"


def other_attribute(graph: Graph) -> None:
    node_of(graph, "sum").attr["T"].type = proto.DataType.DT_INT64


def other_variable(graph: Graph) -> None:
    node_of(graph, "set_right").input[0] = "left"


def one_variable(graph: Graph) -> None:
    node_of(graph, "right").attr["shared_name"].s = b"left_7"


def other_function(graph: Graph) -> None:
    graph.library.function[0].node_def[0].op = "Mul"


def silent_function(graph: Graph) -> None:
    del graph.library.function[0].node_def[2].input[-1]
    del graph.library.function[0].node_def[1]


@pytest.mark.parametrize(
    "change",
    [
        changed_constant,
        swapped_inputs,
        other_output,
        dropped_control_edge,
        other_operation,
        other_attribute,
        other_variable,
        one_variable,
        other_function,
        silent_function,
    ],
)
def test_what_matters(change: Callable[[Graph], None]) -> None:
    graph = example()
    change(graph)
    assert fingerprint(section(graph)) != fingerprint(section(example()))


def with_a_draw(graph: Graph) -> Graph:
    """The graph, whose function draws with a seed."""
    add(graph.library.function[0].node_def, "draw", "RandomUniform", "v", seed=3)
    return graph


def not_inlined(graph: Graph) -> None:
    graph.library.function[0].attr["_noinline"].b = True


def not_lowered(graph: Graph) -> None:
    call_of(graph).attr["_lower_using_switch_merge"].b = True


def instantiated_otherwise(graph: Graph) -> None:
    call_of(graph).attr["executor_type"].s = b"SINGLE_THREADED_EXECUTOR"


def call_of(graph: Graph) -> Any:
    return next(node for node in graph.node if node.op == "PartitionedCall")


@pytest.mark.parametrize("change", [not_inlined, not_lowered, instantiated_otherwise])
def test_which_kernels_calls_share_matters_where_kernels_keep_state(
    change: Callable[[Graph], None],
) -> None:
    known = fingerprint(section(with_a_draw(example())))
    changed = with_a_draw(example())
    change(changed)
    assert fingerprint(section(changed)) != known


def test_what_says_nothing_about_calls_does_not_matter_there() -> None:
    known = fingerprint(section(with_a_draw(example())))
    changed = with_a_draw(example())
    for node in changed.node:
        node.attr["_class"].list.s.append(b"loc:@x")
        node.attr["_output_shapes"].list.shape.add()
    assert fingerprint(section(changed)) == known


def test_bindings_matter() -> None:
    graph = example()
    known = fingerprint(section(graph))
    assert fingerprint(section(graph, parameters=("y:0", "x:0"))) != known
    assert fingerprint(section(graph, results=("read:0", "difference:0", "other:0"))) != known
    assert fingerprint(section(graph, init="")) != known
    assert fingerprint(section(graph, token="")) == known


def test_one_draw_used_twice_differs_from_two_draws() -> None:
    once, twice = proto.GraphDef(), proto.GraphDef()
    for graph, names in ((once, ["a"]), (twice, ["a", "b"])):
        constant(graph.node, "shape", 1)
        for name in names:
            add(graph.node, name, "RandomUniform", "shape", seed=0, T=of_type())
    shared = section(once, ("a:0", "a:0"), (), "")
    apart = section(twice, ("a:0", "b:0"), (), "")
    assert fingerprint(shared) != fingerprint(apart)
    assert fingerprint(section(twice, ("b:0", "a:0"), (), "")) == fingerprint(apart)


def test_type_and_structure_matter() -> None:
    graph = proto.GraphDef()
    add(graph.node, "x", "Placeholder", dtype=of_type(21))

    def bound(type_: Any, binding: Any) -> str:
        content = TensorFlowSection(graph.SerializeToString(), binding, binding)
        payload = write_tensorflow(content)
        return fingerprint(Compiled("tensorflow", payload, FunctionType(type_, type_)))

    tensor, stream = TensorBinding("x:0"), SequenceBinding("x:0")
    assert bound(INT, tensor) != bound(TensorType(DType.INT64), tensor)
    assert bound(SequenceType(INT), stream) != bound(SequenceType(INT), tensor)
    one = StructBinding((tensor, StructBinding((tensor, tensor))))
    two = StructBinding((StructBinding((tensor, tensor)), tensor))
    assert bound(PAIR, one) != bound(PAIR, two)


def tensor_section(**fields: Any) -> str:
    graph = proto.GraphDef()
    dims = [proto.TensorShapeProto.Dim(size=size) for size in fields.pop("shape")]
    shape = proto.TensorShapeProto(dim=dims)
    tensor = proto.TensorProto(tensor_shape=shape, **fields)
    add(graph.node, "c", "Const", value=proto.AttrValue(tensor=tensor))
    return fingerprint(section(graph, ("c:0",), (), ""))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"dtype": 3, "shape": [4], "int_val": [1, 2]},
            {"dtype": 3, "shape": [4], "tensor_content": struct.pack("<4i", 1, 2, 2, 2)},
        ),
        (
            {"dtype": 3, "shape": [5]},
            {"dtype": 3, "shape": [5], "tensor_content": bytes(20)},
        ),
        (
            {"dtype": 19, "shape": [2], "half_val": [15360]},
            {"dtype": 19, "shape": [2], "tensor_content": struct.pack("<2e", 1, 1)},
        ),
        (
            {"dtype": 8, "shape": [3], "scomplex_val": [1, 2]},
            {"dtype": 8, "shape": [3], "tensor_content": struct.pack("<6f", 1, 2, 1, 2, 1, 2)},
        ),
        (
            {"dtype": 7, "shape": [3], "string_val": [b"a"]},
            {"dtype": 7, "shape": [3], "string_val": [b"a", b"a", b"a"]},
        ),
        ({"dtype": 10, "shape": [0]}, {"dtype": 10, "shape": [0], "bool_val": [True]}),
    ],
)
def test_constants_are_compared_by_their_elements(one: dict, other: dict) -> None:
    assert tensor_section(**one) == tensor_section(**other)


def test_other_elements_or_shape_matter() -> None:
    known = tensor_section(dtype=9, shape=[3], int64_val=[1, 2])
    assert tensor_section(dtype=9, shape=[3], int64_val=[1, 2, 1]) != known
    assert tensor_section(dtype=9, shape=[3, 1], int64_val=[1, 2]) != known
    assert tensor_section(dtype=9, shape=[3], int64_val=[1, 3]) != known
    assert tensor_section(dtype=23, shape=[3], uint64_val=[1, 2]) != known


def test_cycle_of_a_loop_is_followed_once() -> None:
    def loop(step: int) -> str:
        graph = proto.GraphDef()
        constant(graph.node, "zero", 0)
        constant(graph.node, "step", step)
        add(graph.node, "enter", "Enter", "zero", T=of_type())
        add(graph.node, "merge", "Merge", "enter", "next", T=of_type())
        add(graph.node, "add", "AddV2", "merge", "step", T=of_type())
        add(graph.node, "next", "NextIteration", "add", T=of_type())
        return fingerprint(section(graph, ("merge:0",), (), ""))

    assert loop(1) == loop(1) != loop(2)


def test_long_chain_is_followed() -> None:
    graph = proto.GraphDef()
    add(graph.node, "n0", "Placeholder")
    for index in range(1, 20_000):
        add(graph.node, f"n{index}", "Identity", f"n{index - 1}")
    chain = section(graph, ("n19999:0",), ("n0:0",), "")
    assert len(fingerprint(chain)) == 64


def test_functions_that_call_each_other_are_followed() -> None:
    graph = proto.GraphDef()
    add(graph.node, "start", "PartitionedCall", f=calls("even"))
    for name, other in (("even", "odd"), ("odd", "even")):
        function = graph.library.function.add()
        function.signature.name = name
        function.signature.output_arg.add(name="r")
        add(function.node_def, "call", "PartitionedCall", f=calls(other))
        function.ret["r"] = "call:output:0"
    assert len(fingerprint(section(graph, ("start:0",), (), ""))) == 64


def test_graph_that_cannot_be_read_is_known_by_its_bytes() -> None:
    def of(content: bytes) -> str:
        binding = TensorBinding("x:0")
        payload = write_tensorflow(TensorFlowSection(content, None, binding))
        return fingerprint(Compiled("tensorflow", payload, FunctionType(None, INT)))

    assert of(b"\xff") == of(b"\xff") != of(b"\xfe")


def test_missing_nodes_are_known_by_their_names() -> None:
    graph = proto.GraphDef()
    add(graph.node, "a", "Identity", "missing")
    one = section(graph, ("a:0",), (), "")
    graph.node[0].input[0] = "absent"
    assert fingerprint(one) != fingerprint(section(graph, ("a:0",), (), ""))


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def hlo_section(module: bytes, result: int = 0) -> str:
    payload = write_xla(XlaSection(module, TensorBinding(0), TensorBinding(result)))
    return fingerprint(Compiled("xla", payload, FunctionType(INT, INT)))


def test_xla_module_without_its_number_and_the_places_in_the_source() -> None:
    def module(opcode: bytes, line: bytes, number: int) -> bytes:
        instruction = field(2, opcode) + field(7, line)
        frames = b"\xca\x01" + bytes([len(line)]) + line
        return (
            field(3, field(1, b"main") + field(2, instruction)) + bytes([5 << 3, number]) + frames
        )

    known = hlo_section(module(b"add", b"file.py:1", 1))
    assert hlo_section(module(b"add", b"file.py:2", 7)) == known
    assert hlo_section(module(b"multiply", b"file.py:1", 1)) != known
    assert hlo_section(module(b"add", b"file.py:1", 1), result=1) != known
    assert hlo_section(b"\xff") != hlo_section(b"\xfe")


ALONE = """
from tests.language.test_fingerprint import example, section
from tffc.language.fingerprint import fingerprint
print(fingerprint(section(example())))
"""


def test_fingerprint_is_the_same_in_every_process() -> None:
    root = str(pathlib.Path(__file__).parents[2])
    known = "e1705a20cea09dee255e0dc1ee1394efeabf1ce4176353cd14ea9faa5d22a7ee"
    assert fingerprint(section(example())) == known
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": root}
        command = [sys.executable, "-c", ALONE]
        made = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        assert made.stdout.strip() == known
