"""Building blocks of several parts: calls of the language's operators, and selections.

Each call is checked against the signature of its operator.  The values of clients that an operator
takes need not be equal, whatever is known of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar, cast

from tffc.frontend.hints import described
from tffc.language import calls
from tffc.language.intrinsics import check_instance
from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.type_parts import distinct_leaves, local_type, not_all_equal
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    SequenceType,
    StructType,
    Type,
    at_clients,
    at_server,
    to_type,
)
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, LanguageValueError, MissingFieldError
from tffc.support.trampoline import Task, run
from tffc.tff.building_blocks import checked, unique_name_generator

K = TypeVar("K", bound=Type)

Index: TypeAlias = "str | int"
"""An element: its name or position."""

Path: TypeAlias = "Index | tuple[Index, ...]"
"""The way to an element in nested structs."""


def _typed(node: object, kind: type[K], role: str) -> K:
    """Return the type of a building block.

    Raises:
      LanguageValueError: it is of another kind.
    """
    type = checked(node).type
    if not isinstance(type, kind):
        raise LanguageValueError(
            "E168", f"expected {role} of a {kind.__name__}, found one of type `{type}`"
        )
    return type


def _member(value: object) -> Type:
    return _typed(value, FederatedType, "a value").member


def _result(function: object) -> Type:
    return _typed(function, FunctionType, "a function").result


def _call(uri: str, result: Type, *operands: object) -> Call:
    """Return a call of an operator; several operands stand in one struct.

    Raises:
      LanguageTypeError: the operator does not take operands of their types.
    """
    nodes = tuple(checked(operand) for operand in operands)
    argument = nodes[0] if len(nodes) == 1 else calls.pack(nodes)
    signature = FunctionType(not_all_equal(argument.type), result)
    return _checked_call(uri, signature, argument)


def _checked_call(uri: str, signature: FunctionType, argument: Node) -> Call:
    check_instance(uri, signature)
    return Call(Intrinsic(uri, signature), argument)


@entry_point
def create_federated_aggregate(
    value: Node, zero: Node, accumulate: Node, merge: Node, report: Node
) -> Call:
    """Return a call that aggregates clients' values."""
    functions = calls.by_position(checked(accumulate)), calls.by_position(checked(merge))
    result = at_server(_result(report))
    return _call("federated_aggregate", result, value, zero, *functions, report)


@entry_point
def create_federated_apply(fn: Node, arg: Node) -> Call:
    """Return a call that applies a function to the server's value."""
    return _call("federated_apply", at_server(_result(fn)), fn, arg)


@entry_point
def create_federated_broadcast(value: Node) -> Call:
    """Return a call that brings the server's value to the clients."""
    return _call("federated_broadcast", at_clients(_member(value), all_equal=True), value)


@entry_point
def create_federated_eval(fn: Node, placement: Placement) -> Call:
    """Return a call that evaluates a function without a parameter at a placement."""
    result = FederatedType(_result(fn), placement)
    return _call(f"federated_eval_at_{_suffix(placement)}", result, fn)


def _suffix(placement: object) -> str:
    if placement not in (CLIENTS, SERVER):
        raise LanguageTypeError(
            "E105",
            f"expected a placement of the language, found {placement!r}",
            help="use federated_language.SERVER or federated_language.CLIENTS",
        )
    return "clients" if placement is CLIENTS else "server"


@entry_point
def create_federated_map(fn: Node, arg: Node) -> Call:
    """Return a call that applies a function to clients' values."""
    return _mapped("federated_map", fn, arg, all_equal=False)


@entry_point
def create_federated_map_all_equal(fn: Node, arg: Node) -> Call:
    """Return a call that applies a function to clients' equal values, and gives equal results."""
    return _mapped("federated_map_all_equal", fn, arg, all_equal=True)


def _mapped(uri: str, fn: Node, arg: Node, *, all_equal: bool) -> Call:
    parameter = StructType([checked(fn).type, at_clients(_member(arg), all_equal)])
    signature = FunctionType(parameter, at_clients(_result(fn), all_equal))
    return _checked_call(uri, signature, calls.pack((fn, arg)))


@entry_point
def create_federated_map_or_apply(fn: Node, arg: Node) -> Call:
    """Return a call that applies a function to a value where it is."""
    type = _typed(arg, FederatedType, "a value")
    if type.placement is SERVER:
        return create_federated_apply(fn, arg)
    create = create_federated_map_all_equal if type.all_equal else create_federated_map
    return create(fn, arg)


@entry_point
def create_federated_mean(value: Node, weight: Node | None) -> Call:
    """Return a call that averages clients' values, with weights if they are given."""
    result = at_server(_member(value))
    if weight is None:
        return _call("federated_mean", result, value)
    return _call("federated_weighted_mean", result, value, weight)


@entry_point
def create_federated_min(value: Node) -> Call:
    """Return a call that takes the minimum of clients' values, elementwise."""
    return _call("federated_min", at_server(_member(value)), value)


@entry_point
def create_federated_max(value: Node) -> Call:
    """Return a call that takes the maximum of clients' values, elementwise."""
    return _call("federated_max", at_server(_member(value)), value)


