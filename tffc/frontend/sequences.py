"""The operators on sequences, unplaced or federated."""

from __future__ import annotations

from tffc.frontend.context import FederatedContext, federated_context
from tffc.frontend.conversion import convert
from tffc.frontend.operands import (
    accumulator_type,
    bind_call,
    check_operand,
    federated_operand,
    function_operand,
)
from tffc.frontend.operators import map_value
from tffc.frontend.type_analysis import why_not_summable
from tffc.frontend.type_checks import SumIncompatibleError
from tffc.frontend.value import Value
from tffc.language.calls import by_position, intrinsic_call, pack
from tffc.language.nodes import Call, Intrinsic, Lambda, Node, Reference, Selection
from tffc.language.type_parts import without_containers
from tffc.language.types import FederatedType, FunctionType, SequenceType, StructType, Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError


@entry_point
def sequence_map(fn: object, arg: object) -> Value:
    """Return the function applied to each element: `(T -> U)` and `T*` to `U*`.

    For a federated sequence, at each participant.
    """
    context = federated_context("tff.sequence_map")
    function, signature = function_operand(fn, None, context, "the mapping function")
    operand, type, element = _sequence(arg, context, "the value to map")
    if signature.parameter is None:
        raise LanguageTypeError(
            "E474",
            f"the mapping function must take an element of type `{element}`, but is of type "
            f"`{signature}`",
        )
    check_operand(signature.parameter, element, "what the mapping function is applied to")
    result = SequenceType(signature.result)
    if not isinstance(type, FederatedType):
        parameters = [signature, type]
        return bind_call(context, "sequence_map", parameters, [function.comp, operand.comp], result)
    mapping = FunctionType(SequenceType(signature.parameter), result)
    mapper = _curried_map(context, function, signature, mapping)
    return map_value(context, mapper, mapping, operand, type)


def _curried_map(
    context: FederatedContext, function: Value, signature: FunctionType, mapping: FunctionType
) -> Value:
    """Bind the function that maps whole sequences, which can be mapped over federated ones."""
    outer = Reference("arg0", without_containers(signature))
    inner = Reference("arg1", without_containers(SequenceType(signature.parameter)))
    pair = StructType.of((None, None), (outer.type, inner.type))
    result = without_containers(mapping.result)
    body = intrinsic_call("sequence_map", pair, result, pack((outer, inner)))
    curried = Lambda("arg0", outer.type, Lambda("arg1", inner.type, body))
    return Value(context.bind(Call(curried, function.comp)), mapping, context)


@entry_point
def sequence_reduce(value: object, zero: object, op: object) -> Value:
    """Return the elements folded from the left: `T*`, `U` and `(<U,T> -> U)` to `U`.

    For a federated sequence, at each participant; `zero` is then federated too.
    """
    context = federated_context("tff.sequence_reduce")
    operand, type, element = _sequence(value, context, "the value to reduce")
    function, _ = function_operand(op, None, context, "the reducing function")
    start = convert(zero, None, context)
    if not isinstance(type, FederatedType):
        call, state = _fold(operand.comp, start.comp, start.type_signature, function, element)
        return Value(context.bind(call), state, context)
    if not isinstance(start.type_signature, FederatedType):
        raise LanguageTypeError(
            "E470",
            "zero must be federated like the value to reduce, but is of type "
            f"`{start.type_signature}`",
            help=f"place it first: tff.federated_value(x, tff.{type.placement})",
        )
    members = StructType.of((None, None), (type.member, start.type_signature.member))
    argument = Reference("arg", without_containers(members))
    sequence, first = Selection(argument, 0), Selection(argument, 1)
    call, state = _fold(sequence, first, members.types[1], function, element)
    both, pair = federated_operand((operand, start), context, "the value to reduce with its zero")
    fold = Value(Lambda("arg", argument.type, call), FunctionType(pair.member, state), context)
    return map_value(context, fold, FunctionType(pair.member, state), both, pair)


def _fold(
    sequence: Node, zero: Node, zero_type: Type, function: Value, element: Type
) -> tuple[Call, Type]:
    """Return the call that folds a sequence, and the type of its result, the accumulator.

    Raises:
      LanguageTypeError: function, zero and elements do not fit each other.
    """
    signature = function.type_signature
    assert isinstance(signature, FunctionType)
    state = accumulator_type(signature, "the reducing function")
    check_operand(state, zero_type, "zero, where the reducing function starts")
    step = FunctionType(StructType.of((None, None), (state, element)), state)
    check_operand(step, signature, "the reducing function")
    parameter = StructType.of((None,) * 3, (SequenceType(element), state, step))
    plain = without_containers(parameter), without_containers(state)
    argument = pack((sequence, zero, by_position(function.comp)))
    return intrinsic_call("sequence_reduce", *plain, argument), state


@entry_point
def sequence_sum(value: object) -> Value:
    """Return the sum of the elements: `T*` to `T`; for a federated sequence, at each
    participant."""
    context = federated_context("tff.sequence_sum")
    operand, type, element = _sequence(value, context, "the value to sum")
    reason = why_not_summable(element)
    if reason is not None:
        raise SumIncompatibleError(
            "E482",
            f"elements of type `{element}` cannot be summed",
            notes=(reason,),
            help="map the elements to numbers of known shape first, with tff.sequence_map; tf.cast"
            " makes numbers of booleans",
        )
    if not isinstance(type, FederatedType):
        return bind_call(context, "sequence_sum", [type], [operand.comp], element)
    signature = FunctionType(type.member, element)
    summing = Value(Intrinsic("sequence_sum", without_containers(signature)), signature, None)
    return map_value(context, summing, signature, operand, type)


def _sequence(
    source: object, context: FederatedContext, role: str
) -> tuple[Value, SequenceType | FederatedType, Type]:
    """Convert `source` to a sequence; return it, its type, and the type of its elements."""
    value = convert(source, None, context)
    type = value.type_signature
    sequence = type.member if isinstance(type, FederatedType) else type
    if not isinstance(sequence, SequenceType):
        raise LanguageTypeError(
            "E492",
            f"{role} must be a sequence, or federated with sequences as members, but is of type "
            f"`{type}`",
        )
    assert isinstance(type, (SequenceType, FederatedType))
    return value, type, sequence.element
