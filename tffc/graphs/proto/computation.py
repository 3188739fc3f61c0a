"""The messages of programs and types: their protobuf classes, and descriptions of their fields.

tffc reads and writes programs by the descriptions, because protobuf's own parsers refuse deep
messages.  The classes are for users, as the `proto` of nodes.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from tffc.graphs.proto import message
from tffc.graphs.proto.encoding import Kind, MessageField, Schema, by_tag

Computation = message("tffc.v0.Computation")
Type = message("tffc.v0.Type")


def _kind(field: Any) -> Kind:
    """Return the kind of a field, given its descriptor."""
    is_repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    match field.type:
        case FieldDescriptorProto.TYPE_MESSAGE:
            return Kind.MESSAGES if is_repeated else Kind.MESSAGE
        case FieldDescriptorProto.TYPE_STRING:
            return Kind.STRING
        case FieldDescriptorProto.TYPE_BYTES:
            return Kind.BYTES
        case _:
            return Kind.INTEGERS if is_repeated else Kind.INTEGER


class MessageFields(NamedTuple):
    """The fields of a message by name and by tag, and those that hold messages."""

    fields: dict[str, MessageField]
    schema: Schema
    messages: tuple[MessageField, ...]


@functools.cache
def described(name: str) -> MessageFields:
    """Return the fields of the message with this full name, as its `.proto` file declares them."""
    descriptor: Any = DescriptorProto()
    message(name).DESCRIPTOR.CopyToProto(descriptor)
    fields: dict[str, MessageField] = {}
    for field in descriptor.field:
        inner, in_oneof = field.type_name.removeprefix("."), field.HasField("oneof_index")
        fields[field.name] = MessageField(field.name, _kind(field), field.number, inner, in_oneof)
    messages = (field for field in fields.values() if field.kind in (Kind.MESSAGE, Kind.MESSAGES))
    return MessageFields(fields, by_tag(fields.values()), tuple(messages))
