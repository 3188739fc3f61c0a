"""Numbers of one element type as those of another.

A number is converted where nothing is lost: where the way back gives the same number.  Numbers may
be rounded to a floating type where the user allows it, but never become infinite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tffc.errors import DataError
from tffc.ir.dtypes import DType

ROUNDED = {
    str(dtype): dtype
    for dtype in (
        DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64, DType.COMPLEX64,
        DType.COMPLEX128,
    )
}  # fmt: skip
"""The element types that numbers may be rounded to, by name."""

NUMBERS = "biufc"
"""The kinds of NumPy's element types that are numbers."""


@dataclasses.dataclass(frozen=True, slots=True)
class Casts:
    """Which columns may be rounded, each to which type; under None that of all others."""

    text: str | None = None
    types: Mapping[str | None, DType] = dataclasses.field(default_factory=dict)

    @classmethod
    def parse(cls, location: str, text: str | None) -> Casts:
        """Parse `TYPE` and `COLUMN:TYPE`, with commas between.

        Raises:
          DataError: a type is not one that numbers are rounded to.
        """
        types: dict[str | None, DType] = {}
        for name, said in by_column(text):
            if said not in ROUNDED:
                raise DataError(
                    "E646",
                    f"{location}: cast={text} says {said!r}, expected a type to round to",
                    help=f"write cast=TYPE or cast=COLUMN:TYPE with one of {', '.join(ROUNDED)}; "
                    "what loses nothing is converted without it",
                )
            types[name] = ROUNDED[said]
        return cls(text, types)

    def rounds(self, name: str, dtype: DType) -> bool:
        """Return whether numbers of a column may be rounded to a type."""
        return self.types.get(name, self.types.get(None)) is dtype

    def named(self) -> list[str]:
        """Return the columns that are named."""
        return [name for name in self.types if name is not None]


NO_CASTS = Casts()
"""Nothing may be rounded."""


def by_column(text: str | None) -> list[tuple[str | None, str]]:
    """Return the parts of an option, `COLUMN:VALUE` or `VALUE`, with commas between."""
    found: list[tuple[str | None, str]] = []
    for part in () if text is None else text.split(","):
        name, colon, value = part.rpartition(":")
        found.append((name if colon else None, value))
    return found


def is_convertible(found: np.dtype[Any], wanted: DType) -> bool:
    """Return whether elements of a type of NumPy's may be elements of a type, by their values."""
    if wanted is DType.STRING or found.kind not in NUMBERS:
        return False
    return wanted.kind == "complex" or found.kind != "c"


def loses_nothing(found: np.dtype[Any], wanted: DType) -> bool:
    """Return whether all elements of a type are elements of another, whatever their values."""
    return found.newbyteorder("=") == wanted.dtype


def converted(
    stored: np.ndarray[Any, Any], dtype: DType, rounded: bool = False
) -> np.ndarray[Any, Any] | None:
    """Return numbers as elements of a type, or None if one cannot be an element of it."""
    if stored.dtype == dtype.dtype:
        return stored
    if loses_nothing(stored.dtype, dtype):
        return stored.astype(dtype.dtype, copy=False)
    if not is_convertible(stored.dtype, dtype):
        return None
    made, kept = _cast(stored, dtype, rounded)
    return made if kept.all() else None


def first_lost(stored: np.ndarray[Any, Any], dtype: DType, rounded: bool = False) -> Any:
    """Return the first number that `converted` cannot convert."""
    _, kept = _cast(stored, dtype, rounded)
    return stored[~kept][0]


def rounding_help(name: str, found: np.dtype[Any], dtype: DType) -> str | None:
    """Return how a number of a column is rounded; None for what is never rounded."""
    if str(dtype) not in ROUNDED or not is_convertible(found, dtype):
        return None
    return f"round to {dtype} with cast={dtype}, or cast={name}:{dtype} for this column alone"


def _cast(
    stored: np.ndarray[Any, Any], dtype: DType, rounded: bool
) -> tuple[np.ndarray[Any, Any], Any]:
    """Return numbers as those of another type, and for each whether it may be that."""
    if stored.dtype.kind == "b":
        stored = stored.astype(np.uint8)
    with np.errstate(all="ignore"):
        made = stored.astype(dtype.dtype)
        kept: Any = True
        for before, after in zip(_parts(stored), _parts(made), strict=False):
            if rounded and dtype.kind in ("float", "complex"):
                kept &= np.isfinite(after) | ~np.isfinite(before)
            else:
                kept &= _is_same(before, after, dtype)
    return made, kept


def _parts(numbers: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the real and, of complex numbers, the imaginary parts."""
    return [numbers.real, numbers.imag] if numbers.dtype.kind == "c" else [numbers]


def _is_same(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any], dtype: DType) -> Any:
    """Return for each number whether it is the same as what it was converted to."""
    back = after.astype(before.dtype)
    if dtype is DType.BOOL:
        return back == before
    if before.dtype.kind in "iu":
        if not dtype.is_integer:
            return _is_integer(after, before)
        # Two integers that are the same modulo a power of two differ in their sign.
        return (back == before) & ((after < 0) == (before < 0))
    if dtype.is_integer:
        return _is_integer(before, after)
    return (back == before) | (np.isnan(back) & np.isnan(before))


def _is_integer(number: np.ndarray[Any, Any], integer: np.ndarray[Any, Any]) -> Any:
    """Return for each floating number whether it is the same as an integer."""
    wide = number.astype(np.float64)
    limits = np.iinfo(integer.dtype)
    inside = (wide >= float(limits.min)) & (wide < 2.0 ** int(limits.max).bit_length())
    return inside & (wide == np.trunc(wide)) & (wide.astype(integer.dtype) == integer)
