"""Errors as text that names the cell of a notebook."""

from __future__ import annotations

from typing import Any

from tffc.support.errors import Span, TffcError

RED, PLAIN = "\x1b[1;31m", "\x1b[0m"


def error_text(error: TffcError, compiler: Any = None) -> str:
    """Return an error as lines; `compiler` is IPython's, which names the cell of a file."""
    span = error.span
    if span is not None:
        error.span = in_cell(span, compiler)
    try:
        title, *lines = str(error).split("\n")
    finally:
        error.span = span
    return "\n".join([f"{RED}error:{PLAIN} {title}", *lines, ""])


def in_cell(span: Span, compiler: Any) -> Span:
    """Return a place with the name of its cell, such as `Cell In[3]`, instead of its file."""
    name = cell_name(span.file, compiler)
    return span if name is None else span._replace(file=name, text=span.source_line())


def cell_name(file: str, compiler: Any) -> str | None:
    """Return the name of the cell that IPython's compiler has compiled as a file; None if that is
    the file of no cell."""
    name = getattr(compiler, "format_code_name", lambda file: None)(file)
    return None if name is None else " ".join(name)
