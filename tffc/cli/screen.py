"""Fitting output to the screen: lines as wide as the terminal, colours for any background."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

RED, GREEN, BLUE, AMBER = 160, 28, 32, 130
"""Colours of the 256-colour palette, which unlike the first sixteen are the same in all terminals.
Each is readable on white and on black."""

PIECE = re.compile(r"(?:\[[\d?,]*\]|[^\s,])+[\s,]*|[\s,]+")
"""Matches a piece that is kept on one line: a word, or an element of a type with its shape, and the
separator after it."""

JOINT = re.compile(r".*[<({:=>)}]", re.DOTALL)
"""Matches the part of a too wide piece that stays on the line: up to a bracket or operator."""


def colors() -> bool | None:
    """Return the `color` argument for `click.echo`: False if NO_COLOR is set, else None (only
    terminals)."""
    return False if "NO_COLOR" in os.environ else None


def has_colors(stream: Any) -> bool:
    """Return whether a stream goes to a terminal that shows colours, and NO_COLOR is not set."""
    return stream.isatty() and colors() is None and os.environ.get("TERM") != "dumb"


def width_of(stream: Any) -> int | None:
    """Return the width of a stream's terminal in columns; None if it is not a terminal."""
    try:
        return (os.get_terminal_size(stream.fileno()).columns or 80) if stream.isatty() else None
    except (OSError, ValueError):
        return None


def cells(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def cut(line: str, width: int | None) -> str:
    """Cut a line to the width, with an ellipsis for the rest."""
    if width is None or cells(line) <= width:
        return line
    return line[: _fitting(line, width - 1)] + "…"


def wrapped(line: str, width: int | None, hang: str = "") -> list[str]:
    """Break a line into lines no wider than the width, all but the first prefixed with `hang`.

    It is broken at spaces and after commas, and elsewhere only if a piece between them is too wide.
    """
    if width is None or cells(line) <= width:
        return [line]
    hang = hang[: width // 2]
    lines: list[str] = []
    begun, is_empty = "", True
    for piece in PIECE.findall(line):
        while cells(begun + piece.rstrip()) > width:
            if is_empty:
                count = max(1, _fitting(piece, width - cells(begun)))
                joint = JOINT.match(piece, 0, count)
                count = joint.end() if joint is not None else count
                begun, piece = begun + piece[:count], piece[count:]
            lines.append(begun.rstrip())
            begun, is_empty = hang, True
        begun, is_empty = begun + piece, False
    return [*lines, begun.rstrip()] if begun.strip() else lines


def wrapped_lines(text: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a program or table, wrapped with indentation; comments stay comments."""
    for line in text.split("\n"):
        margin = line[: len(line) - len(line.lstrip(" ;"))]
        yield from wrapped(line, width, margin + "    ")


def _fitting(text: str, width: int) -> int:
    """Return how many characters of a text fit the width."""
    taken = 0
    for count, letter in enumerate(text):
        taken += cells(letter)
        if taken > width:
            return count
    return len(text)
