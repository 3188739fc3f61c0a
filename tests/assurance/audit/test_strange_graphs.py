"""The analysis of graphs that nobody traces ends, grows in step with them, and misses nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.test_growth import check_growth, counted
from tffc.assurance.audit.flow import Flow
from tffc.assurance.audit.sections import TABLE, SectionWalk
from tffc.graphs.operations.effects import read_table
from tffc.graphs.proto import GraphDef
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, StructType, TensorType
from tffc.language.wire import StructBinding, TensorBinding, TensorFlowSection, write_tensorflow
from tffc.support.errors import GraphError

FLOAT, STRING, RESOURCE = 1, 7, 20
SECRET = 1
SIZES = (32, 64, 128)
"""More than the passes after which the analysis joins what it keeps apart."""


def add(nodes: Any, name: str, op: str, *inputs: str, **attributes: Any) -> str:
    """Add a node; attributes are N, types, texts, lists of types, or the names of functions."""
    node = nodes.add(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        match value:
            case int() if key == "N":
                node.attr[key].i = value
            case int():
                node.attr[key].type = value
            case bytes():
                node.attr[key].s = value
            case list():
                node.attr[key].list.type.extend(value)
            case _:
                node.attr[key].func.name = value
    return name


def add_function(graph: Any, name: str, parameters: list[str], result: str = "o") -> Any:
    function = graph.library.function.add()
    function.signature.name = name
    for parameter in parameters:
        function.signature.input_arg.add(name=parameter, type=FLOAT)
    function.signature.output_arg.add(name=result, type=FLOAT)
    return function


def graph_with_secret() -> Any:
    graph = GraphDef()
    add(graph.node, "x", "Placeholder", dtype=FLOAT)
    return graph


def sources(graph: Any, result: str = "out") -> int:
    """Return the sources of a tensor of a graph whose node `x` is the secret."""
    scalar = TensorType(DType.FLOAT32)
    struct = StructType([("x", scalar)])
    content = TensorFlowSection(
        graph.SerializeToString(deterministic=True),
        StructBinding((TensorBinding("x:0"),)),
        TensorBinding(f"{result}:0" if ":" not in result else result),
        "",
        "",
    )
    section = Compiled("tensorflow", write_tensorflow(content), FunctionType(struct, scalar))
    return SectionWalk(section, lambda _: 0).results([Flow(SECRET)])[0].total()


# Few inputs.


@pytest.mark.parametrize("inputs", [0, 1, 2])
def test_each_operation_with_few_inputs(inputs: int) -> None:
    refused = 0
    for op in read_table(TABLE):
        graph = graph_with_secret()
        add(graph.node, "node", op, *["x"] * inputs)
        add(graph.node, "out", "Unheard", "node", "x")
        try:
            assert sources(graph) == SECRET, op
        except GraphError:
            refused += 1
    assert 100 < refused < len(read_table(TABLE))


def test_a_function_gets_more_than_it_takes() -> None:
    graph = graph_with_secret()
    add_function(graph, "f", ["a"]).ret["o"] = "a"
    add(graph.node, "zero", "Const", dtype=FLOAT)
    add(graph.node, "out", "PartitionedCall", "zero", "x", f="f", Tin=[FLOAT] * 2, Tout=[FLOAT])
    assert sources(graph) == SECRET


# Growth.


def variables(size: int) -> Any:
    """Each variable is read into the next before it is written."""
    graph = graph_with_secret()
    before: tuple[str, ...] = ()
    for place in range(size + 1):
        add(graph.node, f"v{place}", "VarHandleOp", shared_name=b"v%d" % place, dtype=FLOAT)
    for place in reversed(range(size)):
        add(graph.node, f"r{place}", "ReadVariableOp", f"v{place}", *before, dtype=FLOAT)
        add(graph.node, f"a{place}", "AssignVariableOp", f"v{place + 1}", f"r{place}")
        before = (f"^a{place}",)
    add(graph.node, "first", "AssignVariableOp", "v0", "x", *before)
    add(graph.node, "out", "ReadVariableOp", f"v{size}", "^first", dtype=FLOAT)
    return graph


def calls(size: int) -> Any:
    """Each function calls the next twice."""
    graph = graph_with_secret()
    for place in range(size):
        function = add_function(graph, f"f{place}", ["a"])
        if place + 1 == size:
            add(function.node_def, "n", "Neg", "a", T=FLOAT)
            function.ret["o"] = "n:y:0"
            continue
        options: dict[str, Any] = {"f": f"f{place + 1}", "Tin": [FLOAT], "Tout": [FLOAT]}
        add(function.node_def, "c", "StatefulPartitionedCall", "a", **options)
        add(function.node_def, "d", "StatefulPartitionedCall", "c:output:0", **options)
        function.ret["o"] = "d:output:0"
    add(graph.node, "out", "StatefulPartitionedCall", "x", f="f0", Tin=[FLOAT], Tout=[FLOAT])
    return graph


def shifts(size: int) -> Any:
    """Each value of a loop is the one before it."""
    graph = graph_with_secret()
    names = [f"a{place}" for place in range(size)]
    condition, body = add_function(graph, "cond", names), add_function(graph, "body", names, "o0")
    condition.ret["o"] = "a0"
    for place in range(size):
        if place:
            body.signature.output_arg.add(name=f"o{place}", type=FLOAT)
        add(body.node_def, f"n{place}", "Neg", names[max(place - 1, 0)], T=FLOAT)
        body.ret[f"o{place}"] = f"n{place}:y:0"
    add(graph.node, "zero", "Const", dtype=FLOAT)
    add(
        graph.node,
        "loop",
        "While",
        "x",
        *["zero"] * (size - 1),
        T=[FLOAT] * size,
        cond="cond",
        body="body",
    )
    add(graph.node, "out", "Identity", f"loop:{size - 1}", T=FLOAT)
    return graph


def merges(size: int) -> Any:
    """Each merge of a loop of TensorFlow 1 takes what comes after it."""
    graph = graph_with_secret()
    add(graph.node, "zero", "Const", dtype=FLOAT)
    for place in range(size):
        add(graph.node, f"m{place}", "Merge", "zero", f"n{place}", T=FLOAT, N=2)
        add(graph.node, f"n{place}", "NextIteration", f"m{place + 1}", T=FLOAT)
    add(graph.node, f"m{size}", "Merge", "x", "m0", T=FLOAT, N=2)
    add(graph.node, "out", "Identity", "m0", T=FLOAT)
    return graph


def files(size: int) -> Any:
    """Each file has the name that is in the file before, and its text is kept in a variable."""
    graph = graph_with_secret()
    text = add(graph.node, "t", "AsString", "x", T=FLOAT)
    for place in range(size):
        text = add(graph.node, f"f{place}", "ReadFile", text)
        add(graph.node, f"v{place}", "VarHandleOp", shared_name=b"v%d" % place, dtype=STRING)
        add(graph.node, f"a{place}", "AssignVariableOp", f"v{place}", text)
    waited = [f"^a{place}" for place in range(size)]
    add(graph.node, "out", "StringToNumber", text, *waited, out_type=FLOAT)
    return graph


def handles(size: int) -> Any:
    """All handles go through operations that TensorFlow does not have."""
    graph = graph_with_secret()
    variables = [
        add(graph.node, f"v{place}", "VarHandleOp", shared_name=b"v%d" % place, dtype=FLOAT)
        for place in range(size)
    ]
    add(graph.node, "a", "AssignVariableOp", "v0", "x")
    handle = add(graph.node, "p", "Pack", *variables, T=RESOURCE, N=size)
    for place in range(size):
        handle = add(graph.node, f"u{place}", "Identity" if place % 2 else "Unheard", handle)
    add(graph.node, "out", "ReadVariableOp", handle, "^a", dtype=FLOAT)
    return graph


@pytest.mark.slow
@pytest.mark.parametrize("shape", [variables, calls, shifts, merges, files, handles])
def test_work_grows_in_step(shape: Callable[[int], Any]) -> None:
    graphs = [shape(size) for size in SIZES]
    assert [sources(graph) for graph in graphs] == [SECRET] * len(SIZES)
    check_growth([counted(lambda graph=graph: sources(graph)) for graph in graphs])
