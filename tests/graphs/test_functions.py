"""Function libraries of linked graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.linking.sections import graph_of, link, run, section_of, struct, tf, trace
from tffc.graphs import proto
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import SequenceType, TensorType
from tffc.support.errors import GraphError

INT = TensorType(DType.INT32)
PAIR = struct(INT, INT)
ADD = 3


def functions(section: Compiled) -> dict[str, Any]:
    return {f.signature.name: f for f in graph_of(section).library.function}


def calling(bodies: Mapping[str, str], call: str, *, op: str = "PartitionedCall") -> Any:
    """A GraphDef that calls one of its functions on the placeholder `x`, result `y`.

    A body is the number that the function adds, or the name of a function that it calls.
    """
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = ADD
    _call(graph.node.add(name="y", input=["x"]), call, op)
    for name, body in bodies.items():
        function = _function(graph, name)
        if body in bodies:
            _call(function.node_def.add(name="call", input=["a"]), body, op)
            function.ret["r"] = "call:output:0" if op == "PartitionedCall" else "call:r:0"
            continue
        number = function.node_def.add(name="number", op="Const")
        number.attr["dtype"].type = ADD
        number.attr["value"].tensor.dtype = ADD
        number.attr["value"].tensor.tensor_shape.SetInParent()
        number.attr["value"].tensor.int_val.append(int(body))
        node = function.node_def.add(name="add", op="AddV2", input=["a", "number:output:0"])
        node.attr["T"].type = ADD
        function.ret["r"] = "add:z:0"
    return graph


def _function(graph: Any, name: str) -> Any:
    """Add an empty function of a graph, from `a` to `r`."""
    function = graph.library.function.add()
    function.signature.name = name
    function.signature.input_arg.add(name="a", type=ADD)
    function.signature.output_arg.add(name="r", type=ADD)
    return function


def _call(node: Any, function: str, op: str) -> None:
    if op != "PartitionedCall":
        node.op = function
        return
    node.op = op
    node.attr["f"].func.name = function
    node.attr["Tin"].list.type.append(ADD)
    node.attr["Tout"].list.type.append(ADD)


def section(graph: Any) -> Compiled:
    return section_of(graph, INT, ["x:0"], INT, ["y:0"])


def test_equal_functions_under_different_names_are_one() -> None:
    first, second = (section(calling({name: "1"}, name)) for name in ("f", "g"))
    linked = link(INT, INT, lambda b, p: b.call(first, b.call(second, p)))
    assert len(functions(linked)) == 1
    assert run(linked, 5) == 7


def test_different_functions_under_one_name_do_not_clash() -> None:
    first, second = (section(calling({"f": number}, "f")) for number in ("1", "10"))
    linked = link(INT, INT, lambda b, p: b.call(first, b.call(second, p)))
    assert len(functions(linked)) == 2
    assert run(linked, 5) == 16


def test_functions_that_call_functions() -> None:
    """The callers are equal but for what the functions that they call mean."""
    first = section(calling({"f": "g", "g": "1"}, "f"))
    second = section(calling({"f": "g", "g": "10"}, "f"))
    linked = link(INT, INT, lambda b, p: b.call(first, b.call(second, p)))
    assert len(functions(linked)) == 4
    assert run(linked, 5) == 16


def test_functions_called_as_operations() -> None:
    first = section(calling({"f": "g", "g": "1"}, "f", op="direct"))
    second = section(calling({"f": "g", "g": "10"}, "f", op="direct"))
    linked = link(INT, INT, lambda b, p: b.call(first, b.call(second, p)))
    assert run(linked, 5) == 16


def test_functions_that_nothing_calls_are_left_out() -> None:
    linked = link(
        INT, INT, lambda b, p: b.call(section(calling({"f": "1", "unused": "2"}, "f")), p)
    )
    assert len(functions(linked)) == 1


def test_functions_are_named_by_what_they_are() -> None:
    """The name of a function, and so of all that call it, is the same wherever it comes from."""
    names = {
        tuple(functions(link(INT, INT, lambda b, p, g=graph: b.call(section(g), p))))
        for graph in (
            calling({"f": "g", "g": "1"}, "f"),
            calling({"g": "1", "f": "g"}, "f"),
            calling({"one": "two", "two": "1"}, "one"),
        )
    }
    assert len(names) == 1


@pytest.mark.parametrize("bodies", [{"f": "f"}, {"f": "g", "g": "f"}, {"f": "1", "g": "g"}])
def test_functions_that_call_themselves(bodies: Mapping[str, str]) -> None:
    """TensorFlow would end the process, or run these for ever."""
    with pytest.raises(GraphError, match=r"its function '.' calls itself") as caught:
        link(INT, INT, lambda b, p: b.call(section(calling(bodies, "f")), p))
    assert caught.value.code == "E331"


def test_gradients_come_along() -> None:
    graph = calling({"f": "1", "gradient": "2"}, "f")
    graph.library.gradient.add(function_name="f", gradient_func="gradient")
    plain = section(calling({"f": "1"}, "f"))
    linked = link(INT, PAIR, lambda b, p: (b.call(section(graph), p), b.call(plain, p)))
    library = graph_of(linked).library
    assert len(library.function) == 3, "with another gradient it is another function"
    (gradient,) = library.gradient
    assert gradient.function_name in functions(linked)
    assert gradient.gradient_func in functions(linked)
    assert run(linked, 5) == (6, 6)


def test_functions_named_in_the_attributes_of_functions() -> None:
    graph = calling({"f": "1", "g": "2"}, "f")
    graph.node[1].attr["f"].func.attr["inner"].list.func.add(name="g")
    linked = link(INT, INT, lambda b, p: b.call(section(graph), p))
    (call,) = [node for node in graph_of(linked).node if node.op == "PartitionedCall"]
    assert call.attr["f"].func.attr["inner"].list.func[0].name in functions(linked)
    assert len(functions(linked)) == 2


def test_alternatives_to_functions_are_not_offered() -> None:
    graph = calling({"f": "1", "backward": "2"}, "f")
    attributes = graph.library.function[0].attr
    attributes["api_implements"].s = b"lstm"
    attributes["backward_function_name"].s = b"backward"
    attributes["_other"].s = b"kept"
    linked = link(INT, INT, lambda b, p: b.call(section(graph), p))
    ((_, function),) = functions(linked).items()
    assert sorted(function.attr) == ["_other"]
    assert run(linked, 5) == 6


def test_traced_functions() -> None:
    @tf.function
    def inner(x: Any) -> Any:
        return x * 2 if tf.executing_eagerly() else x * 3

    @tf.function
    def outer(x: Any) -> Any:
        return inner(x) + inner(x + 1)

    traced = trace(outer, INT, INT)
    again = trace(outer, INT, INT)
    linked = link(INT, PAIR, lambda b, p: (b.call(traced, p), b.call(again, p)))
    assert run(linked, 5) == (33, 33)
    assert len(functions(linked)) == 2


def test_gradients_through_functions() -> None:
    @tf.function
    def cube(x: Any) -> Any:
        return x * x * x

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cube(x)
        return tape.gradient(y, x)

    real = TensorType(DType.FLOAT32)
    section = trace(slope, real, real)
    linked = link(real, real, lambda b, p: b.call(section, b.call(section, p)))
    assert run(linked, 2.0) == 432


def test_functions_of_datasets() -> None:
    ints = SequenceType(INT)

    def count(dataset: Any, x: Any) -> Any:
        return dataset.map(lambda e: e * x).batch(2).reduce(0, lambda a, e: a + tf.reduce_sum(e))

    section = trace(count, struct(ints, INT), INT)
    linked = link(struct(ints, INT), INT, lambda b, p: b.call(section, (p[0], b.call(section, p))))
    assert run(linked, (lambda: tf.data.Dataset.range(4, output_type=tf.int32), 2)) == 72


@pytest.mark.parametrize("count", [1, 300])
def test_deep_chains_of_functions(count: int) -> None:
    bodies = {f"f{i}": f"f{i + 1}" for i in range(count)} | {f"f{count}": "1"}
    linked = link(INT, INT, lambda b, p: b.call(section(calling(bodies, "f0")), p))
    assert len(functions(linked)) == count + 1


def drawing(bodies: Mapping[str, str], calls: list[str]) -> Any:
    """A GraphDef that adds up calls of its functions, each of which draws or calls another.

    A body is the seed of the draw, or the name of a function that it calls.
    """
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = ADD
    for index, call in enumerate(calls):
        _call(graph.node.add(name=f"call_{index}", input=["x"]), call, "PartitionedCall")
    total = graph.node.add(name="y", op="AddN", input=[f"call_{i}" for i in range(len(calls))])
    total.attr["T"].type = ADD
    total.attr["N"].i = len(calls)
    for name, body in bodies.items():
        function = _function(graph, name)
        if body in bodies:
            _call(function.node_def.add(name="call", input=["a"]), body, "PartitionedCall")
            function.ret["r"] = "call:output:0"
            continue
        node = function.node_def.add(name="draw", op="RandomUniformInt", input=["a", "a", "a"])
        node.attr["seed"].i = int(body)
        function.ret["r"] = "draw:output:0"
    return graph


def called(linked: Compiled) -> list[str]:
    """The functions that a graph's nodes call, in order."""
    calls = [node for node in graph_of(linked).node if node.op == "PartitionedCall"]
    return [node.attr["f"].func.name for node in calls]


