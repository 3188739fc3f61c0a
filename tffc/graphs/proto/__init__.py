"""Protobuf messages: TensorFlow's graphs and examples, without TensorFlow.

The classes are made when this package is imported, from the descriptors committed beside it, in
packages of their own.  So they run with every protobuf release that tffc allows and stand beside
TensorFlow's and TensorFlow Federated's own messages in one process.  The encoding is the same, the
classes are not: hand a message over to TensorFlow as bytes.  They are in protobuf's default pool,
so that users can put an `Any` in them.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

DESCRIPTORS = pathlib.Path(__file__).with_name("descriptors.binpb")


_POOL = descriptor_pool.Default()


def _add_files() -> list[str]:
    """Put the committed descriptors into the pool, and return the names of their files."""
    names: list[str] = []
    for file in descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes()).file:
        if file.name != any_pb2.DESCRIPTOR.name:
            _POOL.AddSerializedFile(file.SerializeToString())
            names.append(file.name)
    return names


_FILES = _add_files()


def message(name: str) -> Any:
    """Return the class of a message by its full name in the `.proto` files."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


def _classes_within(descriptor: Any) -> Iterator[Any]:
    """Yield the classes of a message and of the messages and maps declared in it."""
    yield message_factory.GetMessageClass(descriptor)
    for nested in descriptor.nested_types:
        yield from _classes_within(nested)


def _classes_of(file: str) -> list[Any]:
    """List the classes of all messages of a `.proto` file."""
    declared = _POOL.FindFileByName(file).message_types_by_name.values()
    return [each for descriptor in declared for each in _classes_within(descriptor)]


# Protobuf makes a class when it is needed and drops it with the last message of it.  Kept here,
# classes do not come and go while several threads run rounds.
_CLASSES = [each for file in _FILES for each in _classes_of(file)]


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
