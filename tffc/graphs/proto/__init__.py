"""Protobuf messages: TensorFlow's graphs and examples, without TensorFlow.

The classes are made when this package is imported, from the descriptors committed beside it, in
packages of their own.  So they run with every protobuf release that tffc allows and stand beside
TensorFlow's and TensorFlow Federated's own messages in one process.  The encoding is the same, the
classes are not: hand a message over to TensorFlow as bytes.  They are in protobuf's default pool,
so that users can put an `Any` in them.
"""

from __future__ import annotations

import pathlib
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

DESCRIPTORS = pathlib.Path(__file__).with_name("descriptors.binpb")


def _load_pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.Default()
    for file in descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes()).file:
        if file.name != any_pb2.DESCRIPTOR.name:
            pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _load_pool()


def message(name: str) -> Any:
    """Return the class of a message by its full name in the `.proto` files."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


# TensorFlow's graphs, from graph.proto.
DataType: Any = enum_type_wrapper.EnumTypeWrapper(_POOL.FindEnumTypeByName("tffc.graph.DataType"))
GraphDef = message("tffc.graph.GraphDef")
VersionDef = message("tffc.graph.VersionDef")
NodeDef = message("tffc.graph.NodeDef")
NameAttrList = message("tffc.graph.NameAttrList")
AttrValue = message("tffc.graph.AttrValue")
TensorShapeProto = message("tffc.graph.TensorShapeProto")
TensorProto = message("tffc.graph.TensorProto")
FunctionDefLibrary = message("tffc.graph.FunctionDefLibrary")
FunctionDef = message("tffc.graph.FunctionDef")
GradientDef = message("tffc.graph.GradientDef")
RegisteredGradient = message("tffc.graph.RegisteredGradient")
OpDef = message("tffc.graph.OpDef")

# Records of clients' data, from example.proto.
Example = message("tffc.example.Example")
