"""JSON as files of ours hold it, and reading it strictly, for somebody may have changed it.

Python's reader takes the last of two equal keys, `NaN`, and other encodings than UTF-8.  What one
reader takes for something else than another is not a record of anything.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable
from typing import Any, NoReturn, cast

NOT_JSON = "it is not JSON"
"""What is said of what no reader of JSON takes."""


class NotJsonError(ValueError):
    """Why something is not JSON."""


def read_json(content: bytes | str) -> Any:
    """Read JSON in UTF-8.

    Raises:
      NotJsonError: it is not JSON, or has a key twice in one object.
    """
    try:
        text = content if isinstance(content, str) else content.decode()
        return json.loads(text, object_pairs_hook=unique_keys, parse_constant=_no_constant)
    except NotJsonError:
        raise
    except (ValueError, RecursionError):
        raise NotJsonError(NOT_JSON) from None


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys and values.

    Raises:
      NotJsonError: a key stands twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise NotJsonError(f"the key {twice!r} stands twice in an object")
    return found


def _no_constant(text: str) -> NoReturn:
    raise NotJsonError(f"JSON has no {text}")


def is_text(value: Any) -> bool:
    """Return whether a value of JSON is a string."""
    return isinstance(value, str)


def is_count(value: Any) -> bool:
    """Return whether a value of JSON is an integer from zero up, of no more than 63 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def is_table(value: Any, is_right: Callable[[Any], bool]) -> bool:
    """Return whether a value of JSON is an object with values of one kind."""
    return isinstance(value, dict) and all(map(is_right, cast("dict[Any, Any]", value).values()))


def encode_json(content: Any) -> bytes:
    """Return JSON as all files of ours hold it: indented, in the order given, ending in a
    newline."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
