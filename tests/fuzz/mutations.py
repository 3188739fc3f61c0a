"""Random damage to bytes and to texts."""

from __future__ import annotations

import copy
import dataclasses
import random
import re
from collections.abc import Sequence

from tffc.errors import WireError
from tffc.ir.wire.fields import (
    LENGTH,
    VARINT,
    Place,
    read_head,
    read_length,
    read_varint,
    skip_value,
    varint,
)

WORDS = re.compile(r"\w+|\s+|[^\w\s]")
VOCABULARY = (
    "let", "in", "where", "True", "nan", "-inf", "CLIENTS", "@SERVER", "placement", "int32", "str",
    "'int8'(shape=None)", "<lambda>", "(", ")", "<", ">", "[", "]", "{", "}", ",", "=", ":", "&",
    "*", "?", ".", "->", "( -> 1)", "<>", "0", "-1", "1.5", "1e400", "2j", "(1-nanj)", "0x", "0xff",
    "99999999999999999999", "b'\\xff'", 'b"', '"a b"', '"\\u', "comp#a", "data#a",
    "sha256:" + "0" * 64, "bfloat16[2,?]", "complex64", "x", "$", "\n", "\0", "é",
)  # fmt: skip
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF)
CHANGES = (1, 1, 1, 2, 4)
"""How many changes are made, one of these at random."""

DEEPEST = 30
"""How deep the messages in a message are looked into."""


@dataclasses.dataclass
class Field:
    """A field of a message: an integer, bytes, or fields where the bytes can be read as such."""

    number: int
    wire: int
    value: int | bytes | list[Field]


def read_fields(data: bytes, depth: int = 0) -> list[Field]:
    """The fields of a message, those of the messages in it too.

    Raises:
      WireError: it is no message.
    """
    place = Place(0, len(data))
    found: list[Field] = []
    at = 0
    while at < len(data):
        number, wire, at = read_head(data, at, place)
        if wire == VARINT:
            value, at = read_varint(data, at, place)
            found.append(Field(number, wire, value))
        elif wire == LENGTH:
            start, at = read_length(data, at, place)
            found.append(Field(number, wire, _content(data[start:at], depth + 1)))
        else:
            end = skip_value(data, wire, at, place)
            found.append(Field(number, wire, data[at:end]))
            at = end
    return found


def _content(data: bytes, depth: int) -> bytes | list[Field]:
    if not data or depth > DEEPEST:
        return data
    try:
        return read_fields(data, depth)
    except WireError:
        return data


def write_fields(fields: list[Field]) -> bytes:
    """The message of these fields."""
    written = bytearray()
    for field in fields:
        written += varint(field.number << 3 | field.wire)
        if isinstance(field.value, int):
            written += varint(field.value)
        elif field.wire == LENGTH:
            content = field.value if isinstance(field.value, bytes) else write_fields(field.value)
            written += varint(len(content)) + content
        elif isinstance(field.value, bytes):
            written += field.value
    return bytes(written)


def change_fields(generator: random.Random, fields: list[Field]) -> None:
    """Changes one field of the message, or of one of the messages in it."""
    holders = [fields]
    for holder in holders:  # which grows while it is walked
        holders.extend(field.value for field in holder if isinstance(field.value, list))
    holder = generator.choice([holder for holder in holders if holder] or [[]])
    if not holder:
        return
    index = generator.randrange(len(holder))
    field = holder[index]
    match generator.randrange(6):
        case 0:
            del holder[index]
        case 1:
            holder.insert(generator.randrange(len(holder) + 1), copy.deepcopy(field))
        case 2:
            field.number = generator.choice((1, 2, 3, 4, 5, 8, 14, 100))
        case 3:
            generator.shuffle(holder)
        case 4:
            holder[index] = copy.deepcopy(generator.choice(generator.choice(holders) or holder))
        case 5 if isinstance(field.value, int):
            field.value = generator.choice((0, 1, 2, 7, 300, 2**31, 2**63, 2**64 - 1))
        case 5:
            field.value = generator.choice((b"", b"x", b"clients", b"\xff", field.value))


def damaged_bytes(generator: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds after a few changes: to any of its bytes, or to its fields as a message."""
    seed = generator.choice(seeds)
    fields = _content(seed, 0)
    if isinstance(fields, list) and generator.random() < 0.5:
        for _ in range(generator.choice(CHANGES)):
            change_fields(generator, fields)
        return write_fields(fields)
    data = bytearray(seed)
    for _ in range(generator.choice(CHANGES)):
        at = generator.randrange(len(data) + 1)
        length = min(generator.choice((1, 1, 2, 4, 16, 64)), len(data) - at)
        match generator.randrange(7):
            case 0:
                data[at : at + 1] = bytes([generator.choice(NUMBERS)])
            case 1:
                data[at : at + 1] = bytes([generator.randrange(256)])
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length]
            case 4:
                data[at:at] = generator.randbytes(length)
            case 5:
                del data[at:]
            case 6:
                other = generator.choice(seeds)
                begin = generator.randrange(len(other) + 1)
                data[at : at + length] = other[begin : begin + generator.choice((4, 16, 64))]
    return bytes(data)


def damaged_text(generator: random.Random, seeds: Sequence[str]) -> str:
    """One of the seeds after a few of its words were changed."""
    words: list[str] = WORDS.findall(generator.choice(seeds))
    for _ in range(generator.choice(CHANGES)):
        at = generator.randrange(len(words) + 1)
        match generator.randrange(6):
            case 0:
                words[at : at + 1] = [generator.choice(VOCABULARY)]
            case 1:
                words[at:at] = [generator.choice(VOCABULARY)]
            case 2:
                del words[at : at + generator.randint(1, 8)]
            case 3:
                words[at:at] = words[at : at + generator.randint(1, 8)]
            case 4:
                other = WORDS.findall(generator.choice(seeds))
                begin = generator.randrange(len(other) + 1)
                words[at : at + generator.randint(0, 4)] = other[begin : begin + 8]
            case 5:
                del words[at:]
    return "".join(words)
