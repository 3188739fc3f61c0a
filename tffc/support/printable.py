"""Escaping of invisible characters and of those that control a terminal.

Names come from the author of a program or its data.  Written as they are, they could move the
cursor, colour or erase what is before them, set the title of a window, reverse the order of what
follows, or begin a line that looks like ours.
"""

from __future__ import annotations

import re
from typing import Any

# Characters that Python counts as printable although they show as nothing or as a blank: joiners,
# fillers, variation selectors and the like.  Few texts need the pattern, so it is compiled on first
# use.
_BLANKS = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
_LAYOUT = r"[^\n\t]+"
_LAYOUT_OF_JSON = r"[^\n]+"


def printable(text: str) -> str:
    """Return the text with Python's escapes for all characters that are not visible on one line.

    These are control and format characters, line breaks, tabs, spaces other than the usual one,
    and code points without a character.  All else, also a backslash, is unchanged.
    """
    if text.isprintable() and (text.isascii() or re.search(_BLANKS, text) is None):
        return text
    return "".join(letter if _is_seen(letter) else _escape(letter) for letter in text)


def printable_lines(text: str) -> str:
    """Return the text as `printable` does, but keep the line breaks and tabs that lay it out."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_LAYOUT, lambda match: printable(match[0]), text)


def json_text(value: Any, *, indent: int | None = None, allow_nan: bool = True) -> str:
    """Return a value as JSON, with invisible characters escaped.

    Raises:
      ValueError: it holds a number that is not finite, and `allow_nan` is not set.
    """
    import json  # which few commands need

    text = json.dumps(value, indent=indent, allow_nan=allow_nan, ensure_ascii=False)
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_LAYOUT_OF_JSON, lambda match: _json_escape(match[0]), text)


def json_string(text: str) -> str:
    """Return a text in double quotes, with JSON's escapes for all but ASCII."""
    import json  # which few commands need

    return json.dumps(text)


def _json_escape(text: str) -> str:
    if printable(text) == text:
        return text
    # JSON's escapes, such as \u202e; a code point above U+FFFF takes two.
    return "".join(c if _is_seen(c) else _one_json_escape(c) for c in text)


def _one_json_escape(letter: str) -> str:
    return "\\u007f" if letter == "\x7f" else json_string(letter)[1:-1]


def _is_seen(letter: str) -> bool:
    return letter.isprintable() and re.match(_BLANKS, letter) is None


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def counted(number: int, noun: str) -> str:
    """Return a count with a noun, such as `1 client` or `2 clients`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
