"""Places in a user's files, as reports and messages have them."""

from __future__ import annotations

import pathlib

from tffc.support.errors import Span, shown_path


def place(span: Span) -> str:
    """Return a span as file and line, relative to the working directory if possible."""
    return f"{shown_path(span.file)}:{span.line}"


def without_line(span: Span) -> str:
    """Return the file of a span, for texts that do not change when lines move."""
    return shown_path(span.file)


def report_path(file: str) -> str:
    """Return the path of a file as reports have it: relative to the working directory, or only its
    name, because other paths tell about the author's machine."""
    shown = shown_path(file)
    return pathlib.PurePath(shown).name if pathlib.PurePath(shown).is_absolute() else shown


def report_place(span: Span) -> str:
    """Return a span as file and line, as reports have it."""
    return f"{report_path(span.file)}:{span.line}"
