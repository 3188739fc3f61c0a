"""The lines of source files, for showing them; no file that cannot be read fails anything."""

from __future__ import annotations

import linecache
from collections.abc import Sequence


def source_lines(file: str) -> Sequence[str]:
    """Return the lines of a file as it is now; none if it cannot be read.

    A file may name an encoding that does not exist or is not one of text, so any exception counts.
    """
    try:
        linecache.checkcache(file)
        return linecache.getlines(file)
    except Exception:  # noqa: BLE001  (codecs raise what they like)
        return ()


def source_line(file: str, number: int) -> str:
    """Return a line of a file, numbered from 1, without its end; empty if it cannot be read."""
    lines = source_lines(file)
    return lines[number - 1].rstrip("\n") if 0 < number <= len(lines) else ""
