"""Serialized computations: the bytes of each message, reading them back, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.graphs.proto import messages as proto
from tests.language import generation
from tests.language.messages import array_message, node_message, type_message
from tffc.graphs.proto.encoding import Place, joined
from tffc.graphs.proto.messages import message_content
from tffc.language import (
    CLIENTS,
    SERVER,
    AbstractType,
    Array,
    Binding,
    Block,
    Call,
    Compiled,
    Data,
    DType,
    FederatedType,
    FunctionType,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    PlacementType,
    Reference,
    Selection,
    SequenceType,
    StructNode,
    StructType,
    TensorType,
    Type,
    at_clients,
    at_server,
    to_array,
)
from tffc.language.wire import (
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    XlaSection,
    from_bytes,
    read_tensorflow,
    read_xla,
    to_bytes,
    type_from_bytes,
    type_to_bytes,
    write_tensorflow,
    write_xla,
)
from tffc.language.wire.arrays import ARRAY, array_fields, read_array
from tffc.support.errors import WireError

INT, FLOAT = TensorType(DType.INT32), TensorType(DType.FLOAT32)
PAIR = StructType([INT, INT])
X, Y = Reference("x", INT), Reference("y", INT)
F = Reference("f", FunctionType(INT, INT))


def bfloat16(value: float) -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16(value)


ARRAYS = [
    (to_array(1), "0803120032030a0101"),
    (to_array(0), "0803120032030a0100"),
    (to_array(-1), "08031200320c0a0affffffffffffffffff01"),
    (to_array(True), "080a12001a030a0101"),
    (to_array(np.float16(1.5)), "0813120062040a02807c"),
    (to_array(bfloat16(1.5)), "080e12009a01040a02c07f"),
    (to_array(np.float32(1)), "080112006a060a040000803f"),
    (to_array(np.complex64(1 + 2j)), "080812007a0a0a080000803f00000040"),
    (to_array(np.uint64(2**64 - 1)), "081712005a0c0a0affffffffffffffffff01"),
    (to_array("ab"), "080712008a01040a026162"),
    (to_array(b"a\0"), "080712008a01040a026100"),
    (to_array(np.array([[1, 2], [3, 4]], np.int32)), "080312040a02020232060a0401020304"),
    (to_array(np.zeros((0, 3), np.int32)), "080312040a0200033200"),
    (to_array(np.array(["a", "bc"])), "080712030a01028a01070a01610a026263"),
    (to_array(np.array([-1, 300], np.int16)), "080512030a01022a0e0a0cffffffffffffffffff01ac02"),
    (to_array(np.array([2.0])), "080212030a0101720a0a080000000000000040"),
]  # fmt: skip

TYPES = [
    (INT, "22020803"),
    (TensorType(DType.INT32, (2, None)), "220f0803120b02ffffffffffffffffff01"),
    (TensorType(DType.INT32, None), "220408031801"),
    (TensorType(DType.STRING), "22020807"),
    (StructType([]), "1200"),
    (StructType([("a", INT), FLOAT]), "12130a090a01611204220208030a06120422020801"),
    (SequenceType(INT), "1a060a0422020803"),
    (FunctionType(None, INT), "0a06120422020803"),
    (FunctionType(INT, INT), "0a0c0a0422020803120422020803"),
    (at_clients(INT), "3a130a0b12090a07636c69656e74731a0422020803"),
    (at_clients(INT, all_equal=True), "3a150a0b12090a07636c69656e747310011a0422020803"),
    (at_server(INT), "3a140a0a12080a0673657276657210011a0422020803"),
    (PlacementType(), "3200"),
]

COMBINE = Lambda(
    "combine_arg",
    StructType([("a", INT), ("b", INT)]),
    StructNode(
        tuple(
            Selection(Reference("combine_arg", StructType([("a", INT), ("b", INT)])), index)
            for index in (0, 1)
        )
    ),
)
IDENTITY_SECTION = """
0a0e0a0c0a042202080312042202080312f8010ac2010a27747970652e676f6f676c65617069732e636f6d2f74656e736f
72666c6f772e47726170684465661296010a3d0a1473657373696f6e5f746f6b656e5f74656e736f72120b506c61636568
6f6c6465722a0b0a056474797065120230072a0b0a05736861706512023a000a2c0a03617267120b506c616365686f6c64
65722a0b0a056474797065120230032a0b0a05736861706512023a000a220a084964656e7469747912084964656e746974
791a036172672a070a015412023003220308a70c120912070a056172673a301a0e120c0a0a4964656e746974793a303216
73657373696f6e5f746f6b656e5f74656e736f723a30
"""

NODES = [
    (X, "0a042202080332030a0178"),
    (Literal(to_array(1), INT), "0a0422020803720b0a090803120032030a0101"),
    (
        Selection(Reference("x", PAIR), 0),
        "0a04220208034a1b0a190a1212100a061204220208030a0612042202080332030a0178",
    ),
    (
        Selection(Reference("x", PAIR), 1),
        "0a04220208034a1d0a190a1212100a061204220208030a0612042202080332030a01781801",
    ),
    (StructNode(()), "0a0212004200"),
    (
        StructNode((X, Y), ("a", None)),
        "0a1512130a090a01611204220208030a0612042202080342210a100a0161120b0a042202080332030a0178"
        "0a0d120b0a042202080332030a0179",
    ),
    (
        Lambda("x", INT, X),
        "0a0e0a0c0a042202080312042202080322100a0178120b0a042202080332030a0178",
    ),
    (Lambda(None, None, X), "0a080a06120422020803220d120b0a042202080332030a0178"),
    (
        Block((Binding("a", X),), Reference("a", INT)),
        "0a04220208032a1f0a100a0161120b0a042202080332030a0178120b0a042202080332030a0161",
    ),
    (
        Call(Reference("f", FunctionType(None, INT))),
        "0a04220208033a110a0f0a080a0612042202080332030a0166",
    ),
    (
        Call(F, X),
        "0a04220208033a240a150a0e0a0c0a042202080312042202080332030a0166120b0a042202080332030a0178",
    ),
    (PlacementNode(CLIENTS), "0a0232005a090a07636c69656e7473"),
    (
        Intrinsic(
            "federated_broadcast", FunctionType(at_server(INT), at_clients(INT, all_equal=True))
        ),
        "0a330a310a163a140a0a12080a0673657276657210011a042202080312173a150a0b12090a07636c69656e7473"
        "10011a04220208031a150a136665646572617465645f62726f616463617374",
    ),
    (
        COMBINE,
        "0a300a2e0a1812160a090a01611204220208030a090a0162120422020803121212100a061204220208030a0612"
        "04220208032296010a0b636f6d62696e655f6172671286010a1212100a061204220208030a0612042202080342"
        "700a3512330a04220208034a2b0a290a1812160a090a01611204220208030a090a0162120422020803320d0a0b"
        "636f6d62696e655f6172670a3712350a04220208034a2d0a290a1812160a090a01611204220208030a090a0162"
        "120422020803320d0a0b636f6d62696e655f6172671801",
    ),
    (Data("", b"", INT), "0a042202080352021a00"),
    (Data("u", b"ab", INT), "0a042202080352091a070a017512026162"),
]


def case_id(value: object) -> str | None:
    return str(value) if isinstance(value, Array | Type) else None


@pytest.mark.parametrize(("array", "expected"), ARRAYS, ids=case_id)
def test_array(array: Array, expected: str) -> None:
    data = joined(message_content(ARRAY, array_fields(array), {}))
    assert data.hex() == expected
    assert read_array(data, Place(0, len(data))) == array


@pytest.mark.parametrize(("type_", "expected"), TYPES, ids=case_id)
def test_type(type_: Type, expected: str) -> None:
    assert type_to_bytes(type_).hex() == expected
    assert type_from_bytes(bytes.fromhex(expected)) == type_


@pytest.mark.parametrize(("node", "expected"), NODES, ids=case_id)
def test_node(node: Node, expected: str) -> None:
    assert to_bytes(node).hex() == expected
    assert from_bytes(bytes.fromhex(expected)) == node


def test_containers_and_names_of_selections_are_not_stored() -> None:
    named = Reference("x", StructType([("a", INT)]))
    kept = from_bytes(to_bytes(StructNode((Selection.by_name(named, "a"),), container=list)))
    assert kept == StructNode((Selection(named, 0),))
    assert kept.type == StructType([INT])


def test_section_is_kept_as_it_is() -> None:
    data = bytes.fromhex(IDENTITY_SECTION)
    node = from_bytes(data)
    assert isinstance(node, Compiled)
    assert (node.kind, str(node.type)) == ("tensorflow", "(int32 -> int32)")
    assert to_bytes(node) == data
    section = read_tensorflow(node.payload)
    assert section.parameter == TensorBinding("arg:0")
    assert section.result == TensorBinding("Identity:0")
    assert (section.initialize_op, section.session_token_tensor_name, section.cache_key) == (
        "",
        "session_token_tensor:0",
        None,
    )
    graph = proto.GraphDef.FromString(section.graph_def)
    assert [node.op for node in graph.node] == ["Placeholder", "Placeholder", "Identity"]
    assert write_tensorflow(section) == node.payload


def test_unknown_fields_in_a_section_survive_and_elsewhere_are_skipped() -> None:
    unknown = bytes.fromhex("ba3e0161" + "c03e01" + "cd3e00000000" + "c93e" + "00" * 8)
    section = TensorFlowSection(b"", None, TensorBinding("x:0"))
    node = Compiled("tensorflow", write_tensorflow(section) + unknown, FunctionType(None, INT))
    assert from_bytes(to_bytes(node)) == node
    assert from_bytes(to_bytes(X) + unknown) == X


def test_cache_key_and_empty_bindings_are_written() -> None:
    bindings = StructBinding((StructBinding(()), SequenceBinding("d:0"), TensorBinding("")))
    section = TensorFlowSection(b"g", bindings, TensorBinding("x:0"), "init", "t:0", 0)
    data = write_tensorflow(section)
    assert read_tensorflow(data) == section
    message = proto.TensorFlow.FromString(data)
    assert message.HasField("cache_key")
    assert message.parameter.struct.element[0].HasField("struct")
    assert message.parameter.struct.element[2].tensor.HasField("tensor_name")
    assert message.SerializeToString(deterministic=True) == data


def test_xla_index_zero_is_written() -> None:
    section = XlaSection(b"h", None, StructBinding((TensorBinding(0), TensorBinding(1))))
    data = write_xla(section)
    url = b"type.googleapis.com/xla.HloModuleProto"
    any_ = b"\x0a\x26" + url + b"\x12\x01h"
    assert data == b"\x0a" + bytes([len(any_)]) + any_ + bytes.fromhex(
        "1a0e" "0a0c" "0a04" "12020800" "0a04" "12020801"
    )  # fmt: skip
    assert read_xla(data) == section


def test_stablehlo_comes_after_what_others_read() -> None:
    without = XlaSection(b"h", None, TensorBinding(0))
    section = without._replace(stablehlo=b"module")
    assert write_xla(section) == write_xla(without) + bytes.fromhex("ca3e06") + b"module"
    assert read_xla(write_xla(section)) == section


def test_narrower_constant_is_widened_to_the_declared_type() -> None:
    message = proto.Computation.FromString(to_bytes(Literal(to_array(5), INT)))
    message.type.tensor.dtype = proto.DataType.DT_INT64
    wide = TensorType(DType.INT64)
    assert from_bytes(message.SerializeToString()) == Literal(to_array(5, DType.INT64), wide)


def test_lists_that_are_not_packed_are_read() -> None:
    assert read("0803 1200 3204 0801 0802".replace("1200", "12020802")).shape == (2,)
    assert read("0801 1200 6a05 0d0000803f") == to_array(np.float32(1))
    assert type_from_bytes(bytes.fromhex("2206080310021003")) == TensorType(DType.INT32, (2, 3))


def read(data: str) -> Array:
    content = bytes.fromhex(data.replace(" ", ""))
    return read_array(content, Place(0, len(content)))


def test_array_of_unknown_rank_is_read_as_flat() -> None:
    assert read("0803 12021001 32040a020102") == to_array(np.array([1, 2], np.int32))


@settings(max_examples=100, deadline=None)
@given(generation.nodes())
def test_bytes_are_those_of_protobuf(node: Node) -> None:
    data = to_bytes(node)
    nan = any(math.isnan(value) for value in floats(data))
    expected = node_message(node).SerializeToString(deterministic=True)
    assert nan or data == expected
    assert from_bytes(data) == node


def floats(data: bytes) -> list[float]:
    """The float constants, whose NaNs lose their bits on the way through Python's floats."""
    found: list[float] = []
    stack = [proto.Computation.FromString(data)]
    while stack:
        message = stack.pop()
        for field, value in message.ListFields():
            if field.name in ("float32_list", "complex64_list"):
                found.extend(value.value)
            elif field.message_type is not None:
                stack.extend([value] if hasattr(value, "ListFields") else value)
    return found


