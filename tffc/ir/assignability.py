"""When a value of one type may stand where another is needed, and how to say that it may not.

    tensors     equal element types; the target's dimensions equal or unknown
    structs     equal length; a source element is unnamed or has the target's name
    functions   contravariant in the parameter, covariant in the result
    federated   equal placement; an all-equal target needs an all-equal source

Python containers make no difference here.
"""

from __future__ import annotations

import difflib
from typing import Any

from tffc.errors import (
    LanguageTypeError,
    TypeNotAssignableError,
    TypesNotEquivalentError,
    TypesNotIdenticalError,
)
from tffc.ir.types import (
    AbstractType,
    FederatedType,
    FunctionType,
    PlacementType,
    SequenceType,
    StructType,
    TensorType,
    Type,
    shape_is_assignable,
)
from tffc.printable import printable

MESSAGE_WIDTH = 100
"""Types whose compact text is longer than this are shown with a difference."""

MAX_FORMATTED = 500
"""Types whose formatted text is longer than this are shown on one line."""

MAX_TEXT = 10_000
"""Types whose compact text is longer than this are shown without a difference, which takes long to
find; the place that differs is named anyway."""


def check_assignable(target: Type, source: Type) -> None:
    """Raises TypeNotAssignableError, which names the first place that differs."""
    place = first_difference(target, source)
    if place is not None:
        error = TypeNotAssignableError(
            "E101", mismatch(source, target, "assignable"), notes=_place_notes(place)
        )
        error.source_type, error.target_type = source, target
        raise error


def check_equivalent(first: Type, second: Type) -> None:
    """Raises TypesNotEquivalentError unless each type is assignable from the other."""
    if first == second:
        return
    place = first_difference(second, first)
    if place is None:
        place = first_difference(first, second)
    if place is not None:
        error = TypesNotEquivalentError(
            "E102", mismatch(first, second, "equivalent"), notes=_place_notes(place)
        )
        error.first_type, error.second_type = first, second
        raise error


def check_identical(first: Type, second: Type) -> None:
    """Raises TypesNotIdenticalError unless the two types are the same."""
    if first != second:
        error = TypesNotIdenticalError("E103", mismatch(first, second, "identical"))
        error.first_type, error.second_type = first, second
        raise error


def first_difference(target: Type, source: Type) -> str | None:
    """The path to the first place where `source` cannot stand for `target`; None where it can.

    The path is written like an expression on the value, such as `.weights[0]*`; the root is the
    empty path.

    Raises:
      LanguageTypeError: an abstract type is met.
    """
    difference = _first_difference(target, source)
    return None if difference is None else difference[0]


def differing_types(target: Type, source: Type) -> tuple[Type, Type] | None:
    """Return what target and source have at the first place that differs; None if none does.

    Raises:
      LanguageTypeError: an abstract type is met.
    """
    difference = _first_difference(target, source)
    return None if difference is None else difference[1:]


def difference_notes(target: Type, source: Type) -> tuple[str, ...]:
    """What `source` has at the first place where it cannot stand for `target`, as a note of an
    error whose message shows both types; none where they say it all."""
    difference = _first_difference(target, source)
    if difference is None:
        return ()
    place, wanted, found = difference
    is_inside = bool(place.removeprefix("@"))
    subject = f"`{place}`" if is_inside else "it"
    if isinstance(wanted, StructType) and isinstance(found, StructType):
        return (f"{subject} has {_other_element(wanted, found)}",)
    return (f"{subject} is of type `{found}`, not `{wanted}`",) if is_inside else ()


def _other_element(wanted: StructType, found: StructType) -> str:
    """The first element of one of two structs that the other does not have."""
    for want, have in zip(wanted.names, found.names, strict=False):
        if have not in (None, want):
            expected = "one without a name" if want is None else repr(want)
            return f"an element named {have!r} where {expected} is expected"
    shorter, longer = sorted((wanted, found), key=len)
    name = longer.names[len(shorter)]
    if name is None:
        return f"another number of elements: {len(found)}, not {len(wanted)}"
    return f"no element named {name!r}" if longer is wanted else f"an element {name!r} too many"


def _first_difference(target: Type, source: Type) -> tuple[str, Type, Type] | None:
    """The path to the first place that differs, and what target and source have there."""
    if target is source and not target.is_abstract:
        return None
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[Type, Type, tuple[Any, ...] | None]] = [(target, source, None)]
    while stack:
        wanted, found, path = stack.pop()
        if isinstance(wanted, AbstractType):
            raise LanguageTypeError(
                "E109",
                f"the abstract type `{wanted}` cannot be compared",
                help=f"put a concrete type in the place of `{wanted}`",
            )
        if wanted is found and not wanted.is_abstract:
            continue
        if (id(wanted), id(found)) in seen:
            continue
        seen.add((id(wanted), id(found)))
        parts = _assignable_parts(wanted, found)
        if parts is None:
            return _path_text(path), wanted, found
        stack.extend((w, f, (path, step)) for w, f, step in reversed(parts))
    return None


def _assignable_parts(target: Type, source: Type) -> list[tuple[Type, Type, str]] | None:
    """Which pairs of children must be assignable for these two to be, or None if they never are."""
    match target, source:
        case TensorType(), TensorType():
            fits = target.dtype is source.dtype and shape_is_assignable(target.shape, source.shape)
            return [] if fits else None
        case StructType(), StructType():
            names = zip(target.names, source.names, strict=False)
            if len(target) != len(source) or any(s not in (None, t) for t, s in names):
                return None
            names = enumerate(target.names)
            steps = [f"[{i}]" if n is None else f".{printable(n)}" for i, n in names]
            return list(zip(target.types, source.types, steps, strict=True))
        case SequenceType(), SequenceType():
            return [(target.element, source.element, "*")]
        case FunctionType(), FunctionType():
            result = (target.result, source.result, ".result")
            if target.parameter is None or source.parameter is None:
                return [result] if target.parameter is source.parameter else None
            return [(source.parameter, target.parameter, ".parameter"), result]
        case FederatedType(), FederatedType():
            fits = target.placement is source.placement
            fits = fits and (source.all_equal or not target.all_equal)
            return [(target.member, source.member, "@")] if fits else None
        case PlacementType(), PlacementType():
            return []
        case _:
            return None


def _path_text(path: tuple[Any, ...] | None) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return "".join(reversed(steps))


def _place_notes(place: str | None) -> tuple[str, ...]:
    return () if not place else (f"the first place that differs is `{place}`",)


def mismatch(first: Type, second: Type, relation: str) -> str:
    """The words for two types that are not `relation`, with a difference of long ones."""
    one, two = first.compact_representation(), second.compact_representation()
    difference = ""
    if one == two:
        one, two = repr(first), repr(second)
    elif MESSAGE_WIDTH < max(len(one), len(two)) <= MAX_TEXT:
        texts = first.formatted_representation(), second.formatted_representation()
        old, new = (text.splitlines() for text in texts)
        lines = difflib.unified_diff(old, new, lineterm="", n=2)
        difference = "\n\nDiff:\n" + "\n".join(list(lines)[2:])
        if max(len(text) for text in texts) <= MAX_FORMATTED:
            one, two = texts
    expected = "expected type" if relation == "assignable" else "type"
    middle = f"is not {relation} to {expected}"
    parts = ["Type", f"`{one}`", middle, f"`{two}`"]
    text = " ".join(parts)
    if len(text) > MESSAGE_WIDTH or "\n" in text:
        text = "\n".join(parts)
    return text + difference
