"""A status line below all other output on the terminal, for progress.

It is drawn below the cursor, which stays where it was.  The standard streams erase the status line
before they write, so other output never shares a line with it.  Rich draws its live displays at the
cursor, and would have to be told of all output; TensorFlow and children of the process write to the
terminal themselves.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator

from tffc.cli.screen import cells, cut

DRAW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[J{}\x1b8"
"""Makes room below without changing the column, saves the cursor, writes below and restores it."""

ERASE = b"\x1b[J"
"""Erases everything below the cursor."""


class StatusLine:
    """Draws the line, once it is opened on a terminal."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._terminal: int | None = None
        self._is_drawn = False

    @contextlib.contextmanager
    def on(self, terminal: int) -> Generator[None]:
        """Draw on this terminal while the block runs, and erase everything at the end."""
        self._terminal = terminal
        try:
            yield
        finally:
            self.erase()
            self._terminal = None

    def draw(self, text: str, end: str = "") -> None:
        """Replace the line by a text without line ends, cut to the width of the terminal.

        `end` is appended, and is only cut if it is too wide even without the text.
        """
        with self._lock, contextlib.suppress(OSError):
            if self._terminal is not None:
                columns = os.get_terminal_size(self._terminal).columns or 80
                end = cut(end, columns - 1)
                text = cut(text, columns - 1 - cells(end)) + end
                self._is_drawn = True
                os.write(self._terminal, DRAW.format(text).encode(errors="backslashreplace"))

    def erase(self) -> None:
        """Erase the line until it is drawn again."""
        if self._is_drawn:
            with self._lock:
                self.erase_at_once()

    def erase_at_once(self) -> None:
        """Erase the line, even if a thread hangs while drawing it."""
        if self._is_drawn and self._terminal is not None:
            with contextlib.suppress(OSError):
                os.write(self._terminal, ERASE)
        self._is_drawn = False

    @contextlib.contextmanager
    def away(self) -> Generator[None]:
        """Erase the line, and do not draw it while the block runs."""
        with self._lock:
            self.erase_at_once()
            yield


status_line = StatusLine()
