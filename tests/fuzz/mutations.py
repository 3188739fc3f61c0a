"""Random damage to bytes and to texts."""

from __future__ import annotations

import copy
import dataclasses
import random
import re
from collections.abc import Sequence
from typing import Any

from tffc.graphs.proto.encoding import (
    LENGTH,
    VARINT,
    Place,
    read_length,
    read_tag,
    read_varint,
    skip_value,
    varint,
)
from tffc.language.intrinsics import INTRINSICS
from tffc.support.errors import WireError

WORDS = re.compile(r"\w+|\s+|[^\w\s]")
VOCABULARY = (
    "let", "in", "where", "True", "nan", "-inf", "CLIENTS", "@SERVER", "placement", "int32", "str",
    "'int8'(shape=None)", "<lambda>", "(", ")", "<", ">", "[", "]", "{", "}", ",", "=", ":", "&",
    "*", "?", ".", "->", "( -> 1)", "<>", "0", "-1", "1.5", "1e400", "2j", "(1-nanj)", "0x", "0xff",
    "99999999999999999999", "b'\\xff'", 'b"', '"a b"', '"\\u', "comp#a", "data#a",
    "sha256:" + "0" * 64, "bfloat16[2,?]", "complex64", "x", "$", "\n", "\0", "é",
)  # fmt: skip
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF)
URIS = (*INTRINSICS, "nope", "")
"""Operators, known and unknown."""

CHANGES = (1, 1, 1, 2, 4)
"""How many changes are made, one of these at random."""

DEEPEST = 30
"""How deep the messages in a message are looked into."""


MOST_FIELDS = 5000
"""Messages of more fields are not made larger."""


@dataclasses.dataclass
class Field:
    """A field of a message: an integer, bytes, or fields where the bytes can be read as such."""

    number: int
    wire: int
    value: int | bytes | list[Field]


def read_fields(data: bytes, depth: int = 0) -> list[Field]:
    """The fields of a message, those of the messages in it too.

    Raises:
      WireError: it is not a message.
    """
    place = Place(0, len(data))
    found: list[Field] = []
    at = 0
    while at < len(data):
        number, wire, at = read_tag(data, at, place)
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


def damaged_program(generator: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A serialized program after changes that leave it, for the most part, a message."""
    fields = _content(generator.choice(seeds), 0)
    others = _content(generator.choice(seeds), 0)
    if not isinstance(fields, list) or not isinstance(others, list):
        return damaged_bytes(generator, seeds)
    for _ in range(generator.choice(CHANGES)):
        _change_program(generator, fields, others)
    return write_fields(fields)


def _change_program(generator: random.Random, fields: list[Field], others: list[Field]) -> None:
    """Change a part of a program: at one place, or wherever the same part stands."""
    parts = _all_fields(fields)
    if not 0 < len(parts) < MOST_FIELDS:
        return
    part = generator.choice(parts)
    match generator.randrange(5):
        case 0:  # A type, node or name in the place of another.
            alike = [
                each
                for each in (*parts, *_all_fields(others))
                if each.number == part.number and type(each.value) is type(part.value)
            ]
            _replace(generator, parts, part, generator.choice(alike or parts).value)
        case 1:  # The name of a parameter, a binding or an element, or a URI.
            texts = [each for each in parts if isinstance(each.value, bytes) and each.value]
            if texts:
                names = [*(each.value for each in texts), *(uri.encode() for uri in URIS), b"new"]
                _replace(generator, parts, generator.choice(texts), generator.choice(names))
        case 2:  # An integer, such as a kind of elements, a size or a position.
            numbers = [each for each in parts if isinstance(each.value, int)]
            if numbers:
                value = generator.choice((0, 1, 2, 3, 7, 8, 9, 100, 2**31, 2**64 - 1))
                _replace(generator, parts, generator.choice(numbers), value)
        case 3:  # A binding or element twice or more often, one after another.
            holder = generator.choice([fields, *_holders(parts)])
            at = generator.randrange(len(holder) + 1)
            if at < len(holder):
                copies = min(generator.choice((1, 1, 2, 30)), MOST_FIELDS // len(parts))
                holder[at:at] = [copy.deepcopy(holder[at]) for _ in range(copies)]
        case 4:  # What a program holds, in the place of a part of itself.
            holder = generator.choice([fields, *_holders(parts)])
            part.value, part.wire = copy.deepcopy(holder), LENGTH


def _all_fields(fields: list[Field]) -> list[Field]:
    found = list(fields)
    for each in found:  # which grows while it is walked
        if isinstance(each.value, list):
            found.extend(each.value)
    return found


def _holders(parts: list[Field]) -> list[list[Field]]:
    return [each.value for each in parts if isinstance(each.value, list) and each.value]


def _replace(generator: random.Random, parts: list[Field], part: Field, value: Any) -> None:
    """Give a part another value, and perhaps all that are equal to it too."""
    everywhere = generator.random() < 0.5
    changed = [each for each in parts if each == part] if everywhere else [part]
    value = copy.deepcopy(value)  # which may hold what is changed
    size = 1 + len(_all_fields(value)) if isinstance(value, list) else 1
    for each in changed[: 1 + MOST_FIELDS // size]:
        each.value = copy.deepcopy(value)


def rewritten_text(generator: random.Random, seeds: Sequence[str]) -> str:
    """One of the seeds after changes that keep brackets closed: other parts, names and types."""
    words: list[str] = WORDS.findall(generator.choice(seeds))
    others: list[str] = WORDS.findall(generator.choice(seeds))
    for _ in range(generator.choice(CHANGES)):
        _rewrite(generator, words, others)
    return "".join(words)


def _rewrite(generator: random.Random, words: list[str], others: list[str]) -> None:
    groups, foreign = _groups(words), _groups(others)
    names = [word for word in (*words, *others) if word[:1].isalpha()]
    if not groups or not foreign or not names:
        words.append(generator.choice(VOCABULARY))
        return
    start, end = generator.choice(groups)
    content = words[start:end]
    match generator.randrange(7):
        case 0:  # A group of brackets in the place of another.
            begin, stop = generator.choice(foreign)
            words[start:end] = others[begin:stop]
        case 1:
            begin, stop = generator.choice(groups)
            words[start:end] = words[begin:stop]
        case 2:  # A name or type at all its places, or an operator of another URI.
            old, new = generator.choice(names), generator.choice((*names, *URIS, "new", "x"))
            words[:] = [new if word == old else word for word in words]
        case 3:
            at = generator.randrange(len(words))
            words[at] = generator.choice((*names, *URIS, *VOCABULARY))
        case 4:
            words[start:end] = ["<", *content, ",", *content, ">"]
        case 5:
            words[start:end] = ["(let z=", *content, " in ", generator.choice("zzx"), ")"]
        case 6:  # A binding or element twice.
            words[end:end] = [",", *content]


def _groups(words: list[str]) -> list[tuple[int, int]]:
    """Where groups of brackets begin and end."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for index, word in enumerate(words):
        if word in ("(", "<", "{", "["):
            opened.append(index)
        elif word in (")", "}", "]") or (word == ">" and words[index - 1] != "-"):
            if opened:
                found.append((opened.pop(), index + 1))
    return found


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
