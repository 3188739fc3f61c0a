"""Columns of tables in memory: NumPy arrays, and columns of pandas and Arrow.

A column stays as the user's object holds it.  Only the rows of a client that is read are taken from
it, all at once, as a NumPy array.  Neither pandas nor Arrow is imported: their objects bring what
is called here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from tffc.runtime.data.arrays import header_text
from tffc.runtime.data.arrow import load_arrow
from tffc.runtime.data.table import check_names
from tffc.support.guards import Array, ElementType, is_array, is_listing, is_mapping

PURPOSE = "reading this table"

Rows: TypeAlias = "slice | Array"
"""Consecutive rows, or the numbers of rows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a column, one for each row along the first axis of `values`.

    Where `gaps` is true, there is no value.  Cells whose shapes differ are an array of objects.
    Numbers of Python have no element type, so with `is_python` they are rounded to any.
    """

    values: Array
    gaps: Array | None = None
    is_python: bool = False


class Column(Protocol):
    """A column of a table in memory."""

    @property
    def kind(self) -> str:
        """What its cells are, in words: `int64`, `float32[28,28]`, `string`."""
        ...

    @property
    def cell_type(self) -> ElementType | None:
        """The element type of its cells; None if that is not known before they are read."""
        ...

    @property
    def nbytes(self) -> int:
        """About how many bytes it has."""
        ...

    def __len__(self) -> int: ...

    def take(self, rows: Rows) -> Cells:
        """Return the cells of some rows."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class ArrayColumn:
    """A NumPy array with the cells along its first axis.

    NaN is a gap if `has_gaps`, as in pandas; NaT and None always are.
    """

    values: Array
    has_gaps: bool = False
    is_python: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> str:
        """See `Column`."""
        return header_text((self.values.dtype, self.values.shape[1:]))

    @property
    def cell_type(self) -> ElementType | None:
        """See `Column`."""
        return None if self.values.dtype.kind == "O" else self.values.dtype

    @property
    def nbytes(self) -> int:
        """See `Column`."""
        return _bytes_of(self.values)

    def take(self, rows: Rows) -> Cells:
        """See `Column`."""
        return _cells(self.values[rows], has_gaps=self.has_gaps, is_python=self.is_python)


@dataclasses.dataclass(frozen=True, slots=True)
class SeriesColumn:
    """A column of pandas whose cells are not those of a NumPy array: text, categories, and numbers
    with gaps."""

    series: Any

    def __len__(self) -> int:
        return len(self.series)

    @property
    def kind(self) -> str:
        """See `Column`."""
        return str(self.series.dtype)

    @property
    def cell_type(self) -> ElementType | None:
        """See `Column`."""
        return getattr(self.series.dtype, "numpy_dtype", None)

    @property
    def nbytes(self) -> int:
        """See `Column`."""
        return int(self.series.memory_usage(index=False, deep=True))

    def take(self, rows: Rows) -> Cells:
        """See `Column`."""
        part = self.series.array[rows]
        if hasattr(part, "categories"):
            part = part.categories.array.take(part.codes, allow_fill=True)
        gaps = np.asarray(part.isna())
        known = part[~gaps] if gaps.any() else part
        dtype = getattr(part.dtype, "numpy_dtype", None)
        if dtype is None or dtype.kind == "O":
            values = known.to_numpy(dtype=object)
        else:
            values = known.to_numpy(dtype=dtype)
        return _spread(values, gaps)


@dataclasses.dataclass(frozen=True, slots=True)
class ArrowColumn:
    """A column of an Arrow table: a chunked array."""

    column: Any

    def __len__(self) -> int:
        return len(self.column)

    @property
    def kind(self) -> str:
        """See `Column`."""
        return str(self.column.type)

    @property
    def cell_type(self) -> ElementType | None:
        """See `Column`; that of the elements of lists."""
        kind = self.column.type
        while hasattr(kind, "value_type"):
            kind = kind.value_type
        try:
            dtype = np.dtype(kind.to_pandas_dtype())
        except (NotImplementedError, TypeError):
            return None
        return None if dtype.kind == "O" else dtype

    @property
    def nbytes(self) -> int:
        """See `Column`."""
        return self.column.nbytes

    def take(self, rows: Rows) -> Cells:
        """See `Column`."""
        if isinstance(rows, slice):
            part = self.column.slice(rows.start or 0, len(range(*rows.indices(len(self)))))
        elif self.column.num_chunks == 1:
            part = self.column.chunk(0).take(load_arrow(PURPOSE).array(rows))
        else:
            part = self.column.take(load_arrow(PURPOSE).array(rows))
        return _arrow_cells(part)


