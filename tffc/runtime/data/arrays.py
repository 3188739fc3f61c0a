"""Values as named arrays, the way `.npz` files hold them.

Every tensor of a type is one array.  Its name is the path to it through the structs around it, made
of the names or positions of the elements with slashes between: `model/weights`, `0/1`.  A tensor
that is not in a struct is called `0`; so is `arr_0`, the name that NumPy gives to an array saved
without one.  The elements of a sequence lie along the first axis, so all arrays of one sequence
have the same length.

Strings are NumPy byte or Unicode strings.  NumPy drops zeros at their end, so strings may also be
kept as two arrays: all bytes in `NAME.bytes`, and the length of each string in `NAME.lengths`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.type_parts import leaves
from tffc.language.types import SequenceType, StructType, TensorType, Type
from tffc.language.values.concrete import Stacked
from tffc.runtime.data.casts import (
    NO_CASTS,
    Casts,
    converted,
    first_lost,
    is_convertible,
    loses_nothing,
    rounding_help,
    string_array,
)
from tffc.support.errors import DataError
from tffc.support.guards import Array, ElementType, is_array
from tffc.support.near import did_you_mean
from tffc.support.trampoline import Task, run

Header: TypeAlias = tuple[ElementType, tuple[int, ...]]
"""The element type and the shape of an array in a file."""

Arrays: TypeAlias = Mapping[str, Array]


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One tensor of a type: the names its array may have, and the sequence it is in, if any."""

    name: str
    position: str
    type: TensorType
    sequence: int | None

    def names(self) -> tuple[str, ...]:
        """Return the names that the array may have; tffc writes it under the first."""
        other = (f"arr_{self.position}",) if "/" not in self.position else ()
        return (self.name, self.position, *other)

    def name_in(self, known: Container[str]) -> str:
        """Return the name, among the known ones, of this field's array."""
        return next(name for name in self.names() if name in known)

    def expected(self) -> str:
        """Return the element type and shape that the array should have, as text; `n` is a
        sequence's length."""
        if self.sequence is None:
            return str(self.type)
        if self.type.shape is None:
            return f"{self.type.element_type}[n,...]"
        sizes = ("?" if size is None else str(size) for size in self.type.shape)
        return f"{self.type.element_type}[{','.join(('n', *sizes))}]"

    def fits(self, header: Header) -> bool:
        """Return whether an array of this element type and shape can hold this field."""
        dtype, shape = header
        if self.sequence is not None:
            if not shape:
                return False
            shape = shape[1:]
        wanted = self.type.shape
        if wanted is not None:
            if len(wanted) != len(shape):
                return False
            if any(w not in (None, s) for w, s in zip(wanted, shape, strict=True)):
                return False
        return _is_of(dtype, self.type.element_type)

    def is_kept(self, header: Header) -> bool:
        """Return whether an array that fits needs no conversion that could fail for some of its
        elements."""
        stored, wanted = header[0], self.type.element_type
        return not is_convertible(stored, wanted) or loses_nothing(stored, wanted)


def _is_of(stored: ElementType, wanted: DType) -> bool:
    if wanted is DType.STRING:
        return stored.kind in "SU"
    if wanted is DType.BFLOAT16:
        # NumPy files do not know bfloat16: it is read back as a void type of two bytes.
        return stored.kind == "V" and stored.itemsize == 2
    return is_convertible(stored, wanted)


