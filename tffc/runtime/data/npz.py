"""Reading and writing `.npz` files: reading only the arrays needed, writing reproducible bytes.

Files may be damaged or hostile: every size that a file claims is compared with what the file can
hold before memory is allocated for it.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import pathlib
import re
import struct
import threading
import zipfile
import zlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from tffc.language.dtypes import BY_LABEL, DType
from tffc.language.types import TensorType
from tffc.runtime.data.arrays import (
    ArrayLayout,
    Arrays,
    Field,
    Header,
    extent,
    header_text,
    to_memory,
)
from tffc.runtime.data.casts import string_array
from tffc.runtime.data.compressed import MAX_BYTES, max_bytes_of
from tffc.runtime.data.files import changed
from tffc.support.errors import DataError, reader
from tffc.support.files.reading import Identity, open_regular
from tffc.support.guards import Array, ElementType
from tffc.support.near import MAX_NEAR_FILES, near_file

PARSING = threading.Lock()
"""Held while NumPy parses an array header as Python.  Two threads of CPython 3.11 cannot do that at
the same time: now and then one fails (https://github.com/python/cpython/issues/106905)."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest date that a zip file can hold; every member gets it, so that bytes are
reproducible."""

SUFFIX = ".npy"
"""The suffix of members that are arrays."""

OBJECT_SIZE = 64
"""The least memory of a Python object, which each sequence element and each string is."""

DEFLATE_RATIO = 1032
"""The greatest ratio by which deflate compresses."""

MAX_HEAD = 10_000
"""The limit on the bytes of an array header that is parsed, the same as NumPy's."""

MAX_LISTS = 2**20
"""The limit on the empty lists of an array without elements: a shape such as [1000000000, 0] takes
no bytes in a file, but one list for each row when written as lists."""

MAX_RANK = 32
"""The most dimensions that every release of NumPy can hold."""

USUAL_HEAD = re.compile(
    r"\{'descr': '([<>|=]?[a-zA-Z]\d{0,9})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,18}, )*(?:\d{1,18},?)?)\), \} *\n"
)
"""An array header as NumPy writes it, which can be read without parsing it as Python."""


class _ArrayHead(NamedTuple):
    """The header of an array, which precedes its elements in the file."""

    dtype: ElementType
    shape: tuple[int, ...]
    fortran_order: bool


LOCAL_HEAD = struct.Struct("<4s22xHH")
"""The local file header of a zip member; its two numbers are the lengths of the name and of the
extra field that follow."""


class ArrayPlace(NamedTuple):
    """The place of an array's data in a file, after checking.

    The member occupies `size` bytes from offset `start`.  Decompressed (if deflated), it has the
    CRC-32 `checksum`, and begins with `head` bytes of array header.
    """

    name: str
    start: int
    size: int
    is_deflated: bool
    checksum: int
    head: int
    dtype: ElementType
    shape: tuple[int, ...]
    fortran_order: bool


class NpzFile:
    """An `.npz` file that is open for reading.

    Raises:
      DataError: it is not an `.npz` file.
    """

    @reader("an .npz file", DataError)
    def __init__(self, path: pathlib.Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        status = os.fstat(file.fileno())
        self.identity = Identity.of(status)
        self._size = status.st_size
        with self._library():
            self._zip = zipfile.ZipFile(file)
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._heads: dict[str, _ArrayHead] = {}
        for member in self._zip.infolist():
            if member.filename in self._members:
                raise self._damaged(f"two members are called {member.filename!r}")
            self._members[member.filename] = member

    def headers(self) -> dict[str, Header]:
        """Return the element type and shape of every array, without reading the arrays.

        Raises:
          DataError: an array claims a size that its member does not have, or holds pickled objects.
        """
        headers: dict[str, Header] = {}
        for member in self._members:
            if member.endswith(SUFFIX):
                name = member.removesuffix(SUFFIX)
                with self._open(member) as stream:
                    self._heads[name] = head = self._read_head(name, stream)
                headers[name] = head.dtype, head.shape
        return {**headers, **_exact_strings(headers)}

    def check(
        self, layout: ArrayLayout, max_bytes: int | None
    ) -> tuple[dict[str, Header], tuple[int, ...]]:
        """Check that the arrays make up a value that takes no more memory than allowed.

        Returns the headers, and the number of elements of each sequence in the value.

        Raises:
          DataError: they do not.
        """
        headers = self.headers()
        lengths = layout.check(headers, str(self._path))
        self._check_size(layout.fields, headers, max_bytes)
        return headers, lengths

    def _check_size(
        self, fields: list[Field], headers: Mapping[str, Header], max_bytes: int | None
    ) -> None:
        limit = max_bytes_of(self._size, max_bytes)
        total = 0
        for field in fields:
            name = field.name_in(headers)
            dtype, shape = headers[name]
            count = extent(shape)
            # Elements of sequences and strings become Python objects, which may be larger than
            # their bytes.
            objects = 0 if field.sequence is None else shape[0]
            if dtype.kind in "SU":
                objects = count
            itemsize = max(dtype.itemsize, field.type.element_type.size)
            total += max(count * itemsize, objects * OBJECT_SIZE)
            if total > limit:
                raise DataError(
                    "E629",
                    f"{self._path}: with the array {name!r} the client's data takes {total} bytes, "
                    f"expected no more than {limit}",
                    help="if it is right, allow more: npz:FOLDER?max-bytes=NUMBER",
                )

    def read(self, layout: ArrayLayout, headers: Mapping[str, Header]) -> dict[str, Array]:
        """Return the arrays that make up a value; `headers` is what `check` returned.

        Raises:
          DataError: the file is damaged.
        """
        names = [field.name_in(headers) for field in layout.fields]
        return {name: self._read_one(name) for name in names}

    def places(
        self, layout: ArrayLayout, headers: Mapping[str, Header]
    ) -> tuple[ArrayPlace, ...] | None:
        """Return the places of the arrays that make up a value; None if strings are kept as two
        arrays.

        `headers` is what `check` returned.

        Raises:
          DataError: the file is damaged.
        """
        names = [field.name_in(headers) for field in layout.fields]
        if not all(f"{name}{SUFFIX}" in self._members for name in names):
            return None
        return tuple(map(self._place, names))

    def _place(self, name: str) -> ArrayPlace:
        member = self._members[f"{name}{SUFFIX}"]
        # The central directory does not tell where the data starts: the local header has its own
        # extra field, of another length.
        dtype, shape, fortran_order = self._heads[name]
        with self._library():
            self._file.seek(member.header_offset)
            _, name_length, more = LOCAL_HEAD.unpack(self._file.read(LOCAL_HEAD.size))
        start = member.header_offset + LOCAL_HEAD.size + name_length + more
        head = member.file_size - math.prod(shape) * dtype.itemsize
        deflated = member.compress_type == zipfile.ZIP_DEFLATED
        return ArrayPlace(
            name, start, member.compress_size, deflated, member.CRC, head, dtype, shape,
            fortran_order,
        )  # fmt: skip

    def fields(self) -> dict[str, Field]:
        """Return a field for each array, by name, where the type of the value is not known.

        Raises:
          DataError: an array does not hold tensors, or claims a size that its member does not have.
        """
        headers = self.headers()
        names = dict.fromkeys(self._whole(name, headers) for name in headers)
        return {name: self._field(name, headers[name]) for name in names}

    def _whole(self, name: str, headers: Mapping[str, Header]) -> str:
        """Return the name of the array, or that of the strings if they are kept as it and another
        array."""
        for half in (".bytes", ".lengths"):
            whole = name.removesuffix(half)
            if whole != name and whole in headers and f"{whole}{SUFFIX}" not in self._members:
                return whole
        return name

    def _field(self, name: str, header: Header) -> Field:
        dtype, shape = header
        element = None
        if dtype.kind in "SU":
            element = DType.STRING
        elif dtype.str[1:] == "V2" and dtype.names is None:
            element = DType.BFLOAT16  # files have no such type
        elif dtype.name in BY_LABEL:
            element = BY_LABEL[dtype.name]
        has_lists = 0 in shape and extent(shape) > MAX_LISTS
        if element is None or has_lists:
            raise DataError(
                "E842",
                f"{self._path}: the array {name!r} is {header_text(header)}, which is not a tensor",
                help="save numbers, truth values or strings",
            )
        return Field(name, name, TensorType(element, shape), None)

    def read_fields(self, fields: list[Field], max_bytes: int | None = None) -> list[Any]:
        """Return some arrays in the form that tensors have in memory.

        Raises:
          DataError: one is damaged, or they take more memory than allowed.
        """
        self._check_size(fields, self.headers(), max_bytes)
        source = str(self._path)
        return [to_memory(self._read_one(field.name), field, source)[()] for field in fields]

    def _read_one(self, name: str) -> Array:
        """Return an array, or the strings that are kept as two arrays."""
        if f"{name}{SUFFIX}" in self._members:
            return self._read_array(name)
        content = self._read_array(f"{name}.bytes")
        return self._split(content.tobytes(), self._read_array(f"{name}.lengths"))

    def text(self, name: str) -> str | None:
        """Return a text member, or None if there is none of that name.

        Raises:
          DataError: it cannot be read.
        """
        if name not in self._members:
            return None
        if self._members[name].file_size > MAX_BYTES:
            raise self._damaged(f"the member {name!r} is too large")
        with self._open(name) as stream, self._library():
            return stream.read().decode()

    @contextlib.contextmanager
    def _open(self, name: str) -> Generator[zipfile.ZipExtFile]:
        member = self._members[name]
        if member.flag_bits & 1:
            raise self._damaged(f"the member {name!r} is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._damaged(
                f"the member {name!r} is compressed by method {member.compress_type}, expected 0 "
                "(stored) or 8 (deflated)"
            )
        # A small file may claim a huge member.  What it can decompress to is bounded by its own
        # size.
        stored = member.compress_type == zipfile.ZIP_STORED
        most = member.compress_size * (1 if stored else DEFLATE_RATIO)
        if member.compress_size > self._size or member.file_size > most:
            raise self._damaged(f"the member {name!r} says that it has {member.file_size} bytes")
        with self._library():
            stream = self._zip.open(member)
            assert isinstance(stream, zipfile.ZipExtFile)
        with stream:
            yield stream

    def _read_head(self, name: str, stream: zipfile.ZipExtFile) -> _ArrayHead:
        """Return the header of an array, after comparing it with the size of the member."""
        with self._library():
            start = stream.read(8)
            version = tuple(start[6:])
            if start[:6] != npy.MAGIC_PREFIX or version not in ((1, 0), (2, 0), (3, 0)):
                raise self._damaged(f"the array {name!r} is not in the format .npy")
            size = struct.Struct("<H" if version == (1, 0) else "<I")
            (length,) = size.unpack(stream.read(size.size))
            if length > MAX_HEAD:
                raise self._damaged(f"the array {name!r} has a head of {length} bytes")
            text = stream.read(length).decode("utf-8" if version == (3, 0) else "latin-1")
        head = self._parse_head(name, text)
        held = self._members[f"{name}{SUFFIX}"].file_size - len(start) - size.size - length
        if head.dtype.hasobject:
            raise DataError(
                "E628",
                f"{self._path}: the array {name!r} holds pickled Python objects, which are not "
                "read",
                help="save an array of numbers, or of NumPy byte strings with .astype(np.bytes_)",
            )
        count = math.prod(head.shape)
        if len(head.shape) > MAX_RANK or min(head.shape, default=0) < 0:
            raise self._damaged(f"the array {name!r} has the shape {list(head.shape)}")
        # NumPy would believe the shape and allocate; a member that is shorter must not get that
        # far.
        if count * head.dtype.itemsize != held or (count and not head.dtype.itemsize):
            raise self._damaged(
                f"the array {name!r} of {head.dtype.str} has the shape {list(head.shape)}, and "
                f"{held} bytes"
            )
        return head

    def _parse_head(self, name: str, text: str) -> _ArrayHead:
        """Parse a header; one in the usual form without NumPy's slow evaluation as Python."""
        usual = USUAL_HEAD.fullmatch(text)
        if usual is not None:
            descr, order, sizes = usual.groups()
            shape = tuple(int(size) for size in sizes.replace(",", " ").split())
            # `(3)` is not a tuple in Python, `(3,)` is: NumPy has to judge the former.
            if sizes.count(",") or not shape:
                with self._library():
                    return _ArrayHead(np.dtype(descr), shape, order == "True")
        content = struct.pack("<I", len(text.encode("latin-1", "replace")))
        with self._library(), PARSING:
            shape, order, dtype = npy.read_array_header_2_0(
                io.BytesIO(content + text.encode("latin-1", "replace"))
            )
        if any(type(size) is not int for size in shape):
            raise self._damaged(f"the array {name!r} has the shape {shape!r}")
        return _ArrayHead(dtype, shape, order)

    def _read_array(self, name: str) -> Array:
        with self._open(f"{name}{SUFFIX}") as stream:
            dtype, shape, fortran_order = self._read_head(name, stream)
            with self._library():
                array = np.ndarray(math.prod(shape), dtype)
                held = stream.readinto(array.view(np.uint8).data) if array.nbytes else 0
        if held != array.nbytes:
            raise self._damaged(f"the array {name!r} ends after {held} bytes")
        if _is_untrue(array):
            raise self._damaged(f"the array {name!r} has truth values that are neither 0 nor 1")
        return array.reshape(shape, order="F" if fortran_order else "C")

    def _split(self, content: bytes, lengths: Array) -> Array:
        """Return the strings of these lengths that lie one after another in `content`."""
        sizes = lengths.ravel().tolist()
        if min(sizes, default=0) < 0 or sum(sizes) != len(content):
            raise self._damaged("the lengths of the strings do not add up to their bytes")
        stream = io.BytesIO(content)
        return string_array([stream.read(size) for size in sizes]).reshape(lengths.shape)

    @contextlib.contextmanager
    def _library(self) -> Generator[None]:
        """Turn any exception of zipfile or NumPy into our error.

        Use it around calls of these libraries only, so that no bug of ours is reported as damage.
        """
        try:
            yield
        except DataError:
            raise
        except Exception as error:
            raise self._damaged(str(error) or type(error).__name__) from error

    def _damaged(self, reason: str) -> DataError:
        return _damaged(self._path, reason)


def _damaged(path: pathlib.Path, reason: str) -> DataError:
    return DataError(
        "E627",
        f"{path} is not an .npz file, or is damaged",
        notes=(f"reading it failed with: {reason}",),
        help="write it with numpy.savez or numpy.savez_compressed",
    )


def _is_untrue(array: Array) -> bool:
    """Return whether an array of booleans has bytes other than 0 and 1; NumPy does not check
    that."""
    return array.dtype.kind == "b" and array.size > 0 and array.view(np.uint8).max() > 1


def _exact_strings(headers: Mapping[str, Header]) -> dict[str, Header]:
    """Return the headers of the strings that are kept as two arrays."""
    strings: dict[str, Header] = {}
    for lengths, (dtype, shape) in headers.items():
        name = lengths.removesuffix(".lengths")
        if name == lengths or name in headers or dtype.kind not in "iu":
            continue
        held = headers.get(f"{name}.bytes")
        if held is not None and held[0] == np.uint8 and len(held[1]) == 1:
            strings[name] = np.dtype(np.bytes_), shape
    return strings


@contextlib.contextmanager
def open_npz(
    path: pathlib.Path, identity: Identity | None = None, within: pathlib.Path | None = None
) -> Generator[NpzFile]:
    """Open an `.npz` file, checking before and after that it is unchanged.

    `identity` is the identity it had before, if known.  With `within`, the path must resolve to a
    file in that folder.

    Raises:
      DataError: the file cannot be read, is not an `.npz` file, or changes or has changed.
    """
    with _open_unchanging(path, identity, within) as file:
        yield NpzFile(path, file)


@reader("an .npz file", DataError)
def read_places(
    path: pathlib.Path,
    places: Sequence[ArrayPlace],
    identity: Identity,
    within: pathlib.Path | None = None,
) -> dict[str, Array]:
    """Return arrays from known places in a file, by name; see `open_npz` for the other arguments.

    Raises:
      DataError: the file cannot be read, is damaged, or changes or has changed.
    """
    with _open_unchanging(path, identity, within) as file:
        return {place.name: _read_place(file.fileno(), place, path) for place in places}


def _read_place(descriptor: int, place: ArrayPlace, path: pathlib.Path) -> Array:
    content = bytearray(place.size)
    held = os.preadv(descriptor, [content], place.start) if content else 0
    if place.is_deflated:
        try:
            inflate = zlib.decompressobj(-zlib.MAX_WBITS).decompress
            content = inflate(content, place.head + math.prod(place.shape) * place.dtype.itemsize)
        except zlib.error as error:
            raise _damaged(path, str(error)) from error
    if held != place.size or zlib.crc32(content) != place.checksum:
        raise _damaged(path, f"the checksum of the array {place.name!r} is wrong")
    array = np.frombuffer(content, place.dtype, math.prod(place.shape), place.head)
    if _is_untrue(array):
        raise _damaged(path, f"the array {place.name!r} has truth values that are neither 0 nor 1")
    return array.reshape(place.shape, order="F" if place.fortran_order else "C")


@contextlib.contextmanager
def _open_unchanging(
    path: pathlib.Path, identity: Identity | None, within: pathlib.Path | None
) -> Generator[BinaryIO]:
    """Open a file that must not change while it is open; see `open_npz`."""
    try:
        with open_regular(path, within) as file:
            before = identity or Identity.of(os.fstat(file.fileno()))
            if not before.is_of(os.fstat(file.fileno())):
                raise changed(str(path))
            yield file
            if not before.is_of(os.fstat(file.fileno())):
                raise changed(str(path))
    except OSError as error:
        raise DataError(
            "E626",
            f"cannot read {path}: {error.strerror or error}",
            help=_file_inside(path) or near_file(path),
        ) from error


def _file_inside(path: pathlib.Path) -> str | None:
    """Return a help that suggests the latest `.npz` file in the folder at `path`, or None."""
    files = itertools.chain(path.glob("*.npz"), path.glob("*/*.npz")) if path.is_dir() else ()
    few = itertools.islice(files, MAX_NEAR_FILES)
    latest = max(few, key=lambda file: (_age(file), file), default=None)
    return None if latest is None else f"it is a folder; did you mean {latest}?"


def _age(path: pathlib.Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


@reader("an .npz file", DataError)
def read_arrays(path: pathlib.Path, layout: ArrayLayout) -> dict[str, Array]:
    """Return the arrays of an `.npz` file that make up a value of the layout's type.

    Raises:
      DataError: the file cannot be read, or does not hold such a value.
    """
    with open_npz(path) as file:
        headers, _ = file.check(layout, None)
        return file.read(layout, headers)


def encode_npz(arrays: Arrays, texts: Mapping[str, str]) -> bytes:
    """Return the bytes of an `.npz` file with these arrays and text members, the same for the same
    content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, array in arrays.items():
            with file.open(zipfile.ZipInfo(f"{name}.npy", EPOCH), "w", force_zip64=True) as stream:
                npy.write_array(stream, np.asanyarray(array), allow_pickle=False)
        for name, text in texts.items():
            file.writestr(zipfile.ZipInfo(name, EPOCH), text)
    return buffer.getvalue()


@reader("an .npz file", DataError)
def read_text(path: pathlib.Path, name: str) -> str | None:
    """Return a text member of an `.npz` file, or None if it has none of that name.

    Raises:
      DataError: the file cannot be read or is not a `.npz` file.
    """
    with open_npz(path) as file:
        return file.text(name)
