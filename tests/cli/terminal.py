"""Running commands on a terminal, and the text that is visible there."""

from __future__ import annotations

import os
import pathlib
import pty
import re
import subprocess
import sys
import termios

from tests.processes import ENVIRONMENT

AT_ONCE = """\
import sys
from tffc.cli import main, step_line
step_line.DELAY, step_line.INTERVAL, step_line.SELDOM = 0, 0.001, 0
main()
"""
"""A command that says what it is doing from the beginning on."""

CONTROL = re.compile(r"\x1b\[?[A-Z0-9]|[\r\n]|[^\x1b\r\n]+")


COLOR = re.compile(r"\x1b\[[0-9;]*m")


def open_terminal(columns: int) -> tuple[int, int]:
    """Return both ends of a terminal of this width, the one to read from first."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    return ours, theirs


def on_terminal(
    *arguments: str, folder: pathlib.Path, columns: int = 80, **environment: str
) -> str:
    """Return the output of a command whose stdout and stderr are a terminal."""
    ours, theirs = open_terminal(columns)
    started = subprocess.Popen(
        [sys.executable, "-c", AT_ONCE, *arguments],
        cwd=folder,
        env={**ENVIRONMENT, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    try:
        while block := os.read(ours, 2**16):
            written += block
    except OSError:
        pass  # the other side is closed
    os.close(ours)
    started.wait()
    return written.decode()


def seen(written: str) -> list[str]:
    """Return the visible lines, without colours, after this was written to an endless terminal."""
    lines, row, column = [""], 0, 0
    kept = (0, 0)
    for part in CONTROL.findall(COLOR.sub("", written)):
        lines += [""] * (row + 2 - len(lines))
        match part:
            case "\r":
                column = 0
            case "\n" | "\x1b[B" | "\x1bD":
                row += 1
            case "\x1b[A":
                row -= 1
            case "\x1b7":
                kept = (row, column)
            case "\x1b8":
                row, column = kept
            case "\x1b[J":
                lines = [*lines[:row], lines[row][:column]]
            case text if text[0] != "\x1b":
                line = lines[row].ljust(column)
                lines[row] = line[:column] + text + line[column + len(text) :]
                column += len(text)
            case other:
                raise AssertionError(other)
    return "\n".join(lines).rstrip("\n").split("\n")
