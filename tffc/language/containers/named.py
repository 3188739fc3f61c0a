"""Python containers whose elements have names: mappings, namedtuples and attrs instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tffc.support.errors import LanguageTypeError


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
                    "E107",
                    f"the key {key!r} of a mapping is not a string",
                    help="write the names as strings, or give a list if there are no names",
                )
        return list(mapping.items())
    if _is_namedtuple(source):
        names: tuple[str, ...] = class_of(source)._fields
        return list(zip(names, cast("tuple[Any, ...]", source), strict=True))
    return [(f.name, getattr(source, f.name)) for f in class_of(source).__attrs_attrs__]


def is_named_container(source: Any) -> bool:
    """Tell whether `named_items` reads this Python object."""
    return isinstance(source, Mapping) or _is_namedtuple(source) or _is_attrs(source)


def _is_namedtuple(source: object) -> bool:
    return hasattr(class_of(source), "_fields") and isinstance(source, tuple)


def _is_attrs(source: object) -> bool:
    return not isinstance(source, type) and hasattr(class_of(source), "__attrs_attrs__")


def class_of(source: object) -> type[Any]:
    """Return the class of a Python object of any type, for type checkers."""
    return type(source)


def lists_names(source: Any) -> bool:
    """Tell whether a list or tuple has a (name, type) pair in it, so that it lists the elements of
    a struct and is not itself a container."""
    if is_named_container(source) or is_named_pair(source):
        return False
    return any(is_named_pair(item) for item in source)


def is_named_pair(source: Any) -> bool:
    """Tell whether a list or tuple is a (name, anything) pair."""
    if not isinstance(source, (list, tuple)):
        return False
    items = cast("list[Any]", source)
    return len(items) == 2 and isinstance(items[0], str)


def is_pair(source: Any) -> bool:
    """Tell whether a list or tuple is a (name, type) pair, or a tuple one without a name."""
    if not isinstance(source, tuple):
        return is_named_pair(source)
    items = cast("tuple[Any, ...]", source)
    return len(items) == 2 and (items[0] is None or isinstance(items[0], str))
