"""Reading and writing `.npz` files: only what is asked for, and the same bytes each time."""

from __future__ import annotations

import contextlib
import io
import pathlib
import threading
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from tffc.data.arrays import Arrays, Header, Layout
from tffc.errors import DataError, near_file

PARSING = threading.Lock()
"""Held where NumPy parses the head of an array as Python, which two threads of CPython 3.11 can not
do at the same time: now and then one fails (https://github.com/python/cpython/issues/106905)."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest date that a zip file can hold; every member has it, so that bytes repeat."""


@contextlib.contextmanager
def _open(path: pathlib.Path) -> Iterator[zipfile.ZipFile]:
    """The zip file that an `.npz` file is, with its errors turned into ours."""
    try:
        with zipfile.ZipFile(path) as file:
            yield file
    except OSError as error:
        raise DataError(
            "E626", f"can not read {path}: {error.strerror or error}", help=near_file(path)
        ) from error
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            "E627",
            f"{path} is not an .npz file, or is damaged",
            notes=(f"reading it failed with: {error}",),
            help="write it with numpy.savez or numpy.savez_compressed",
        ) from error


def read_headers(path: pathlib.Path) -> dict[str, Header]:
    """The element type and shape of every array in an `.npz` file, without reading the arrays.

    Raises:
      DataError: the file can not be read, is no `.npz` file, or holds pickled Python objects.
    """
    headers: dict[str, Header] = {}
    with _open(path) as file:
        for member in file.namelist():
            if member.endswith(".npy"):
                with file.open(member) as stream:
                    headers[member.removesuffix(".npy")] = _read_header(stream)
    for name, header in headers.items():
        if header[0].hasobject:
            raise DataError(
                "E628",
                f"{path}: the array {name!r} holds pickled Python objects, which are not read",
                help="save an array of numbers, or of NumPy byte strings with .astype(np.bytes_)",
            )
    return {**headers, **_exact_strings(headers)}


def _read_header(stream: IO[bytes]) -> Header:
    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    with PARSING:
        shape, _, dtype = read(stream)
    return dtype, shape


def _exact_strings(headers: Mapping[str, Header]) -> dict[str, Header]:
    """The headers of the strings that are kept as two arrays."""
    names = (name.removesuffix(".lengths") for name in headers if name.endswith(".lengths"))
    return {
        name: (np.dtype(np.bytes_), headers[f"{name}.lengths"][1])
        for name in names
        if f"{name}.bytes" in headers and name not in headers
    }


def read_arrays(path: pathlib.Path, layout: Layout) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an `.npz` file that make up a value of the layout's type.

    Raises:
      DataError: the file can not be read, or does not hold such a value.
    """
    headers = read_headers(path)
    layout.check(headers, str(path))
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    with _open(path) as file:
        members = set(file.namelist())
        for field in layout.fields:
            name = next(name for name in field.names() if name in headers)
            if f"{name}.npy" in members:
                arrays[name] = _read_array(file, name)
            else:
                content, lengths = (_read_array(file, f"{name}.{p}") for p in ("bytes", "lengths"))
                arrays[name] = _split(content.tobytes(), lengths)
    return arrays


def _read_array(file: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    with file.open(f"{name}.npy") as stream, PARSING:
        return npy.read_array(stream, allow_pickle=False)


def _split(content: bytes, lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The strings of these lengths that lie one after another in `content`."""
    ends = np.cumsum(lengths.ravel()).tolist()
    if (lengths < 0).any() or ends[-1:] not in ([], [len(content)]):
        raise ValueError("the lengths of the strings do not add up to their bytes")
    strings = np.empty(lengths.size, dtype=object)
    strings[:] = [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return strings.reshape(lengths.shape)


def encode_npz(arrays: Arrays, texts: Mapping[str, str]) -> bytes:
    """An `.npz` file with these arrays and these text members; the same content, the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, array in arrays.items():
            with file.open(zipfile.ZipInfo(f"{name}.npy", EPOCH), "w", force_zip64=True) as stream:
                npy.write_array(stream, np.asanyarray(array), allow_pickle=False)
        for name, text in texts.items():
            file.writestr(zipfile.ZipInfo(name, EPOCH), text)
    return buffer.getvalue()


def read_text(path: pathlib.Path, name: str) -> str | None:
    """A text member of an `.npz` file, or None if it has none of that name.

    Raises:
      DataError: the file can not be read or is no `.npz` file.
    """
    with _open(path) as file:
        return file.read(name).decode() if name in file.namelist() else None
