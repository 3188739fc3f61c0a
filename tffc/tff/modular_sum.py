"""The secure sum modulo a number, which reduces clients' values before they are summed."""

from __future__ import annotations

from typing import Any

from tffc.frontend.aggregations import secure_operands
from tffc.frontend.context import federated_context
from tffc.frontend.value import Value
from tffc.language import calls
from tffc.language.nodes import Binding, Block, Call, Compiled, Node, Reference
from tffc.language.type_parts import leaves, without_containers
from tffc.language.types import CLIENTS, SERVER, FederatedType, StructType, TensorType, Type
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor, from_leaves, tensors
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError
from tffc.support.trampoline import Task, run


@entry_point
def federated_secure_modular_sum(value: Any, modulus: Any) -> Value:
    """Return the sum of the clients' integers modulo `modulus`, hidden from the server.

    `modulus` is one integer, or a structure of integers like that of the value.
    """
    context = federated_context("tff.backends.mapreduce.federated_secure_modular_sum")
    operand, type, limit = secure_operands(value, modulus, "modulus", context)
    member = without_containers(type.member)
    number = limit.comp.type
    to_value_type, remainder = _sections(member, number)
    bound = Binding("mod", limit.comp)
    mod = Reference(bound.name, number)
    reduced = _reduced(operand.comp, Call(to_value_type, mod), remainder)
    total = calls.secure_sum("federated_secure_modular_sum", reduced, mod)
    result = FederatedType(type.member, SERVER)
    return Value(context.bind(Block((bound,), total)), result, context)


def _reduced(values: Node, modulus: Node, remainder: Compiled) -> Node:
    """Return the clients' values modulo the number that the server broadcasts to them."""
    number = modulus.type
    at_server = calls.intrinsic_call(
        "federated_value_at_server", number, FederatedType(number, SERVER), modulus
    )
    both = calls.pack((values, calls.federated_broadcast(at_server)))
    return calls.apply(remainder, calls.zip_placed(both, CLIENTS))


def _sections(member: Type, modulus: Type) -> tuple[Compiled, Compiled]:
    """Return the section that casts the modulus to the values' element types, and that of
    remainders."""
    numbers = run(_numbers(member, modulus))
    casting = GraphBuilder()
    operands = tensors(casting.parameter(modulus))
    cast = [
        GraphArithmetic(casting).cast(number, kind.element_type)
        for number, kind in zip(operands, leaves(numbers), strict=True)
        if isinstance(kind, TensorType)
    ]
    reducing = GraphBuilder()
    both = tensors(reducing.parameter(StructType.of((None, None), (member, numbers))))
    count = len(both) // 2
    remainders = [
        GraphArithmetic(reducing).floor_mod(value, divisor)
        for value, divisor in zip(both[:count], both[count:], strict=True)
    ]
    return (
        casting.finish(from_leaves(numbers, _single(cast)), numbers),
        reducing.finish(from_leaves(member, _single(remainders)), member),
    )


def _numbers(member: Type, modulus: Type) -> Task[Type]:
    """Return the type of the cast modulus, which has the structure of the values."""
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
            "E478",
            f"a value of type `{member}` cannot be reduced modulo one of `{modulus}`",
            help="give one number for all elements, or one for each",
        )
    return TensorType(member.element_type, modulus.shape)


def _single(operands: list[Operand]) -> list[Tensor]:
    return [operand for operand in operands if isinstance(operand, Tensor)]
