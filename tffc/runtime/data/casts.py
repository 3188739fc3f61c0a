"""Conversion of numbers between element types, and of strings to the form they have in memory.

A number is converted if that is lossless: converting it back gives the same number.  Where the user
allows it, numbers may be rounded to a floating type, but a finite number never becomes infinite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tffc.language.dtypes import DType
from tffc.runtime.data.wording import LOCATION, Wording
from tffc.support.errors import DataError
from tffc.support.guards import Array, ElementType

ROUNDED = {
    str(dtype): dtype
    for dtype in (
        DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64, DType.COMPLEX64,
        DType.COMPLEX128,
    )
}  # fmt: skip
"""The element types that numbers may be rounded to, by name."""

NUMBERS = "biufc"
"""The `kind` codes of NumPy's numeric element types."""


@dataclasses.dataclass(frozen=True, slots=True)
class Casts:
    """The types that columns may be rounded to; the entry None is for all other columns."""

    text: str | None = None
    types: Mapping[str | None, DType] = dataclasses.field(default_factory=dict[str | None, DType])
    words: Wording = LOCATION

    @classmethod
    def parse(cls, location: str, text: str | None) -> Casts:
        """Parse comma-separated items of the form `TYPE` or `COLUMN:TYPE`.

        Raises:
          DataError: a type is not one that numbers can be rounded to.
        """
        return cls.of(location, by_column(text), text, LOCATION)

    @classmethod
    def of(
        cls,
        location: str,
        named: Sequence[tuple[str | None, str]],
        text: str | None,
        words: Wording,
    ) -> Casts:
        """Return the casts of columns to named types; `text` is what the user wrote.

        Raises:
          DataError: a type is not one that numbers can be rounded to.
        """
        types: dict[str | None, DType] = {}
        for name, said in named:
            if said not in ROUNDED:
                raise DataError(
                    "E639",
                    f"{location}: cast={text} says {said!r}, expected a type to round to",
                    help=f"write {words.option('cast', 'TYPE')} or "
                    f"{words.option('cast', 'TYPE', 'COLUMN')} with one of {', '.join(ROUNDED)}; "
                    "what loses nothing is converted without it",
                )
            types[name] = ROUNDED[said]
        return cls(text, types, words)

    def rounds(self, name: str, dtype: DType) -> bool:
        """Return whether numbers of a column may be rounded to a type."""
        return self.types.get(name, self.types.get(None)) is dtype

    def named(self) -> list[str]:
        """Return the columns that are named."""
        return [name for name in self.types if name is not None]


NO_CASTS = Casts()
"""The casts that round nothing."""


def string_array(items: Sequence[str | bytes]) -> Array:
    """Return strings as values in memory have them: an array of bytes objects, text in UTF-8."""
    strings: Array = np.empty(len(items), dtype=object)
    strings[:] = [item.encode() if isinstance(item, str) else item for item in items]
    return strings


def by_column(text: str | None) -> list[tuple[str | None, str]]:
    """Split an option of comma-separated `COLUMN:VALUE` or `VALUE` items into (column or None,
    value)."""
    pairs: list[tuple[str | None, str]] = []
    for part in () if text is None else text.split(","):
        name, colon, value = part.rpartition(":")
        pairs.append((name if colon else None, value))
    return pairs


def is_convertible(stored: ElementType, wanted: DType) -> bool:
    """Return whether some elements of a NumPy type can be converted to `wanted`, depending on their
    value."""
    if wanted is DType.STRING or stored.kind not in NUMBERS:
        return False
    return wanted.kind == "complex" or stored.kind != "c"


def loses_nothing(stored: ElementType, wanted: DType) -> bool:
    """Return whether every element of a NumPy type can be converted to `wanted` without loss."""
    return stored.newbyteorder("=") == wanted.dtype


def converted(stored: Array, dtype: DType, rounded: bool = False) -> Array | None:
    """Return numbers converted to an element type, or None if one of them cannot be."""
    if stored.dtype == dtype.dtype:
        return stored
    if loses_nothing(stored.dtype, dtype):
        return stored.astype(dtype.dtype, copy=False)
    if not is_convertible(stored.dtype, dtype):
        return None
    if stored.dtype.kind in "iu" and dtype.is_integer and stored.size:
        # The same as below, with less work.
        limits = np.iinfo(dtype.dtype)
        is_inside = limits.min <= stored.min() and stored.max() <= limits.max
        return stored.astype(dtype.dtype) if is_inside else None
    numbers, is_allowed = _cast(stored, dtype, rounded)
    return numbers if is_allowed.all() else None


def first_lost(stored: Array, dtype: DType, rounded: bool = False) -> Any:
    """Return the first number that `converted` cannot convert."""
    return stored[lost(stored, dtype, rounded)][0]


def lost(stored: Array, dtype: DType, rounded: bool = False) -> Any:
    """Return for each number whether `converted` cannot convert it."""
    _, is_allowed = _cast(stored, dtype, rounded)
    return ~is_allowed


def rounding_help(
    name: str, stored: ElementType, dtype: DType, words: Wording = LOCATION
) -> str | None:
    """Return the help on how to allow rounding of a column; None if rounding is never allowed."""
    if str(dtype) not in ROUNDED or not is_convertible(stored, dtype):
        return None
    all, alone = (words.option("cast", str(dtype), column) for column in (None, name))
    return f"round to {dtype} with {all}, or {alone} for this column alone"


def _cast(stored: Array, dtype: DType, rounded: bool) -> tuple[Array, Any]:
    """Return the converted numbers, and for each whether its conversion is allowed."""
    if stored.dtype.kind == "b":
        stored = stored.astype(np.uint8)
    with np.errstate(all="ignore"):
        numbers: Array = stored.astype(dtype.dtype)
        is_allowed: Any = True
        for before, after in zip(_parts(stored), _parts(numbers), strict=False):
            if rounded and dtype.kind in ("float", "complex"):
                is_allowed &= np.isfinite(after) | ~np.isfinite(before)
            else:
                is_allowed &= _is_same(before, after, dtype)
    return numbers, is_allowed


def _parts(numbers: Array) -> list[Array]:
    """Return the numbers' real part and, if they are complex, their imaginary part."""
    return [np.real(numbers), np.imag(numbers)] if numbers.dtype.kind == "c" else [numbers]


def _is_same(before: Array, after: Array, dtype: DType) -> Any:
    """Return for each number whether it equals its converted value."""
    back = after.astype(before.dtype)
    if dtype is DType.BOOL:
        return back == before
    if before.dtype.kind in "iu":
        if not dtype.is_integer:
            return _is_integer(after, before)
        # Conversion between integer types wraps around, and so does the way back: only the sign
        # tells two integers apart that are equal modulo a power of two.
        return (back == before) & ((after < 0) == (before < 0))
    if dtype.is_integer:
        return _is_integer(before, after)
    return (back == before) | (np.isnan(back) & np.isnan(before))


def _is_integer(number: Array, integer: Array) -> Any:
    """Return for each floating number whether it equals an integer."""
    wide = number.astype(np.float64)
    limits = np.iinfo(integer.dtype)
    inside = (wide >= float(limits.min)) & (wide < 2.0 ** int(limits.max).bit_length())
    return inside & (wide == np.trunc(wide)) & (wide.astype(integer.dtype) == integer)
