"""Numbers of one column, formatted alike: all with a decimal point, or all with an exponent."""

from __future__ import annotations

import math
from collections.abc import Iterable

SMALLEST, LARGEST = 1e-4, 1e7
"""Numbers from the first up to the second need no exponent."""


class NumberColumn:
    """The format of a column of numbers, with so many significant digits.

    Exponents are used from the first number on that needs one.
    """

    def __init__(self, digits: int = 4) -> None:
        self._digits = digits
        self.has_exponents = False
        """Whether the numbers are written with exponents."""

    def see(self, numbers: Iterable[float]) -> None:
        """Choose the format for these numbers too."""
        if not self.has_exponents:
            self.has_exponents = any(map(_needs_exponent, numbers))

    def text(self, number: float) -> str:
        """Return a number in the format of the column."""
        self.see([number])
        if not math.isfinite(number):
            return f"{number:g}"
        if self.has_exponents:
            return f"{number:.{self._digits - 1}e}"
        text = f"{number:#.{self._digits}g}"
        # Whole digits are not rounded away, and nothing follows their point.
        return f"{number:.0f}" if "e" in text else text.removesuffix(".")


def _needs_exponent(number: float) -> bool:
    return math.isfinite(number) and number != 0 and not SMALLEST <= abs(number) < LARGEST
