"""Python containers whose elements have names: mappings, namedtuples and attrs instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tffc.errors import LanguageTypeError


def named_items(source: Any) -> list[tuple[str, Any]]:
    """Return the (name, value) pairs of a mapping, a namedtuple or an attrs instance.

    Raises:
      LanguageTypeError: a mapping's key is not a string.
    """
    if isinstance(source, Mapping):
        mapping = cast("Mapping[Any, Any]", source)
        for key in mapping:
            if not isinstance(key, str):
                raise LanguageTypeError(
                    "E114",
                    f"the key {key!r} of a mapping is not a string",
                    help="write the names as strings, or give a list if there are no names",
                )
        return list(mapping.items())
    if _is_namedtuple(source):
        names: tuple[str, ...] = class_of(source)._fields
        return list(zip(names, cast("tuple[Any, ...]", source), strict=True))
    fields: Any = getattr(class_of(source), "__attrs_attrs__")  # noqa: B009
    return [(field.name, getattr(source, field.name)) for field in fields]


def is_named_container(source: Any) -> bool:
    """Tell whether `named_items` reads this Python object."""
    return isinstance(source, Mapping) or _is_namedtuple(source) or _is_attrs(source)


def _is_namedtuple(source: object) -> bool:
    return hasattr(class_of(source), "_fields") and isinstance(source, tuple)


def _is_attrs(source: object) -> bool:
    return not isinstance(source, type) and hasattr(class_of(source), "__attrs_attrs__")


def class_of(source: object) -> type[Any]:
    """Return the class of a Python object of which nothing is known."""
    return type(source)
