"""The messages: their descriptors, their encoding, and other libraries' messages beside them."""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import subprocess
import sys
from importlib.machinery import PathFinder

import pytest

from tests.graphs.proto import messages
from tests.processes import run_python
from tffc.graphs import proto
from tffc.graphs.proto import generate


@pytest.mark.skipif(
    importlib.util.find_spec("grpc_tools") is None, reason="grpcio-tools is not installed"
)
def test_committed_descriptors_are_those_of_the_proto_files() -> None:
    # In a process of its own: beside TensorFlow's, the protobuf library of protoc may crash.
    code = (
        "import sys; from tffc.graphs.proto.generate import describe; "
        "sys.stdout.buffer.write(describe())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout == proto.DESCRIPTORS.read_bytes()


def test_declarations_for_type_checkers_are_those_of_the_descriptors() -> None:
    declared = generate.declare()
    assert generate.DECLARATIONS.read_text() == declared
    names = {node.name for node in ast.parse(declared).body if isinstance(node, ast.ClassDef)}
    assert {name.removeprefix("_") for name in names} <= set(vars(proto))


def test_every_proto_file_is_in_the_descriptors() -> None:
    committed = proto.DESCRIPTORS.read_bytes()
    for path in pathlib.Path(generate.FOLDER).glob("*.proto"):
        assert f"tffc/graphs/proto/{path.name}".encode() in committed


def test_graph_is_encoded_like_tensorflows() -> None:
    graph = proto.GraphDef()
    node = graph.node.add(name="a", op="B", input=["c"])
    node.attr["T"].type = proto.DataType.DT_VARIANT
    graph.versions.producer = 7
    expected = "0a120a01611201421a01632a070a015412023015" + "22020807"
    assert graph.SerializeToString(deterministic=True).hex() == expected
    assert proto.GraphDef.FromString(bytes.fromhex(expected)) == graph


def test_unknown_fields_survive() -> None:
    # Field 6 of a NodeDef is its debug information, which is not described here.
    node = bytes.fromhex("0a0161" + "32030a0178")
    assert proto.NodeDef.FromString(node).SerializeToString() == node


def test_empty_lists_and_index_zero_of_a_oneof_are_written() -> None:
    array = messages.Array(dtype=proto.DataType.DT_INT32, shape=messages.ArrayShape(dim=[0, 3]))
    array.int32_list.SetInParent()
    assert array.SerializeToString().hex() == "080312040a0200033200"
    binding = messages.XlaBinding()
    binding.tensor.index = 0
    assert binding.SerializeToString().hex() == "12020800"


ALONE = """
from tffc.graphs import proto
import sys
assert not any(name.split(".")[0] in ("tensorflow", "numpy") for name in sys.modules), sys.modules
"""

BESIDE_FEDERATED_LANGUAGE = """
from federated_language.proto import computation_pb2
from tffc.graphs import proto
theirs = computation_pb2.Computation()
theirs.type.tensor.dtype = 3
theirs.reference.name = "x"
ours = proto.message("tffc.v0.Computation").FromString(theirs.SerializeToString())
assert ours.reference.name == "x" and ours.SerializeToString() == theirs.SerializeToString()
"""


def in_fresh_interpreter(code: str) -> None:
    run_python("-c", code, check=True)


def test_messages_load_without_tensorflow_and_numpy() -> None:
    in_fresh_interpreter(ALONE)


def test_messages_load_beside_tensorflows() -> None:
    graph_pb2 = pytest.importorskip(
        "tensorflow.core.framework.graph_pb2", reason="an optional package"
    )
    theirs = graph_pb2.GraphDef()
    theirs.node.add(name="a", op="Placeholder").attr["dtype"].type = 3
    ours = proto.GraphDef.FromString(theirs.SerializeToString())
    assert ours.node[0].attr["dtype"].type == proto.DataType.DT_INT32
    assert graph_pb2.GraphDef.FromString(ours.SerializeToString()) == theirs


@pytest.mark.skipif(
    PathFinder.find_spec("federated_language") is None,
    reason="federated-language is not installed",
)
def test_messages_load_beside_those_of_federated_language() -> None:
    in_fresh_interpreter(BESIDE_FEDERATED_LANGUAGE)
