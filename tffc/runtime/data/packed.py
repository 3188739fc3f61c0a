"""A packed folder: all clients' arrays in one file, of which each client's part is read in place.

The file may be hostile: every size that it claims is compared with the file before an array is made
from it.  It may also change or be cut at any time, which would end a process that has it mapped
into memory.  So it is never mapped: offsets and shapes of all arrays are read when it is opened,
and the arrays when they are needed, each into memory of its own.  The file is checked before and
after.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import math
import mmap
import os
import pathlib
import struct
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.types import Type
from tffc.runtime.data.arrays import ArrayLayout, Field, Header, headers_text, to_memory
from tffc.runtime.data.arrow import load_arrow
from tffc.runtime.data.arrow_messages import is_compressed, next_message
from tffc.runtime.data.casts import Casts, string_array
from tffc.runtime.data.cells import check_named
from tffc.runtime.data.columns import Cells, cells_of_array, equal_lengths
from tffc.runtime.data.files import DataFile, changed, files_size, reading
from tffc.runtime.data.groups import ClientGroup, Grouped, by_number
from tffc.runtime.data.pack_format import (
    ARROW_FILE,
    MANIFEST,
    MAX_MANIFEST,
    PackedArray,
    PackManifest,
    arrow_schema,
    read_manifest,
)
from tffc.runtime.data.source import Indexing, Origin, TypedClients, no_indexing
from tffc.support.errors import DataError, reader
from tffc.support.files.reading import check_within, read_regular
from tffc.support.guards import Array, ElementType

MAGIC = b"ARROW1\0\0"

MOST_ELEMENTS = 2**24
"""The limit on the elements that an array may claim; a file with more bytes may claim as many as it
has bytes.  An array with an empty dimension could otherwise claim any size in another."""

LARGE = 2**24
"""A part of the file of so many bytes is not read as a whole."""

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS

T = TypeVar("T")


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a pack."""
    return os.path.isfile(os.path.join(path, MANIFEST))


