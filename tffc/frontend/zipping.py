"""Zipping a struct of federated values into one federated value."""

from __future__ import annotations

from tffc.frontend.value import Value, scope_of, struct_value
from tffc.language.calls import zip_placed
from tffc.language.nodes import Binding, Block, Reference, Selection
from tffc.language.type_parts import distinct_leaves, local_type
from tffc.language.types import FederatedType, StructType, Type
from tffc.support.trampoline import Task, run


def zipped_type(type: Type) -> FederatedType | None:
    """Return `type` zipped, if it is a struct whose leaves are all federated, at one placement.

    None if there is no leaf, a leaf is not federated, or two placements are mixed.
    """
    if not isinstance(type, StructType):
        return None
    placements = {
        leaf.placement if isinstance(leaf, FederatedType) else None
        for leaf in distinct_leaves(type)
    }
    placement = placements.pop() if len(placements) == 1 else None
    return None if placement is None else FederatedType(local_type(type), placement)


def why_not_zipped(type: StructType) -> tuple[str, str | None]:
    """Return why values of this type cannot be zipped, and the likely fix."""
    types = distinct_leaves(type)
    if not types:
        return "it holds no federated value", None
    for leaf in types:
        if not isinstance(leaf, FederatedType):
            return (
                f"`{leaf}` in it is not federated",
                "place it first: tff.federated_value(x, tff.SERVER) or tff.CLIENTS",
            )
    return (
        "it holds values at both placements",
        "bring the server's value to the clients with tff.federated_broadcast(x) first",
    )


def zipped(value: Value, type: FederatedType) -> Value:
    """Return the struct `value` zipped to `type`, inline, without a symbol."""
    return Value(zip_placed(value.comp, type.placement), type, scope_of(value))


def zip_to(value: Value, target: Type) -> Value | None:
    """Return `value` with its structs zipped where `target` has federated values.

    None if the result would still not fit.
    """
    if not isinstance(target, StructType):
        return run(_zip_part(value, target))
    bound = Binding("_var1", value.comp)
    source = Value(Reference(bound.name, value.comp.type), value.type_signature, scope_of(value))
    zipped_value = run(_zip_part(source, target))
    if zipped_value is None:
        return None
    return Value(Block((bound,), zipped_value.comp), zipped_value.type_signature, scope_of(value))


def _zip_part(value: Value, wanted: Type) -> Task[Value | None]:
    """Zip as `zip_to` does, but return `value` itself if it already fits."""
    own = value.type_signature
    if isinstance(own, StructType) and isinstance(wanted, StructType):
        return (yield _zip_elements(value, own, wanted))
    if isinstance(own, StructType):
        type = zipped_type(own)
        fits = type is not None and wanted.is_assignable_from(type)
        return zipped(value, type) if fits and type is not None else None
    return value if wanted.is_assignable_from(own) else None


def _zip_elements(value: Value, type: StructType, wanted: StructType) -> Task[Value | None]:
    if not names_fit(wanted.names, type.names):
        return None
    changed = False
    parts: list[Value] = []
    for index, inner in enumerate(wanted.types):
        element = Value(Selection(value.comp, index), type.types[index], scope_of(value))
        part = yield _zip_part(element, inner)
        if part is None:
            return None
        changed = changed or part is not element
        parts.append(part)
    return struct_value(parts, type.names, type.container) if changed else value


def names_fit(wanted: tuple[str | None, ...], names: tuple[str | None, ...]) -> bool:
    """Return whether elements with the names `names` can be used for those named `wanted`."""
    return len(wanted) == len(names) and all(
        name in (None, expected) for expected, name in zip(wanted, names, strict=True)
    )
