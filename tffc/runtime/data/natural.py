"""One client's value from a Python object of any shape that people hold data in.

Beside what `to_value` accepts, a sequence may be a table, a NumPy array along whose first axis its
elements lie, a mapping from the names of an element's tensors to such arrays, or those arrays in
the order of the type.  The whole value may be a mapping with the names that `.npz` files have.
Numbers in arrays are converted as those of files are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.traverse import rewrite
from tffc.language.type_parts import leaves
from tffc.language.types import SequenceType, StructType, TensorType, Type
from tffc.language.values.access import AccessPath, access_text
from tffc.language.values.concrete import INFINITE, Stacked, ValueReader, layout
from tffc.runtime.data.arrays import ArrayLayout, stackable_layout
from tffc.runtime.data.casts import converted, first_lost, is_convertible, rounding_help
from tffc.runtime.data.cells import Rules
from tffc.runtime.data.columns import Column, array_column, columns_of, is_series
from tffc.runtime.data.memory import Groups, MemoryTable
from tffc.runtime.data.table import TableClients
from tffc.support.errors import DataError, LanguageTypeError
from tffc.support.guards import Array, is_array, is_listing, is_mapping, is_numpy
from tffc.support.trampoline import Task, run

BATCH = 1024
"""The elements of a dataset that are read at once."""


class NaturalValues:
    """Reads clients' objects as values of one type; `what` names all the data in errors."""

    def __init__(self, type: Type, what: str, rules: Rules) -> None:
        self.type = type
        self.what = what
        self.rules = rules
        self._plans: dict[Any, TableClients] = {}

    def read(self, source: Any, client: str) -> Any:
        """Return the value of a client.

        Raises:
          DataError: numbers do not fit, or a table or an array does not.
          LanguageTypeError: the object is not a value of the type.
        """
        type = self.type
        arrays = _named_arrays(source, type)
        if arrays is not None:
            layout, place = ArrayLayout(type, self.rules.casts), f"{self.what}: client {client}"
            layout.check({name: (each.dtype, each.shape) for name, each in arrays.items()}, place)
            return layout.decode(arrays, place)
        return run(ClientReader(client, self).read(source, type, None))

    def read_table(self, table: MemoryTable, type: Type, client: str) -> Any:
        """Return the value that a table of one client holds; errors are those of
        `TableClients`."""
        kinds = [(name, column.__class__, column.cell_type) for name, column in table.held.items()]
        key = type, *kinds
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = TableClients.of(table, type)
        return TableClients(table, plan.layout, plan.wanted).read(client)


class ClientReader(ValueReader):
    """Converts one client's object to a value."""

    def __init__(self, client: str, values: NaturalValues, *, in_sequence: bool = False) -> None:
        super().__init__(f"the data of client {client}", in_sequence=in_sequence)
        self.client = client
        self.data = values.what
        self.rules = values.rules
        self.values = values

    def _sequence(self, source: Any, type: SequenceType, place: AccessPath) -> Task[Any]:
        columns = _columns(source, type.element)
        if columns is not None:
            return self._table(columns, type, place)
        if is_series(source):
            raise self._misfit(source, type, place, series_help(type))
        if callable(getattr(source, "as_numpy_iterator", None)) and _has_shapes(source):
            stacked = _stacked(source, type, self, place)
            if stacked is not None:
                return stacked
        return (yield super()._sequence(source, type, place))

    def _of_elements(self) -> ValueReader:
        return ClientReader(self.client, self.values, in_sequence=True)

    def _struct(self, source: Any, type: StructType, place: AccessPath) -> Task[tuple[object, ...]]:
        is_row = self.in_sequence and is_listing(source)
        if not is_mapping(source) and not is_array(source) and not is_row:
            columns = columns_of(source)
            if columns is not None:
                return self._table(columns, type, place)
        return (yield super()._struct(source, type, place))

    def _table(self, columns: Mapping[str, Column], type: Type, place: AccessPath) -> Any:
        """Return the value of a part of the type that a table of the client holds."""
        what = self.data + (f" at {access_text(place)}" if place is not None else "")
        lengths = {name: len(column) for name, column in columns.items()}
        _check_lengths(f"{what}: client {self.client}", lengths)
        rows = next(iter(lengths.values()), 0)
        table = MemoryTable(what, columns, Groups.one(self.client, rows), None, self.rules)
        return self.values.read_table(table, type, self.client)

    def _array(self, source: object, dtype: DType) -> Array | None:
        array = super()._array(source, dtype)
        if array is not None or not (is_numpy(source) or isinstance(source, int)):
            return array
        stored = np.asarray(source)
        if not is_convertible(stored.dtype, dtype):
            return None
        rounded = self.rules.casts.rounds("0", dtype)
        numbers = converted(stored, dtype, rounded)
        if numbers is None:
            help = None if rounded else rounding_help("0", stored.dtype, dtype, self.rules.words)
            raise DataError(
                "E677",
                f"{self.data}: client {self.client}: {first_lost(stored, dtype, rounded)} of "
                f"{stored.dtype} is not exactly one of {dtype}",
                help=help or f"correct the number, or let the program take {stored.dtype}",
            )
        return numbers


