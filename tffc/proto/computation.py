"""Messages of programs and types, as classes of protobuf, and what fields they have.

tffc itself reads and writes them by their fields, which goes deeper; the classes are for code that
takes messages apart.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from tffc.proto import message
from tffc.proto.encoding import Kind, MessageField, Schema, by_head

Computation = message("tffc.v0.Computation")
Type = message("tffc.v0.Type")


def _kind(field: Any) -> Kind:
    """Return how the values of a field are read."""
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
    """The fields of a message, by their names and by their heads, and those that hold messages."""

    fields: dict[str, MessageField]
    schema: Schema
    messages: tuple[MessageField, ...]


@functools.cache
def described(name: str) -> MessageFields:
    """Return the fields of the message of this full name, as its `.proto` file has them."""
    descriptor: Any = DescriptorProto()
    message(name).DESCRIPTOR.CopyToProto(descriptor)
    fields: dict[str, MessageField] = {}
    for field in descriptor.field:
        inner, chosen = field.type_name.removeprefix("."), field.HasField("oneof_index")
        fields[field.name] = MessageField(field.name, _kind(field), field.number, inner, chosen)
    messages = (each for each in fields.values() if each.kind in (Kind.MESSAGE, Kind.MESSAGES))
    return MessageFields(fields, by_head(fields.values()), tuple(messages))
