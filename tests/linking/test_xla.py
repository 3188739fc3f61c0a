"""XLA sections as TensorFlow sections.  What is linked is not run here, so none of it needs JAX."""

from __future__ import annotations

import pytest

from tests.graphs.operations.artifacts import artifact
from tffc.graphs.proto.encoding import content_field, string_field
from tffc.language.dtypes import DType
from tffc.language.fingerprint import fingerprint
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, StructType, TensorType, Type
from tffc.language.wire import SectionBinding, StructBinding, TensorBinding, XlaSection, write_xla
from tffc.linking.builder import GraphBuilder
from tffc.linking.inspect import inspect, is_pure
from tffc.linking.section import read_section
from tffc.linking.xla import tensorflow_section
from tffc.support.errors import ExecutionError, FormError, GraphError, TffcError

INT = TensorType(DType.INT32)
VECTOR = TensorType(DType.FLOAT32, (2,))
PAIR = StructType([("x", INT), ("y", VECTOR)])
MODULE = artifact("func_v1", "add_v1", "return_v1")


def bound(*places: int) -> StructBinding:
    return StructBinding(tuple(map(TensorBinding, places)))


def section(
    stablehlo: bytes,
    parameter: Type | None = PAIR,
    result: Type = PAIR,
    given: SectionBinding | None = bound(0, 1),  # noqa: B008  # bindings are frozen
    made: SectionBinding = bound(0, 1),  # noqa: B008  # bindings are frozen
    calls: str = "",
) -> Compiled:
    instruction = string_field(2, "custom-call") + string_field(28, calls) if calls else b""
    module = content_field(3, content_field(2, instruction)) if calls else b""
    payload = write_xla(XlaSection(module, given, made, stablehlo))
    return Compiled("xla", payload, FunctionType(parameter, result))


def test_the_node() -> None:
    linked = tensorflow_section(section(MODULE, given=bound(1, 0), made=bound(1, 0)))
    assert linked.kind == "tensorflow"
    assert linked.type == FunctionType(PAIR, PAIR)
    content = read_section(linked)
    (node,) = [node for node in content.graph.node if node.op == "XlaCallModule"]
    assert [content.parameter.index(name) for name in node.input] == [1, 0]
    assert sorted(node.attr) == [
        "Sout", "Tin", "Tout", "disabled_checks", "module", "platforms", "version",
    ]  # fmt: skip
    assert list(node.attr["Tin"].list.type) == [1, 3]
    assert list(node.attr["Tout"].list.type) == [1, 3]
    shapes = node.attr["Sout"].list.shape
    assert [[dim.size for dim in shape.dim] for shape in shapes] == [[2], []]
    assert node.attr["module"].s == MODULE
    assert list(node.attr["platforms"].list.s) == [b"CPU"]
    assert list(node.attr["disabled_checks"].list.s) == [b"platform"]
    assert node.attr["version"].i == 9
    results = [content.nodes[name].input[0] for name in content.result]
    assert results == [f"{node.name}:1", node.name]


def test_the_node_only_computes() -> None:
    node = tensorflow_section(section(MODULE))
    assert inspect(node).operations == {"Identity": 2, "XlaCallModule": 1}
    assert is_pure(node)


def test_a_section_without_results_is_no_node() -> None:
    empty = StructType([])
    linked = tensorflow_section(section(MODULE, result=empty, made=bound()))
    assert [node.op for node in read_section(linked).graph.node] == ["Placeholder", "Placeholder"]


def test_a_section_without_a_parameter() -> None:
    linked = tensorflow_section(section(MODULE, parameter=None, given=None))
    assert [node.op for node in read_section(linked).graph.node] == [
        "XlaCallModule", "Identity", "Identity",
    ]  # fmt: skip


def test_two_calls_in_one_graph() -> None:
    linked = tensorflow_section(section(MODULE))
    builder = GraphBuilder()
    once = builder.call(linked, builder.parameter(PAIR))
    graph = read_section(builder.finish(builder.call(linked, once), PAIR)).graph
    calls = [node.name for node in graph.node if node.op == "XlaCallModule"]
    assert calls == ["c1/XlaCallModule", "c2/XlaCallModule"]


def test_a_tensorflow_section_is_itself() -> None:
    linked = tensorflow_section(section(MODULE))
    assert tensorflow_section(linked) is linked


REFUSED: dict[str, tuple[Compiled, type[TffcError], str]] = {
    "HLO alone": (
        section(b""),
        FormError,
        "an XLA computation of type `(<x=int32,y=float32[2]> -> <x=int32,y=float32[2]>)` cannot be "
        "part of a TensorFlow graph [E521]\n"
        "  note: it has HLO alone, and graphs hold StableHLO, which tffc adds when it traces\n"
        "  help: trace the program with this tffc, or write this computation with "
        "tff.tensorflow.computation",
    ),
    "a function of JAX's": (
        section(
            artifact("custom_call_v1", "lapack_ffi"), INT, INT, bound(), bound(), calls="lapack_ffi"
        ),
        GraphError,
        "an XLA computation of type `(int32 -> int32)` does more than XLA alone can [E325]\n"
        "  note: it needs lapack_ffi\n"
        "  help: decompositions of matrices and approximate maxima are functions of JAX's own "
        "libraries, which TensorFlow does not have; do without them, or write this "
        "computation with tff.tensorflow.computation",
    ),
    "an operation that is not known": (
        section(artifact("new_v1"), INT, INT),
        GraphError,
        "an XLA computation of type `(int32 -> int32)` does more than XLA alone can [E325]\n"
        "  note: it needs vhlo.new\n"
        "  help: decompositions of matrices and approximate maxima are functions of JAX's own "
        "libraries, which TensorFlow does not have; do without them, or write this "
        "computation with tff.tensorflow.computation",
    ),
    "no artifact": (
        section(b"module {}", INT, INT),
        GraphError,
        "the StableHLO of an XLA computation of type `(int32 -> int32)` cannot be read [E331]\n"
        "  help: trace the program again with this tffc",
    ),
    "a tensor that is not bound": (
        section(MODULE, given=bound(0, 2)),
        ExecutionError,
        "an XLA section is bound otherwise than its type `<x=int32,y=float32[2]>` says [E721]",
    ),
    "a tensor that is bound twice": (
        section(MODULE, made=bound(1, 1)),
        ExecutionError,
        "an XLA section is bound otherwise than its type `<x=int32,y=float32[2]>` says [E721]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    refused, kind, text = REFUSED[case]
    with pytest.raises(kind) as caught:
        tensorflow_section(refused)
    assert str(caught.value) == text


def test_the_fingerprint_tells_what_is_linked() -> None:
    sections = [section(b""), section(MODULE), section(artifact("subtract_v1"))]
    assert len(set(map(fingerprint, sections))) == 3
