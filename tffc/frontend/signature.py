"""Combining a Python function's parameters and its declared types into one parameter type.

A computation has at most one parameter.  The parameters of a Python function become the elements of
a struct, which are passed one by one (splatted) when it is traced.  A function with exactly one
parameter takes the whole.
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tffc.frontend.definitions import definition_span
from tffc.language.containers.struct import Struct
from tffc.language.types import StructType, StructWithPythonType, Type
from tffc.language.values.containers import default_container
from tffc.support.errors import LanguageTypeError


def signature_of(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature of a function to be traced, which has plain parameters only.

    Raises:
      LanguageTypeError: a parameter has a default, is positional-only or keyword-only, or is
        variadic; or Python knows no signature.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise LanguageTypeError(
            "E401",
            f"the parameters of {_name(function)} are not known to Python, so it cannot be traced",
            help="wrap it in a function of your own",
        ) from None
    for parameter in signature.parameters.values():
        _check_parameter(function, parameter)
    return signature


def _check_parameter(function: Callable[..., object], parameter: inspect.Parameter) -> None:
    if parameter.default is not inspect.Parameter.empty:
        raise _refused(function, "E401", f"the parameter {parameter.name!r} has a default value")
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise _refused(function, "E401", f"the parameter {parameter.name!r} is positional-only")
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        raise _refused(function, "E401", f"the parameter {parameter.name!r} is keyword-only")
    if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        reason = f"'{stars}{parameter.name}' stands for any number of arguments"
        raise _refused(function, "E401", reason)


def _refused(function: Callable[..., object], code: str, reason: str) -> LanguageTypeError:
    return LanguageTypeError(
        code,
        f"{_name(function)} cannot be traced: {reason}",
        help="a computation has a fixed number of arguments, each given a type; wrap the function "
        "in one with plain parameters",
        span=definition_span(function),
    )


def parameter_type(
    function: Callable[..., object], signature: inspect.Signature, types: Sequence[Type | None]
) -> Type | None:
    """Return the one parameter type of a function whose decorator was given `types`; None for none.

    Raises:
      LanguageTypeError: the types do not suit the function's parameters.
    """
    names = tuple(signature.parameters)
    if not names:
        return _no_parameter_type(function, types)
    if len(types) == 1 and len(names) == 1:
        return _whole_type(function, names[0], types[0])
    declared = [type for type in types if type is not None]
    if len(declared) < len(types):
        raise LanguageTypeError(
            "E407",
            f"None is not a type, so it cannot be that of a parameter of {_name(function)}",
            span=definition_span(function),
            help="give the type of each parameter, such as np.int32",
        )
    if len(names) == 1:
        return StructType.of((None,) * len(declared), tuple(declared))
    if len(declared) == 1:
        return _struct_type(function, names, declared[0])
    if len(declared) != len(names):
        raise LanguageTypeError(
            "E407",
            f"{_name(function)} has {len(names)} parameters, {_listed(names)}, but was given "
            f"{len(declared)} types",
            help="give one type for each parameter",
            span=definition_span(function),
        )
    return StructWithPythonType.with_container(names, tuple(declared), collections.OrderedDict)


def _no_parameter_type(
    function: Callable[..., object], types: Sequence[Type | None]
) -> Type | None:
    if all(type is None for type in types) and len(types) <= 1:
        return None
    only = types[0] if len(types) == 1 else None
    if isinstance(only, StructType) and not only.types:
        return _struct_type(function, (), only)
    raise LanguageTypeError(
        "E407",
        f"{_name(function)} has no parameters, but was given "
        + ("a type for one" if len(types) == 1 else f"types for {len(types)}"),
        help="drop the types, or give the function parameters",
        span=definition_span(function),
    )


def _whole_type(function: Callable[..., object], name: str, type: Type | None) -> Type:
    if type is None:
        raise LanguageTypeError(
            "E407",
            f"{_name(function)} has the parameter {name!r}, but was given None for its type",
            help="give its type, or drop the parameter",
            span=definition_span(function),
        )
    return type


def _struct_type(function: Callable[..., object], names: tuple[str, ...], type: Type) -> StructType:
    """Return the struct type given for all parameters at once, with the parameters' names."""
    if not isinstance(type, StructType) or len(type) != len(names):
        raise LanguageTypeError(
            "E407",
            f"{_name(function)} has {len(names)} parameters, {_listed(names)}, but was given the "
            f"one type `{type}`",
            help=f"give {len(names)} types, or a struct of {len(names)} elements",
            span=definition_span(function),
        )
    if not type.fields():
        return StructWithPythonType.with_container(names, type.types, collections.OrderedDict)
    if set(type.names) != set(names):
        raise LanguageTypeError(
            "E407",
            f"{_name(function)} has the parameters {_listed(names)}, but was given the type "
            f"`{type}`, whose elements have other names",
            help="name all elements after the parameters, or none",
            span=definition_span(function),
        )
    return type


def is_splatted(
    function: Callable[..., object], signature: inspect.Signature, type: Type | None, *, splat: bool
) -> bool:
    """Return whether a function of a parameter of this type is passed its elements one by one.

    A function that can take one argument is given the whole, unless `splat` demands otherwise.

    Raises:
      LanguageTypeError: the parameter suits the function in neither way.
    """
    if type is None or (len(signature.parameters) == 1 and not splat):
        return False
    if isinstance(type, StructType) and type.is_argument_struct():
        names = type.fields()
        unnamed = [None] * (len(type) - len(names))
        try:
            signature.bind(*unnamed, **dict.fromkeys(names))
        except TypeError:
            # It takes other arguments, which is refused below.
            pass
        else:
            return True
    raise LanguageTypeError(
        "E407",
        f"{_name(function)}{signature} cannot be called with an argument of type `{type}`",
        help="the elements of the argument are passed one by one, those with names as keywords",
    )


def passed_type(type: Type | None, splatted: bool) -> Type | None:
    """Return the type of a parameter, without the outermost container if that is taken apart
    anyway."""
    if splatted and isinstance(type, StructType):
        return StructType.of(type.names, type.types)
    return type


def call_arguments(
    type: Type | None, value: Any, splatted: bool
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments that pass a value of this type to a function.

    The value of a type that is `splatted` gives its elements when it is iterated over.
    """
    if type is None or not splatted:
        return [] if type is None else [value], {}
    assert isinstance(type, StructType)
    args: list[Any] = []
    kwargs: dict[str, object] = {}
    for name, inner, element in zip(type.names, type.types, value, strict=True):
        if name is not None:
            kwargs[name] = element
        elif isinstance(element, Struct) and isinstance(inner, StructType):
            args.append(default_container(inner, element))
        else:
            args.append(element)
    return args, kwargs


def _name(function: Callable[..., object]) -> str:
    return f"the function {name!r}" if (name := function_name(function)) else "the callable"


def function_name(function: Callable[..., object]) -> str | None:
    """Return the name of a Python callable, if it has one."""
    return getattr(function, "__name__", None)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
