"""The numbers of participants at each placement, inferred from values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tffc.frontend.hints import described
from tffc.language.types import FederatedType, Placement, StructType, Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.guards import is_listing, is_mapping
from tffc.support.trampoline import Task, run

CardinalitiesType = Mapping[Placement, int]
"""The number of participants at each placement."""

CardinalityInferenceFnType = Callable[[object, Type], CardinalitiesType]
"""A function that finds them for a value of a type."""


class InvalidNonAllEqualValueError(LanguageTypeError):
    """A value that should be a list, with one value for each participant, is not."""


@entry_point
def infer_cardinalities(value: Any, type_spec: Type) -> dict[Placement, int]:
    """Return the number of participants at each placement that a value of a type has values for.

    Raises:
      InvalidNonAllEqualValueError: a part of it should be a list or tuple and is not.
      LanguageValueError: two parts have different numbers of participants.
    """
    return run(_inferred(value, type_spec))


def _inferred(value: Any, type: Type) -> Task[dict[Placement, int]]:
    if isinstance(type, FederatedType) and not type.all_equal:
        if not is_listing(value):
            raise InvalidNonAllEqualValueError(
                "E711",
                f"a value of type `{type}` is a list of values, not {described(value)}",
                help="give a list with one value for each client",
            )
        return {type.placement: len(value)}
    if not isinstance(type, StructType):
        return {}
    parts: Iterable[Any] = value.values() if is_mapping(value) else value
    cardinalities: dict[Placement, int] = {}
    for part, inner in zip(parts, type.types, strict=True):
        cardinalities = merge_cardinalities(cardinalities, (yield _inferred(part, inner)))
    return cardinalities


@entry_point
def merge_cardinalities(
    existing: Mapping[Placement, int], to_add: Mapping[Placement, int]
) -> dict[Placement, int]:
    """Return the numbers of participants at each placement that two values have together.

    Raises:
      LanguageTypeError: a key is not a placement, or a value is not a number.
      LanguageValueError: the two disagree on a placement.
    """
    pairs: list[tuple[Any, Any]] = [*existing.items(), *to_add.items()]
    for placement, number in pairs:
        if not isinstance(placement, Placement) or not isinstance(number, int):
            raise LanguageTypeError(
                "E714",
                "a cardinality is a placement and a number, not "
                f"{described(placement)} and {described(number)}",
                help="give {tff.CLIENTS: 3}",
            )
    for placement in existing.keys() & to_add.keys():
        if existing[placement] != to_add[placement]:
            raise LanguageValueError(
                "E723",
                f"one value is of {existing[placement]} at {placement}, the other of "
                f"{to_add[placement]}",
                help="give as many values in each",
            )
    return {**existing, **to_add}


# The tests of today's language call it by its private name.
_merge_cardinalities = merge_cardinalities
