"""Graphs that TensorFlow would not load are refused where they are read."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import text_format

from tffc.graphs import proto
from tffc.graphs.reading import check_graph, read_graph
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import GraphError

X = "node { name: 'x' op: 'Placeholder' }"


def graph(text: str) -> Any:
    """Return the graph of a text, in which `x` is a placeholder."""
    return text_format.Merge(f"{X} {text}", proto.GraphDef())


def node(name: str, op: str, *inputs: str, more: str = "") -> str:
    edges = " ".join(f"input: '{edge}'" for edge in inputs)
    return f"node {{ name: '{name}' op: '{op}' {edges} {more} }}"


def attribute(name: str, value: str) -> str:
    return f"attr {{ key: '{name}' value {{ {value} }} }}"


def types(name: str, count: int) -> str:
    return attribute(name, f"list {{ {'type: DT_INT32 ' * count}}}")


def function(name: str, *nodes: str, result: str, more: str = "") -> str:
    """Return a function with the argument `a`."""
    body = " ".join(each.replace("node {", "node_def {", 1) for each in nodes)
    argument = "input_arg { name: 'a' type: DT_INT32 }"
    output = "output_arg { name: 'r' type: DT_INT32 }"
    signature = f"signature {{ name: '{name}' {argument} {output} }}"
    ret = f"ret {{ key: 'r' value: '{result}' }}"
    return f"library {{ function {{ {signature} {body} {ret} {more} }} }}"


def names(attribute_name: str, called: str) -> str:
    return attribute(attribute_name, f"func {{ name: '{called}' }}")


def call(name: str, called: str, *inputs: str) -> str:
    more = types("Tin", len(inputs)) + types("Tout", 1) + names("f", called)
    return node(name, "PartitionedCall", *inputs, more=more)


def merge(name: str, *inputs: str) -> str:
    return node(name, "Merge", *inputs, more=attribute("N", f"i: {len(inputs)}"))


CIRCLES = {
    "an identity of itself": node("y", "Identity", "y"),
    "two identities": node("y", "Identity", "z") + node("z", "Identity", "y"),
    "control edges": node("y", "NoOp", "^z") + node("z", "NoOp", "^y"),
    "a merge alone": merge("y", "x", "z") + node("z", "Identity", "y"),
    "an iteration that goes elsewhere": node("y", "Identity", "z")
    + node("z", "NextIteration", "y"),
    "in a function": function(
        "f",
        node("y", "Identity", "z:output:0"),
        node("z", "Identity", "y:output:0"),
        result="y:output:0",
    ),
    "in a function, by a control edge": function("f", node("y", "Identity", "a", "^y"), result="a"),
    "in an operation that nobody knows": node("y", "Vendor>New", "y"),
}


@pytest.mark.parametrize("text", CIRCLES.values(), ids=CIRCLES)
def test_nodes_that_depend_on_themselves(text: str) -> None:
    with pytest.raises(GraphError, match=r"node '[yz]' depends on itself") as caught:
        check_graph(graph(text))
    assert caught.value.code == "E331"


def test_the_node_that_is_named_is_in_the_circle() -> None:
    behind = node("a", "Identity", "z") + node("z", "Identity", "z")
    with pytest.raises(GraphError, match="node 'z' depends on itself"):
        check_graph(graph(behind))


NESTED = "func { name: 'g' attr { key: 'h' value { func { name: 'f' } } } }"
"""Names g, whose attribute h names f."""

RECURSION = {
    "itself": function("f", call("c", "f", "a"), result="c:output:0"),
    "each other": function("f", call("c", "g", "a"), result="c:output:0")
    + function("g", call("c", "f", "a"), result="c:output:0"),
    "as an operation": function("f", node("c", "f", "a"), result="c:r:0"),
    "as a branch": function(
        "f",
        node("c", "If", "a", "a", more=types("Tin", 1) + types("Tout", 1) + names("then", "f")),
        result="c:output:0",
    ),
    "in an attribute of a call": function(
        "f", node("c", "MapDataset", "a", more=attribute("f", NESTED)), result="c:handle:0"
    )
    + function("g", result="a"),
}


@pytest.mark.parametrize("text", RECURSION.values(), ids=RECURSION)
def test_functions_that_call_themselves(text: str) -> None:
    with pytest.raises(GraphError, match=r"its function '[fg]' calls itself"):
        check_graph(graph(text))


def test_a_gradient_may_call_its_function() -> None:
    text = function("f", result="a") + function("g", call("c", "f", "a"), result="c:output:0")
    check_graph(graph(text + "library { gradient { function_name: 'f' gradient_func: 'g' } }"))


COUNTS = {
    "none": (node("y", "Identity"), "0 inputs, and Identity takes 1"),
    "a control edge is none": (node("y", "Identity", "^x"), "0 inputs, and Identity takes 1"),
    "too many": (node("y", "NoOp", "x"), "1 inputs, and NoOp takes 0"),
    "a switch": (node("y", "Switch", "x"), "1 inputs, and Switch takes 2"),
    "a list of types": (node("y", "Case", "x", more=types("Tin", 2)), "1 inputs, and Case takes 3"),
    "a number": (node("y", "AddN", "x", more=attribute("N", "i: 2")), "1 inputs, and AddN takes 2"),
    "a negative number": (node("y", "AddN", "x", more=attribute("N", "i: -1")), "AddN takes 0"),
    "a number that is not there": (node("y", "AddN", "x"), "1 inputs, and AddN takes 0"),
    "a function": (function("f", result="a") + node("y", "f"), "0 inputs, and f takes 1"),
    "in a function": (function("f", node("y", "Neg"), result="a"), "0 inputs, and Neg takes 1"),
}


@pytest.mark.parametrize(("text", "message"), COUNTS.values(), ids=COUNTS)
def test_numbers_of_inputs(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        check_graph(graph(text))
    assert caught.value.code == "E331"


MISSING = {
    "a node": node("y", "Identity", "z"),
    "a node to wait for": node("y", "NoOp", "^z"),
    "an output": node("y", "Identity", "x:1"),
    "a port that is no number": node("y", "Identity", "x:one"),
    "an output of a function": function("f", result="a")
    + node("y", "f", "x")
    + node("z", "Neg", "y:1"),
    "no name": node("y", "Identity", ""),
    "an argument": function("f", node("y", "Neg", "b"), result="a"),
    "an output in a function": function(
        "f", node("y", "Neg", "a"), node("z", "Neg", "y:0"), result="a"
    ),
    "a place of an output": function("f", node("y", "Neg", "a"), result="y:y:1"),
    "the output of a name": function("f", node("y", "Neg", "a"), result="y:z:0"),
    "a result": function("f", result="gone"),
    "a node of the graph": node("y", "Neg", "x") + function("f", result="y"),
    "a node that ran": function(
        "f",
        result="a",
        more="signature { control_output: 'c' } control_ret { key: 'c' value: 'a' }",
    ),
}


@pytest.mark.parametrize("text", MISSING.values(), ids=MISSING)
def test_edges_from_nowhere(text: str) -> None:
    with pytest.raises(GraphError, match="which the graph does not have") as caught:
        check_graph(graph(text))
    assert caught.value.code == "E331"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (node("x", "NoOp"), "E331"),
        (function("f", node("y", "NoOp"), node("y", "NoOp"), result="a"), "E331"),
        (function("f", node("a", "NoOp"), result="a"), "E331"),
        (function("f", result="a") + function("f", result="a"), "E331"),
    ],
)
def test_names_that_are_there_twice(text: str, code: str) -> None:
    with pytest.raises(GraphError) as caught:
        check_graph(graph(text))
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["", "y:0", "^y", ":"])
def test_names_that_edges_cannot_have(name: str) -> None:
    argument = "signature { name: 'f' input_arg { name: '%s' type: DT_INT32 } }"
    for text in (
        node(name, "NoOp"),
        function("f", node(name, "NoOp"), result="a"),
        function(name, result="a"),
        f"library {{ function {{ {argument.replace('%s', name)} }} }}",
    ):
        with pytest.raises(GraphError, match="cannot be a name") as caught:
            check_graph(graph(text))
        assert caught.value.code == "E331"


def test_a_node_that_claims_to_have_many_outputs() -> None:
    many = node("y", "Unpack", "x", more=attribute("num", f"i: {2**62}"))
    with pytest.raises(GraphError, match="more than 4194304 outputs"):
        check_graph(graph(many))


def test_numbers_that_the_caller_of_a_function_gives() -> None:
    inner = node("y", "AddN", "a", more=attribute("N", "placeholder: 'n'"))
    check_graph(graph(function("f", inner, result="y:sum:0")))


def test_a_graph_is_checked_each_time_it_is_read() -> None:
    content = graph(node("y", "Neg")).SerializeToString()
    for _ in range(2):
        with pytest.raises(GraphError):
            read_graph(content)


def test_loops_and_functions_of_tensorflow_are_well_formed() -> None:
    tf: Any = load_tensorflow()
    with tf.Graph().as_default() as traced:
        x = tf.compat.v1.placeholder(tf.int32, [], name="x")

        @tf.function(autograph=False)
        def count(n: Any) -> Any:
            return tf.while_loop(lambda i: i < n, lambda i: i + tf.split([n], 1)[0][0], [0])

        tf.compat.v1.disable_control_flow_v2()
        try:
            old = tf.compat.v1.while_loop(lambda i: i < x, lambda i: i + 1, [0])
        finally:
            tf.compat.v1.enable_control_flow_v2()
        tf.cond(old > 1, lambda: count(x)[0], lambda: old)
        count(old)
    written = traced.as_graph_def()
    assert {"NextIteration", "Merge"} <= {each.op for each in written.node}
    assert written.library.function
    read_graph(written.SerializeToString())