def pattern(names: list[str]) -> str:
    """Which of some names are equal, as letters."""
    return "".join("abcdefgh"[list(dict.fromkeys(names)).index(name)] for name in names)


@pytest.mark.parametrize(
    ("bodies", "calls", "expected"),
    [
        ({"f": "1"}, "f f", "aa"),
        ({"f": "1", "g": "1"}, "f g f", "aba"),
        ({"f": "h", "g": "h", "h": "1"}, "f g f", "aba"),
        ({"f": "h", "g": "i", "h": "1", "i": "1"}, "f g", "ab"),
        ({"f": "0", "g": "0"}, "f g f", "aaa"),
    ],
)
def test_functions_whose_kernels_keep_state_are_what_they_were(
    bodies: Mapping[str, str], calls: str, expected: str
) -> None:
    """One stays one, and two stay two, but for draws without a seed."""
    graph = drawing(bodies, calls.split())
    assert pattern(called(link(INT, INT, lambda b, p: b.call(section(graph), p)))) == expected


def test_calls_of_a_section_share_no_kernels_that_keep_state() -> None:
    one, other = (section(drawing({"f": "h", "h": "1"}, ["f", "f"])) for _ in range(2))
    linked = link(INT, INT, lambda b, p: b.call(one, b.call(other, b.call(one, p))))
    assert pattern(called(linked)) == "aabbcc"
    assert len(functions(linked)) == 6
    again = link(INT, INT, lambda b, p: b.call(linked, b.call(linked, p)))
    assert pattern(called(again)) == "aabbccddeeff"
    unseeded = section(drawing({"f": "h", "h": "0"}, ["f", "f"]))
    assert len(functions(link(INT, INT, lambda b, p: b.call(unseeded, b.call(unseeded, p))))) == 2