@entry_point
def create_federated_secure_sum(value: Node, max_input: Node) -> Call:
    """Return a call that sums clients' values, none above `max_input`, securely."""
    return _call("federated_secure_sum", at_server(_member(value)), value, max_input)


@entry_point
def create_federated_secure_sum_bitwidth(value: Node, bitwidth: Node) -> Call:
    """Return a call that sums clients' values of at most `bitwidth` bits securely."""
    return _call("federated_secure_sum_bitwidth", at_server(_member(value)), value, bitwidth)


@entry_point
def create_federated_select(
    client_keys: Node, max_key: Node, server_val: Node, select_fn: Node, secure: bool
) -> Call:
    """Return a call that gives each client what `select_fn` selects for its keys."""
    uri = "federated_secure_select" if secure else "federated_select"
    result = at_clients(SequenceType(_result(select_fn)))
    select = calls.by_position(select_fn)
    return _call(uri, result, client_keys, max_key, server_val, select)


@entry_point
def create_federated_sum(value: Node) -> Call:
    """Return a call that sums clients' values."""
    return _call("federated_sum", at_server(_member(value)), value)


@entry_point
def create_federated_value(value: Node, placement: Placement) -> Call:
    """Return a call that places a value; it is the same at all clients."""
    uri = f"federated_value_at_{_suffix(placement)}"
    return _call(uri, FederatedType(checked(value).type, placement, all_equal=True), value)


@entry_point
def create_federated_zip(value: Node) -> Call:
    """Return a call that makes one placed value of a struct of values at one placement.

    Raises:
      LanguageValueError: it is no struct.
      LanguageTypeError: it holds something else, or nothing, or values at two placements.
    """
    type = _typed(value, StructType, "a struct")
    placements: set[Placement] = set()
    for leaf in distinct_leaves(type):
        if not isinstance(leaf, FederatedType):
            raise LanguageTypeError(
                "E470",
                f"`{leaf}` in the struct to zip is not federated",
                help="give a struct of federated values",
            )
        placements.add(leaf.placement)
    if len(placements) != 1:
        raise LanguageTypeError(
            "E470",
            f"the values in the struct to zip, `{type}`, are not all at the same placement"
            if placements
            else f"the struct to zip has to hold at least one FederatedType, but is `{type}`",
            help="give a struct of federated values at one placement",
        )
    placement = placements.pop()
    result = FederatedType(local_type(type), placement)
    return _call(f"federated_zip_at_{_suffix(placement)}", result, value)


@entry_point
def create_federated_unzip(value: Node) -> Block:
    """Return a struct of placed values, the elements of one placed struct.

    Raises:
      LanguageValueError: it has no elements.
    """
    member = _member(value)
    if not isinstance(member, StructType) or not member.types:
        raise LanguageValueError(
            "E444",
            f"a value of type `{checked(value).type}` has no elements to unzip",
            help="give a federated value of a struct",
        )
    source, parameter = Reference("value", value.type), Reference("arg", member)
    elements = [
        create_federated_map_or_apply(
            Lambda(parameter.name, member, Selection(parameter, index)), source
        )
        for index in range(len(member.types))
    ]
    return Block((Binding(source.name, value),), StructNode(tuple(elements), member.names))


@entry_point
def create_federated_getattr_comp(comp: Node, name: str) -> Lambda:
    """Return the function that selects an element by its name from the member of a value.

    Raises:
      LanguageValueError: there is none of the name.
    """
    parameter = _member_reference(comp)
    if name not in _names(parameter):
        raise LanguageValueError(
            "E122",
            f"a value of type `{checked(comp).type}` has no element of name `{name}`",
            help="give the name of one of its elements",
        )
    return Lambda(parameter.name, parameter.type, Selection.by_name(parameter, name))


@entry_point
def create_federated_getitem_comp(comp: Node, key: int | slice) -> Lambda:
    """Return the function that selects an element, or a struct of a slice of elements, from the
    member of a value.

    Raises:
      LanguageValueError: there is no such element.
    """
    parameter = _member_reference(comp)
    if not isinstance(key, slice):
        return Lambda(parameter.name, parameter.type, Selection(parameter, key))
    names = _names(parameter)
    pairs = [(names[index], Selection(parameter, index)) for index in range(len(names))[key]]
    return Lambda(parameter.name, parameter.type, StructNode.from_pairs(pairs))


def _member_reference(value: Node) -> Reference:
    member = _member(value)
    if not isinstance(member, StructType):
        raise LanguageValueError(
            "E444",
            f"a value of type `{value.type}` has no elements",
            help="give a value of a struct",
        )
    return Reference("x", member)


def _names(struct: Node) -> tuple[str | None, ...]:
    return _typed(struct, StructType, "a value").names


@entry_point
def create_federated_getattr_call(arg: Node, name: str) -> Call:
    """Return an element of a placed struct, selected by its name."""
    return create_federated_map_or_apply(create_federated_getattr_comp(arg, name), arg)


@entry_point
def create_federated_getitem_call(arg: Node, idx: int | slice) -> Call:
    """Return an element of a placed struct, or a struct of a slice of its elements."""
    return create_federated_map_or_apply(create_federated_getitem_comp(arg, idx), arg)


