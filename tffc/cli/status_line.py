"""A line below everything that is written to the terminal, such as how far a command is.

It is drawn below the cursor, which stays where it was.  So whatever is written next, by whomever,
goes to a line of its own; the standard streams take the line away before they write.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator

from tffc.cli.screen import cells, cut

DRAW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[J{}\x1b8"
"""Makes room below without leaving the column, remembers the cursor, writes below and returns."""

ERASE = b"\x1b[J"
"""Erases what is below the cursor."""


class StatusLine:
    """What draws the line; it is not on any terminal until it is opened."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._terminal: int | None = None
        self._is_drawn = False

    @contextlib.contextmanager
    def on(self, terminal: int) -> Generator[None]:
        """Draw on this terminal while the block runs, and leave nothing there."""
        self._terminal = terminal
        try:
            yield
        finally:
            self.erase()
            self._terminal = None

    def draw(self, text: str, end: str = "") -> None:
        """Replace the line by a text without ends of lines, as much of it as the terminal holds.

        The end of the text is shown before all else.
        """
        with self._lock, contextlib.suppress(OSError):
            if self._terminal is not None:
                columns = os.get_terminal_size(self._terminal).columns or 80
                end = cut(end, columns - 1)
                text = cut(text, columns - 1 - cells(end)) + end
                self._is_drawn = True
                os.write(self._terminal, DRAW.format(text).encode(errors="backslashreplace"))

    def erase(self) -> None:
        """Take the line away until it is drawn again."""
        if self._is_drawn:
            with self._lock:
                self.erase_at_once()

    def erase_at_once(self) -> None:
        """Take the line away, also if a thread hangs that was drawing it."""
        if self._is_drawn and self._terminal is not None:
            with contextlib.suppress(OSError):
                os.write(self._terminal, ERASE)
        self._is_drawn = False

    @contextlib.contextmanager
    def away(self) -> Generator[None]:
        """Take the line away, and keep it away while the block runs."""
        with self._lock:
            self.erase_at_once()
            yield


status_line = StatusLine()
