"""The identity of the tool that made a report."""

from __future__ import annotations

import functools
import hashlib
import pathlib

from tffc.graphs.node import tokens

SUFFIXES = (".py", ".txt")
"""The suffixes of the files that decide what the tool answers: code and tables."""


@functools.cache
def tool_digest() -> str:
    """Return the SHA-256 of the code and the tables of this package."""
    root = pathlib.Path(__file__).parents[2]
    content = hashlib.sha256()
    for path in sorted(file for suffix in SUFFIXES for file in root.rglob(f"*{suffix}")):
        name = path.relative_to(root).as_posix()
        if "node_modules" not in name:
            content.update(tokens((name, path.read_bytes())))
    return content.hexdigest()
