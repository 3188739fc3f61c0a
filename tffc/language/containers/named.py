"""Python containers whose elements have names: mappings, namedtuples, objects of attrs classes and
dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tffc.support.errors import LanguageTypeError, LanguageValueError

PACKAGE = __name__.partition(".")[0]


def named_items(source: Any) -> list[tuple[str, Any]]:
    """Return the (name, value) pairs of a mapping, a namedtuple, an attrs object or a dataclass.

    Raises:
      LanguageTypeError: a mapping's key is not a string, or a dataclass cannot be made from its
        fields.
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
    kind = class_of(source)
    if _is_namedtuple(source):
        return list(zip(field_names(kind), cast("tuple[Any, ...]", source), strict=True))
    if not _is_attrs(source):
        _check_dataclass(source)
    return [(name, getattr(source, name)) for name in field_names(kind)]


def field_names(kind: type[Any]) -> list[str]:
    """Return the names of the fields of a namedtuple, an attrs class or a dataclass, in order."""
    if hasattr(kind, "_fields"):
        return list(kind._fields)
    if hasattr(kind, "__attrs_attrs__"):
        return [field.name for field in kind.__attrs_attrs__]
    return [field.name for field in dataclasses.fields(kind)]


def is_named_class(source: object) -> bool:
    """Tell whether this is itself a class of containers with named fields."""
    if not isinstance(source, type):
        return False
    kind = cast("type[Any]", source)
    is_namedtuple = tuple in kind.__mro__ and hasattr(kind, "_fields")
    return is_namedtuple or hasattr(kind, "__attrs_attrs__") or is_dataclass(kind)


def annotated_fields(source: object) -> list[tuple[str, Any]] | None:
    """Return the fields of a class of named tuples with what annotates them; None for a class
    without annotations, and for other objects."""
    if not is_named_class(source) or not hasattr(source, "_fields"):
        return None
    kind = cast("type[Any]", source)
    try:
        annotations = typing.get_type_hints(kind)
    except (AttributeError, NameError, TypeError):
        return None
    names = field_names(kind)
    return [(name, annotations[name]) for name in names] if {*names} <= {*annotations} else None


def is_named_container(source: Any) -> bool:
    """Tell whether `named_items` reads this Python object."""
    return (
        isinstance(source, Mapping)
        or _is_namedtuple(source)
        or _is_attrs(source)
        or is_dataclass(class_of(source))
    )


def _is_namedtuple(source: object) -> bool:
    return hasattr(class_of(source), "_fields") and isinstance(source, tuple)


def _is_attrs(source: object) -> bool:
    return not isinstance(source, type) and hasattr(class_of(source), "__attrs_attrs__")


@functools.lru_cache(maxsize=1024)
def is_dataclass(kind: type[Any]) -> bool:
    """Tell whether a class is a dataclass of the user.

    Nodes, types and other objects of this package are dataclasses too, but no containers.
    """
    definitions = [base for base in kind.__mro__ if "__dataclass_fields__" in vars(base)]
    return bool(definitions) and all(
        base.__module__.partition(".")[0] != PACKAGE for base in definitions
    )


def _check_dataclass(source: Any) -> None:
    """Raise LanguageTypeError unless an instance of a dataclass can be made from its fields."""
    kind = class_of(source)
    if reason := _not_remade(kind):
        raise LanguageTypeError(
            "E110",
            f"the dataclass {kind.__name__!r} cannot be a struct: {reason}",
            help="a struct becomes an instance again in a call with all its fields and nothing "
            "else: leave out field(init=False), InitVar and an __init__ of your own",
        )
    for name in field_names(kind):
        if not hasattr(source, name):
            raise LanguageTypeError("E110", f"the field {name!r} of this {kind.__name__} is unset")


@functools.lru_cache(maxsize=1024)
def _not_remade(kind: type[Any]) -> str | None:
    """Return why an instance of a dataclass cannot be made from its fields, or None if it can."""
    names = field_names(kind)
    taken = inspect.signature(kind).parameters
    for name in names:
        if name not in taken:
            return f"its constructor does not take the field {name!r}"
    for name in taken:
        if name not in names:
            return f"its constructor takes {name!r}, which is no field"
    return None


def dataclass_of(kind: type[Any], values: Sequence[object]) -> Any:
    """Return the instance of a dataclass with these values of its fields, in their order.

    Raises:
      LanguageValueError: it has more fields or fewer.
    """
    names = field_names(kind)
    if len(names) != len(values):
        raise LanguageValueError(
            "E161",
            f"{len(values)} values cannot be put into the dataclass {kind.__name__!r}, which has "
            f"{len(names)} fields",
        )
    return kind(**dict(zip(names, values, strict=True)))


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
