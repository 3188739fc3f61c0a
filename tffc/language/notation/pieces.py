"""Text put together from pieces, on one line or on several.

A piece is text, a mark where a line may break, or a node or type that an `expand` function turns
into pieces.  Every printed form is defined by such a function.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tffc.language.size import CHARACTERS, max_size
from tffc.support.errors import NotationError
from tffc.support.printable import printable


class Mark(enum.Enum):
    """A line break of the formatted form, with the change of the indentation."""

    INDENT = 2
    BREAK = 0
    DEDENT = -2


SHOWN = (str, Mark)
"""The classes of what is shown as it is."""


def expanded(pieces: Iterable[Any], expand: Callable[[Any], Sequence[Any]]) -> Iterator[str | Mark]:
    """Yield text and marks; `expand` gives the pieces of anything else."""
    stack = list(pieces)[::-1]
    while stack:
        item = stack.pop()
        if isinstance(item, SHOWN):
            yield item
        else:
            stack += expand(item)[::-1]


def listed(
    pairs: Iterable[tuple[str | None, Any]], spell: Callable[[str], str] = printable
) -> list[Any]:
    """Return the pieces of a list of values; `spell` writes the names of those that have one."""
    pieces: list[Any] = []
    for name, value in pairs:
        if pieces:
            pieces += (",", Mark.BREAK)
        pieces += (value,) if name is None else (f"{spell(name)}=", value)
    return pieces


def bracketed(items: Sequence[Any], spell: Callable[[str], str] = printable) -> list[Any]:
    """Return the pieces of a struct of these (name or None, value) pairs."""
    if not items:
        return ["<>"]
    return ["<", Mark.INDENT, *listed(items, spell), Mark.DEDENT, ">"]


def on_one_line(pieces: Iterable[str | Mark], most: int) -> str:
    """Return the pieces without breaks.

    Raises:
      NotationError: the text is longer than `most` characters.
    """
    text: list[str] = []
    length = 0
    for piece in pieces:
        if isinstance(piece, str):
            text.append(piece)
            length += len(piece)
            if length > most:
                check_length(length, most)
    return "".join(text)


def layout(
    pieces: Iterable[str | Mark], most: int | None = None, deepest: int | None = None
) -> str:
    """Return the pieces as lines without trailing spaces.

    With `deepest`, lines are indented by at most that many levels.

    Raises:
      NotationError: `most` is given, and the text is longer than that many characters.
    """
    rows: list[str] = []
    row: list[str] = []
    indentation = length = 0
    for piece in pieces:
        if isinstance(piece, str):
            row.append(piece)
            length += len(piece)
        else:
            rows.append("".join(row).rstrip())
            indentation += piece.value
            row = [" " * (indentation if deepest is None else min(indentation, 2 * deepest))]
            length += len(row[0]) + 1
        if most is not None and length > most:
            check_length(length, most)
    rows.append("".join(row).rstrip())
    return "\n".join(rows)


def max_text() -> int:
    """Return the limit on the characters of a printed form that holds now."""
    return max_size() * CHARACTERS


def check_length(length: int, most: int, notes: Callable[[], tuple[str, ...]] = tuple) -> None:
    """Raise NotationError for a text longer than `most` characters."""
    if length > most:
        raise NotationError(
            "E202",
            f"the text of the program is longer than {most} characters",
            notes=notes(),
            help="print it in the compact style, or print a part of it",
        )