def test_state_in_one_of_two_functions_keeps_both_apart() -> None:
    """The callers of a function whose kernels keep state are copied with it."""
    graph = drawing({"f": "g", "g": "1"}, ["f", "g"])
    linked = link(INT, INT, lambda b, p: b.call(section(graph), p))
    names = {f.signature.name: f for f in graph_of(linked).library.function}
    f, g = called(linked)
    assert names[f].node_def[0].attr["f"].func.name == g


def test_unknown_operations_count_as_keeping_state() -> None:
    graph = drawing({"f": "1", "g": "1"}, ["f", "g"])
    for function in graph.library.function:
        function.node_def[0].op = "NoSuchOperation"
    assert pattern(called(link(INT, INT, lambda b, p: b.call(section(graph), p)))) == "ab"


def test_names_of_functions_with_state_do_not_depend_on_their_old_names() -> None:
    bodies = ({"f": "h", "h": "1"}, {"z": "a", "a": "1"})
    names = [
        tuple(functions(link(INT, INT, lambda b, p, g=graph: b.call(section(g), p))))
        for graph in (drawing(each, [next(iter(each))]) for each in bodies)
    ]
    assert names[0] == names[1]


def test_calls_that_share_kernels_with_a_needed_one_are_needed() -> None:
    """What the second of two calls draws depends on the first, though no edge says so."""
    graph = drawing({"f": "1", "g": "1"}, ["f", "g", "f"])
    results = [f"call_{index}:0" for index in range(3)]
    every = section_of(graph, INT, ["x:0"], struct(INT, INT, INT), results)
    for index, calls in ((1, ["call_1"]), (2, ["call_0", "call_2"])):
        linked = link(INT, INT, lambda b, p, at=index: b.call(every, p)[at])
        nodes = {node.name: node for node in graph_of(linked).node}
        assert sorted(name for name in nodes if "call" in name) == [f"c1/{each}" for each in calls]
        waits = [edge for edge in nodes["Identity"].input if edge.startswith("^")]
        assert waits == [f"^c1/{each}" for each in calls[:-1]]
