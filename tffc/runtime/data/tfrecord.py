"""TFRecord files of `tf.train.Example` messages, read without TensorFlow.

Either each file belongs to one client and is named after it, or each record names its client in one
of its features.  In the first case opening only lists the files; in the second it reads them once
and keeps, for each client, where its records lie.

Features hold 64-bit integers, 32-bit floats and bytes, so the types are those of the program, or of
a feature spec: a JSON file with the type of each feature, such as `{"pixels": "uint8[64]", "label":
"int32"}`.  Integers of other sizes are stored as 64-bit ones; numbers of any kind may also be
stored as their bytes in little-endian order.
"""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import google_crc32c
import numpy as np

from tffc.graphs import proto
from tffc.language.dtypes import DType
from tffc.language.types import TensorType
from tffc.runtime.data.casts import converted, string_array
from tffc.runtime.data.cells import Rules, Wanted, cell_error, empty_error, lost_error, shaped
from tffc.runtime.data.files import DataFile, changed, expand, reading
from tffc.runtime.data.source import OFTEN, Indexing, no_indexing
from tffc.runtime.data.table import RowIndex, Table, no_client
from tffc.support.errors import DataError, reader
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import NotJsonError, read_json
from tffc.support.guards import Array, is_dict

SUFFIXES = (".tfrecord", ".tfrecords")

LARGEST_SPEC = 2**24
"""The limit on the bytes of a feature spec."""

HEAD = struct.Struct("<QI")
"""The header of a record: its length, and the checksum of the length."""

GZIP = b"\x1f\x8b"

STORED = {"int64_list": np.int64, "float_list": np.float32}
"""The element types of the lists of numbers in features."""

Record = tuple[str, int, Any]
"""The file of a record, the offset where it ends, and its features by name."""


