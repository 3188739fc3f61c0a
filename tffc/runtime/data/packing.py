"""Packing a data set: all clients' arrays in one file, which is read in place.

The same data gives the same bytes.  The folder is written whole or not at all, and only a part of
the data is in memory at a time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.types import Type
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.arrow import load_arrow
from tffc.runtime.data.folder import NpzFolder
from tffc.runtime.data.identity import source_identity
from tffc.runtime.data.pack_format import (
    ARROW_FILE,
    MANIFEST,
    PackedArray,
    PackManifest,
    arrow_schema,
    item_type,
)
from tffc.runtime.data.packed import PackedClients, PackedFolder, is_packed
from tffc.runtime.data.source import DataSet, Progress, counted, no_progress
from tffc.support.errors import DataError
from tffc.support.files import atomic
from tffc.support.files.strict_json import encode_json

BATCH_BYTES, BATCH_CLIENTS = 2**26, 2**16
"""A record batch has about this many bytes, and at most this many clients."""

PURPOSE = "packing clients' data"

Tensors = Mapping[str, tuple[DType, np.ndarray[Any, Any]]]
"""The arrays of a client in their form in memory, by name, with their element types."""


def check_pack_target(path: pathlib.Path, *, replace: bool) -> None:
    """Check that clients' data may be packed into the folder `path`.

    Raises:
      DataError: it is a file, a folder with other content, or a pack that is not to be replaced.
    """
    if not path.exists():
        return
    other = None
    if path.is_dir():
        other = next((each.name for each in path.iterdir() if each.name not in OWN), None)
    if not path.is_dir() or other is not None:
        found = "it is a file" if other is None else f"it holds {other}"
        raise DataError(
            "E602",
            f"clients' data cannot be packed into {path}: {found}",
            notes=("a pack takes a new folder, an empty one, or the place of another pack",),
            help="name another folder",
        )
    if is_packed(path) and not replace:
        raise DataError(
            "E603",
            f"the folder {path} already holds a pack",
            help="replace it, or name another",
            remedy="replace",
        )


OWN = (MANIFEST, ARROW_FILE)


def pack_digest(data: DataSet, type: Type | None) -> str:
    """Return the digest of the data that a pack is made from, reading all its files."""
    identity = source_identity(data).as_json()
    of_type = None if isinstance(data, NpzFolder) else str(type)
    return hashlib.sha256(encode_json({**identity, "type": of_type})).hexdigest()


def write_pack(
    data: DataSet,
    type: Type | None,
    path: pathlib.Path,
    *,
    progress: Progress = no_progress,
    digest: str | None = None,
) -> None:
    """Pack a data set into a folder, replacing a pack that is there.

    A folder of `.npz` files is packed as it is; other data as values of `type`.

    Raises:
      DataError: a client cannot be read or has other arrays than the first, a type is needed, or
        the folder cannot be written.
      MissingExtraError: pyarrow is not installed.
    """
    arrow = load_arrow(PURPOSE)
    load_arrow(PURPOSE, "pyarrow.ipc")
    of = _tensors_of(data, type)
    arrays = _kinds(of(data.clients[0]))
    digest = digest or pack_digest(data, type)
    size = 0

    def write(file: BinaryIO) -> None:
        nonlocal size
        schema = arrow_schema(arrow, arrays, digest)
        with arrow.ipc.new_file(file, schema) as writer:
            for names, columns in _batches(data, of, arrays, progress):
                batch = [arrow.array(names, arrow.binary())]
                for array, column in zip(arrays, columns, strict=True):
                    batch += _arrow_columns(arrow, array, column)
                writer.write_batch(arrow.RecordBatch.from_arrays(batch, schema=schema))
        size = file.tell()

    def write_manifest(file: BinaryIO) -> None:
        kind, clients = data.origin().kind, len(data.clients)
        file.write(PackManifest(arrays, kind, digest, clients, size).to_bytes())

    try:
        # The manifest is last, for it says how large the other file is.
        atomic.write_folder(path, {ARROW_FILE: write, MANIFEST: write_manifest})
    except OSError as error:
        raise DataError(
            "E600",
            f"cannot pack clients' data into {path}: {error.strerror or error}",
            notes=("what was there before is as it was",),
            help="name a folder that can be written, on a disk with space left",
        ) from error


def packed_beside(
    data: DataSet, type: Type, path: pathlib.Path, progress: Progress = no_progress
) -> PackedClients:
    """Return the clients of a data set from its pack in the folder `path`, made again unless it is
    of this data.

    Raises:
      DataError: the folder holds something else, or the data cannot be packed.
      MissingExtraError: pyarrow is not installed.
    """
    digest = pack_digest(data, type)
    check_pack_target(path, replace=True)
    if _packed_digest(path) != digest:
        write_pack(data, type, path, progress=progress, digest=digest)
    cast = data.casts.text if isinstance(data, NpzFolder) else None
    return dataclasses.replace(PackedFolder(path, cast).typed(type), source=data.origin())


def _packed_digest(path: pathlib.Path) -> str | None:
    """Return the digest of what a folder was packed from; None if it holds no whole pack."""
    try:
        return PackedFolder(path).manifest.digest if is_packed(path) else None
    except DataError:
        return None


def _tensors_of(data: DataSet, type: Type | None) -> Any:
    """Return a function from a client's name to its arrays."""
    if isinstance(data, NpzFolder):
        return data.tensors
    if type is None:
        raise DataError(
            "E616",
            f"data of the kind {data.origin().kind} is packed as a program takes it",
            help="name the program that is to take it",
            remedy="program of data",
        )
    layout = ArrayLayout(type)
    source = data.typed(type)

    def tensors(client: str) -> Tensors:
        columns = layout.columns(source.read(client), f"client {client}")
        return {
            field.name: (field.type.element_type, column)
            for field, column in zip(layout.fields, columns, strict=True)
        }

    return tensors


