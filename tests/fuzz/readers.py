"""Readers of what strangers may send, each given any bytes: it refuses them, or reads them.

What a fuzzer guided by coverage tries (`python -m tests.fuzz.coverage`), and what it found to be of
interest (`tests/fuzz/corpus`) is tried again by the tests.
"""

from __future__ import annotations

import functools
import io
import pathlib
import random
import zipfile
from collections.abc import Iterator

import numpy as np
from google.protobuf.message import DecodeError

from tests.fuzz import (
    federation_readers,
    file_readers,
    graph_readers,
    run_readers,
    table_readers,
    trust_readers,
)
from tests.fuzz.mutations import CHANGES
from tests.fuzz.reader import (
    Reader,
    damage_bytes,
    damage_rest,
    damage_text,
    folder,
    read_any,
    refused,
)
from tests.fuzz.targets import (
    check_message,
    check_node,
    check_type,
    seed_messages,
    seed_sections,
    seed_texts,
    seed_types,
)
from tests.hostile.bundles import seeds as seed_bundles
from tests.records import example, framed
from tffc.backends.bundle.bundle import MANIFEST, read_bundle
from tffc.language import SequenceType, StructType, TensorType, Type
from tffc.language.notation import parse
from tffc.language.wire import from_bytes, type_from_bytes
from tffc.support.errors import TffcError
from tffc.tff.federated_language import array as language_array
from tffc.tff.federated_language import messages

CORPUS = pathlib.Path(__file__).with_name("corpus")
"""A file for each reader, with one input a line in hexadecimal digits."""

FLOAT, TEXT = TensorType(np.float32), TensorType(np.str_)
NAMED = StructType.of(("n", "s"), (TensorType(np.int32, [None]), TEXT))
TYPES: tuple[Type, ...] = (
    FLOAT,
    TEXT,
    SequenceType(FLOAT),
    SequenceType(TensorType(np.bool_, [2])),
    NAMED,
    SequenceType(NAMED),
)
"""What is looked for in data, one after another."""

LARGEST = 2**20
"""How much memory the arrays of a client may take."""


def read_message(data: bytes) -> bool:
    """Read a serialized computation, and check what was read."""
    check_message(from_bytes(data))
    return True


def read_text(data: bytes) -> bool:
    """Parse a program, and check what was parsed."""
    check_node(parse(data.decode(errors="replace"), seed_sections()))
    return True


def read_constant(data: bytes) -> bool:
    try:
        message = messages.Array.FromString(data)
    except DecodeError:
        return False  # which is for whoever makes the message
    try:
        language_array.from_proto(message)
    except TffcError:
        return False
    return True


def seed_constants() -> list[bytes]:
    values = (1, 2.5, True, "text", b"bytes", np.arange(6, dtype=np.int16).reshape(2, 3))
    return [language_array.to_proto(value).SerializeToString() for value in values]


def read_type(data: bytes) -> bool:
    """Read a serialized type, and check what was read."""
    check_type(type_from_bytes(data))
    return True


def read_npz(data: bytes) -> bool:
    """Read a client's arrays, from a zip file or from one that is made of the bytes.

    The first byte chooses: the rest is a file, an array, or the two arrays of exact strings.
    """
    kind, content = data[:1], data[1:]
    if kind in (b"a", b"A"):
        content = _zipped(kind == b"A", {"0.npy": content})
    elif kind == b"s":
        lengths, _, strings = content.partition(b"|")
        content = _zipped(False, {"0.lengths.npy": lengths, "0.bytes.npy": strings})
    place = folder("data")
    (place / "ada.npz").write_bytes(content)
    return read_any([f"npz:{place}?max-bytes={LARGEST}"], TYPES)


def read_records(data: bytes) -> bool:
    """Read the records of clients, from a file or from one with right checksums.

    The first byte chooses: the rest is a file, or the content of one record.
    """
    kind, content = data[:1], data[1:]
    path = folder("records") / "ada.tfrecord"
    path.write_bytes(framed(content) if kind == b"r" else content)
    locations = (f"tfrecord:{path}{options}" for options in ("", "?client=n", "?client=s"))
    return read_any(locations, TYPES)


