"""Protobuf messages: serialized computations, and TensorFlow's graphs without TensorFlow.

The classes are made when this package is imported, from the descriptors committed beside it, in a
descriptor pool of their own.  So they run with every protobuf release that tffc allows and stand
beside TensorFlow's and TensorFlow Federated's own messages in one process.  The encoding is the
same, the classes are not: hand a message over to TensorFlow as bytes.
"""

from __future__ import annotations

import pathlib
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

DESCRIPTORS = pathlib.Path(__file__).with_name("descriptors.binpb")


def _load_pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _load_pool()


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


def _enum(name: str) -> Any:
    return enum_type_wrapper.EnumTypeWrapper(_POOL.FindEnumTypeByName(name))


# Computations, from computation.proto and array.proto.
Computation = _message("tffc.v0.Computation")
Type = _message("tffc.v0.Type")
FunctionType = _message("tffc.v0.FunctionType")
StructType = _message("tffc.v0.StructType")
SequenceType = _message("tffc.v0.SequenceType")
TensorType = _message("tffc.v0.TensorType")
AbstractType = _message("tffc.v0.AbstractType")
PlacementType = _message("tffc.v0.PlacementType")
FederatedType = _message("tffc.v0.FederatedType")
PlacementLabel = _message("tffc.v0.PlacementLabel")
PlacementSpec = _message("tffc.v0.PlacementSpec")
Placement = _message("tffc.v0.Placement")
Intrinsic = _message("tffc.v0.Intrinsic")
Lambda = _message("tffc.v0.Lambda")
Block = _message("tffc.v0.Block")
Reference = _message("tffc.v0.Reference")
Call = _message("tffc.v0.Call")
Struct = _message("tffc.v0.Struct")
Selection = _message("tffc.v0.Selection")
Data = _message("tffc.v0.Data")
Literal = _message("tffc.v0.Literal")
Array = _message("tffc.v0.Array")
ArrayShape = _message("tffc.v0.ArrayShape")
TensorFlow = _message("tffc.v0.TensorFlow")
Binding = _message("tffc.v0.TensorFlow.Binding")
Xla = _message("tffc.v0.Xla")
XlaBinding = _message("tffc.v0.Xla.Binding")
Any_ = _message("google.protobuf.Any")

# TensorFlow's graphs, from graph.proto.
DataType = _enum("tffc.graph.DataType")
GraphDef = _message("tffc.graph.GraphDef")
VersionDef = _message("tffc.graph.VersionDef")
NodeDef = _message("tffc.graph.NodeDef")
NameAttrList = _message("tffc.graph.NameAttrList")
AttrValue = _message("tffc.graph.AttrValue")
TensorShapeProto = _message("tffc.graph.TensorShapeProto")
TensorProto = _message("tffc.graph.TensorProto")
FunctionDefLibrary = _message("tffc.graph.FunctionDefLibrary")
FunctionDef = _message("tffc.graph.FunctionDef")
GradientDef = _message("tffc.graph.GradientDef")
RegisteredGradient = _message("tffc.graph.RegisteredGradient")
OpDef = _message("tffc.graph.OpDef")
ArgDef = _message("tffc.graph.OpDef.ArgDef")
AttrDef = _message("tffc.graph.OpDef.AttrDef")

# Records of clients' data, from example.proto.
Example = _message("tffc.example.Example")
