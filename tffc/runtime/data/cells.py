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
    converted,
    first_lost,
    rounding_help,
    string_array,
)
from tffc.runtime.data.times import TimeUnit, is_times, parse_times, times_of, unit_of
from tffc.runtime.data.wording import LOCATION, Wording
from tffc.support.errors import DataError
from tffc.support.guards import Array
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
    None forbids empty cells, and `SKIP` leaves their rows out.  Times are read as numbers of
    `time`; None forbids times.
    """

    name: str
    type: TensorType
    rounded: bool = False
    empty: Any | Literal[Skip.ROW] | None = None
    time: TimeUnit | None = None
    words: Wording = LOCATION


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """The options `cast`, `empty` and `times`, by column; the entry None is for all columns not
    named."""

    casts: Casts = NO_CASTS
    text: str | None = None
    empty: Mapping[str | None, str] = dataclasses.field(default_factory=dict[str | None, str])
    times: Mapping[str | None, TimeUnit] = dataclasses.field(
        default_factory=dict[str | None, TimeUnit]
    )

    @classmethod
    def parse(
        cls, location: str, cast: str | None, empty: str | None, times: str | None = None
    ) -> Rules:
        """Parse the texts of the options `cast`, `empty` and `times`.

        Raises:
          DataError: a type in `cast` is not one that numbers can be rounded to, or a unit in
            `times` is unknown.
        """
        units = parse_times(location, by_column(times), LOCATION)
        return cls(Casts.parse(location, cast), empty, dict(by_column(empty)), units)

    @property
    def words(self) -> Wording:
        """The way in which the user wrote the options."""
        return self.casts.words

    def time_of(self, name: str) -> TimeUnit | None:
        """Return the unit in which times of a column are read, if any."""
        return unit_of(self.times, name)

    def apply(self, location: str, columns: Sequence[tuple[str, TensorType]]) -> list[Wanted]:
        """Apply the rules to columns.

        Raises:
          DataError: a rule names a column that is not here, or its value is not of the column's
            type.
        """
        names = [name for name, _ in columns]
        check_named(location, "cast", self.casts.named(), names, self.words)
        for option, rules in (("empty", self.empty), ("times", self.times)):
            named = [name for name in rules if name is not None]
            check_named(location, option, named, names, self.words)
        wanted = [
            Wanted(
                name,
                type,
                self.casts.rounds(name, type.element_type),
                self._empty(name, type),
                self.time_of(name),
                self.words,
            )
            for name, type in columns
        ]
        for name, text in self.empty.items():
            self._check_empty(location, name, text, wanted)
        return wanted

    def _check_empty(
        self, location: str, name: str | None, text: str, wanted: Sequence[Wanted]
    ) -> None:
        """Check that a value for empty cells is one of a column that it is for."""
        columns = [column for column in wanted if name in (None, column.name)]
        if any(column.empty is not None for column in columns):
            return
        texts = [column for column in columns if column.type.element_type is DType.STRING]
        others = [column for column in columns if column not in texts]
        types = " or ".join(dict.fromkeys(f"`{column.type}`" for column in others))
        said = f"{location}: empty={self.text} says {text!r} for empty cells"
        example = self.words.option("empty", text, texts[0].name) if texts else ""
        if name is None and texts and not others:
            raise DataError(
                "E639",
                f"{said}, and text may be empty: the value is only for columns that are named",
                help=f"write {example}",
            )
        help = (
            f"write {self.words.option('empty', 'VALUE')} or "
            f"{self.words.option('empty', 'VALUE', 'COLUMN')}, or {self.words.word('skip')} in the "
            "place of a value to leave such rows out"
        )
        if name is None and texts:
            help += f"; columns of text have to be named, as in {example}"
        types = types or f"`{columns[0].type}`"
        raise DataError("E639", f"{said}, which is not a value of {types}", help=help)

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


NO_RULES = Rules()
"""The rules without any option."""


def in_units(stored: Array, wanted: Wanted) -> Array:
    """Return times as the numbers that are wanted of them, and any other array as it is."""
    return (
        stored if wanted.time is None or not is_times(stored.dtype) else wanted.time.numbers(stored)
    )


def check_named(
    location: str,
    option: str,
    named: Sequence[str],
    known: Sequence[str],
    words: Wording = LOCATION,
) -> None:
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
                help=near or f"name one of these, or none for all: {words.option(option, 'VALUE')}",
            )


def cells_of(words: Sequence[str], wanted: Wanted) -> Array | None:
    """Return the elements written in `words`, which may be times; None if one does not fit."""
    dtype = wanted.type.element_type
    if wanted.time is not None and words:
        times = times_of(words)
        if times is not None and dtype.is_numeric:
            numbers = wanted.time.numbers(times)
            # Text is read as the nearest number, but no whole unit is lost.
            return converted(numbers, dtype, wanted.rounded or numbers.dtype.kind == "f")
    return elements_of(words, dtype)


def elements_of(words: Sequence[str], dtype: DType) -> Array | None:
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


def _exact(numbers: Sequence[Any], words: Sequence[str], dtype: DType) -> Array | None:
    """Return numbers as an array, or None if a word is out of the range of the element type."""
    if dtype.is_integer:
        limits = np.iinfo(dtype.dtype)
        if numbers and not (limits.min <= min(numbers) and max(numbers) <= limits.max):
            return None
        return np.array(numbers, dtype.dtype)
    wide = np.array(numbers, np.complex128 if dtype.kind == "complex" else np.float64)
    with np.errstate(over="ignore"):
        cast = wide.astype(dtype.dtype)
    if np.isinf(cast).any() and any(map(_is_too_large, words, cast)):
        return None
    return cast


def _is_too_large(word: str, number: Any) -> bool:
    """Return whether a number overflowed to infinity although the word does not say infinity."""
    return sum(map(np.isinf, (number.real, number.imag))) > word.lower().count("inf")


def shaped(values: Array, shape: Shape) -> Any:
    """Return the tensor of this shape with these elements, or None if their count does not fit.

    At most one size of the shape is unknown.
    """
    if shape is None:
        return values
    known = math.prod(size for size in shape if size is not None)
    sizes = [size for size in shape if size is not None]
    if len(sizes) == len(shape):
        return values.reshape(sizes)[()] if values.size == known else None
    if known == 0 or values.size % known:
        return None
    return values.reshape([-1 if size is None else size for size in shape])


def is_empty(cell: str, dtype: DType) -> bool:
    """Return whether a text cell is empty; spaces alone count as empty except in a column of
    strings."""
    return not (cell if dtype is DType.STRING else cell.strip())


def cell_error(
    place: str, client: str, wanted: Wanted, content: str, help: str | None = None
) -> DataError:
    """Return the error for a cell that is not a tensor of its type; `place` names its row."""
    return DataError(
        "E677",
        f"{place}: client {client}: the cell of {wanted.name!r} is {content}, "
        f"expected {wanted.type}",
        help=help,
    )


def lost_error(place: str, client: str, wanted: Wanted, stored: Array) -> DataError:
    """Return the error for a cell with a number that cannot be converted."""
    dtype = wanted.type.element_type
    number = first_lost(stored, dtype, wanted.rounded)
    content = str(number) if wanted.type.shape == () else f"a list with {number} in it"
    help = None if wanted.rounded else rounding_help(wanted.name, stored.dtype, dtype, wanted.words)
    return cell_error(place, client, wanted, content, help)


def empty_error(
    place: str,
    client: str,
    wanted: Wanted,
    content: str,
    notes: tuple[str, ...] = (),
    others: Sequence[Wanted] = (),
) -> DataError:
    """Return the error for an empty cell; `content` says in words how it is empty, and `others`
    are more columns that have such cells."""
    columns, words = [wanted, *others], wanted.words
    names = [column.name for column in columns]
    skip = words.option("empty", SKIP.value, *([] if others else names))
    help = f"leave such rows out with {skip}"
    shapes = [column.type.shape for column in columns]
    if all(shape is not None and None not in shape for shape in shapes):
        value = words.options("empty", "VALUE", names)
        help = f"say what stands for such cells with {value}, or {help}"
    error = cell_error(place, client, wanted, content, help)
    error.notes = notes
    return error
