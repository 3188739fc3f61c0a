"""The two files of a packed folder.

    pack.json       which arrays each client has, what they were packed from, and how many clients
                    and bytes are in the other file
    clients.arrow   an Arrow IPC file, not compressed: a row for each client, in batches

The first column holds the client's name.  Each array is a column of lists, whose items are its
elements in row-major order; an array of more than one dimension has its shape in a further column.
Elements of types that Arrow lacks, or keeps in another way than NumPy does, are kept as bytes.

It is not Parquet, of which a client, as a row group of its own, takes two to three times as long to
read.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tffc.language.dtypes import BY_LABEL, DType
from tffc.support.errors import DataError, reader
from tffc.support.files.strict_json import NotJsonError, encode_json, is_count, is_text, read_json
from tffc.support.guards import ElementType

MANIFEST = "pack.json"
ARROW_FILE = "clients.arrow"

FORMAT = "2.0"

MAX_MANIFEST = 2**26
"""The limit on the bytes of the manifest."""

MAX_RANK = 32
"""The most dimensions that every release of NumPy can hold."""

ITEMS = {DType.BOOL: "uint8", DType.FLOAT16: "float16", DType.STRING: "large_binary"}
"""Arrow's names for element types that have other names here."""

BYTES = {DType.BFLOAT16: 2, DType.COMPLEX64: 8, DType.COMPLEX128: 16}
"""Element types that Arrow lacks, kept as binary items of this many bytes."""


@dataclasses.dataclass(frozen=True, slots=True)
class PackedArray:
    """An array that each client has: its name, element type and number of dimensions."""

    name: str
    dtype: DType
    rank: int

    @property
    def kept_as(self) -> ElementType:
        """The element type as an `.npz` file states it."""
        if self.dtype is DType.STRING:
            return np.dtype(np.bytes_)
        return np.dtype("V2") if self.dtype is DType.BFLOAT16 else self.dtype.dtype


@dataclasses.dataclass(frozen=True, slots=True)
class PackManifest:
    """The arrays of a pack, the kind and digest of the data that it was packed from, and how many
    clients and bytes the other file has."""

    arrays: tuple[PackedArray, ...]
    kind: str
    digest: str
    clients: int
    bytes: int

    def to_bytes(self) -> bytes:
        """Return the content of the manifest file."""
        arrays = [
            {"name": kind.name, "type": str(kind.dtype), "rank": kind.rank} for kind in self.arrays
        ]
        source = {"kind": self.kind, "digest": self.digest}
        size = {"clients": self.clients, "bytes": self.bytes}
        return encode_json({"format_version": FORMAT, "arrays": arrays, "source": source, **size})


@reader("the manifest of a pack", DataError)
def read_manifest(content: bytes) -> PackManifest | str:
    """Return the manifest in `content`, or a text that says what is wrong with it."""
    try:
        said = read_json(content)
        version = said["format_version"]
        if version != FORMAT:
            return f"it is of the format {version!r}, expected {FORMAT!r}"
        arrays = tuple(_array(**array) for array in said["arrays"])
        kind, digest = said["source"]["kind"], said["source"]["digest"]
        sizes = said["clients"], said["bytes"]
    except NotJsonError as error:
        return str(error)
    except (KeyError, TypeError, ValueError):
        return "it is not what tffc writes"
    if len({array.name for array in arrays}) < len(arrays):
        return "two arrays have one name"
    if not (is_text(kind) and is_text(digest) and all(map(is_count, sizes))):
        return "it is not what tffc writes"
    return PackManifest(arrays, kind, digest, *sizes)


def _array(name: object, type: object, rank: Any) -> PackedArray:
    if not isinstance(name, str) or not isinstance(type, str) or rank not in range(MAX_RANK + 1):
        raise ValueError(name)
    return PackedArray(name, BY_LABEL[type], int(rank))


def arrow_schema(arrow: Any, arrays: tuple[PackedArray, ...], digest: str) -> Any:
    """Return the Arrow schema of a file with these arrays, packed from data with this digest.

    So a file beside the manifest of another pack is noticed.
    """
    fields = [arrow.field("client", arrow.binary(), nullable=False)]
    for array in arrays:
        item = arrow.field("item", item_type(arrow, array.dtype), nullable=False)
        fields.append(arrow.field(array.name, arrow.large_list(item), nullable=False))
        if array.rank > 1:
            size = arrow.field("item", arrow.int64(), nullable=False)
            shape = arrow.list_(size, array.rank)
            fields.append(arrow.field(f"{array.name}.shape", shape, nullable=False))
    return arrow.schema(fields, {"source": digest})


def item_type(arrow: Any, dtype: DType) -> Any:
    """Return the Arrow type of an array's elements."""
    if dtype in BYTES:
        return arrow.binary(BYTES[dtype])
    return getattr(arrow, ITEMS.get(dtype, str(dtype)))()
