"""Messages as dictionaries of their fields, read and written as their `.proto` files declare.

A message in a message is a dictionary too, or what it was converted to: a type or a node, say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import GeneratorType
from typing import Any, ClassVar, cast

from tffc.graphs.proto.computation import described
from tffc.graphs.proto.encoding import (
    MESSAGE,
    MESSAGES,
    Content,
    Kind,
    MessageField,
    Place,
    content_field,
    integer_field,
    length_tag,
    packed_field,
    read_message,
    string_field,
)
from tffc.support.trampoline import Task

ANY = "google.protobuf.Any"

OPTIONAL = frozenset({"argument", "cache_key", "instance_label", "parameter", "shape"})
"""The message fields outside of oneofs that may be missing."""


class FieldReader:
    """Reads the messages of one input as dictionaries.

    `readers` has, by names of messages, the functions that convert a message to something else.
    """

    readers: ClassVar[Mapping[str, Callable[[Any, Place], Any]]] = {}

    def __init__(self, data: bytes) -> None:
        self.data = data

    def fields(self, place: Place, name: str) -> Task[dict[str, Any]] | dict[str, Any]:
        """Return the fields of a message by name, or the task that reads them.

        Raises:
          WireError: the message is malformed, or lacks a message that it must have.
        """
        description = described(name)
        fields = read_message(self.data, place, description.schema)
        return self._fields(fields, place, description.messages) if description.messages else fields

    def _fields(
        self, fields: dict[str, Any], place: Place, messages: tuple[MessageField, ...]
    ) -> Task[dict[str, Any]]:
        # Only tasks are yielded: most messages inside are known already.
        for name, kind, _, inner, in_oneof in messages:
            if kind is MESSAGES:
                places: list[Any] = fields.get(name, [])
                for index, place_inside in enumerate(places):
                    value = self.message(place_inside, inner)
                    places[index] = (yield value) if isinstance(value, GeneratorType) else value
            elif name in fields:
                value = self.message(fields[name], inner)
                fields[name] = (yield value) if isinstance(value, GeneratorType) else value
            elif not in_oneof and name not in OPTIONAL:
                required(fields, name, place)
        return fields

    def variant(self, place: Place, name: str, what: str) -> tuple[str, Place, str]:
        """Return the field that is set in a message that is a oneof: its name, its place and the
        name of the message in it.

        Raises:
          WireError: the message is malformed, or does not have exactly one field.
        """
        description = described(name)
        kind, inner = only(read_message(self.data, place, description.schema), place, what)
        return kind, inner, description.fields[kind].message

    def message(self, place: Place, name: str) -> Any:
        """Return the message of this name, or the task that reads it."""
        reader = self.readers.get(name)
        return self.fields(place, name) if reader is None else reader(self, place)


def only(fields: dict[str, Any], place: Place, what: str) -> tuple[str, Place]:
    """Return the name and the place of the only field in `fields`.

    Raises:
      WireError: there is no field, or more than one.
    """
    if len(fields) != 1:
        held = ", ".join(fields) or "none of them"
        place.refuse("E203", f"{what} has exactly one of its variants; found {held}")
    return next(iter(fields.items()))


def required(fields: dict[str, Any], name: str, place: Place) -> Place:
    """Return a field that the message at `place` must have."""
    if name not in fields:
        place.refuse("E203", f"the field {name} is missing")
    return fields[name]


SMALL = 4096
"""The content of a message up to this size, in bytes, is joined at once, which takes less time than
keeping its pieces."""

WRITERS: dict[Kind, Callable[[int, Any], bytes]] = {
    Kind.STRING: lambda number, text: string_field(number, text) or content_field(number, b""),
    Kind.INTEGER: integer_field,
    Kind.INTEGERS: packed_field,
}
"""The writers of fields that are written whole.  The others are a tag, a length and a content."""

Contents = dict[int, bytes | Content]
"""The contents of the messages of terms, by the ids of the terms."""


def message_content(name: str, values: Mapping[str, Any], known: Contents) -> bytes | Content:
    """Return the content of a message with these fields, given in the order of their numbers.

    A message in a field is a dictionary, a content, or a term whose content is `known`.  A field is
    left out if its value is None or, unless it is in a oneof, empty.
    """
    size = 0
    pieces: list[Any] = []
    fields = described(name).fields
    for field, value in values.items():
        _, kind, number, inner, in_oneof = fields[field]
        if value is None or not (value or in_oneof or kind is MESSAGE):
            continue
        writer = WRITERS.get(kind)
        if writer is not None:
            written = writer(number, value)
            pieces.append(written)
            size += len(written)
            continue
        parts: Iterable[Any] = value if kind is MESSAGES else (value,)
        for part in parts:
            if isinstance(part, dict):
                content: Any = message_content(inner, cast("dict[str, Any]", part), known)
            else:
                content = known.get(id(part), part)
            length = len(content) if isinstance(content, bytes) else content.size
            tag = length_tag(number, length)
            pieces += (tag, content)
            size += len(tag) + length
    return b"".join(pieces) if size <= SMALL else Content(size, pieces)


def named(pairs: Iterable[tuple[str | None, Any]]) -> list[dict[str, Any]]:
    """Return the messages of values and their names, which may be None."""
    return [{"name": name, "value": value} for name, value in pairs]