class ArrayLayout:
    """The arrays that hold a value of one type.

    Numbers of another element type are converted where that is lossless, or where `casts` allows
    it.
    """

    def __init__(self, type: Type, casts: Casts = NO_CASTS) -> None:
        self.type = type
        self.casts = casts
        self.fields = list(_fields(type))

    def check(self, headers: Mapping[str, Header], source: str) -> tuple[int, ...]:
        """Check that arrays with these headers make up a value; `source` names their file.

        Returns the number of elements of each sequence in the value.

        Raises:
          DataError: an array is missing or does not fit, or two of a sequence differ in length.
        """
        lengths: dict[int, tuple[str, int]] = {}
        for field in self.fields:
            name = self._find(field, headers, source)
            header = headers[name]
            if not field.fits(header):
                raise DataError(
                    "E620",
                    f"{source}: the array {name!r} is {header_text(header)}, "
                    f"expected {field.expected()}",
                    help=_conversion(field, header),
                )
            if field.sequence is None:
                continue
            first, length = lengths.setdefault(field.sequence, (name, header[1][0]))
            if length != header[1][0]:
                raise DataError(
                    "E620",
                    f"{source}: the array {name!r} has {header[1][0]} elements and {first!r} has "
                    f"{length}, expected the same number in all arrays of a sequence",
                )
        return tuple(length for _, length in lengths.values())

    def is_kept(self, headers: Mapping[str, Header]) -> bool:
        """Return whether arrays with these headers, already checked, fit whatever their elements
        are."""
        return all(field.is_kept(headers[field.name_in(headers)]) for field in self.fields)

    def _find(self, field: Field, headers: Mapping[str, Header], source: str) -> str:
        for name in field.names():
            if name in headers:
                return name
        held = ", ".join(repr(name) for name in headers) or "no arrays"
        raise DataError(
            "E622",
            f"{source}: there is no array {field.name!r}, expected {field.expected()}",
            notes=(f"the file holds {held}",),
            help=did_you_mean(field.name, headers),
        )

    def decode(self, arrays: Arrays, source: str) -> Any:
        """Return the value held by arrays whose headers were checked; `source` names their file.

        Raises:
          DataError: a number is out of the range of the field's type, or a string has invalid
            characters.
        """
        columns = (
            to_memory(arrays[field.name_in(arrays)], field, source, self.casts)
            for field in self.fields
        )
        return self.assemble(
            column[()] if field.sequence is None else column
            for column, field in zip(columns, self.fields, strict=True)
        )

    def assemble(self, columns: Iterable[Any]) -> Any:
        """Return the value made of these tensors; for a field in a sequence, the tensors of its
        elements."""
        return run(_gather(self.type, iter(columns)))

    def columns(self, value: object, source: str) -> list[Array]:
        """Return the tensors of a value in the order of the fields, those in a sequence stacked.

        `source` names the value in errors.

        Raises:
          DataError: elements of a sequence differ in shape.
        """
        columns: list[Array] = []
        run(_scatter(self.type, value, columns, source))
        return columns

    def encode(self, value: object, source: str) -> dict[str, Array]:
        """Return the arrays that hold a value, by name; `source` names their destination in errors.

        Raises:
          DataError: elements of a sequence differ in shape, or two arrays would have the same name.
        """
        columns = self.columns(value, source)
        arrays: dict[str, Array] = {}
        for field, column in zip(self.fields, columns, strict=True):
            if field.name in arrays:
                raise DataError(
                    "E623",
                    f"{source}: two arrays would be called {field.name!r}",
                    help="rename one of the two elements, so that no name has a slash",
                )
            arrays.update(_to_file(field.name, column, field.type.element_type))
        return arrays


def stackable_layout(type: Type) -> ArrayLayout | None:
    """Return the layout of values of a type; None if they cannot be kept as arrays, or have no
    tensors."""
    try:
        layout = ArrayLayout(type)
    except DataError:
        return None
    return layout if layout.fields else None


def _fields(type: Type) -> Iterator[Field]:
    stack: list[tuple[Type, tuple[str, ...], tuple[str, ...], int | None]] = [(type, (), (), None)]
    sequences = 0
    while stack:
        part, names, positions, sequence = stack.pop()
        match part:
            case TensorType():
                yield Field("/".join(names) or "0", "/".join(positions) or "0", part, sequence)
            case SequenceType():
                stack.append((part.element, names, positions, sequences))
                sequences += 1
            case StructType() if part.types or sequence is None:
                steps = [(str(i) if n is None else n, str(i)) for i, n in enumerate(part.names)]
                stack.extend(
                    (element, (*names, name), (*positions, position), sequence)
                    for (name, position), element in reversed(list(zip(steps, part, strict=True)))
                )
            case _:
                raise DataError(
                    "E624",
                    f"a value of type `{part}` cannot be kept in a file",
                    help="keep tensors, in structs and sequences whose elements hold some",
                )


def header_text(header: Header) -> str:
    """Return the element type and shape of an array as text, such as `float32[20,3]`."""
    dtype, shape = header
    name = "str" if dtype.kind in "SU" else dtype.name
    return f"{name}[{','.join(map(str, shape))}]" if shape else name


def headers_text(headers: Iterable[Header]) -> str:
    """Describe many arrays at once: `float32[3..71,64]`, or `int32 or float32` if they differ."""
    shapes: dict[tuple[str, int], list[tuple[int, ...]]] = {}
    for dtype, shape in sorted(headers, key=header_text):
        name = header_text((dtype, ()))
        shapes.setdefault((name, len(shape)), []).append(shape)
    return " or ".join(
        f"{name}[{','.join(map(_span, zip(*of_rank, strict=True)))}]" if rank else name
        for (name, rank), of_rank in shapes.items()
    )


def extent(shape: Sequence[int]) -> int:
    """Return how many elements an array of this shape has; if none, how many empty lists it
    consists of."""
    return math.prod(max(size, 1) for size in shape)


