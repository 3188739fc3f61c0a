"""The protobuf encoding of messages, read and written without protobuf.

Protobuf's parsers refuse messages nested more than 100 levels deep, and programs easily are.  A
message is therefore read one level at a time: the messages in it stay places in the input until
they are read themselves.  Messages are written from the inside out, because each begins with the
length of its content.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from tffc.support.errors import WireError

MAX_MESSAGE = 2**31 - 1
"""The size of the largest message, in bytes, that protobuf can read."""

MAX_FIELD_NUMBER = 2**29 - 1
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
WIRE_TYPES = {
    VARINT: "a varint",
    FIXED64: "eight bytes",
    LENGTH: "a length",
    FIXED32: "four bytes",
}
FIXED_SIZES = {FIXED32: 4, FIXED64: 8}
"""The sizes, in bytes, of values that all have one size."""


@dataclasses.dataclass(slots=True, eq=False)
class Place:
    """A range of bytes in the input, which is the field `step` of the message at `parent`, or the
    value at `index` of that field."""

    start: int
    end: int
    parent: Place | None = None
    step: str = ""
    index: int | None = None

    def path(self) -> str:
        """Return the names of the fields that lead here from the outermost message."""
        steps: list[str] = []
        place: Place | None = self
        while place is not None:
            if place.step:
                steps.append(place.step if place.index is None else f"{place.step}[{place.index}]")
            place = place.parent
        return ".".join(reversed(steps))

    def refuse(self, code: str, message: str, at: int | None = None) -> NoReturn:
        """Raise WireError for the byte `at`, or for the first byte of this place."""
        path = self.path()
        offset = self.start if at is None else at
        notes = (f"at byte {offset}" + (f", in {path}" if path else ""),)
        raise WireError(code, message, notes=notes)


class Kind(enum.IntEnum):
    """The kinds of values that a field of a message can have."""

    MESSAGE = enum.auto()
    MESSAGES = enum.auto()
    STRING = enum.auto()
    BYTES = enum.auto()
    INTEGER = enum.auto()
    INTEGERS = enum.auto()


MESSAGE, MESSAGES, STRING, BYTES, INTEGER, INTEGERS = Kind
ENCODINGS = dict.fromkeys(Kind, (LENGTH,)) | {INTEGER: (VARINT,), INTEGERS: (LENGTH, VARINT)}
"""The wire types that each kind of field is read from.  The first is the one that is written."""


class MessageField(NamedTuple):
    """One field of a message.

    `message` is the full name of the message in it.  A field `in_oneof` is present even where its
    value is empty.
    """

    name: str
    kind: Kind
    number: int
    message: str = ""
    in_oneof: bool = False


Schema = Mapping[int, MessageField]
"""The fields of a message by tag, which is number and wire type.  Other fields are skipped."""


def schema(**fields: tuple[int, Kind]) -> Schema:
    """Return the schema of fields given by name, as their numbers and kinds."""
    return by_tag(MessageField(name, kind, number) for name, (number, kind) in fields.items())


def by_tag(fields: Iterable[MessageField]) -> Schema:
    """Return the schema of these fields."""
    return {field.number << 3 | wire: field for field in fields for wire in ENCODINGS[field.kind]}


def read_varint(data: bytes, at: int, place: Place) -> tuple[int, int]:
    """Return the unsigned number of up to 64 bits at byte `at` and the byte after it."""
    begin, result, shift = at, 0, 0
    while at < place.end:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift >= 70:
            place.refuse("E203", "a number is longer than the ten bytes of the longest", begin)
    return place.refuse("E203", "the input ends inside a number", begin)


def read_tag(data: bytes, at: int, place: Place) -> tuple[int, int, int]:
    """Return the number and the wire type of the field at byte `at`, and the byte after its tag."""
    begin = at
    tag, at = read_varint(data, at, place)
    number, wire = tag >> 3, tag & 7
    if not 0 < number <= MAX_FIELD_NUMBER:
        place.refuse("E203", f"a field number cannot be {number}", begin)
    if wire not in WIRE_TYPES:
        place.refuse("E203", f"field {number} has the wire type {wire}, which is not in use", begin)
    return number, wire, at


def read_length(data: bytes, at: int, place: Place) -> tuple[int, int]:
    """Return the start and the end of the content of a field of wire type LENGTH."""
    begin = at
    length = data[at] if at < place.end else 0x80
    if length < 0x80:
        at += 1
    else:
        length, at = read_varint(data, at, place)
    if at + length > place.end:
        place.refuse(
            "E203",
            f"a field of {length} bytes, of which {place.end - at} are there",
            begin,
        )
    return at, at + length


def skip_value(data: bytes, wire: int, at: int, place: Place) -> int:
    """Return the byte after the value of wire type `wire` that starts at byte `at`."""
    if wire == VARINT:
        return read_varint(data, at, place)[1]
    if wire == LENGTH:
        return read_length(data, at, place)[1]
    size = FIXED_SIZES[wire]
    if at + size > place.end:
        place.refuse("E203", f"a value of {size} bytes, of which {place.end - at} are there", at)
    return at + size


def read_fields(data: bytes, place: Place) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield each field of a message: its number and wire type, and the bytes at which the field,
    its value and what follows begin."""
    at = place.start
    while at < place.end:
        begin = at
        number, wire, value = read_tag(data, at, place)
        at = skip_value(data, wire, value, place)
        yield number, wire, begin, value, at


