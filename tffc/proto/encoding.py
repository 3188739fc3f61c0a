"""The protobuf encoding of messages, read and written without protobuf.

protobuf's parsers refuse messages nested more than 100 deep, which programs soon are.  A message
is read shallowly, by its table of fields, and what is inside it stays a `Place` in the input until
someone reads that.  Messages are written from the last byte to the first, so that the length of
each is known when its head is written.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from tffc.errors import WireError

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


@dataclasses.dataclass(slots=True, eq=False)
class Place:
    """A part of the input, and how it was reached: through field `step` of `parent`."""

    start: int
    end: int
    parent: Place | None = None
    step: str = ""

    def path(self) -> str:
        """Return the fields that lead here from the outermost message."""
        steps: list[str] = []
        place: Place | None = self
        while place is not None:
            if place.step:
                steps.append(place.step)
            place = place.parent
        return ".".join(reversed(steps))

    def refuse(self, code: str, message: str, at: int | None = None) -> NoReturn:
        """Raise WireError for something at byte `at`, or at the start of this place."""
        path = self.path()
        offset = self.start if at is None else at
        notes = (f"at byte {offset}" + (f", in {path}" if path else ""),)
        raise WireError(code, message, notes=notes)


class Kind(enum.IntEnum):
    """How the value of a field is read."""

    MESSAGE = enum.auto()
    MESSAGES = enum.auto()
    STRING = enum.auto()
    BYTES = enum.auto()
    INTEGER = enum.auto()
    INTEGERS = enum.auto()


MESSAGE, MESSAGES, STRING, BYTES, INTEGER, INTEGERS = Kind
ENCODINGS = dict.fromkeys(Kind, (LENGTH,)) | {INTEGER: (VARINT,), INTEGERS: (LENGTH, VARINT)}
"""The wire types that each kind of field may have, the one that is written first."""


class MessageField(NamedTuple):
    """One field of a message, the full name of the `message` in it, and whether it is one of those
    that are `chosen` between: it stands in a oneof, so that an empty value is there, too."""

    name: str
    kind: Kind
    number: int
    message: str = ""
    chosen: bool = False


Schema = Mapping[int, MessageField]
"""The fields of a message by their heads, which are number and wire type.  Others are skipped."""


def schema(**fields: tuple[int, Kind]) -> Schema:
    """Return the table of these fields."""
    return by_head(MessageField(name, kind, number) for name, (number, kind) in fields.items())


def by_head(fields: Iterable[MessageField]) -> Schema:
    """Return the table of these fields."""
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
    return place.refuse("E204", "the input ends inside a number", begin)


def read_head(data: bytes, at: int, place: Place) -> tuple[int, int, int]:
    """Return the number and the wire type of the field at byte `at`, and the byte after its
    head."""
    begin = at
    tag, at = read_varint(data, at, place)
    number, wire = tag >> 3, tag & 7
    if not 0 < number <= MAX_FIELD_NUMBER:
        place.refuse("E205", f"there cannot be a field number {number}", begin)
    if wire not in WIRE_TYPES:
        place.refuse("E206", f"field {number} has the wire type {wire}, which is not in use", begin)
    return number, wire, at


def read_length(data: bytes, at: int, place: Place) -> tuple[int, int]:
    """Return where the content of a field of wire type LENGTH starts and ends."""
    begin = at
    length = data[at] if at < place.end else 0x80
    if length < 0x80:
        at += 1
    else:
        length, at = read_varint(data, at, place)
    if at + length > place.end:
        place.refuse(
            "E207",
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
    size = 8 if wire == FIXED64 else 4
    if at + size > place.end:
        place.refuse("E208", f"a value of {size} bytes, of which {place.end - at} are there", at)
    return at + size


def read_message(data: bytes, place: Place, fields: Schema) -> dict[str, Any]:
    """Return the fields present in the message, by name: places of messages, text, bytes, integers,
    or lists of them.

    Raises:
      WireError: the message is malformed, a field has another wire type than its kind, or one
        that is not repeated stands twice.
    """
    found: dict[str, Any] = {}
    at, end = place.start, place.end
    while at < end:
        begin = at
        head, at = (data[at], at + 1) if data[at] < 0x80 else read_varint(data, at, place)
        field = fields.get(head)
        if field is None:
            at = _skip_unknown(data, begin, place, fields)
            continue
        name, kind = field.name, field.kind
        if kind is INTEGER:
            value, at = read_varint(data, at, place)
        elif kind is INTEGERS:
            at = _read_integers(data, head & 7, at, place, found.setdefault(name, []))
            continue
        else:
            start, at = read_length(data, at, place)
            if kind is MESSAGES:
                group = found.setdefault(name, [])
                group.append(Place(start, at, place, f"{name}[{len(group)}]"))
                continue
            if kind is MESSAGE:
                value = Place(start, at, place, name)
            elif kind is BYTES:
                value = data[start:at]
            else:
                value = read_string(data, start, at, place, name)
        if name in found:
            place.refuse("E209", f"the field {name} stands twice", begin)
        found[name] = value
    return found


def _skip_unknown(data: bytes, at: int, place: Place, fields: Schema) -> int:
    """Return the byte after a field at byte `at`; refuse one that the table has with another wire
    type."""
    number, wire, start = read_head(data, at, place)
    for field in fields.values():
        if field.number == number:
            place.refuse(
                "E210",
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
    """Return the text between two bytes, which is the field `name` of the message at `place`."""
    try:
        return data[start:end].decode()
    except UnicodeDecodeError as error:
        inside = Place(start, end, place, name)
        inside.refuse("E211", "a text is not in UTF-8", start + error.start)


def signed(value: int, bits: int = 64) -> int:
    """Return the low `bits` of an unsigned number as a signed one, which is how protobuf stores
    them."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# Writing.


@dataclasses.dataclass(slots=True, eq=False)
class Content:
    """The content of a large message: its size in bytes, and its pieces in order."""

    size: int
    pieces: list[bytes | Content]


def size_of(content: bytes | Content) -> int:
    """Return how many bytes a content has."""
    return len(content) if isinstance(content, bytes) else content.size


def joined(content: bytes | Content) -> bytes:
    """Return a content as bytes.

    Raises:
      WireError: it is larger than protobuf can read.
    """
    size = size_of(content)
    if size > MAX_MESSAGE:
        raise WireError(
            "E212", f"the program takes {size} bytes, and no message more than {MAX_MESSAGE}"
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
    """Return the encoding of a number, a negative one as the 64 bits of its two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@functools.lru_cache(maxsize=4096)
def content_head(number: int, size: int) -> bytes:
    """Return the head of a field whose content has this many bytes."""
    return varint(number << 3 | LENGTH) + varint(size)


def content_field(number: int, content: bytes) -> bytes:
    """Return a field of bytes, text or a message that is written already."""
    return content_head(number, len(content)) + content


def string_field(number: int, text: str) -> bytes:
    """Return a field of text; nothing for the empty text, which is the default."""
    if not text:
        return b""
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise WireError("E213", f"{text!r} is not Unicode text and cannot be written") from None
    return content_head(number, len(content)) + content


@functools.lru_cache(maxsize=4096)
def integer_field(number: int, value: int) -> bytes:
    """Return a field of an integer, also where it is 0."""
    return varint(number << 3 | VARINT) + varint(value)


def packed_field(number: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of integers; nothing where there are none."""
    content = b"".join(map(varint, values))
    return content_field(number, content) if content else b""
