"""The cells of a table: the type that a column must have, and the value of an empty cell."""

from __future__ import annotations

import dataclasses
import enum
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.shapes import Shape
from tffc.language.types import TensorType
from tffc.runtime.data.casts import (
    NO_CASTS,
    Casts,
    by_column,
    first_lost,
    rounding_help,
    string_array,
)
from tffc.support.errors import DataError
from tffc.support.near import did_you_mean

TRUTH = {"true": True, "1": True, "false": False, "0": False}


WHOLE = re.compile(r"^\s*([+-]?\d{1,20})\.0*\s*$")
"""An integer as written by programs that store integers as floating numbers: `3.0`."""


class Skip(enum.Enum):
    """A marker in place of a cell: its row is left out."""

    ROW = "skip"


SKIP: Final = Skip.ROW


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """A column, and the type of the tensors in its cells.

    Numbers are rounded if `rounded` is true.  `empty` is the tensor that replaces an empty cell;
    None forbids empty cells, and `SKIP` leaves their rows out.
    """

    name: str
    type: TensorType
    rounded: bool = False
    empty: Any | Literal[Skip.ROW] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """The options `cast` and `empty`, by column; the entry None is for all columns not named."""

    casts: Casts = NO_CASTS
    text: str | None = None
    empty: Mapping[str | None, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def parse(cls, location: str, cast: str | None, empty: str | None) -> Rules:
        """Parse the texts of the options `cast` and `empty`.

        Raises:
          DataError: a type in `cast` is not one that numbers can be rounded to.
        """
        return cls(Casts.parse(location, cast), empty, dict(by_column(empty)))

    def apply(self, location: str, columns: Sequence[tuple[str, TensorType]]) -> list[Wanted]:
        """Apply the rules to columns.

        Raises:
          DataError: a rule names a column that is not here, or its value is not of the column's
            type.
        """
        check_named(location, "cast", self.casts.named(), [name for name, _ in columns])
        named = [name for name in self.empty if name is not None]
        check_named(location, "empty", named, [name for name, _ in columns])
        wanted = [
            Wanted(name, type, self.casts.rounds(name, type.element_type), self._empty(name, type))
            for name, type in columns
        ]
        for name, text in self.empty.items():
            of = [each for each in wanted if name in (None, each.name)]
            if all(each.empty is None for each in of):
                types = " or ".join(dict.fromkeys(f"`{each.type}`" for each in of))
                raise DataError(
                    "E639",
                    f"{location}: empty={self.text} says {text!r} for empty cells, which is not "
                    f"a value of {types}",
                    help="write empty=VALUE or empty=COLUMN:VALUE, or skip in the place of a value "
                    "to leave such rows out",
                )
        return wanted

    def _empty(self, name: str, type: TensorType) -> Any:
        """Return the value for empty cells of a column.

        A column of strings must be named for that, because an empty string is a value too.
        """
        text = self.empty.get(name)
        if text is None and type.element_type is not DType.STRING:
            text = self.empty.get(None)
        if text is None or text == SKIP.value:
            return SKIP if text else None
        values = elements_of([text], type.element_type)
        if values is None or type.shape is None:
            return None
        shape = [size for size in type.shape if size is not None]
        if len(shape) < len(type.shape):
            return None
        return np.full(shape, values[0], values.dtype) if shape else values[0]


def check_named(location: str, option: str, named: Sequence[str], known: Sequence[str]) -> None:
    """Check that the program takes all columns that an option names.

    Raises:
      DataError: it does not take one of them.
    """
    for name in named:
        if name not in known:
            near = did_you_mean(name, known)
            raise DataError(
                "E657",
                f"{location}: {option}= names the column {name!r}, which the program does not take",
                notes=(f"it takes {', '.join(map(repr, known))}",),
                help=near or f"name one of these, or none for all: {option}=VALUE",
            )


def elements_of(words: Sequence[str], dtype: DType) -> np.ndarray[Any, Any] | None:
    """Return the elements written in `words`, or None if a word is not an element of the type."""
    if dtype is DType.STRING:
        return string_array(words)
    try:
        if dtype is DType.BOOL:
            return np.array([TRUTH[word.strip().lower()] for word in words], bool)
        if any("_" in word for word in words):
            return None
        read = {"float": float, "complex": complex}.get(dtype.kind)
        numbers = _integers(words) if read is None else [read(word) for word in words]
    except (KeyError, ValueError):
        return None
    return _exact(numbers, words, dtype)


def _integers(words: Sequence[str]) -> list[int]:
    """Return the integers written in `words`; raise ValueError for any other word."""
    try:
        return [int(word) for word in words]
    except ValueError:
        return [int(WHOLE.sub(r"\1", word)) for word in words]


def _exact(
    numbers: Sequence[Any], words: Sequence[str], dtype: DType
) -> np.ndarray[Any, Any] | None:
    """Return numbers as an array, or None if a word is out of the range of the element type."""
    if dtype.is_integer:
        limits = np.iinfo(dtype.dtype)
        if numbers and not (limits.min <= min(numbers) and max(numbers) <= limits.max):
            return None
        return np.array(numbers, dtype.dtype)
    wide = np.array(numbers, np.complex128 if dtype.kind == "complex" else np.float64)
    with np.errstate(over="ignore"):
        made = wide.astype(dtype.dtype)
    if np.isinf(made).any() and any(map(_is_too_large, words, made)):
        return None
    return made


def _is_too_large(word: str, number: Any) -> bool:
    """Return whether a number overflowed to infinity although the word does not say infinity."""
    return sum(map(np.isinf, (number.real, number.imag))) > word.lower().count("inf")


def shaped(values: np.ndarray[Any, Any], shape: Shape) -> Any:
    """Return the tensor of this shape with these elements, or None if their count does not fit.

    At most one size of the shape is unknown.
    """
    if shape is None:
        return values
    known = math.prod(size for size in shape if size is not None)
    if None not in shape:
        # The type checker does not see that no size is None.
        return values.reshape(shape)[()] if values.size == known else None  # pyright: ignore[reportCallIssue, reportArgumentType]  # NumPy's stubs
    if known == 0 or values.size % known:
        return None
    return values.reshape([-1 if size is None else size for size in shape])


def is_empty(cell: str, dtype: DType) -> bool:
    """Return whether a text cell is empty; spaces alone count as empty except in a column of
    strings."""
    return not (cell if dtype is DType.STRING else cell.strip())


def cell_error(
    place: str, client: str, wanted: Wanted, found: str, help: str | None = None
) -> DataError:
    """Return the error for a cell that is not a tensor of its type; `place` names its row."""
    return DataError(
        "E677",
        f"{place}: client {client}: the cell of {wanted.name!r} is {found}, expected {wanted.type}",
        help=help,
    )


def lost_error(place: str, client: str, wanted: Wanted, stored: np.ndarray[Any, Any]) -> DataError:
    """Return the error for a cell with a number that cannot be converted."""
    dtype = wanted.type.element_type
    number = first_lost(stored, dtype, wanted.rounded)
    found = str(number) if wanted.type.shape == () else f"a list with {number} in it"
    help = None if wanted.rounded else rounding_help(wanted.name, stored.dtype, dtype)
    return cell_error(place, client, wanted, found, help)


def empty_error(place: str, client: str, wanted: Wanted, found: str) -> DataError:
    """Return the error for an empty cell; `found` says in words how it is empty."""
    name = wanted.name
    help = f"leave such rows out with empty={name}:skip"
    if wanted.type.shape is not None and None not in wanted.type.shape:
        help = f"say what stands for such cells with empty={name}:VALUE, or {help}"
    return cell_error(place, client, wanted, found, help)