class JoinedColumn:
    """Several columns of numbers as one, whose cells are vectors of their cells."""

    def __init__(self, names: Sequence[str], parts: Sequence[Column]) -> None:
        self.names = names
        self.parts = parts
        arrays = [part for part in parts if isinstance(part, ArrayColumn)]
        alike = {(a.values.dtype, a.values.ndim, a.has_gaps, a.is_python) for a in arrays}
        is_alike = len(arrays) == len(parts) and len(alike) == 1
        self._arrays = arrays if is_alike and arrays[0].values.dtype.kind in "biuf" else None
        self._whole: ArrayColumn | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_whole": None}

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def kind(self) -> str:
        """See `Column`."""
        return f"vectors of {', '.join(self.names)}"

    @property
    def cell_type(self) -> ElementType | None:
        """See `Column`."""
        types = [part.cell_type for part in self.parts]
        known = [dtype for dtype in types if dtype is not None]
        if len(known) < len(types) or any(dtype.kind not in "biuf" for dtype in known):
            return next((dtype for dtype in known if dtype.kind not in "biuf"), None)
        return np.result_type(*known)

    @property
    def nbytes(self) -> int:
        """See `Column`."""
        return sum(part.nbytes for part in self.parts)

    def take(self, rows: Rows) -> Cells:
        """See `Column`."""
        if self._arrays is not None:
            if self._whole is None:
                # Many small arrays are slow to take from, and are joined once.
                first = self._arrays[0]
                joined = np.stack([array.values for array in self._arrays], axis=1)
                self._whole = ArrayColumn(joined, first.has_gaps, first.is_python)
            return self._whole.take(rows)
        taken = [part.take(rows) for part in self.parts]
        gaps = [cells.gaps for cells in taken if cells.gaps is not None]
        values = [cells.values for cells in taken]
        kinds = [each.dtype for each in values]
        if any(kind.kind in "iu" for kind in kinds) and any(kind.kind == "f" for kind in kinds):
            # Floating numbers of 64 bits do not have all integers.
            values = [each.astype(np.longdouble) for each in values]
        return Cells(
            np.stack(values, axis=1),
            np.asarray(np.stack(gaps).any(axis=0)) if gaps else None,
            any(cells.is_python for cells in taken),
        )


def columns_of(source: Any) -> dict[str, Column] | None:
    """Return the columns of a table by their names, or None if an object is not a table.

    Tables are frames of pandas, Arrow tables and what can be exported as one, datasets of Hugging
    Face, structured NumPy arrays, mappings of names to arrays or lists, and lists of arrays, which
    are called by their positions.
    """
    if is_series(source):
        return None
    package = type(source).__module__.partition(".")[0]
    if package == "pandas" and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        check_names("the data frame", names)
        return {name: _series_column(source.iloc[:, at]) for at, name in enumerate(names)}
    if package == "datasets" and hasattr(source, "with_format"):
        # Rows that were selected, shuffled or filtered out are only so in this way.
        source = source.with_format("arrow")[:]
        package = "pyarrow"
    elif package != "pyarrow" and hasattr(source, "__arrow_c_stream__"):
        source = load_arrow(PURPOSE).table(source)
        package = "pyarrow"
    if package == "pyarrow" and hasattr(source, "column_names"):
        return _arrow_columns(source)
    if is_array(source) and source.dtype.names:
        return {name: ArrayColumn(source[name]) for name in source.dtype.names}
    if is_mapping(source):
        return _mapping_columns(source)
    if is_listing(source) and source and all(is_array(array) and array.ndim for array in source):
        return _mapping_columns({str(at): array for at, array in enumerate(source)})
    return None


