"""Checks of the settings of algorithms."""

from __future__ import annotations

import math
from typing import Any

from tffc.support.errors import LanguageValueError


def check_count(name: str, value: Any) -> int:
    """Return a number of things, of which there is at least one.

    Raises:
      LanguageValueError: it is not a positive integer.
    """
    if type(value) is not int or value < 1:
        raise _refused(name, value, "give a whole number from 1 on")
    return value


def check_number(
    name: str, value: Any, low: float = 0.0, high: float = math.inf, *, least: bool = False
) -> float:
    """Return a number above `low` and below `high`, or equal to `low` if it may be the `least`.

    Raises:
      LanguageValueError: it is not such a number.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not (low < value < high or (least and value == low)):
        lowest = f"from {low:g} on" if least else f"above {low:g}"
        highest = "" if high == math.inf else f" and below {high:g}"
        raise _refused(name, value, f"give a number {lowest}{highest}")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return a word that is one of the choices.

    Raises:
      LanguageValueError: it is not.
    """
    if value not in choices:
        raise _refused(name, value, f"give {' or '.join(map(repr, choices))}")
    return value


def _refused(name: str, value: Any, help: str) -> LanguageValueError:
    return LanguageValueError("E706", f"{name} is {value!r}", help=help)
