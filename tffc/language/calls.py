"""Calls of federated operators, at the types of their operands."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from tffc.language.intrinsics import definition_of
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
from tffc.language.traverse import rewrite
from tffc.language.type_parts import local_type, not_all_equal
from tffc.language.types import (
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    StructType,
    Type,
    at_clients,
    at_server,
)
from tffc.support.printable import printable


def is_call_of(node: Node, uris: Container[str]) -> bool:
    """Tell whether a node is a call of one of these operators."""
    function = node.function if isinstance(node, Call) else None
    return isinstance(function, Intrinsic) and function.uri in uris


def expand_calls(
    root: Node, uris: Container[str], expand: Callable[[Binding], Iterable[Binding]]
) -> Node:
    """Return the program with each binding of a call of one of these operators replaced by the
    bindings that `expand` gives, the last of which has to bind its name."""

    def rule(node: Node) -> Node | None:
        if not isinstance(node, Block) or not any(is_call_of(b.value, uris) for b in node.locals):
            return None
        bindings: list[Binding] = []
        for binding in node.locals:
            bindings += expand(binding) if is_call_of(binding.value, uris) else (binding,)
        return Block(tuple(bindings), node.result)

    return rewrite(root, rule)


def uri_of(call: Call) -> str:
    """Return the operator that a call is of."""
    assert isinstance(call.function, Intrinsic)
    return call.function.uri


def intrinsic_call(uri: str, parameter: Type, result: Type, argument: Node) -> Call:
    """Return a call of the operator `uri` at the type `(parameter -> result)`."""
    return Call(Intrinsic(uri, FunctionType(parameter, result)), argument)


def pack(nodes: Iterable[Node]) -> StructNode:
    """Return the struct of these values, none of them named."""
    return StructNode(tuple(nodes))


def zip_placed(value: Node, placement: Placement) -> Node:
    """Return a struct of placed values as one placed value."""
    member = local_type(value.type)
    uri = "federated_zip_at_server" if placement is SERVER else "federated_zip_at_clients"
    result = at_server(member) if placement is SERVER else at_clients(member)
    return intrinsic_call(uri, not_all_equal(value.type), result, value)


def apply(function: Node, value: Node, *, all_equal: bool = False) -> Node:
    """Return a call of a function on the member of a placed value, where the value is.

    With `all_equal`, clients that have equal values have equal results.
    """
    federated = value.type
    assert isinstance(federated, FederatedType)
    assert isinstance(function.type, FunctionType)
    result = function.type.result
    if federated.placement is SERVER:
        uri, before, after = "federated_apply", at_server(federated.member), at_server(result)
    else:
        uri = "federated_map_all_equal" if all_equal else "federated_map"
        before = at_clients(federated.member, all_equal=all_equal)
        after = at_clients(result, all_equal=all_equal)
    return intrinsic_call(uri, StructType([function.type, before]), after, pack((function, value)))


def by_position(function: Node) -> Node:
    """Return a function of a struct whose elements have names as one that takes them by
    position."""
    assert isinstance(function.type, FunctionType)
    parameter = function.type.parameter
    if not isinstance(parameter, StructType) or not parameter.fields():
        return function
    argument = Reference("a", StructType(parameter.types))
    return Lambda("a", argument.type, Call(function, argument))


def element(value: Node, *path: int) -> Node:
    """Return an element of a placed struct, as a placed value; the struct itself for no path."""
    if not path:
        return value
    member = local_type(value.type)
    body: Node = Reference("x", member)
    for index in path:
        body = Selection(body, index)
    return apply(Lambda("x", member, body), value)


def members(value: Node, *path: int) -> tuple[Type, ...]:
    """Return the element types of a placed struct, or of one inside it."""
    member = local_type(value.type)
    for index in path:
        assert isinstance(member, StructType)
        member = member.types[index]
    assert isinstance(member, StructType)
    return member.types


def federated_broadcast(value: Node) -> Node:
    """Return a server value at all clients."""
    result = at_clients(local_type(value.type), all_equal=True)
    return intrinsic_call("federated_broadcast", value.type, result, value)


def federated_sum(value: Node) -> Node:
    """Return the sum of clients' values."""
    member = local_type(value.type)
    return intrinsic_call("federated_sum", at_clients(member), at_server(member), value)


def secure_sum(uri: str, value: Node, bound: Node) -> Node:
    """Return a secure sum of clients' values under a bound."""
    parameter = StructType([value.type, bound.type])
    return intrinsic_call(uri, parameter, at_server(local_type(value.type)), pack((value, bound)))


def operands(call: Call) -> tuple[Node, ...]:
    """Return the operands of an operator's call; several stand in one struct."""
    argument = call.argument
    assert argument is not None
    if _takes_one_operand(call):
        return (argument,)
    if isinstance(argument, StructNode):
        return argument.values
    assert isinstance(argument.type, StructType)
    return tuple(Selection(argument, index) for index in range(len(argument.type)))


def with_operands(call: Call, values: Iterable[Node]) -> Node:
    """Return the argument of an operator's call that has these operands."""
    nodes = tuple(values)
    return nodes[0] if _takes_one_operand(call) else StructNode(nodes)


def _takes_one_operand(call: Call) -> bool:
    definition = definition_of(uri_of(call))
    return definition is not None and definition.takes_one_operand


def describe(binding: Binding) -> str:
    """Return a binding as a message shows it: its name and the operator that is called."""
    call = binding.value
    assert isinstance(call, Call)
    function = call.function
    shown = function.uri if isinstance(function, Intrinsic) else "a TensorFlow computation"
    return printable(f"{binding.name} = {shown}(...)")
