"""The common part of the printed forms: texts of leaves, and the limit on a text's length."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tffc.language.array import Array
from tffc.language.dtypes import DType
from tffc.language.size import CHARACTERS, MAX_SIZE, max_size, size_text, tree_size
from tffc.language.term import Term
from tffc.language.traverse import count
from tffc.support.errors import NotationError
from tffc.support.printable import printable

if TYPE_CHECKING:
    from tffc.language.fingerprint import Section

MAX_TEXT = MAX_SIZE * CHARACTERS
"""The default limit on the characters of a printed form."""

SectionName: TypeAlias = Callable[["Section"], str]
"""Gives the name that a compiled section is printed under, without `comp#`."""


def section_name(section: Section) -> str:
    """Return the name given to the section, or the first eight digits of its fingerprint."""
    if section.name is not None:
        return section.name
    from tffc.language.fingerprint import fingerprint  # which loads protobuf

    return fingerprint(section)[:8]


def section_label(section: Section) -> str:
    """Return the name of the section as all forms but the typed one show it."""
    return printable(section_name(section))


def data_name(type_url: str, content: bytes) -> str:
    """Return the first eight digits of a hash of data and the type of its message."""
    url = type_url.encode()
    return hashlib.sha256(b"%d:%b%b" % (len(url), url, content)).hexdigest()[:8]


@functools.lru_cache(maxsize=1024)
def literal_text(value: Array, *, drawn: bool) -> str:
    """Return the constant as `str` prints its NumPy value, or as `format` does if it is `drawn`.

    The two differ for scalar floats of less than 64 bits, which `format` widens first.
    """
    if not value.shape:
        if isinstance(value.content, tuple):
            return repr(value.content[0])
        if value.dtype is DType.BOOL:
            return str(value.content != b"\0")
        if value.dtype.is_integer:
            return str(int.from_bytes(value.content, "little", signed=value.dtype.kind == "int"))
    from tffc.language.notation.numbers import array_text, scalar_text

    number = value.numpy()
    if value.shape:
        return array_text(number)
    if drawn and value.dtype is not DType.BFLOAT16:
        return str(complex(number) if value.dtype.kind == "complex" else float(number))
    return scalar_text(number)


def check_size(root: Term) -> None:
    """Raise NotationError for a program too large to print.

    Shared nodes can make a small program astronomically large as a tree.
    """
    size = tree_size(root)
    if size > max_size():
        raise NotationError(
            "E201",
            f"the program has {size_text(size)} nodes when it is written out, "
            f"more than the {max_size()} that are printed",
            notes=(f"it has {count(root)} distinct nodes, shared between places",),
            help="bind shared nodes in a block",
        )