def _span(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return str(least) if least == most else f"{least}..{most}"


def _conversion(field: Field, header: Header) -> str | None:
    if _is_of(header[0], field.type.element_type) or field.type.element_type is DType.BFLOAT16:
        return None
    if field.type.element_type is DType.STRING:
        return "save an array of NumPy byte strings, with .astype(np.bytes_)"
    return f"convert it before saving, with .astype(np.{field.type.element_type})"


def _gather(type: Type, columns: Iterator[Any]) -> Task[Any]:
    """Build a value of a type, taking its tensors from `columns` in order."""
    match type:
        case StructType():
            values: list[object] = []
            for element in type:
                values.append((yield _gather(element, columns)))
            return tuple(values)
        case SequenceType():
            tensors = leaves(type.element)
            taken = tuple(itertools.islice(columns, len(tensors)))
            if not all(map(_is_stack, taken, tensors)):
                return (yield _rows(type.element, iter(taken)))
            return Stacked(taken, lambda: run(_rows(type.element, iter(taken))))
        case _:
            return next(columns)


def _is_stack(column: object, type: Type) -> bool:
    """Return whether a sequence's elements are stacked in one array, as TensorFlow accepts them."""
    assert isinstance(type, TensorType)
    if not is_array(column) or column.dtype != type.element_type.dtype:
        return False
    return type.shape is not None and column.ndim == 1 + len(type.shape)


def _rows(type: Type, columns: Iterator[Any]) -> Task[list[Any]]:
    """Build the elements of a sequence from the stacked tensors that are next in `columns`."""
    if not isinstance(type, StructType):
        return list(next(columns))
    elements: list[list[object]] = []
    for element in type:
        elements.append((yield _rows(element, columns)))
    return list(zip(*elements, strict=True))


def _scatter(type: Type, value: Any, columns: list[Array], source: str) -> Task[None]:
    """Append the tensors of a value to `columns`, in the order of its type."""
    match type:
        case StructType():
            for element, part in zip(type, value, strict=True):
                yield _scatter(element, part, columns, source)
        case SequenceType():
            if isinstance(value, Stacked):
                columns.extend(value.columns)
            else:
                yield _stack(type.element, value, columns, source)
        case _:
            assert isinstance(type, TensorType)
            columns.append(np.asarray(value, dtype=type.element_type.dtype))


def _stack(type: Type, rows: list[Any], columns: list[Array], source: str) -> Task[None]:
    """Append the tensors of a sequence's elements to `columns`, stacked along a new first axis."""
    if isinstance(type, StructType):
        for index, element in enumerate(type):
            yield _stack(element, [row[index] for row in rows], columns, source)
        return
    assert isinstance(type, TensorType)
    parts = [np.asarray(row, dtype=type.element_type.dtype) for row in rows]
    shapes = {part.shape for part in parts} or {tuple(size or 0 for size in type.shape or ())}
    if len(shapes) > 1:
        raise DataError(
            "E624",
            f"{source}: a sequence of type `{type}*` cannot be kept in one array, for its "
            f"elements are of shapes {' and '.join(str(list(s)) for s in sorted(shapes)[:2])}",
            help="pad the elements to one shape",
        )
    column = np.empty((len(parts), *shapes.pop()), dtype=type.element_type.dtype)
    for index, part in enumerate(parts):
        column[index] = part[()]
    columns.append(column)


def to_memory(array: Any, field: Field, source: str, casts: Casts = NO_CASTS) -> Any:
    """Return an array read from a file in the form that values have in memory."""
    if field.type.element_type is not DType.STRING:
        return _numbers(array, field, source, casts)
    try:
        return string_array(array.ravel().tolist()).reshape(array.shape)
    except (ValueError, SystemError) as error:
        # NumPy accepts any 32-bit number as a character, also lone surrogates and numbers beyond
        # Unicode.
        raise DataError(
            "E628",
            f"{source}: the array {field.name!r} has a string that is not Unicode text: {error}",
        ) from error


def _numbers(array: Array, field: Field, source: str, casts: Casts) -> Array:
    """Return the numbers of an array read from a file, converted to the field's element type."""
    dtype = field.type.element_type
    if array.dtype.kind == "V":
        return array.view(dtype.dtype)
    rounded = any(casts.rounds(name, dtype) for name in field.names())
    numbers = converted(array, dtype, rounded)
    if numbers is None:
        raise DataError(
            "E677",
            f"{source}: the array {field.name!r} of {array.dtype} has "
            f"{first_lost(array, dtype, rounded)} in it, which is not exactly one of {dtype}",
            help=(None if rounded else rounding_help(field.name, array.dtype, dtype, casts.words))
            or f"correct the number, or let the program take {array.dtype}",
        )
    return numbers


def _to_file(name: str, array: Any, dtype: DType) -> dict[str, Array]:
    """Return an array of a value as a file holds it: one array, or two for strings."""
    if dtype is not DType.STRING:
        return {name: array}
    strings = [bytes(item) for item in array.ravel().tolist()]
    if not any(string.endswith(b"\0") for string in strings):
        return {name: np.array(strings, dtype=np.bytes_).reshape(array.shape)}
    lengths = np.array([len(string) for string in strings], dtype=np.int64)
    return {
        f"{name}.bytes": np.frombuffer(b"".join(strings), dtype=np.uint8),
        f"{name}.lengths": lengths.reshape(array.shape),
    }
