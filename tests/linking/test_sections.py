"""Malformed sections are refused, each with words of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hostile.graphs import add, add_function
from tests.linking.sections import link, struct
from tffc.assurance.audit.sections import SectionWalk
from tffc.graphs import proto
from tffc.graphs.operations.effects import OVERWRITING
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, TensorType, Type
from tffc.language.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    write_tensorflow,
)
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import leaf_types
from tffc.runtime.frameworks.tensorflow.graph_content import UnreadableGraph, read_graph
from tffc.support.errors import GraphError, WireError

INT = TensorType(DType.INT32)
FLOAT = TensorType(DType.FLOAT32)
INTS = SequenceType(INT)
PAIR = struct(INT, INT)
INT_TO_INT = FunctionType(INT, INT)
X = TensorBinding("x:0")
Y = TensorBinding("y:0")


def identity() -> Any:
    """A graph with the placeholder `x` and the result `y`."""
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 3
    graph.node.add(name="y", op="Identity", input=["x"]).attr["T"].type = 3
    return graph


def section(
    graph: Any = None,
    parameter: SectionBinding | None = X,
    result: SectionBinding = Y,
    kind: FunctionType = INT_TO_INT,
    **names: Any,
) -> Compiled:
    encoded = identity().SerializeToString() if graph is None else graph
    if not isinstance(encoded, bytes):
        encoded = encoded.SerializeToString()
    content = TensorFlowSection(encoded, parameter, result, **names)
    return Compiled("tensorflow", write_tensorflow(content), kind)


def refusal(section: Compiled) -> GraphError:
    builder = GraphBuilder()
    assert isinstance(section.type, FunctionType)
    parameter = section.type.parameter
    argument = None if parameter is None else builder.parameter(parameter)
    with pytest.raises(GraphError) as caught:
        builder.call(section, argument)
    return caught.value


def test_a_well_formed_section_is_not_refused() -> None:
    link(INT, INT, lambda b, p: b.call(section(), p))


def test_errors_are_value_errors_and_name_the_section() -> None:
    error = refusal(section(b"\xff"))
    assert isinstance(error, ValueError)
    assert error.notes == ("in a compiled section of type `(int32 -> int32)`",)


def test_an_xla_section() -> None:
    error = refusal(Compiled("xla", b"", FunctionType(INT, INT)))
    assert error.code == "E304"
    assert error.message == "a TensorFlow graph was expected, not an XLA module"


def test_a_malformed_message() -> None:
    builder = GraphBuilder()
    with pytest.raises(WireError):
        builder.call(
            Compiled("tensorflow", b"\xff", FunctionType(INT, INT)), builder.parameter(INT)
        )


def test_a_malformed_graph() -> None:
    error = refusal(section(b"garbage"))
    assert error.code == "E331"
    assert error.message == "the graph's 7 bytes are not serialized GraphDef"


def test_two_nodes_of_one_name() -> None:
    graph = identity()
    graph.node.add(name="x", op="Const")
    error = refusal(section(graph))
    assert error.code == "E331"
    assert error.message == "the graph has two nodes named 'x'"


@pytest.mark.parametrize(
    ("parameter", "kind", "message"),
    [
        (None, FunctionType(INT, INT), "no parameter is bound, which the type has"),
        (
            TensorBinding("x:0"),
            FunctionType(None, INT),
            "a parameter is bound, which the type does not have",
        ),
    ],
)
def test_a_parameter_bound_or_not(
    parameter: SectionBinding | None, kind: FunctionType, message: str
) -> None:
    error = refusal(section(parameter=parameter, kind=kind))
    assert error.code == "E301"
    assert error.message == message


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (TensorBinding("y:0"), PAIR, "the result binds the tensor 'y:0' for a `<int32,int32>`"),
        (
            StructBinding((TensorBinding("y:0"),)),
            PAIR,
            "the result binds a struct of 1 for a `<int32,int32>`",
        ),
        (TensorBinding("y:0"), INTS, "the result binds the tensor 'y:0' for a `int32*`"),
        (SequenceBinding("y:0"), INT, "the result binds the sequence 'y:0' for a `int32`"),
    ],
)
def test_bindings_that_do_not_match_the_type(
    result: SectionBinding, kind: Type, message: str
) -> None:
    error = refusal(section(result=result, kind=FunctionType(INT, kind)))
    assert error.code == "E301"
    assert error.message == message


@pytest.mark.parametrize("name", ["no_such_tensor:0", "y:1", "y:zero", "y:-1", "^y", "y:0:0"])
def test_tensors_that_are_not_there(name: str) -> None:
    error = refusal(section(result=TensorBinding(name)))
    assert error.code == "E301"
    assert (
        error.message == f"the result is bound to {name!r}, a tensor that the graph does not have"
    )


def test_a_session_token_that_is_not_there() -> None:
    error = refusal(section(session_token_tensor_name="token:0"))
    assert error.code == "E301"
    assert (
        error.message
        == "the session token is bound to 'token:0', a tensor that the graph does not have"
    )


@pytest.mark.parametrize("kind", [FunctionType(FLOAT, INT), FunctionType(INT, FLOAT)])
def test_tensors_of_another_type(kind: FunctionType) -> None:
    error = refusal(section(kind=kind))
    assert error.code == "E301"
    role, name = ("parameter", "x:0") if kind.parameter == FLOAT else ("result", "y:0")
    assert error.message == (
        f"the {role} is bound to {name!r}, a tensor of type 3 in TensorFlow's numbering, for a "
        "`float32`, which has 1"
    )


def test_a_tensor_for_a_sequence() -> None:
    error = refusal(section(result=SequenceBinding("y:0"), kind=FunctionType(INT, INTS)))
    assert error.code == "E301"
    assert error.message.endswith("for a `int32*`, which has 21")


def test_a_tensor_that_is_bound_twice() -> None:
    twice = StructBinding((TensorBinding("x:0"), TensorBinding("x")))
    error = refusal(section(parameter=twice, kind=FunctionType(PAIR, INT)))
    assert error.code == "E301"
    assert error.message == "the parameter binds the tensor 'x' twice"


def test_initialization_that_is_not_there() -> None:
    error = refusal(section(initialize_op="init"))
    assert error.code == "E301"
    assert error.message == "the graph does not have the node 'init', which is to initialize it"


@pytest.mark.parametrize(
    "edge",
    [
        "gone",
        "gone:1",
        "^gone",
        "",
        "x:out",
        "x:",
        "x:-1",
        "x:\N{SUPERSCRIPT TWO}",
        "x:" + "9" * 5000,
    ],
)
def test_inputs_that_are_not_there(edge: str) -> None:
    graph = identity()
    graph.node[1].input[:] = [edge]
    error = refusal(section(graph))
    assert error.code == "E331"
    assert error.message == f"node 'y' has the input {edge!r}, which the graph does not have"


def test_functions_that_are_not_there() -> None:
    graph = identity()
    graph.node[1].op = "PartitionedCall"
    graph.node[1].attr["f"].func.name = "gone"
    graph.node[1].attr["Tin"].list.type.append(3)
    graph.node[1].attr["Tout"].list.type.append(3)
    error = refusal(section(graph))
    assert error.code == "E331"
    assert (
        error.message == "node 'y' calls a function 'gone', which the graph's library does not have"
    )


@pytest.mark.parametrize(
    ("argument", "code", "message"),
    [
        ("pair", "E301", "the argument has a struct of 2 where a `int32` is expected"),
        ("float", "E301", "the argument has a `float32` where a `int32` is expected"),
        ("sequence", "E301", "the argument has a `int32*` where a `int32` is expected"),
        (None, "E301", "the argument has a struct of 0 where a `int32` is expected"),
    ],
)
def test_arguments_that_do_not_fit(argument: str | None, code: str, message: str) -> None:
    builder = GraphBuilder()
    given: Any = builder.parameter(struct(("pair", PAIR), ("float", FLOAT), ("sequence", INTS)))
    places = {"pair": given[0], "float": given[1], "sequence": given[2], None: None}
    with pytest.raises(GraphError) as caught:
        builder.call(section(), places[argument])
    assert caught.value.code == code
    assert caught.value.message == message
    assert caught.value.notes == ("the whole is of type `int32`",)


def test_results_that_do_not_fit() -> None:
    builder = GraphBuilder()
    parameter = builder.parameter(INT)
    with pytest.raises(GraphError) as caught:
        builder.finish((parameter, parameter), struct(INT, PAIR))
    assert caught.value.code == "E301"
    assert caught.value.message == "the result has a `int32` where a `<int32,int32>` is expected"
    assert caught.value.notes == ("the whole is of type `<int32,<int32,int32>>`",)


def test_types_that_no_graph_holds() -> None:
    with pytest.raises(GraphError) as caught:
        leaf_types(struct(INT, FunctionType(INT, INT)))
    assert caught.value.code == "E300"
    assert caught.value.message == (
        "a TensorFlow graph cannot hold a value of type `(int32 -> int32)`"
    )
    assert caught.value.notes == ("it is part of `<int32,(int32 -> int32)>`",)


def test_fields_of_later_versions_are_kept() -> None:
    graph = identity()
    later = b"\x3a\x02\x08\x7b"  # the field 7, of which our description does not tell
    graph.node[1].MergeFromString(later)
    linked = link(INT, INT, lambda b, p: b.call(section(graph), p))
    assert later in linked.payload


@pytest.mark.parametrize("op", sorted(OVERWRITING))
@pytest.mark.parametrize("in_function", [False, True])
def test_a_graph_that_writes_over_tensors(op: str, in_function: bool) -> None:
    """What else shares the memory changes too, so nobody can say what the graph passes on."""
    graph = identity()
    nodes = add_function(graph, "f") if in_function else graph.node
    add(nodes, "over", op)
    error = refusal(section(graph))
    assert (error.code, error.message) == ("E330", f"the graph writes over a tensor, by {op}")
    with pytest.raises(UnreadableGraph, match=f"it writes over a tensor .*, by {op}"):
        read_graph(section(graph))
    with pytest.raises(GraphError, match="writes over a tensor"):
        SectionWalk(section(graph), lambda draw: 0)
