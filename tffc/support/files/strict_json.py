"""JSON as tffc writes it, and strict reading of it.

Python's reader accepts duplicate keys (taking the last), `NaN`, encodings other than UTF-8, numbers
of any size and halves of characters.  Other readers may read such a file differently, so it cannot
serve as a record; and what reads a value may fail at it.
"""

from __future__ import annotations

import collections
import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeGuard, cast

NOT_JSON = "it is not JSON"
"""The message for content that no JSON reader accepts."""

LARGEST = 2**64
"""Integers are smaller than this, and larger than its negative."""

HALF = re.compile("[\ud800-\udfff]")
"""Matches half of a character, which only an escape can write."""


class NotJsonError(ValueError):
    """Says why content is not JSON."""


def read_json(content: bytes | str) -> Any:
    """Read JSON in UTF-8.

    Raises:
      NotJsonError: it is not JSON, or has a key twice in one object, a number that is too large, or
        half of a character.
    """
    try:
        text = content if isinstance(content, str) else content.decode()
        value = json.loads(
            text,
            object_pairs_hook=unique_keys,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_fraction,
        )
    except NotJsonError:
        raise
    except (ValueError, RecursionError):
        raise NotJsonError(NOT_JSON) from None
    if "\\u" in text and HALF.search(json.dumps(value, ensure_ascii=False)):
        raise NotJsonError("a text has half of a character")
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these keys and values.

    Raises:
      NotJsonError: a key occurs twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise NotJsonError(f"the key {twice!r} occurs twice in an object")
    return found


def _no_constant(text: str) -> NoReturn:
    raise NotJsonError(f"JSON has no {text}")


def _integer(text: str) -> int:
    value = int(text) if len(text) <= len(str(LARGEST)) + 1 else LARGEST
    if abs(value) >= LARGEST:
        raise NotJsonError("an integer has more than 64 bits")
    return value


def _fraction(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NotJsonError("a number is too large")
    return value


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a JSON value is a string."""
    return isinstance(value, str)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_count(value: Any) -> bool:
    """Return whether a JSON value is a non-negative integer of at most 63 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def is_table(value: Any, is_right: Callable[[Any], bool]) -> bool:
    """Return whether a JSON value is an object whose values all pass `is_right`."""
    return isinstance(value, dict) and all(map(is_right, cast("dict[Any, Any]", value).values()))


def encode_json(content: Any) -> bytes:
    """Return JSON in the form of all our files: indented, keys in the given order, a newline at the
    end."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