@settings(max_examples=100, deadline=None)
@given(generation.types())
def test_types_return(type_: Type) -> None:
    data = type_to_bytes(type_)
    assert data == type_message(type_).SerializeToString(deterministic=True)
    assert type_from_bytes(data) == type_


# Depth and width.

DEEP = 10_000


def nested(wrap: Any, times: int = DEEP) -> Node:
    node: Node = X
    for _ in range(times):
        node = wrap(node)
    return node


@pytest.mark.slow
@pytest.mark.parametrize(
    "node",
    [
        nested(lambda node: Call(F, node)),
        nested(lambda node: Block((Binding("a", X),), node)),
        nested(lambda node: Block((Binding("a", node),), X)),
        nested(lambda node: Lambda("x", INT, node), 1000),
        nested(lambda node: StructNode((node,)), 1000),
        nested(lambda node: Selection(node, 0), 0),
        StructNode((X,) * DEEP),
        Block(tuple(Binding(f"v{index}", Call(F, X)) for index in range(DEEP)), X),
    ],
    ids=["call", "block", "local", "lambda", "struct", "selection", "wide", "long"],
)
def test_deep_and_wide_programs_return(node: Node) -> None:
    data = to_bytes(node)
    assert from_bytes(data) == node


@pytest.mark.slow
def test_deep_types_and_bindings_return() -> None:
    type_: Type = INT
    binding: Any = TensorBinding("x:0")
    for _ in range(DEEP):
        type_ = StructType.of((None,), (type_,))
        binding = StructBinding((binding,))
    assert type_from_bytes(type_to_bytes(type_)) == type_
    section = TensorFlowSection(b"", None, binding)
    assert read_tensorflow(write_tensorflow(section)) == section