def _named_arrays(source: Any, type: Type) -> dict[str, Array] | None:
    """Return the arrays of a mapping that has the names of an `.npz` file; None for any other
    object."""
    if not is_mapping(source) or isinstance(type, SequenceType):
        return None
    layout = stackable_layout(type)
    names = [name for name in source if isinstance(name, str)]
    if layout is None or len(names) < len(source):
        return None
    is_nested = any("/" in field.name for field in layout.fields)
    is_alone = isinstance(type, TensorType)
    if not (is_nested or is_alone):
        return None
    if not all(any(name in source for name in field.names()) for field in layout.fields):
        return None
    arrays: dict[str, Array] = {}
    for name in names:
        value = source[name]
        if not is_numpy(value):
            return None
        arrays[name] = np.asarray(value)
    return arrays


def _columns(source: Any, element: Type) -> Mapping[str, Column] | None:
    """Return an object as the columns of a sequence; None if its elements come one by one."""
    if isinstance(element, StructType) or not is_listing(source):
        columns = columns_of(source)
        if columns is not None:
            return columns
    is_one_column = is_series(source) or (is_array(source) and source.ndim)
    if is_one_column and isinstance(element, TensorType):
        column = array_column(source)
        return None if column is None else {"0": column}
    return None


def series_help(type: SequenceType) -> str:
    """Return the help for one column of a client where rows of the type are wanted."""
    names = type.element.names if isinstance(type.element, StructType) else ()
    frame = "series.to_frame(name)" if len(names) != 1 else f"series.to_frame({names[0]!r})"
    return f"it is one column: give a data frame, or a dictionary of columns, such as {frame}"


def _check_lengths(place: str, lengths: Mapping[str, int]) -> None:
    first = next(iter(lengths), "")
    for name, length in lengths.items():
        if length != lengths[first]:
            raise DataError(
                "E620",
                f"{place}: the array {name!r} has {length} elements and {first!r} has "
                f"{lengths[first]}, expected the same number in all arrays of a sequence",
            )


def dataset_help(source: Any, type: Type) -> str | None:
    """Return the help for a dataset whose elements are not those of a sequence: how to take batches
    apart, and how to name parts; None if neither helps."""
    spec = getattr(source, "element_spec", None)
    if spec is None or not isinstance(type, SequenceType):
        return None
    element = type.element
    names = element.fields() if isinstance(element, StructType) else []
    tensors = list(element.types) if isinstance(element, StructType) else [element]
    if is_mapping(spec):
        parts = [spec.get(name) for name in names]
    else:
        parts = list(spec) if is_listing(spec) else [spec]
    help: list[str] = []
    order = _order(parts, names, tensors) if names and not is_mapping(spec) else names
    by_name = dict(zip(names, tensors, strict=False))
    are_batches = len(parts) == len(tensors) and all(
        map(_is_batch, parts, [by_name[name] for name in order] if names else tensors)
    )
    if are_batches:
        help.append("the elements are batches: take them apart with dataset.unbatch()")
    is_by_position = are_batches and order == names
    if len(names) == len(tensors) and not is_mapping(spec) and not is_by_position:
        shown = ", ".join(f"{name!r}: {name}" for name in names)
        how = f"dataset.map(lambda {', '.join(order)}: {{{shown}}})"
        if len(parts) != len(names) or not all(map(str.isidentifier, names)):
            how = f"let dataset.map return dictionaries with {', '.join(map(repr, names))}"
        help.append(f"name the parts of the elements: {how}")
    return "; ".join(help) or None


