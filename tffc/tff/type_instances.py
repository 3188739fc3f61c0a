"""Checking whether a type is an instance of a generic one with type variables.

A variable is defined where it occurs in a function's parameter; all its definitions have to be
equivalent types.  At its other occurrences, the type has to be assignable from the definition.
"""

from __future__ import annotations

import dataclasses

from tffc.frontend.type_analysis import check_is_type
from tffc.language.traverse import find, walk
from tffc.language.types import (
    AbstractType,
    FederatedType,
    FunctionType,
    StructType,
    TensorType,
    Type,
)
from tffc.support.errors import LanguageTypeError


class TypeInstanceError(LanguageTypeError):
    """A type is not an instance of a generic one."""

    def __init__(self, concrete: Type, generic: Type, reason: str) -> None:
        message = f"`{concrete}` is not an instance of `{generic}`: {reason}"
        super().__init__("E168", message)


class NotConcreteTypeError(TypeInstanceError):
    """The instance has type variables itself."""


class MismatchedStructureError(TypeInstanceError):
    """The instance differs from the generic type outside of type variables."""


class MismatchedConcreteTypesError(TypeInstanceError):
    """Two occurrences define a variable as different types."""


class UnassignableConcreteTypesError(TypeInstanceError):
    """A variable is used as a type that is not assignable from its definition."""


class MissingDefiningUsageError(TypeInstanceError):
    """A variable is used several times and never defined."""


@dataclasses.dataclass
class _Uses:
    """The types that replace a variable, where it is defined and elsewhere."""

    definitions: list[Type] = dataclasses.field(default_factory=list[Type])
    others: list[Type] = dataclasses.field(default_factory=list[Type])


def check_concrete_instance_of(concrete_type: Type, generic_type: Type) -> None:
    """Raise a TypeInstanceError unless `concrete_type` is `generic_type` with its variables
    replaced."""
    check_is_type(concrete_type)
    check_is_type(generic_type)
    variable = find(concrete_type, AbstractType)
    if variable is not None:
        reason = f"it has a type variable, `{variable}`, itself"
        raise NotConcreteTypeError(concrete_type, generic_type, reason)
    for name, uses in _uses(concrete_type, generic_type).items():
        _check_uses(name, uses, concrete_type, generic_type)


def _uses(concrete: Type, generic: Type) -> dict[str, _Uses]:
    """Return the types that replace each variable.

    Raises:
      MismatchedStructureError: the types differ elsewhere.
    """
    uses_by_name: dict[str, _Uses] = {}
    waiting: list[tuple[Type, Type, int]] = [(concrete, generic, 1)]
    while waiting:
        part, wanted, depth = waiting.pop()
        if isinstance(wanted, AbstractType):
            uses = uses_by_name.setdefault(wanted.name, _Uses())
            (uses.definitions if depth == 0 else uses.others).append(part)
            continue
        if not _is_same_kind(part, wanted):
            reason = f"`{part}` is in the place of `{wanted}`"
            raise MismatchedStructureError(concrete, generic, reason)
        pairs = zip(part.children(), wanted.children(), strict=True)
        below = [(one, two, depth) for one, two in pairs]
        if isinstance(wanted, FunctionType) and wanted.parameter is not None:
            below[0] = (*below[0][:2], depth - 1)
        waiting += reversed(below)
    return uses_by_name


def _is_same_kind(part: Type, wanted: Type) -> bool:
    """Return whether two types are alike except for the types inside them."""
    if isinstance(wanted, TensorType):
        return part == wanted
    if isinstance(wanted, StructType):
        return isinstance(part, StructType) and part.names == wanted.names
    return (
        type(part) is type(wanted)
        and len(part.children()) == len(wanted.children())
        and (
            not isinstance(part, FederatedType)
            or not isinstance(wanted, FederatedType)
            or (part.placement, part.all_equal) == (wanted.placement, wanted.all_equal)
        )
    )


def _check_uses(name: str, uses: _Uses, concrete: Type, generic: Type) -> None:
    if not uses.definitions:
        if len(uses.others) > 1:
            reason = f"no parameter defines the type variable `{name}`, which is used twice"
            raise MissingDefiningUsageError(concrete, generic, reason)
        return
    first = uses.definitions[0]
    for other in uses.definitions[1:]:
        if not first.is_equivalent_to(other):
            reason = f"`{name}` is both `{first}` and `{other}`"
            raise MismatchedConcreteTypesError(concrete, generic, reason)
    for other in uses.others:
        if not other.is_assignable_from(first):
            reason = f"`{name}` is `{first}`, and `{other}` where it is used"
            raise UnassignableConcreteTypesError(concrete, generic, reason)


def check_all_abstract_types_are_bound(type_spec: Type) -> None:
    """Raise LanguageTypeError if a type variable in a result occurs in no enclosing parameter."""
    waiting: list[tuple[Type, frozenset[str]]] = [(check_is_type(type_spec), frozenset())]
    while waiting:
        part, known = waiting.pop()
        if isinstance(part, FunctionType):
            if part.parameter is not None:
                inside = walk(part.parameter)
                known |= {inner.name for inner in inside if isinstance(inner, AbstractType)}
            waiting.append((part.result, known))
        elif isinstance(part, AbstractType) and part.name not in known:
            raise LanguageTypeError(
                "E109", f"no parameter defines the type variable `{part}` in `{type_spec}`"
            )
        else:
            waiting += [(inner, known) for inner in part.children()]
