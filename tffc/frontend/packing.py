"""Packing the arguments of a Python call into the one argument of a computation."""

from __future__ import annotations

from typing import Any

from tffc.language.containers.struct import Struct
from tffc.language.types import StructType, Type
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.near import did_you_mean


def pack(parameter: Type | None, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Return the argument that a call passes for a parameter of type `parameter`; None without one.

    One positional argument is the argument itself.  Several make a Struct with the names of the
    parameter's elements: positional ones fill the first elements, keywords the others.

    Raises:
      LanguageTypeError: an argument is missing, given twice, or superfluous.
      LanguageValueError: the one argument is None.
    """
    if parameter is None:
        if args or kwargs:
            raise LanguageTypeError(
                "E420",
                f"the computation takes no arguments, but was given {len(args) + len(kwargs)}",
            )
        return None
    if len(args) == 1 and not kwargs:
        if args[0] is None:
            raise LanguageValueError(
                "E460", f"the computation takes an argument of type `{parameter}`, but got None"
            )
        return args[0]
    if not args and not kwargs:
        is_empty = isinstance(parameter, StructType) and not parameter.types
        raise LanguageTypeError(
            "E420",
            f"the computation takes an argument of type `{parameter}`, but was given none",
            help="give () for an empty struct" if is_empty else None,
        )
    if not isinstance(parameter, StructType) or not parameter.is_argument_struct():
        count = f"{next(iter(kwargs))!r} by name" if kwargs else len(args)
        raise LanguageTypeError(
            "E420",
            f"the computation takes one argument, of type `{parameter}`, but was given {count}",
            help="give one positional argument",
        )
    return _struct(parameter, args, kwargs)


def _struct(parameter: StructType, args: tuple[object, ...], kwargs: dict[str, object]) -> Struct:
    if len(args) > len(parameter):
        raise LanguageTypeError(
            "E420",
            f"the computation takes {len(parameter)} arguments, of type `{parameter}`, but was "
            f"given {len(args)} by position",
        )
    for name in kwargs:
        _check_keyword(parameter, len(args), name)
    elements: list[tuple[str | None, Any]] = []
    for index, name in enumerate(parameter.names):
        if index < len(args):
            elements.append((name, args[index]))
        elif name is None or name not in kwargs:
            missing = f"element {index}" if name is None else repr(name)
            raise LanguageTypeError(
                "E420",
                f"the argument {missing} of type `{parameter.types[index]}` is missing",
                help=f"give it by position{'' if name is None else f', or as {name}=...'}",
            )
        else:
            elements.append((name, kwargs[name]))
    return Struct(elements)


def _check_keyword(parameter: StructType, positional: int, name: str) -> None:
    index = parameter.index_of(name)
    if index is None:
        raise LanguageTypeError(
            "E420",
            f"the computation has no argument named {name!r}; its parameter is `{parameter}`",
            help=did_you_mean(name, parameter.fields()),
        )
    if index < positional:
        raise LanguageTypeError(
            "E420",
            f"the argument {name!r} is given twice, by position and by name",
            help=f"leave out one of the two: {name!r} is argument {index + 1} by position",
        )