def _order(parts: Sequence[Any], names: Sequence[str], tensors: Sequence[Type]) -> list[str]:
    """Return the names of tensors in the order of the parts that may be them; in their own order if
    some part may be none."""
    order: list[str] = []
    for part in parts:
        fitting = (
            name
            for name, tensor in zip(names, tensors, strict=True)
            if name not in order and _may_be(part, tensor)
        )
        name = next(fitting, None)
        if name is None:
            return list(names)
        order.append(name)
    return order


def _may_be(part: Any, type: Type) -> bool:
    """Return whether what a dataset says of a part fits a tensor, or a batch of such tensors."""
    shape, dtype = getattr(part, "shape", None), getattr(part, "dtype", None)
    if not isinstance(type, TensorType) or shape is None or dtype is None:
        return False
    is_number = getattr(dtype, "is_floating", False) == type.element_type.is_floating
    if type.shape is None or shape.rank is None:
        return is_number
    return is_number and shape.rank - len(type.shape) in (0, 1)


def _is_batch(part: Any, type: Type) -> bool:
    """Return whether a part has one more dimension than a tensor of the type."""
    rank = getattr(getattr(part, "shape", None), "rank", None)
    if not isinstance(type, TensorType) or type.shape is None or rank is None:
        return False
    return rank == len(type.shape) + 1


def _has_shapes(dataset: Any) -> bool:
    """Return whether a dataset ends, and its elements are tensors whose shapes are known."""
    specs: list[Any] = [getattr(dataset, "element_spec", None)]
    while specs:
        spec = specs.pop()
        if is_mapping(spec):
            specs.extend(spec.values())
        elif is_listing(spec):
            specs.extend(spec)
        else:
            shape = getattr(spec, "shape", None)
            if shape is None or not hasattr(shape, "is_fully_defined"):
                return False
            if not shape.is_fully_defined():
                return False
    return dataset.cardinality() != INFINITE


def _stacked(
    dataset: Any, type: SequenceType, reader: ClientReader, place: AccessPath
) -> Stacked | None:
    """Return a dataset's elements, read many at once; None if they must be read one by one, or do
    not have the type."""
    tensors = leaves(type.element)
    if not all(isinstance(t, TensorType) and t.shape is not None for t in tensors) or not tensors:
        return None
    batched = _batched(type.element)
    parts: list[Sequence[Any]] = []
    reader = ClientReader(reader.client, reader.values, in_sequence=True)
    for batch in dataset.batch(BATCH).as_numpy_iterator():
        try:
            value = run(reader.read(batch, batched, (place, len(parts) * BATCH)))
        except LanguageTypeError:
            # One by one, the elements themselves are refused.
            return None
        parts.append(layout(batched).flatten(value))
    if not parts:
        return None
    columns = [np.concatenate(part) for part in zip(*parts, strict=True)]
    whole = ArrayLayout(type).assemble(columns)
    return whole if isinstance(whole, Stacked) else None


def _batched(element: Type) -> Type:
    """Return the type of many elements at once: each tensor has one more dimension."""
    return rewrite(
        element,
        lambda t: (
            TensorType(t.element_type, [None, *(t.shape or ())])
            if isinstance(t, TensorType)
            else None
        ),
    )