def read_manifest(data: bytes) -> bool:
    """Read a bundle with this manifest, whose other files are whole."""
    place = _bundle()
    (place / MANIFEST).write_bytes(data)
    read_bundle(place)
    return True


def _zipped(compressed: bool, members: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED if compressed else 0) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return held.getvalue()


@functools.cache
def _bundle() -> pathlib.Path:
    place = folder("bundle")
    for path, content in seed_bundles()[0].items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(content)
    return place


def _seed_npz() -> Iterator[bytes]:
    arrays = {
        "0": np.float32(1),
        "n": np.arange(2, dtype=np.int32),
        "s": np.array([b"a", b"bc"]),
        "0.lengths": np.array([1, 2]),
        "0.bytes": np.frombuffer(b"abc", np.uint8),
    }
    made: dict[str, bytes] = {}
    for name, array in arrays.items():
        held = io.BytesIO()
        np.save(held, array)
        made[name] = held.getvalue()
        yield b"a" + made[name]
        yield b"A" + made[name]
    yield b"s" + made["0.lengths"] + b"|" + made["0.bytes"]
    held = io.BytesIO()
    np.savez(held, **arrays)
    yield b"z" + held.getvalue()
    yield b"z" + _zipped(True, {f"{name}.npy": content for name, content in made.items()})


def _seed_records() -> Iterator[bytes]:
    for features in ({"0": 1.5}, {"n": 3, "s": "ada"}, {"n": 2**40, "s": "", "0": 1}):
        yield b"r" + example(features)
        yield b"f" + framed(example(features)) * 2


READERS = {
    "message": Reader(
        read_message,
        lambda: sorted(set(seed_messages())),
        damage_bytes,
        ("a serialized computation", "a section of TensorFlow", "a section of XLA"),
    ),
    "type": Reader(
        read_type, lambda: sorted(set(seed_types())), damage_bytes, ("a serialized type",)
    ),
    "constant": Reader(read_constant, seed_constants, damage_bytes, ("a constant",)),
    "text": Reader(
        read_text,
        lambda: sorted({text.encode() for text in seed_texts()}),
        damage_text,
        ("a typed text", "the text of a type"),
    ),
    "npz": Reader(
        read_npz,
        lambda: list(_seed_npz()),
        damage_rest,
        ("an .npz file", "a folder of .npz files"),
    ),
    "tfrecord": Reader(
        read_records,
        lambda: list(_seed_records()),
        damage_rest,
        ("TFRecord files", "a table of clients"),
    ),
    "manifest": Reader(
        read_manifest,
        lambda: sorted({each[MANIFEST] for each in seed_bundles()}),
        damage_text,
        ("the manifest of a bundle", "a bundle"),
    ),
    **graph_readers.READERS,
    **federation_readers.READERS,
    **file_readers.READERS,
    **table_readers.READERS,
    **run_readers.READERS,
    **trust_readers.READERS,
}


def read_or_refuse(name: str, data: bytes) -> bool:
    """Return whether a reader reads the bytes; it refuses them if not.

    Raises:
      Exception: what is not a refusal of tffc's own, or one that does not say what is wrong.
    """
    try:
        return READERS[name].read(data)
    except TffcError as error:
        return refused(error)


def damaged(name: str, generator: random.Random) -> bytes:
    """Return an input of a reader after a few changes."""
    reader = READERS[name]
    data = generator.choice(_inputs(name))
    for _ in range(generator.choice(CHANGES)):
        data = reader.damage(generator, data)
    return data


@functools.cache
def _inputs(name: str) -> list[bytes]:
    return [*READERS[name].seeds(), *corpus(name)]


def corpus(name: str) -> list[bytes]:
    """Return the inputs that are kept for a reader."""
    return [bytes.fromhex(line) for line in (CORPUS / f"{name}.txt").read_text().split()]