def test_selections_from_a_deep_struct_return() -> None:
    node: Node = nested(lambda node: StructNode((node,)), 500)
    for _ in range(500):
        node = Selection(node, 0)
    assert from_bytes(to_bytes(node)) == node


def test_equal_types_are_one_object() -> None:
    pair = from_bytes(to_bytes(StructNode((Reference("x", PAIR), Reference("y", PAIR)))))
    first, second = pair.children()
    assert first.type is second.type


# What is refused.


def refusal(data: str | bytes) -> str:
    content = bytes.fromhex(data.replace(" ", "")) if isinstance(data, str) else data
    with pytest.raises(WireError) as caught:
        from_bytes(content)
    return str(caught.value)


def message(**fields: Any) -> bytes:
    """A computation of type int32 with these variants."""
    made = proto.Computation(type=type_message(INT))
    for name, value in fields.items():
        getattr(made, name).CopyFrom(value)
    return made.SerializeToString()


def constant(**fields: Any) -> bytes:
    return message(literal=proto.Literal(value=proto.Array(**fields)))


def with_type(type_: Any) -> bytes:
    made = proto.Computation(type=type_, reference=proto.Reference(name="x"))
    return made.SerializeToString()


REFUSED = [
    ("E203", (
        "32 ff ff ff ff ff ff ff ff ff ff 01",
        "a number is longer than the ten bytes of the longest [E203]\n  note: at byte 1",
    )),
    ("E203", ("32 80", "the input ends inside a number [E203]\n  note: at byte 1")),
    ("E203", ("02 00", "a field number cannot be 0 [E203]\n  note: at byte 0")),
    ("E203", (
        "0b",
        "field 1 has the wire type 3, which is not in use [E203]\n  note: at byte 0",
    )),
    ("E203", (
        to_bytes(X)[:-1],
        "a field of 3 bytes, of which 2 are there [E203]\n  note: at byte 7",
    )),
    ("E203", (
        "cd 3e 00 00",
        "a value of 4 bytes, of which 2 are there [E203]\n  note: at byte 2",
    )),
    ("E203", (
        "0a 04 22 02 08 03 32 06 0a 01 78 0a 01 79",
        "the field name occurs twice [E203]\n  note: at byte 11, in reference",
    )),
    ("E203", (
        "0a 04 22 02 08 03 32 02 08 01",
        "the field name is encoded as a varint, not as a length [E203]\n"
        "  note: at byte 8, in reference",
    )),
    ("E203", (
        "0a 04 22 02 08 03 32 04 0a 02 78 ff",
        "a text is not in UTF-8 [E203]\n  note: at byte 11, in reference.name",
    )),
    ("E203", (
        "0a 04 22 02 08 03",
        "a computation has exactly one of its variants; found none of them [E203]\n"
        "  note: at byte 0",
    )),
    ("E203", ("", "the field type is missing [E203]\n  note: at byte 0")),
    ("E216", (
        with_type(
            proto.Type(
                sequence=proto.SequenceType(element=type_message(at_server(INT)))
            )
        ),
        "this sequence type is not well formed: a sequence cannot have elements of type "
        "`int32@SERVER` [E216]\n  note: at byte 2, in type",
    )),
    ("E217", (
        with_type(
            proto.Type(
                federated=proto.FederatedType(
                    placement=proto.PlacementSpec(label=proto.PlacementLabel(label="x"))
                )
            )
        ),
        "a placement is given as a label, which is not in use [E217]\n"
        "  note: at byte 8, in type.federated.placement.label",
    )),
    ("E217", (
        "0a 02 32 00 5a 06 0a 04 65 64 67 65",
        "there is no placement 'edge'; the placements are clients, server [E217]\n"
        "  note: at byte 6, in placement",
    )),
    ("E217", (
        with_type(proto.Type(abstract=proto.AbstractType(label="T"))),
        "an abstract type cannot be stored [E217]\n  note: at byte 4, in type.abstract",
    )),
    ("E217", (
        with_type(proto.Type(tensor=proto.TensorType(dtype=11))),
        "there is no element type of number 11 [E217]\n  note: at byte 4, in type.tensor",
    )),
    ("E216", (
        constant(dtype=3, float32_list=proto.Array.FloatList(value=[1])),
        "elements of int32 are not kept in the field float32_list [E216]\n"
        "  note: at byte 14, in literal.value.float32_list",
    )),
    ("E216", (
        constant(dtype=3, int32_list=proto.Array.IntList(value=[1, 2])),
        "an array of shape [] cannot have 2 elements [E216]\n"
        "  note: at byte 10, in literal.value",
    )),
    ("E216", (
        constant(dtype=3, shape=proto.ArrayShape(dim=[-1])),
        "the shape [-1] of a constant is not fully known [E216]\n"
        "  note: at byte 14, in literal.value.shape",
    )),
    ("E216", (
        constant(dtype=6, int8_list=proto.Array.IntList(value=[300])),
        "an element does not fit int8 [E216]\n  note: at byte 14, in literal.value.int8_list",
    )),
    ("E203", (
        "0a 04 22 02 08 03 72 09 0a 07 08 03 32 03 0d 00 00 00 00".replace("72 09", "72 0b")
        .replace("0a 07", "0a 09")
        .replace("32 03", "32 05"),
        "elements of int32 are not encoded as four bytes [E203]\n"
        "  note: at byte 14, in literal.value.int32_list",
    )),
    ("E203", (
        "0a 04 22 02 08 01 72 09 0a 07 08 01 6a 03 0a 01 00",
        "1 bytes are not a whole number of elements of float32 [E203]\n"
        "  note: at byte 16, in literal.value.float32_list.value",
    )),
    ("E228", (
        message(tensorflow=proto.TensorFlow(graph_def=proto.Any_(type_url="x"))),
        "expected a message of type 'type.googleapis.com/tensorflow.GraphDef', found 'x' [E228]\n"
        "  note: at byte 10, in tensorflow.graph_def",
    )),
    ("E228", (
        message(
            tensorflow=proto.TensorFlow(
                graph_def=proto.Any_(type_url="type.googleapis.com/tensorflow.GraphDef"),
                result=proto.Binding(
                    sequence=proto.TensorFlow.SequenceBinding(graph_def_tensor_name="x:0")
                ),
            )
        ),
        "a sequence is not bound to a variant tensor [E228]\n"
        "  note: at byte 55, in tensorflow.result.sequence",
    )),
    ("E216", (
        message(selection=proto.Selection(source=node_message(Reference("x", PAIR)), index=2)),
        "this selection is not well formed: no element 2 in `<int32,int32>`, which has 2 elements "
        "[E216]\n  note: at byte 0",
    )),
    ("E216", (
        message(placement=proto.Placement(uri="server")),
        "this placement is stored with a type that it does not have\n"
        "Type `placement` is not equivalent to type `int32` [E216]\n  note: at byte 0",
    )),
    ("E216", (
        message(**{"lambda": proto.Lambda(result=node_message(X))}),
        "a lambda cannot have the type `int32` [E216]\n  note: at byte 8, in lambda",
    )),
    ("E216", (
        proto.Computation(
            type=type_message(PAIR), literal=proto.Literal(value=array_message(to_array(1)))
        ).SerializeToString(),
        "a constant cannot have the type `<int32,int32>` [E216]\n  note: at byte 22, in literal",
    )),
    ("E216", (
        constant(dtype=3, shape=proto.ArrayShape(dim=[2**62, 0])),
        "a constant cannot have the shape [4611686018427387904, 0], which is too large [E216]\n"
        "  note: at byte 10, in literal.value",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("code", "refused"), REFUSED)
def test_refusal(code: str, refused: tuple[bytes | str, str]) -> None:
    data, expected = refused
    assert f"[{code}]" in expected
    assert refusal(data) == expected


def test_refusal_deep_inside_names_the_way() -> None:
    program = node_message(Block((Binding("a", X), Binding("b", Call(F, X))), X))
    program.block.local[1].value.call.argument.ClearField("type")
    assert refusal(program.SerializeToString()) == (
        "the field type is missing [E203]\n"
        "  note: at byte 66, in block.local[1].value.call.argument"
    )


def test_every_truncation_is_refused() -> None:
    data = to_bytes(COMBINE)
    for length in range(len(data)):
        with pytest.raises(WireError):
            from_bytes(data[:length])


def test_program_with_an_abstract_type_is_not_written() -> None:
    with pytest.raises(WireError) as caught:
        to_bytes(Reference("x", AbstractType("T")))
    assert str(caught.value) == "the abstract type `T` cannot be stored [E109]"


def test_name_that_is_no_unicode_text_is_not_written() -> None:
    with pytest.raises(WireError) as caught:
        to_bytes(Reference("\ud800", INT))
    assert str(caught.value) == "'\\ud800' is not Unicode text and cannot be written [E107]"


def test_program_too_large_as_a_tree_is_not_written() -> None:
    node: Node = X
    for _ in range(64):
        node = StructNode((node, node))
    with pytest.raises(WireError) as caught:
        to_bytes(node)
    assert str(caught.value) == (
        "the program has 36893488147419103231 nodes when it is written out, more than the "
        "4194304 that are written [E201]\n"
        "  help: bind shared nodes in a block"
    )


def test_program_larger_than_protobuf_reads_is_not_written() -> None:
    node: Node = Compiled("xla", bytes(2**20), FunctionType(None, INT))
    for _ in range(11):
        node = StructNode((node, node))
    with pytest.raises(WireError) as caught:
        to_bytes(node)
    assert str(caught.value) == (
        "the program takes 2147960362 bytes, and no message more than 2147483647 [E139]"
    )


def test_server_is_all_equal_only_where_it_says_so() -> None:
    assert type_from_bytes(type_to_bytes(FederatedType(INT, SERVER, False))) == FederatedType(
        INT, SERVER, False
    )