class TfRecordFiles(Table):
    """The records of TFRecord files, by client.

    Raises:
      DataError: there is no file, one is damaged, a record is not a `tf.train.Example` or has no
        client, or the feature spec cannot be read.
    """

    kind = "tfrecord"

    @reader("TFRecord files", DataError)
    def __init__(
        self,
        path: str,
        client: str | None = None,
        spec: str | None = None,
        columns: str | None = None,
        cast: str | None = None,
        empty: str | None = None,
        *,
        follow_links: bool = False,
        progress: Indexing = no_indexing,
    ) -> None:
        super().__init__(path, columns, Rules.parse(path, cast, empty))
        self.options = {"client": client, "columns": columns, "cast": cast, "empty": empty}
        self._feature = client
        files = expand(path, SUFFIXES, follow_links=follow_links)
        self.files = files if spec is None else [*files, spec]
        self._files = [DataFile.of(file) for file in files]
        self.columns = None if spec is None else _read_spec(spec)
        self._hold(self._index_of_files() if client is None else self._index_of(client, progress))

    @reader("TFRecord files", DataError)
    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`; as the feature spec says, or as the first record shows."""
        if self.columns is not None:
            return self.columns
        first = next(self._records_of(self.clients[0]), None)
        features = {} if first is None else dict(first[2])
        return {name: _kind(features[name]) for name in sorted(features)}

    def misfit(self, name: str, type: TensorType) -> tuple[str, str] | None:
        """See `Table`; the feature spec says what the cells are."""
        said = str(type) if self.columns is None else self.columns[name]
        if said == str(type):
            return None
        return said, f"write {type} in the feature spec if the records are to be read as that"

    @reader("TFRecord files", DataError)
    def read(self, client: str, wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
        """See `Table`."""
        records = list(self._records_of(client))
        return [_tensors(client, records, column) for column in wanted]

    def _index_of_files(self) -> RowIndex:
        """Return each file as one run of the client that it is named after."""
        index = RowIndex(3)
        for number, file in enumerate(self._files):
            index.end_run()
            index.add(pathlib.PurePath(file.path).stem, number, 0, file.size)
        return index

    def _index_of(self, feature: str, progress: Indexing) -> RowIndex:
        """Return the runs of each client's records: file number, start and end offset."""
        index = RowIndex(3)
        before, total = 0, sum(file.size for file in self._files)
        for number, file in enumerate(self._files):
            start = 0
            index.end_run()
            for count, (_, end, features) in enumerate(_records(file, 0, file.size), 1):
                client = _client(features.get(feature))
                if client is None:
                    raise no_client(f"{file.path}, record {count}", feature)
                index.add(client, number, start, end)
                start = end
                if count % OFTEN == 0:
                    progress(before + end, total, "bytes")
            before += file.size
        return index

    def _records_of(self, client: str) -> Iterator[Record]:
        for number, start, end in self.index.runs(client):
            records = _records(self._files[number], start, end)
            first = next(records, None)
            if first is None:
                continue
            if self._feature is not None and _client(first[2].get(self._feature)) != client:
                raise changed(first[0])
            yield first
            yield from records


def _records(of: DataFile, start: int, end: int) -> Iterator[Record]:
    """Yield the records in a part of a file."""
    with of.open() as file:
        file.seek(start)
        while start < end:
            content = _frame(file, of.path, start, end)
            start += len(content) + HEAD.size + 4
            yield of.path, start, _features(content, of.path)


def _frame(file: BinaryIO, path: str, start: int, end: int) -> bytes:
    """Return the content of the record that begins at `start` and must not end after `end`."""
    head = file.read(HEAD.size)
    if start == 0 and head.startswith(GZIP):
        raise DataError(
            "E664", f"{path} is compressed", help="decompress it, for example with gunzip"
        )
    if len(head) == HEAD.size:
        length, checksum = HEAD.unpack(head)
        if masked_crc32c(head[:8]) == checksum and length <= end - start - HEAD.size - 4:
            content, tail = file.read(length), file.read(4)
            if len(tail) == 4 and masked_crc32c(content) == int.from_bytes(tail, "little"):
                return content
    raise DataError(
        "E627",
        f"{path} is not a TFRecord file, or is damaged, from byte {start} on",
        help="write the file again, for example with tf.io.TFRecordWriter",
    )


def masked_crc32c(content: bytes) -> int:
    """Return the checksum of TFRecord files: CRC-32C, rotated by 15 bits and shifted."""
    crc32c: Any = google_crc32c  # it has no types
    crc: int = crc32c.value(content)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _features(content: bytes, path: str) -> Any:
    try:
        return proto.Example.FromString(content).features.feature
    except Exception as error:
        raise DataError(
            "E627",
            f"{path} holds a record that is not a tf.train.Example",
            help="write serialized tf.train.Example messages",
        ) from error


def _client(feature: Any) -> str | None:
    """Return the client named by a feature, which holds one string or integer."""
    kind = None if feature is None else feature.WhichOneof("kind")
    values = () if kind is None else getattr(feature, kind).value
    if len(values) != 1 or kind == "float_list":
        return None
    if kind == "int64_list":
        return str(values[0])
    return values[0].decode(errors="surrogateescape") or None


def _tensors(client: str, records: Sequence[Record], wanted: Wanted) -> Sequence[Any]:
    """Return the tensors that one feature holds in some records."""
    column = [features.get(wanted.name) for _, _, features in records]
    if wanted.type.shape == ():
        whole = _scalars(column, wanted)
        if whole is not None:
            return list(whole)
    return [
        _tensor(f"{record[0]}, record {number}", client, feature, wanted)
        for number, (record, feature) in enumerate(zip(records, column, strict=True), 1)
    ]


def _scalars(features: Sequence[Any], wanted: Wanted) -> Array | None:
    """Return the elements of features that each hold one, converted all at once; None if that
    fails."""
    kinds = {feature and feature.WhichOneof("kind") for feature in features}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None or (kind == "bytes_list" and wanted.type.element_type is not DType.STRING):
        return None
    lists = [getattr(feature, kind).value for feature in features]
    if any(len(values) != 1 for values in lists):
        return None
    return _elements(kind, [values[0] for values in lists], wanted)


def _tensor(place: str, client: str, feature: Any, wanted: Wanted) -> Any:
    """Return the tensor in a feature, or its replacement if the feature is missing or empty."""
    kind = None if feature is None else feature.WhichOneof("kind")
    if kind is None:
        if wanted.empty is not None:
            return wanted.empty
        nothing = None if feature is None else np.empty(0, wanted.type.element_type.dtype)
        tensor = None if nothing is None else shaped(nothing, wanted.type.shape)
        if tensor is None:
            raise empty_error(place, client, wanted, "missing" if feature is None else "empty")
        return tensor
    values = _elements(kind, getattr(feature, kind).value, wanted)
    if values is None and kind != "bytes_list" and wanted.type.element_type is not DType.STRING:
        raise lost_error(
            place, client, wanted, np.array(getattr(feature, kind).value, STORED[kind])
        )
    tensor = None if values is None else shaped(values, wanted.type.shape)
    if tensor is None:
        raise cell_error(place, client, wanted, _kind(feature))
    return tensor


def _elements(kind: str, values: Sequence[Any], wanted: Wanted) -> Array | None:
    """Return the values of a feature as elements, or None if they are of another kind or out of
    range."""
    if kind == "bytes_list":
        return _of_bytes(values, wanted.type.element_type)
    stored = np.array(values, STORED[kind])
    return converted(stored, wanted.type.element_type, wanted.rounded)


def _of_bytes(values: Sequence[bytes], dtype: DType) -> Array | None:
    """Return strings as they are, and numbers decoded from their little-endian bytes."""
    if dtype is DType.STRING:
        return string_array(values)
    if len(values) != 1 or len(values[0]) % dtype.size:
        return None
    return np.frombuffer(values[0], dtype.dtype)


def _kind(feature: Any) -> str:
    """Describe what a feature holds."""
    kind = feature.WhichOneof("kind")
    if kind is None:
        return "empty"
    values = getattr(feature, kind).value
    if kind == "bytes_list" and len(values) == 1:
        return f"{len(values[0])} bytes"
    name = {"bytes_list": "str", "int64_list": "int64", "float_list": "float32"}[kind]
    return name if len(values) == 1 else f"{name}[{len(values)}]"


def _read_spec(path: str) -> dict[str, str]:
    with reading(path):
        content = read_regular(path, LARGEST_SPEC)
    try:
        spec: object = read_json(content)
    except NotJsonError:
        spec = None
    types = spec if is_dict(spec) else {}
    if not is_dict(spec) or not all(isinstance(type, str) for type in types.values()):
        raise DataError(
            "E686",
            f"{path} is not a feature spec",
            help='write the type of each feature: {"pixels": "uint8[64]", "label": "int32"}',
        )
    return {str(name): str(type).replace(" ", "") for name, type in types.items()}