def is_series(source: Any) -> bool:
    """Return whether an object is one column of pandas, or of what exports one to Arrow."""
    if type(source).__module__.partition(".")[0] == "pandas":
        return hasattr(source, "to_numpy") and not hasattr(source, "columns")
    exports = hasattr(source, "__arrow_c_stream__") and hasattr(source, "__array__")
    return exports and not (hasattr(source, "columns") or hasattr(source, "column_names"))


def _series_column(series: Any) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return ArrayColumn(series.to_numpy(), has_gaps=True)
    if getattr(dtype, "tz", None) is not None:
        return ArrayColumn(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    return SeriesColumn(series)


def _arrow_columns(table: Any) -> dict[str, Column]:
    if not hasattr(table, "to_batches"):
        table = load_arrow(PURPOSE).Table.from_batches([table])
    check_names("the Arrow table", table.column_names)
    return {name: _arrow_column(table.column(name)) for name in table.column_names}


def _arrow_column(column: Any) -> Column:
    """Return an Arrow column; numbers that lie in one piece of memory as a NumPy array there."""
    arrow = ArrowColumn(column)
    values, sizes = column, [len(column)]
    if column.num_chunks != 1:
        return arrow
    values = column.chunk(0)
    while hasattr(values.type, "value_type") and not hasattr(values.type, "index_type"):
        size = None if values.null_count else _equal_length(values)
        if size is None:
            return arrow
        sizes.append(size)
        values = values.flatten()
    dtype = ArrowColumn(values).cell_type
    if values.null_count or hasattr(values.type, "index_type") or dtype is None:
        return arrow
    if dtype.kind not in "iuf":
        return arrow
    return ArrayColumn(values.to_numpy().reshape(sizes))


def _equal_length(lists: Any) -> int | None:
    """Return the length of lists without nulls, or None if they differ or there are none."""
    if hasattr(lists.type, "list_size"):
        return lists.type.list_size
    lengths = _to_numpy(lists.value_lengths())
    if not len(lengths) or (lengths != lengths[0]).any():
        return None
    return int(lengths[0])


def _mapping_columns(source: Mapping[object, object]) -> dict[str, Column] | None:
    columns: dict[str, Column] = {}
    for name, values in source.items():
        column = array_column(values)
        if column is None or not isinstance(name, str):
            return None
        columns[name] = column
    return columns


def array_column(values: Any) -> Column | None:
    """Return an array or a list as a column; None if it is neither."""
    package = type(values).__module__.partition(".")[0]
    if package == "pandas" and hasattr(values, "to_numpy"):
        return _series_column(values.to_series() if hasattr(values, "to_series") else values)
    if package == "pyarrow" and hasattr(values, "null_count"):
        if hasattr(values, "chunks"):
            return ArrowColumn(values)
        return ArrowColumn(load_arrow(PURPOSE).chunked_array([values]))
    if is_listing(values):
        return ArrayColumn(_from_list(values), is_python=True)
    if not is_array(values) and hasattr(values, "__array__") and not hasattr(values, "dtype"):
        return None
    if not is_array(values) and not hasattr(values, "__array__"):
        return None
    array = np.asarray(values)
    return ArrayColumn(array) if array.ndim else None


def _from_list(values: Sequence[Any]) -> Array:
    """Return the elements of a list as an array, of objects if they are strings or differ."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = None
    if array is None or array.dtype.kind not in "biufcM" or array.ndim == 0:
        return _objects(values)
    return array


def _objects(values: Iterable[Any]) -> Array:
    items = list(values)
    array: Array = np.empty(len(items), object)
    for index, item in enumerate(items):
        array[index] = item
    return array


def _cells(values: Array, *, has_gaps: bool, is_python: bool) -> Cells:
    """Return cells from an array in which gaps are marked as NumPy and pandas do."""
    gaps = None
    if not len(values):
        return Cells(values, None, is_python)
    if values.dtype.kind == "M":
        gaps = np.isnat(values)
    elif values.dtype.kind == "f" and has_gaps:
        gaps = np.asarray(np.isnan(values).reshape(len(values), -1).any(axis=1))
    elif values.dtype.kind == "O":
        gaps = np.array([_is_gap(item) for item in values.reshape(len(values), -1)[:, :1].flat])
        gaps = gaps.astype(bool)
    if gaps is not None and not gaps.any():
        gaps = None
    return Cells(values, gaps, is_python)


def with_inner_gaps(cells: Cells) -> Cells:
    """Return cells of arrays of which those that have NaN in them are gaps too."""
    if cells.values.dtype.kind != "O" or cells.values.ndim != 1:
        return cells
    inner = np.array([_has_nan(item) for item in cells.values], bool)
    gaps = inner if cells.gaps is None else cells.gaps | inner
    return dataclasses.replace(cells, gaps=gaps if gaps.any() else None)


def _has_nan(item: Any) -> bool:
    if is_listing(item):
        item = _from_list(item)
    return is_array(item) and item.dtype.kind in "fc" and bool(np.isnan(item).any())


def _is_gap(item: Any) -> bool:
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, float) and item != item


def _spread(values: Array, gaps: Array) -> Cells:
    """Return cells with gaps between the values that there are."""
    if not gaps.any():
        return Cells(values)
    spread: Array = np.zeros((len(gaps), *values.shape[1:]), values.dtype)
    spread[~gaps] = values
    return Cells(spread, gaps)


def _arrow_cells(part: Any) -> Cells:
    """Return the cells of an Arrow array or chunked array."""
    if hasattr(part.type, "index_type"):
        part = part.cast(part.type.value_type)
    if part.null_count:
        gaps = np.asarray(_to_numpy(part.is_null()), bool)
        return _spread(_arrow_cells(part.drop_null()).values, gaps)
    return Cells(_lists(part) if hasattr(part.type, "value_type") else _to_numpy(part))


def _to_numpy(part: Any) -> Array:
    return part.to_numpy() if hasattr(part, "chunks") else part.to_numpy(zero_copy_only=False)


def _lists(part: Any) -> Array:
    """Return lists without nulls as one array, or as an array of objects if their lengths differ.

    A list with a null in it is None there.
    """
    sizes: list[int] = []
    values = part.combine_chunks() if hasattr(part, "chunks") else part
    count = len(values)
    while hasattr(values.type, "value_type") and not hasattr(values.type, "index_type"):
        size = None if values.null_count else _equal_length(values)
        if size is None:
            return _objects(_list(item) for item in part)
        sizes.append(size)
        values = values.flatten()
    if values.null_count:
        return _objects(_list(item) for item in part)
    return _arrow_cells(values).values.reshape(count, *sizes)


def _list(item: Any) -> Array | None:
    """Return an Arrow list as an array; None if there is a null in it."""
    items = item.as_py()
    array = _from_list(items)
    if array.dtype.kind == "O" and any(_is_gap(each) for each in array):
        return None
    dtype = ArrowColumn(item.values).cell_type if array.dtype.kind in "iuf" else None
    return array if dtype is None else array.astype(dtype)


def _bytes_of(values: Array) -> int:
    if values.dtype.kind != "O":
        return values.nbytes
    sizes = (len(item) if isinstance(item, (str, bytes)) else 8 for item in values.flat)
    return values.nbytes + sum(sizes)


def cells_of_array(array: Array) -> Cells:
    """Return an array of one client as cells of a column; a single tensor is one cell."""
    return Cells(array if array.ndim else array.reshape(1))


def equal_lengths(shapes: Iterable[Sequence[tuple[int, ...]]]) -> Array | None:
    """Return for each client's arrays the length that all of them have; None if some have none, or
    they differ."""
    lengths: list[int] = []
    for of_client in shapes:
        firsts = {shape[0] if shape else -1 for shape in of_client}
        if len(firsts) != 1 or -1 in firsts:
            return None
        lengths.append(firsts.pop())
    return np.array(lengths, np.int64)
