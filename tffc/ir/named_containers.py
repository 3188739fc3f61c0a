"""Python containers whose elements have names: mappings, namedtuples and attrs instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tffc.errors import LanguageTypeError


def named_items(source: Any) -> list[tuple[str, Any]]:
    """Return the (name, value) pairs of a mapping, a namedtuple or an attrs instance.

    Raises:
      LanguageTypeError: a mapping's key is not a string.
    """
    if isinstance(source, Mapping):
        for key in source:
            if not isinstance(key, str):
                raise LanguageTypeError(
                    "E114",
                    f"the key {key!r} of a mapping is not a string",
                    help="write the names as strings, or give a list if there are no names",
                )
        return list(source.items())
    if _is_namedtuple(source):
        return list(zip(source._fields, source, strict=True))
    return [(field.name, getattr(source, field.name)) for field in type(source).__attrs_attrs__]


def is_named_container(source: Any) -> bool:
    """Tell whether `named_items` reads this Python object."""
    return isinstance(source, Mapping) or _is_namedtuple(source) or _is_attrs(source)


def _is_namedtuple(source: Any) -> bool:
    return isinstance(source, tuple) and hasattr(type(source), "_fields")


def _is_attrs(source: Any) -> bool:
    return not isinstance(source, type) and hasattr(type(source), "__attrs_attrs__")
