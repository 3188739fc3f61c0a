"""The Python containers that struct values are returned in."""

from __future__ import annotations

import builtins
import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from tffc.language.containers.named import dataclass_of, is_dataclass
from tffc.language.containers.struct import Struct
from tffc.language.types import StructType

Container: TypeAlias = Any
"""A container of a class that the user chose."""


WRAPPED: tuple[type, ...] = (list, tuple, dict)
"""The classes that the wrappers of Keras and TensorFlow stand for."""


def build_container(type: StructType, values: Iterable[object]) -> Container:
    """Return the elements in the container that the type names; a `Struct` if it names none."""
    values = list(values)
    named = bool(type.fields())
    if type.container is None:
        return Struct(zip(type.names, values, strict=True))
    # Any class of the user, which takes the elements in its own way.
    kind: builtins.type[Any] = type.container
    container = cast("Callable[..., Container]", kind)
    if composite := _composite_tensor(kind):
        return composite(values)
    if hasattr(container, "_fields") or hasattr(container, "__attrs_attrs__"):
        return container(*values)
    if is_dataclass(kind):
        return dataclass_of(kind, values)
    if issubclass(kind, Mapping) and len(type.fields()) == len(values):
        # Mappings are made from pairs.
        return container(zip(type.names, values, strict=True))
    if issubclass(kind, (list, tuple)) and not named:
        return container(values)
    return Struct(zip(type.names, values, strict=True))


def default_container(type: StructType, values: Iterable[object]) -> Container:
    """Return the elements in a container: the one the type names, or else by whether they are
    named.

    That is an OrderedDict if all elements have names, a tuple if none has, and a `Struct`
    otherwise.
    """
    named = len(type.fields())
    if type.container is not None or 0 < named < len(type):
        return build_container(type, values)
    if named:
        return collections.OrderedDict(zip(type.names, values, strict=True))
    return tuple(values)


def container_class(value: object) -> type | None:
    """Return the class that a Python value's type names as its container; None for a `Struct`.

    The wrappers in which Keras and TensorFlow keep attributes of their objects count as the lists,
    tuples and dictionaries that they wrap.
    """
    if isinstance(value, Struct):
        return None
    if package_of(type(value)) in ("tensorflow", "keras"):
        return next((base for base in WRAPPED if isinstance(value, base)), type(value))
    return type(value)


def package_of(container: type) -> str:
    """Return the top-level package that a class comes from."""
    return container.__module__.partition(".")[0]


def _composite_tensor(container: type) -> Callable[[Sequence[Any]], Container] | None:
    """Return the constructor of a TensorFlow composite tensor, or None if `container` is not
    one."""
    if package_of(container) != "tensorflow":
        return None
    make: Any = container

    def ragged(values: Sequence[Any]) -> Container:
        return make.from_nested_row_splits(values[0], tuple(values[1]))

    def sparse(values: Sequence[Any]) -> Container:
        return make(*values)

    return {"RaggedTensor": ragged, "SparseTensor": sparse}.get(container.__name__)