def read_repeated(data: bytes, place: Place, number: int, wire: int, what: str) -> Iterator[Any]:
    """Yield the values of a repeated field, packed or not: integers, or bytes of other wire types.
    Errors call the values `what`.

    Raises:
      WireError: a value is not of this wire type, or a part of one is missing.
    """
    for field, found_wire, begin, start, end in read_fields(data, place):
        if field != number:
            continue
        if found_wire not in (LENGTH, wire):
            place.refuse("E203", f"{what} are not encoded as {WIRE_TYPES[found_wire]}", begin)
        # A value that is not packed is read as if it was packed alone.
        at = read_length(data, start, place)[0] if found_wire == LENGTH else start
        packed = Place(at, end, place, "value")
        if wire == VARINT:
            while at < end:
                value, at = read_varint(data, at, packed)
                yield value
        elif (end - at) % FIXED_SIZES.get(wire, 1):
            packed.refuse("E203", f"{end - at} bytes are not a whole number of {what}")
        else:
            yield data[at:end]


def without_fields(data: bytes, place: Place, fields: Mapping[int, Any]) -> bytes:
    """Return the message at a place without some fields, which are given by number: None for a
    field that is removed, the fields inside it for a message."""
    pieces: list[bytes] = []
    for number, wire, begin, value, end in read_fields(data, place):
        if number not in fields:
            pieces.append(data[begin:end])
        elif fields[number] is not None and wire == LENGTH:
            inner = Place(*read_length(data, value, place))
            pieces.append(content_field(number, without_fields(data, inner, fields[number])))
    return b"".join(pieces)


def read_message(data: bytes, place: Place, fields: Schema) -> dict[str, Any]:
    """Return the fields that the message has, by name.

    The values are places of messages, text, bytes, integers, or lists of these.

    Raises:
      WireError: the message is malformed, a field has a wire type that its kind does not allow, or
        a field that is not repeated occurs twice.
    """
    values: dict[str, Any] = {}
    at, end = place.start, place.end
    while at < end:
        begin = at
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = read_varint(data, at, place)
        field = fields.get(tag)
        if field is None:
            at = _skip_unknown(data, begin, place, fields)
            continue
        name, kind, _, _, _ = field
        if kind is INTEGER:
            value, at = read_varint(data, at, place)
        elif kind is INTEGERS:
            at = _read_integers(data, tag & 7, at, place, values.setdefault(name, []))
            continue
        else:
            # Most contents are short: their length is one byte.
            start = at + 1
            length = data[at] if at < end else 0x80
            if length < 0x80 and start + length <= end:
                at = start + length
            else:
                start, at = read_length(data, at, place)
            if kind is MESSAGE:
                value = Place(start, at, place, name)
            elif kind is MESSAGES:
                group = values.setdefault(name, [])
                group.append(Place(start, at, place, name, len(group)))
                continue
            elif kind is BYTES:
                value = data[start:at]
            else:
                value = read_string(data, start, at, place, name)
        if name in values:
            place.refuse("E203", f"the field {name} occurs twice", begin)
        values[name] = value
    return values


