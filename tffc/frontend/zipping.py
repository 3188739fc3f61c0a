"""Making one federated value out of a struct of federated values."""

from __future__ import annotations

from tffc.frontend.value import Value, intrinsic_call, scope_of
from tffc.ir import nodes
from tffc.ir.nodes import Binding, Block, Reference, Selection
from tffc.ir.trampoline import Task, run
from tffc.ir.types import (
    CLIENTS,
    FederatedType,
    Placement,
    StructType,
    StructWithPythonType,
    Type,
    leaves,
    transform,
)


def zipped_type(type: Type) -> FederatedType | None:
    """The type of `type` zipped: of a struct whose leaves are all federated, at one placement.

    None where there is no leaf, a leaf is not federated, or two placements are mixed.
    """
    if not isinstance(type, StructType):
        return None
    placement = zip_placement(type)
    if placement is None:
        return None
    return FederatedType(_members(type), placement)


def zip_placement(type: StructType) -> Placement | None:
    """The placement that all leaves share, or None."""
    placements = {
        leaf.placement if isinstance(leaf, FederatedType) else None for leaf in leaves(type)
    }
    return placements.pop() if len(placements) == 1 else None


def why_not_zipped(type: StructType) -> tuple[str, str | None]:
    """Why values of this type can not be zipped, and the likely fix."""
    found = leaves(type)
    if not found:
        return "it holds no federated value", None
    for leaf in found:
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
    """The struct `value` zipped to `type`, written in place, without a symbol."""
    at_clients = type.placement is CLIENTS
    parameter = _not_all_equal(value.type_signature) if at_clients else value.type_signature
    uri = "federated_zip_at_clients" if at_clients else "federated_zip_at_server"
    return Value(intrinsic_call(uri, parameter, type, value.comp), type, scope_of(value))


def zip_to(value: Value, target: Type) -> Value | None:
    """`value` with the structs zipped that stand where `target` has federated values.

    None where the result would still not fit.
    """
    type = zipped_type(value.type_signature)
    if type is not None and target.is_assignable_from(type):
        return zipped(value, type)
    if not isinstance(target, StructType) or not isinstance(value.type_signature, StructType):
        return None
    bound = Binding("_var1", value.comp)
    reference = Reference(bound.name, value.comp.type)
    source = Value(reference, value.type_signature, scope_of(value))
    elements = run(_zip_elements(source, target))
    if elements is None:
        return None
    node = Block((bound,), elements.comp)
    return Value(node, elements.type_signature, scope_of(value))


def _zip_elements(source: Value, target: StructType) -> Task[Value | None]:
    struct = source.type_signature
    assert isinstance(struct, StructType)
    if len(struct) != len(target):
        return None
    parts: list[Value] = []
    for index, wanted in enumerate(target.types):
        element = Value(Selection(source.comp, index), struct.types[index], scope_of(source))
        type = zipped_type(element.type_signature)
        if wanted.is_assignable_from(element.type_signature):
            parts.append(element)
        elif type is not None and wanted.is_assignable_from(type):
            parts.append(zipped(element, type))
        elif isinstance(wanted, StructType) and isinstance(element.type_signature, StructType):
            inner = yield _zip_elements(element, wanted)
            if inner is None:
                return None
            parts.append(inner)
        else:
            return None
    node = nodes.Struct(tuple(part.comp for part in parts), struct.names)
    types = tuple(part.type_signature for part in parts)
    type = StructWithPythonType.with_container(struct.names, types, struct.container)
    return Value(node, type, scope_of(source)) if target.is_assignable_from(type) else None


def _members(type: Type) -> Type:
    return transform(type, lambda t: t.member if isinstance(t, FederatedType) else None)


def _not_all_equal(type: Type) -> Type:
    def rule(leaf: Type) -> Type | None:
        return FederatedType(leaf.member, CLIENTS) if isinstance(leaf, FederatedType) else None

    return transform(type, rule)