class PackedFolder:
    """The clients in a packed folder.

    Raises:
      DataError: it cannot be read, is damaged, or holds nothing.
      MissingExtraError: pyarrow is not installed.
    """

    @reader("a pack", DataError)
    def __init__(
        self,
        path: str | os.PathLike[str],
        cast: str | None = None,
        *,
        file: DataFile | None = None,
        progress: Indexing = no_indexing,
    ) -> None:
        self.path = path = pathlib.Path(path)
        self.casts = Casts.parse(str(path), cast)
        self._arrow = load_arrow("reading packed data")
        load_arrow("reading packed data", "pyarrow.ipc")
        with reading(str(path / MANIFEST)):
            manifest = read_manifest(read_regular(path / MANIFEST, MAX_MANIFEST, path))
        if isinstance(manifest, str):
            raise self._damaged(f"{MANIFEST}: {manifest}")
        self.manifest: PackManifest = manifest
        self._file = file or DataFile.of(str(path / ARROW_FILE))
        if self._file.size != manifest.bytes:
            raise self._damaged(f"it has {self._file.size} bytes, and had {manifest.bytes}")
        self._open()
        self._batches = self.unchanged(
            lambda: [self._batch(rows, content) for rows, content in self._record_batches()]
        )
        self._starts = list(itertools.accumulate((len(b.names) for b in self._batches), initial=0))
        names = [name for batch in self._batches for name in batch.names]
        self._rows = {name: row for row, name in enumerate(names)}
        if len(self._rows) < len(names) or "" in self._rows:
            raise self._damaged("a client occurs twice in it, or has no name")
        if not names:
            raise self._damaged("there is no client in it")
        if len(names) != manifest.clients:
            raise self._damaged(f"it has {len(names)} clients, and had {manifest.clients}")
        self.clients = tuple(sorted(names))
        progress(len(names), len(names), "clients")

    def __reduce__(self) -> Any:
        return functools.partial(PackedFolder, file=self._file), (self.path, self.casts.text)

    @reader("a pack", DataError)
    def kinds(self) -> Mapping[str, str]:
        """See `DataSet`."""
        kinds: dict[str, str] = {}
        for number, array in enumerate(self.manifest.arrays):
            sizes = np.concatenate([batch.columns[number].shapes for batch in self._batches])
            ends = (sizes.min(axis=0), sizes.max(axis=0))
            kinds[array.name] = headers_text({(array.kept_as, tuple(s.tolist())) for s in ends})
        return kinds

    @reader("a pack", DataError)
    def scan(self) -> Iterator[tuple[str, Cells]]:
        """See `ScannedData`."""
        for client in self.clients:
            for name, array in self.arrays(client).items():
                yield name, cells_of_array(array)

    def row_counts(self) -> Array | None:
        """See `ScannedData`; known if the first dimensions of all arrays of a client agree."""
        return equal_lengths(map(self.shapes, self.clients))

    def shapes(self, client: str) -> list[tuple[int, ...]]:
        """Return the shapes of a client's arrays."""
        return [shape for _, shape in self.headers(client).values()]

    def size(self) -> int | None:
        """See `ScannedData`."""
        return files_size(self.origin().files)

    def origin(self) -> Origin:
        """See `DataSet`."""
        files = [str(self.path / MANIFEST), str(self.path / ARROW_FILE)]
        return Origin("packed", {"cast": self.casts.text}, files)

    def typed(self, type: Type) -> PackedClients:
        """See `DataSet`."""
        layout = ArrayLayout(type, self.casts)
        known = [name for field in layout.fields for name in field.names()]
        check_named(str(self.path), "cast", self.casts.named(), known)
        return PackedClients(self, layout)

    def headers(self, client: str) -> dict[str, Header]:
        """Return the element type and shape of each array of a client."""
        batch, row = self._place(client)
        return {
            array.name: (array.kept_as, tuple(column.shapes[row].tolist()))
            for array, column in zip(self.manifest.arrays, batch.columns, strict=True)
        }

    def arrays(self, client: str) -> dict[str, Array]:
        """Return the arrays of a client.

        Raises:
          DataError: the file has changed, or an array is damaged.
        """
        batch, row = self._place(client)
        columns = [(column.array, column) for column in batch.columns]
        rows = self.unchanged(lambda: [column.one(row) for _, column in columns])
        return {
            array.name: self._checked(row_items, array)
            for (array, _), row_items in zip(columns, rows, strict=True)
        }

    def by_shapes(self, clients: Sequence[str]) -> Iterator[tuple[Array, dict[str, Header]]]:
        """Yield the positions of clients whose arrays have equal shapes, with those arrays'
        headers."""
        rows = self.rows(clients)
        for _, positions in by_number(self._shape_numbers[rows]):
            yield positions, self.headers(clients[int(positions[0])])

    def shapes_of(self, client: str) -> int:
        """Return a client's shape number: clients whose arrays have equal shapes have the same."""
        return int(self._shape_numbers[self._rows[client]])

    def rows(self, clients: Sequence[str]) -> Array:
        """Return the row numbers of clients."""
        return np.array([self._rows[client] for client in clients], np.intp)

    def stacked(self, array: str, rows: Array) -> Array:
        """Return an array of many clients, stacked; it has the same shape at all of them.

        To be called by `unchanged`.

        Raises:
          DataError: it is damaged.
        """
        number = [kind.name for kind in self.manifest.arrays].index(array)
        batches = np.searchsorted(self._starts, rows, side="right") - 1
        parts: list[Array] = []
        for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(batches)) + 1):
            batch = int(batches[part[0]])
            column = self._batches[batch].columns[number]
            taken = column.take(rows[part] - self._starts[batch])
            parts.append(self._checked(taken, column.array))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def unchanged(self, read: Callable[[], T]) -> T:
        """Return what `read` reads of the file, which is the same before and after.

        Raises:
          DataError: it has changed, or cannot be read.
        """
        self.check_unchanged()
        try:
            values = read()
        except _CutError:
            raise changed(self._file.path) from None
        except OSError as error:
            with reading(self._file.path):
                raise error
        self.check_unchanged()
        return values

    def check_unchanged(self) -> None:
        """Check that the file has not changed since it was opened.

        Raises:
          DataError: it has.
        """
        if not self._file.identity.is_of(os.fstat(self._opened.fileno())):
            raise changed(self._file.path)

    @functools.cached_property
    def _shape_numbers(self) -> Array:
        """The shape number of each row, equal for rows whose arrays have equal shapes."""
        shapes = np.concatenate(
            [
                np.concatenate([column.shapes for column in batch.columns], axis=1)
                if batch.columns
                else np.empty((len(batch.names), 0), np.int64)
                for batch in self._batches
            ]
        )
        if not shapes.shape[1]:
            return np.zeros(len(shapes), np.intp)
        return np.unique(shapes, axis=0, return_inverse=True)[1].reshape(-1)

    def _place(self, client: str) -> tuple[_Batch, int]:
        row = self._rows[client]
        number = bisect.bisect_right(self._starts, row) - 1
        return self._batches[number], row - self._starts[number]

    def _checked(self, taken: Array, array: PackedArray) -> Array:
        if array.dtype is DType.BOOL and taken.size and taken.view(np.uint8).max() > 1:
            raise self._damaged(
                f"the array {array.name!r} has truth values that are neither 0 nor 1"
            )
        return taken

    def _open(self) -> None:
        with reading(self._file.path):
            check_within(self._file.path, self.path)
            with self._file.open() as file:
                self._opened = os.fdopen(os.dup(file.fileno()), "rb")
                weakref.finalize(self, self._opened.close)

    def _record_batches(self) -> Iterator[tuple[Any, _Content]]:
        """Yield the record batches of the file, and each time the content that has its body."""
        arrow = self._arrow
        content = _Content(self._opened, self._file.size)
        if bytes(content.read(len(MAGIC))) != MAGIC:
            raise self._damaged("it does not begin as an Arrow file does")
        expected = arrow_schema(arrow, self.manifest.arrays, self.manifest.digest)
        try:
            stream = arrow.PythonFile(content, "r")
            messages = arrow.ipc.MessageReader.open_stream(stream)
            message = next_message(messages)
            # Arrow does not check that the message it is given is a schema.
            if message is None or message.type != "schema":
                raise ValueError("it does not begin with a schema")
            schema = arrow.ipc.read_schema(message)
            if not schema.equals(expected):
                raise ValueError("its columns are not those that the manifest says")
            if schema.metadata != expected.metadata:
                raise ValueError(f"its {MANIFEST} is that of another pack")
            while (message := next_message(messages)) is not None:
                if message.type != "record batch" or is_compressed(message.metadata):
                    raise ValueError(f"it has a {message.type} that is compressed or not expected")
                batch = arrow.ipc.read_record_batch(message, schema)
                content.fill(_described(batch))
                batch.validate(full=True)
                yield batch, content
        except (arrow.ArrowException, ValueError, OSError, struct.error, MemoryError) as error:
            raise self._damaged(str(error).partition("\n")[0]) from error

    def _batch(self, rows: Any, content: _Content) -> _Batch:
        columns = iter(rows.columns)
        client = next(columns)
        self._check_whole(client)
        names = [name.decode(errors="surrogateescape") for name in client.to_pylist()]
        read: list[_Column] = []
        for array in self.manifest.arrays:
            lists = next(columns)
            self._check_whole(lists)
            self._check_whole(lists.values)
            shapes = next(columns) if array.rank > 1 else None
            if shapes is not None:
                self._check_whole(shapes)
                self._check_whole(shapes.values)
            read.append(self._column(array, lists, shapes, content))
        return _Batch(names, read)

    def _column(self, array: PackedArray, lists: Any, shapes: Any, content: _Content) -> _Column:
        offsets = lists.offsets.to_numpy().copy()
        sizes = np.diff(offsets)
        if array.rank == 0:
            all_sizes = np.empty((len(sizes), 0), np.int64)
        elif array.rank == 1:
            all_sizes = sizes.reshape(-1, 1)
        else:
            all_sizes = shapes.values.to_numpy().copy().reshape(-1, array.rank)
        with np.errstate(all="ignore"):
            wide = all_sizes.astype(np.float64)
            counts = wide.prod(axis=1)
            most = np.maximum(wide, 1).prod(axis=1).max(initial=0)
        if (all_sizes < 0).any() or (counts != sizes).any():
            raise self._damaged(
                f"the shapes of the array {array.name!r} are not those of its items"
            )
        if most > max(MOST_ELEMENTS, self._file.size):
            raise self._damaged(f"the array {array.name!r} says that it has {most:.0f} elements")
        parts = [
            _Part(self._opened, content.place_of(buffer), buffer.size)
            for buffer in lists.values.buffers()[1:]
            if buffer is not None
        ]
        return _Column(array, offsets, parts, all_sizes)

    def _check_whole(self, array: Any) -> None:
        if array.null_count or array.offset:
            raise self._damaged("it has nulls in it")

    def _damaged(self, reason: str) -> DataError:
        return DataError(
            "E627",
            f"{self.path} is not a folder of packed data, or is damaged",
            notes=(f"reading it failed with: {reason}",),
            help="pack the data again, with tffc data pack",
        )


