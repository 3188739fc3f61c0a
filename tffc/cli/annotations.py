"""Workflow commands of GitHub Actions, which show messages beside the files of a pull request."""

from __future__ import annotations

import pathlib

from tffc.support.errors import shown_path
from tffc.support.printable import printable, printable_lines

_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_ESCAPES_IN_PROPERTIES = {**_ESCAPES, ":": "%3A", ",": "%2C"}


def annotation(file: str | pathlib.Path | None, line: int | None, title: str, message: str) -> str:
    """Return the line for an error; a file below the working directory gets a relative path."""
    properties: dict[str, str] = {}
    if file is not None:
        path = pathlib.PurePath(shown_path(str(file)))
        properties |= {"file": path.as_posix(), "line": str(line)}
    properties["title"] = title
    shown = ",".join(
        f"{key}={_escape(printable(value), _ESCAPES_IN_PROPERTIES)}"
        for key, value in properties.items()
    )
    return f"::error {shown}::{_escape(printable_lines(message), _ESCAPES)}"


def _escape(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(letter, letter) for letter in text)
