"""Python containers for the values of types: a list or dict for a struct that names no class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tffc.frontend.conversion import infer_type as type_of
from tffc.frontend.type_conversions import fill
from tffc.frontend.type_conversions import type_to_py_container as type_to_py_container
from tffc.frontend.type_queries import TypedObject
from tffc.language.containers.named import is_named_container, named_items
from tffc.language.types import FederatedType, SequenceType, StructType, Type
from tffc.language.values.containers import build_container
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageValueError
from tffc.support.guards import is_listing, is_mapping
from tffc.support.trampoline import Task, run


def _container(type: StructType, values: Sequence[Any]) -> Any:
    """Return values in the container that a type names, or else in a list or a dict.

    Raises:
      LanguageValueError: only some elements have names.
    """
    named = len(type.fields())
    if 0 < named < len(type.types):
        raise LanguageValueError(
            "E161",
            f"Python has no container for `{type}`, which names some of its elements only",
            help="name all elements, or none",
        )
    if type.container is not None:
        return build_container(type, values)
    return dict(zip(type.names, values, strict=True)) if named else list(values)


@entry_point
def infer_type(arg: object) -> Type | None:
    """Return the type of a Python object, which may say its own; None for None."""
    if arg is None:
        return None
    return arg.type_signature if isinstance(arg, TypedObject) else type_of(arg)


@entry_point
def structure_with_type(factory: Callable[[Type], Any], type_spec: Type) -> Any:
    """Return the results of a function for the types of a struct's leaves, in containers.

    Raises:
      LanguageValueError: only some elements of a struct have names.
    """
    return fill(type_spec, factory, _container)


@entry_point
def to_structure_with_type(obj: object, type_spec: Type) -> Any:
    """Return a structure of Python in the containers of a type; its leaves stay as they are.

    Elements are taken by position, whatever their names.

    Raises:
      LanguageValueError: it has a container where the type has none, or more or fewer elements; or
        only some elements of a struct have names.
    """
    return run(_converted(obj, type_spec))


def _converted(part: object, type: Type) -> Task[Any]:
    elements = _elements(part)
    if elements is None:
        return part
    if isinstance(type, FederatedType) and type.all_equal:
        return (yield _converted(part, type.member))
    if isinstance(type, SequenceType):
        return elements
    types: Sequence[Type]
    match type:
        case FederatedType():
            types = (type.member,) * len(elements)
        case StructType() if len(type.types) == len(elements):
            types = type.types
        case _:
            raise LanguageValueError(
                "E161",
                f"a container of {len(elements)} elements is no value of type `{type}`",
                help="give a container with an element for each of the type's",
            )
    values: list[Any] = []
    for element, inner in zip(elements, types, strict=True):
        values.append((yield _converted(element, inner)))
    return _container(type, values) if isinstance(type, StructType) else values


def _elements(part: Any) -> list[Any] | None:
    """Return the elements of a container of Python's own classes; None for a leaf."""
    if is_mapping(part):
        return list(part.values())
    if is_named_container(part):
        return [value for _, value in named_items(part)] if isinstance(part, tuple) else None
    return list(part) if is_listing(part) else None
