"""The secure sum modulo a number, which reduces the clients' values before it sums them."""

from __future__ import annotations

from typing import Any

from tffc.errors import LanguageTypeError
from tffc.frontend.aggregations import secure_operands
from tffc.frontend.context import federated_context
from tffc.frontend.source import entry_point
from tffc.frontend.value import Value, intrinsic_call
from tffc.ir import nodes
from tffc.ir.nodes import Binding, Block, Call, Compiled, Node, Reference
from tffc.ir.trampoline import Task, run
from tffc.ir.type_parts import leaves, without_containers
from tffc.ir.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    StructType,
    TensorType,
    Type,
)
from tffc.linking import arithmetic
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor, from_tensors, tensors


@entry_point
def federated_secure_modular_sum(value: Any, modulus: Any) -> Value:
    """The sum of the clients' integers modulo `modulus`, without the server's seeing them.

    `modulus` is one integer, or a structure of them like the value's.
    """
    context = federated_context("tff.backends.mapreduce.federated_secure_modular_sum")
    operand, type, limit = secure_operands(value, modulus, "modulus", context)
    member = without_containers(type.member)
    given = limit.comp.type
    to_value_type, remainder = _sections(member, given)
    bound = Binding("mod", limit.comp)
    mod = Reference(bound.name, given)
    reduced = _reduced(operand.comp, Call(to_value_type, mod), remainder)
    result = FederatedType(type.member, SERVER)
    total = _call(
        "federated_secure_modular_sum",
        [FederatedType(member, CLIENTS), given],
        FederatedType(member, SERVER),
        nodes.Struct((reduced, mod)),
    )
    return Value(context.bind(Block((bound,), total)), result, context)


def _reduced(values: Node, modulus: Node, remainder: Compiled) -> Node:
    """The clients' values modulo the number that the server sends them."""
    signature = remainder.type
    assert isinstance(signature, FunctionType)
    assert isinstance(signature.parameter, StructType)
    member, number = signature.parameter.types
    at_server = _call("federated_value_at_server", [number], FederatedType(number, SERVER), modulus)
    sent = FederatedType(number, CLIENTS, all_equal=True)
    at_clients = _call("federated_broadcast", [at_server.type], sent, at_server)
    both = FederatedType(signature.parameter, CLIENTS)
    zipped = _call(
        "federated_zip_at_clients",
        [_pair(FederatedType(member, CLIENTS), FederatedType(number, CLIENTS))],
        both,
        nodes.Struct((values, at_clients)),
    )
    return _call(
        "federated_map",
        [signature, both],
        FederatedType(member, CLIENTS),
        nodes.Struct((remainder, zipped)),
    )


def _call(uri: str, parameters: list[Type], result: Type, argument: Node) -> Call:
    parameter = parameters[0] if len(parameters) == 1 else _pair(*parameters)
    return intrinsic_call(uri, parameter, result, argument)


def _pair(first: Type, second: Type) -> StructType:
    return StructType.of((None, None), (first, second))


def _sections(member: Type, modulus: Type) -> tuple[Compiled, Compiled]:
    """The modulus in the element types of the values, and the remainders of values by it."""
    numbers = run(_numbers(member, modulus))
    casting = GraphBuilder()
    given = tensors(casting.parameter(modulus))
    cast = [
        arithmetic.cast(casting, number, kind.dtype)
        for number, kind in zip(given, leaves(numbers), strict=True)
        if isinstance(kind, TensorType)
    ]
    reducing = GraphBuilder()
    both = tensors(reducing.parameter(_pair(member, numbers)))
    count = len(both) // 2
    remainders = [
        arithmetic.floor_mod(reducing, value, divisor)
        for value, divisor in zip(both[:count], both[count:], strict=True)
    ]
    return (
        casting.finish(from_tensors(numbers, _single(cast)), numbers),
        reducing.finish(from_tensors(member, _single(remainders)), member),
    )


def _numbers(member: Type, modulus: Type) -> Task[Type]:
    """The type of the modulus, which is structured like the values, once it is cast."""
    if isinstance(member, StructType):
        assert isinstance(modulus, StructType)
        types: list[Type] = []
        for inner, number in zip(member.types, modulus.types, strict=True):
            types.append((yield _numbers(inner, number)))
        return StructType.of(member.names, tuple(types))
    assert isinstance(member, TensorType)
    assert isinstance(modulus, TensorType)
    if modulus.shape not in ((), member.shape):
        raise LanguageTypeError(
            "E498",
            f"a value of type `{member}` cannot be reduced modulo one of `{modulus}`",
            help="give one number for all elements, or one for each",
        )
    return TensorType(member.dtype, modulus.shape)


def _single(operands: list[Operand]) -> list[Tensor]:
    return [operand for operand in operands if isinstance(operand, Tensor)]
