"""Predicates that aggregations apply to the tensors in a type."""

from __future__ import annotations

from collections.abc import Callable

from tffc.frontend.hints import described
from tffc.language.dtypes import DType
from tffc.language.traverse import walk
from tffc.language.types import FederatedType, SequenceType, StructType, TensorType, Type
from tffc.support.errors import LanguageTypeError


def why_not_summable(type: Type) -> str | None:
    """Return why values of this type cannot be summed, or None if they can.

    Values that can are tensors of numbers of known shape, or structs of such.
    """
    for part in walk(type):
        match part:
            case TensorType() if not part.element_type.is_numeric:
                return f"`{part}` holds no numbers"
            case TensorType() if not part.is_fully_defined():
                return f"the shape of `{part}` is not known"
            case TensorType() | StructType() | FederatedType():
                continue
            case SequenceType():
                return f"`{part}` is a sequence"
            case _:
                return f"`{part}` is not a tensor"
    return None


def is_numeric(type: Type) -> bool:
    """Return whether a type is a structure of numeric tensors, of any shape."""
    return _every_tensor(type, lambda dtype: dtype.is_numeric)


def is_averageable(type: Type) -> bool:
    """Return whether values of this type have a mean: they hold floating or complex numbers."""
    return _every_tensor(
        type, lambda dtype: dtype.kind in ("float", "complex") and dtype is not DType.BFLOAT16
    )


def is_ordered(type: Type) -> bool:
    """Return whether values of this type have a minimum: they hold integers or floating numbers."""
    return _every_tensor(
        type, lambda dtype: dtype.kind in ("int", "uint", "float") and dtype is not DType.BFLOAT16
    )


def is_structure_of_integers(type: Type) -> bool:
    """Return whether a type is made of integer tensors; an empty struct counts."""
    return _every_tensor(type, lambda dtype: dtype.is_integer)


def is_structure_of_floats(type: Type) -> bool:
    """Return whether a type is made of real floating tensors; bfloat16 does not count."""
    return _every_tensor(type, lambda dtype: dtype.is_floating and dtype is not DType.BFLOAT16)


def is_structure_of_tensors(type: Type) -> bool:
    """Return whether a type is a tensor or a structure of tensors."""
    return all(isinstance(part, (TensorType, StructType)) for part in walk(check_is_type(type)))


def check_is_type(source: object) -> Type:
    """Return `source` if it is a type.

    Raises:
      LanguageTypeError: it is not.
    """
    if not isinstance(source, Type):
        raise LanguageTypeError(
            "E110",
            f"expected a type, found {described(source)}",
            help="make it one: tff.to_type(x)",
        )
    return source


def _every_tensor(type: Type, holds: Callable[[DType], bool]) -> bool:
    """Return whether a type consists of structs and tensors whose element types all pass
    `holds`."""
    return all(
        holds(part.element_type)
        if isinstance(part, TensorType)
        else isinstance(part, (StructType, FederatedType))
        for part in walk(check_is_type(type))
    )