def _batches(
    data: DataSet, of: Any, arrays: Sequence[PackedArray], progress: Progress
) -> Iterator[tuple[list[bytes], list[list[np.ndarray[Any, Any]]]]]:
    """Yield the names and arrays of consecutive clients, batch by batch; one list for each
    array."""
    names: list[bytes] = []
    columns: list[list[Any]] = [[] for _ in arrays]
    size = 0
    for client in counted(data.clients, progress):
        tensors: Tensors = of(client)
        found = _kinds(tensors)
        if found != tuple(arrays):
            raise _differs(data.clients[0], client, arrays, found)
        names.append(client.encode(errors="surrogateescape"))
        for column, (_, array) in zip(columns, tensors.values(), strict=True):
            column.append(array)
            size += array.nbytes
        if size >= BATCH_BYTES or len(names) >= BATCH_CLIENTS:
            yield names, columns
            names, columns, size = [], [[] for _ in arrays], 0
    if names:
        yield names, columns


def _kinds(tensors: Tensors) -> tuple[PackedArray, ...]:
    return tuple(PackedArray(name, dtype, each.ndim) for name, (dtype, each) in tensors.items())


def _differs(
    first: str, client: str, arrays: Sequence[PackedArray], found: Sequence[PackedArray]
) -> DataError:
    first_has, client_has = (
        ", ".join(f"{each.name!r} {each.dtype} of rank {each.rank}" for each in kinds) or "none"
        for kinds in (arrays, found)
    )
    return DataError(
        "E613",
        f"client {client} has other arrays than client {first}",
        notes=(f"{first} has {first_has}", f"{client} has {client_has}"),
        help="write the same arrays for every client, with the same element types and numbers of "
        "dimensions",
    )


def _arrow_columns(
    arrow: Any, array: PackedArray, parts: Sequence[np.ndarray[Any, Any]]
) -> Iterator[Any]:
    """Yield the Arrow columns that hold one array of some clients."""
    sizes = [part.size for part in parts]
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    item = item_type(arrow, array.dtype)
    values = np.concatenate([part.ravel() for part in parts])
    if array.dtype is DType.STRING:
        items = arrow.array(values.tolist(), item)
    else:
        content = np.ascontiguousarray(values, array.dtype.dtype).view(np.uint8)
        items = arrow.Array.from_buffers(item, len(values), [None, arrow.py_buffer(content)])
    kind = arrow.large_list(arrow.field("item", item, nullable=False))
    yield arrow.LargeListArray.from_arrays(offsets, items, type=kind)
    if array.rank > 1:
        shapes = np.array([part.shape for part in parts], np.int64).ravel()
        kind = arrow.list_(arrow.field("item", arrow.int64(), nullable=False), array.rank)
        yield arrow.FixedSizeListArray.from_arrays(arrow.array(shapes), type=kind)
