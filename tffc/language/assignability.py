"""Notes about the parts of a type that differ from the type that is needed."""

from __future__ import annotations

from tffc.language.type_base import first_difference
from tffc.language.types import StructType, Type


def difference_notes(target: Type, source: Type) -> tuple[str, ...]:
    """Return a note on the first place where `source` is not assignable to `target`, for an error
    whose message shows both types; no note where these say it all."""
    difference = first_difference(target, source)
    if difference is None:
        return ()
    place, wanted, own = difference
    is_inside = bool(place.removeprefix("@"))
    subject = f"`{place}`" if is_inside else "it"
    if isinstance(wanted, StructType) and isinstance(own, StructType):
        return (f"{subject} has {_other_element(wanted, own)}",)
    return (f"{subject} is of type `{own}`, not `{wanted}`",) if is_inside else ()


def _other_element(wanted: StructType, own: StructType) -> str:
    """Return the first element of one of two structs that the other does not have."""
    for want, have in zip(wanted.names, own.names, strict=False):
        if have not in (None, want):
            expected = "one without a name" if want is None else repr(want)
            return f"an element named {have!r} where {expected} is expected"
    shorter, longer = sorted((wanted, own), key=len)
    name = longer.names[len(shorter)]
    if name is None:
        return f"another number of elements: {len(own)}, not {len(wanted)}"
    return f"no element named {name!r}" if longer is wanted else f"an element {name!r} too many"