@entry_point
def create_identity(type_signature: object) -> Lambda:
    """Return the function that returns its argument, for a type."""
    type = to_type(type_signature)
    return Lambda("id_arg", type, Reference("id_arg", type))


@entry_point
def create_named_tuple(comp: Node, names: Sequence[Any], container_type: Any = None) -> Call:
    """Return a struct with other names for its elements.

    Raises:
      LanguageValueError: it is no struct, or one of another number of elements.
      LanguageTypeError: a name is none.
    """
    type = _typed(comp, StructType, "a struct")
    if len(names) != len(type.types):
        raise LanguageValueError(
            "E126",
            f"a struct of type `{type}` has {len(type.types)} elements, but there are "
            f"{len(names)} names for them",
            help="give one name for each element",
        )
    strange: list[object] = [name for name in names if not isinstance(name, str | None)]
    if strange:
        raise LanguageTypeError(
            "E126",
            f"the names of elements are strings or None, not {described(strange[0])}",
            help="give strings, and None for elements without a name",
        )
    parameter = Reference("x", type)
    pairs = [(name, Selection(parameter, index)) for index, name in enumerate(names)]
    return Call(Lambda("x", type, StructNode.from_pairs(pairs, container_type)), comp)


@entry_point
def create_sequence_map(fn: Node, arg: Node) -> Call:
    """Return a call that applies a function to the elements of a sequence."""
    return _call("sequence_map", SequenceType(_result(fn)), fn, arg)


@entry_point
def create_sequence_reduce(value: Node, zero: Node, op: Node) -> Call:
    """Return a call that accumulates the elements of a sequence."""
    function = calls.by_position(checked(op))
    return _call("sequence_reduce", _result(op), value, zero, function)


@entry_point
def create_sequence_sum(value: Node) -> Call:
    """Return a call that sums the elements of a sequence."""
    return _call("sequence_sum", _typed(value, SequenceType, "a value").element, value)


@entry_point
def select_output_from_lambda(comp: Lambda, paths: Path | list[Path]) -> Lambda:
    """Return a function that returns one element of what another returns, or a struct of some.

    Raises:
      LanguageValueError: it is no function that returns a struct, or that has no such element.
    """
    if not isinstance(checked(comp), Lambda):
        raise LanguageValueError("E168", f"expected a function that is a lambda, found `{comp}`")
    result = comp.result
    if not isinstance(paths, list):
        selected: Node = _selected(result, paths)
    else:
        name = next(unique_name_generator(comp))
        whole = Reference(name, result.type)
        parts = tuple(_selected(whole, path) for path in paths)
        selected = Block((Binding(name, result),), calls.pack(parts))
    return Lambda(comp.parameter_name, comp.parameter_type, selected)


def _selected(node: Node, path: Any) -> Node:
    steps = cast("tuple[Any, ...]", path if isinstance(path, tuple) else (path,))
    for index in steps:
        names = _names(node)
        position: Any = names.index(index) if index in names else index
        if isinstance(position, str):
            raise MissingFieldError(
                "E122",
                f"no element named {index!r} in `{node.type}`",
                help="give the name of one of its elements",
            )
        if not isinstance(position, int):
            raise LanguageTypeError(
                "E126",
                f"an element is selected by its name or position, not by {index!r}",
                help="give a string or a whole number",
            )
        if isinstance(node, StructNode) and 0 <= position < len(names):
            node = node.values[position]
        else:
            name = index if isinstance(index, str) else None
            node = Selection(node, position, name)
    return node


@entry_point
def zip_to_match_type(*, comp_to_zip: Node, target_type: Type) -> Node | None:
    """Return a building block with its structs zipped where a type has placed values.

    None if the result would still not fit.
    """
    if not isinstance(target_type, StructType):
        return run(_zipped(comp_to_zip, target_type))
    name = next(unique_name_generator(comp_to_zip))
    source = Reference(name, checked(comp_to_zip).type)
    result = run(_zipped(source, target_type))
    if result is None or result is source:
        return None if result is None else comp_to_zip
    return Block((Binding(name, comp_to_zip),), result)


def _zipped(node: Node, wanted: Type) -> Task[Node | None]:
    own = node.type
    if wanted.is_assignable_from(own):
        return node
    if not isinstance(own, StructType):
        return None
    if isinstance(wanted, FederatedType):
        leaves = distinct_leaves(own)
        if not all(isinstance(leaf, FederatedType) for leaf in leaves) or not leaves:
            return None
        try:
            zipped = create_federated_zip(node)
        except LanguageTypeError:
            return None
        return zipped if wanted.is_assignable_from(zipped.type) else None
    if not isinstance(wanted, StructType) or len(own.types) != len(wanted.types):
        return None
    parts: list[tuple[str | None, Node]] = []
    for index, inner in enumerate(wanted.types):
        part = yield _zipped(Selection(node, index), inner)
        if part is None:
            return None
        parts.append((own.names[index], part))
    struct = StructNode.from_pairs(parts)
    return struct if wanted.is_assignable_from(struct.type) else None