def _described(batch: Any) -> Iterator[Any]:
    """Yield the buffers of a record batch that say where its arrays are: all but the items."""
    for column, field in zip(batch.columns, batch.schema, strict=True):
        buffers = column.buffers()
        is_list = field.type.num_fields > 0 and not field.name.endswith(".shape")
        yield from (
            buffer for buffer in (buffers[:-1] if is_list else buffers) if buffer is not None
        )


class _Stretch(NamedTuple):
    """The memory in the place of a part of the file: its address, and where the part begins."""

    memory: Any
    address: int
    begin: int


class _Content:
    """The file as Arrow reads messages from it.

    Large parts, which are the bodies of messages, get memory without their content, which takes no
    room as long as nobody looks at it.  What is needed of them is filled in later.
    """

    closed = False

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._at = 0
        self._body: _Stretch | None = None

    def read(self, count: int = -1) -> Any:
        """Return the next bytes, at most `count`."""
        left = self._size - self._at
        count = left if count < 0 else min(count, left)
        begin, self._at = self._at, self._at + count
        memory = mmap.mmap(-1, count, PRIVATE) if count >= LARGE else bytearray(count)
        address = np.frombuffer(memory, np.uint8).ctypes.data if count else 0
        self._body = _Stretch(memory, address, begin)
        if count < LARGE:
            _read_into(self._file, memoryview(memory), begin)
        return memory

    def place_of(self, buffer: Any) -> int:
        """Return where in the file a buffer of the last body begins."""
        assert self._body is not None
        return self._body.begin + buffer.address - self._body.address

    def fill(self, buffers: Iterator[Any]) -> None:
        """Read the content of buffers of the last body; raises the same errors as `_Part.read`."""
        assert self._body is not None
        if len(self._body.memory) >= LARGE:
            memory = memoryview(self._body.memory)
            for buffer in buffers:
                begin = buffer.address - self._body.address
                _read_into(self._file, memory[begin : begin + buffer.size], self.place_of(buffer))