def _skip_unknown(data: bytes, at: int, place: Place, fields: Schema) -> int:
    """Return the byte after the field at byte `at`; refuse a field that the schema has, which has
    another wire type there."""
    number, wire, start = read_tag(data, at, place)
    for field in fields.values():
        if field.number == number:
            place.refuse(
                "E203",
                f"the field {field.name} is encoded as {WIRE_TYPES[wire]}, "
                f"not as {WIRE_TYPES[ENCODINGS[field.kind][0]]}",
                at,
            )
    return skip_value(data, wire, start, place)


def _read_integers(data: bytes, wire: int, at: int, place: Place, into: list[int]) -> int:
    if wire == VARINT:
        value, at = read_varint(data, at, place)
        into.append(value)
        return at
    start, end = read_length(data, at, place)
    packed = Place(start, end, place)
    at = start
    while at < end:
        value, at = read_varint(data, at, packed)
        into.append(value)
    return end


def read_string(data: bytes, start: int, end: int, place: Place, name: str) -> str:
    """Return the text in a range of bytes: the field `name` of the message at `place`."""
    try:
        return data[start:end].decode()
    except UnicodeDecodeError as error:
        inside = Place(start, end, place, name)
        inside.refuse("E203", "a text is not in UTF-8", start + error.start)


def signed(value: int, bits: int = 64) -> int:
    """Return the low `bits` of an unsigned number as a signed number, which is how protobuf stores
    those."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# Writing.


@dataclasses.dataclass(slots=True, eq=False)
class Content:
    """The content of a large message: its size in bytes, and its pieces in order.

    Messages that contain it share it, so a message can be far larger than the memory it takes.
    """

    size: int
    pieces: list[bytes | Content]


def size_of(content: bytes | Content) -> int:
    """Return the size of a content in bytes."""
    return len(content) if isinstance(content, bytes) else content.size


def joined(content: bytes | Content) -> bytes:
    """Return the bytes of a content.

    Raises:
      WireError: it is larger than protobuf can read.
    """
    size = size_of(content)
    if size > MAX_MESSAGE:
        raise WireError(
            "E139", f"the program takes {size} bytes, and no message more than {MAX_MESSAGE}"
        )
    written: list[bytes] = []
    stack = [content]
    while stack:
        piece = stack.pop()
        if isinstance(piece, bytes):
            written.append(piece)
        else:
            stack.extend(reversed(piece.pieces))
    return b"".join(written)


def varint(value: int) -> bytes:
    """Return the encoding of a number; a negative one is written as 64 bits of two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@functools.lru_cache(maxsize=4096)
def length_tag(number: int, size: int) -> bytes:
    """Return the tag and the length of a field whose content has `size` bytes."""
    return varint(number << 3 | LENGTH) + varint(size)


def content_field(number: int, content: bytes) -> bytes:
    """Return a field that holds bytes: those of a text or a message, or bytes themselves."""
    return length_tag(number, len(content)) + content


def string_field(number: int, text: str) -> bytes:
    """Return a field of text, or nothing for the empty text, which is the default."""
    if not text:
        return b""
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise WireError("E107", f"{text!r} is not Unicode text and cannot be written") from None
    return length_tag(number, len(content)) + content


@functools.lru_cache(maxsize=4096)
def integer_field(number: int, value: int) -> bytes:
    """Return a field of an integer, which may be 0."""
    return varint(number << 3 | VARINT) + varint(value)


def packed_field(number: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of integers, or nothing if there are none."""
    content = b"".join(map(varint, values))
    return content_field(number, content) if content else b""