def _read_into(file: BinaryIO, memory: memoryview, begin: int) -> None:
    """Read bytes of the file from `begin` on into memory.

    Raises:
      _CutError: the file ends before them.
      OSError: they cannot be read.
    """
    while memory:
        done = os.preadv(file.fileno(), [memory], begin)
        if not done:
            raise _CutError
        memory, begin = memory[done:], begin + done


class _CutError(Exception):
    """The file ends before a part that it had."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """A part of the file: where it begins, and how many bytes it has."""

    file: BinaryIO
    begin: int
    size: int

    def read(self, start: int, count: int, dtype: ElementType) -> Array:
        """Return `count` elements of the part, from the one at `start`.

        Raises:
          _CutError: the file ends before them.
          OSError: they cannot be read.
        """
        begin, size = start * dtype.itemsize, count * dtype.itemsize
        if begin < 0 or size < 0 or begin + size > self.size:
            raise _CutError
        array = np.empty(count, dtype)
        _read_into(self.file, array.view(np.uint8).data, self.begin + begin)
        return array


@dataclasses.dataclass(frozen=True, slots=True)
class _Column:
    """One array of all clients in a batch: the offsets of each client's items, the shapes, and the
    file's parts with all items.

    Strings have two parts, the offsets of their bytes and the bytes; other items have one, or none
    if there is no item.
    """

    array: PackedArray
    offsets: Array
    parts: Sequence[_Part]
    shapes: Array

    def one(self, row: int) -> Array:
        """Return the array of one row."""
        start, end = self.offsets[row : row + 2].tolist()
        items = self._items(start, end - start)
        array = string_array(items) if isinstance(items, list) else items
        return array if self.array.rank == 1 else array.reshape(self.shapes[row].tolist())

    def take(self, rows: Array) -> Array:
        """Return the arrays of some rows, which have equal shapes, stacked."""
        shape = tuple(self.shapes[rows[0]].tolist())
        size, starts = math.prod(shape), self.offsets[rows]
        is_string = self.array.dtype is DType.STRING
        if size and not is_string and (np.diff(starts) == size).all():
            # They are beside each other.
            return np.asarray(self._items(int(starts[0]), len(rows) * size)).reshape(-1, *shape)
        arrays = np.empty((len(rows), size), object if is_string else self.array.kept_as)
        if size:
            for row, start in enumerate(starts.tolist()):
                arrays[row] = self._items(start, size)
        return arrays.reshape(len(rows), *shape)

    def _items(self, start: int, count: int) -> Array | list[bytes]:
        """Return some items; raises the same errors as `_Part.read`."""
        if not count:
            return [] if self.array.dtype is DType.STRING else np.empty(0, self.array.kept_as)
        if self.array.dtype is not DType.STRING:
            return self.parts[-1].read(start, count, self.array.kept_as)
        ends = self.parts[0].read(start, count + 1, np.dtype(np.int64))
        # Differences may be too large for their type.
        if (ends[1:] < ends[:-1]).any():
            # It was otherwise when the file was opened.
            raise _CutError
        begin = int(ends[0])
        content = self.parts[1].read(begin, int(ends[-1]) - begin, np.dtype(np.uint8)).tobytes()
        places = (ends - begin).tolist()
        return [content[at:end] for at, end in itertools.pairwise(places)]


@dataclasses.dataclass(frozen=True, slots=True)
class _Batch:
    names: list[str]
    columns: list[_Column]


@dataclasses.dataclass(frozen=True, slots=True)
class PackedClients(TypedClients[PackedFolder]):
    """The clients in a packed folder, each with a value of one type."""

    layout: ArrayLayout
    source: Origin | None = None
    """The origin of the packed data, where the pack is kept beside that data and was compared with
    it."""

    _fitting: set[int] = dataclasses.field(default_factory=set[int], repr=False, compare=False)
    """The shape numbers that are known to fit."""

    def origin(self) -> Origin:
        """See `CheckedSource`."""
        return self.source or self.data.origin()

    @reader("a pack", DataError)
    def check(self, client: str) -> tuple[int, ...]:
        """See `CheckedSource`; reads the arrays that need a conversion that may fail."""
        headers = self.data.headers(client)
        lengths = self.layout.check(headers, self._named(client))
        if not self.layout.is_kept(headers):
            self.read(client)
        return lengths

    @reader("a pack", DataError)
    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        source = self._named(client)
        shapes = self.data.shapes_of(client)
        if shapes not in self._fitting:
            self.layout.check(self.data.headers(client), source)
            self._fitting.add(shapes)
        return self.layout.decode(self.data.arrays(client), source)

    @reader("a pack", DataError)
    def read_groups(self, clients: Sequence[str]) -> Grouped:
        """See `GroupedSource`."""
        return self.data.unchanged(lambda: self._grouped(clients))

    def _grouped(self, clients: Sequence[str]) -> Grouped:
        rows = self.data.rows(clients)
        groups: list[ClientGroup] = []
        others: list[int] = []
        for positions, headers in self.data.by_shapes(clients) if self.layout.fields else ():
            source = self._named(clients[int(positions[0])])
            try:
                self.layout.check(headers, source)
                columns = [
                    self._column(field, headers, rows[positions], source)
                    for field in self.layout.fields
                ]
            except DataError:
                others.extend(positions.tolist())
            else:
                groups.append(ClientGroup(positions, tuple(columns)))
        if not self.layout.fields:
            others.extend(range(len(clients)))
        return Grouped(tuple(groups), tuple(sorted(others)))

    def _column(
        self, field: Field, headers: Mapping[str, Header], rows: Array, source: str
    ) -> Array:
        array = self.data.stacked(field.name_in(headers), rows)
        return to_memory(array, field, source, self.layout.casts)

    def _named(self, client: str) -> str:
        return f"{self.data.path}: client {client}"
