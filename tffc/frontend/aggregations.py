"""The operators that aggregate clients' values at the server."""

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
from tffc.frontend.type_analysis import is_averageable, is_ordered, is_structure_of_integers
from tffc.frontend.type_checks import (
    check_is_sum_compatible,
    is_single_integer_or_matches_structure,
)
from tffc.frontend.value import Value, struct_value
from tffc.language.calls import by_position
from tffc.language.traverse import contains
from tffc.language.type_parts import leaves
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    StructType,
    TensorType,
    Type,
)
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.trampoline import Task, run

UNPLACED = "it must not be federated: give a constant or the result of a computation"
"""The help for a parameter of an aggregation that is placed at the server."""


@entry_point
def federated_sum(value: object) -> Value:
    """Return the sum of the clients' values: `{T}@CLIENTS` to `T@SERVER`."""
    context = federated_context("tff.federated_sum")
    operand, type = federated_operand(value, context, "the value to sum", CLIENTS)
    check_is_sum_compatible(type)
    return _reduced(context, "federated_sum", operand, type)


@entry_point
def federated_mean(value: object, weight: object = None) -> Value:
    """Return the mean of the clients' values, weighted by each client's scalar `weight` if
    given."""
    context = federated_context("tff.federated_mean")
    operand, type = federated_operand(value, context, "the value to average", CLIENTS)
    if not is_averageable(type):
        raise LanguageTypeError(
            "E482",
            f"values of type `{type}` have no mean: they must hold floating or complex numbers",
            help="convert them at the clients, with tf.cast in a TensorFlow computation",
        )
    if weight is None:
        return _reduced(context, "federated_mean", operand, type)
    factor, factor_type = federated_operand(weight, context, "the weight", CLIENTS)
    if not _is_weight(factor_type.member):
        raise LanguageTypeError(
            "E478",
            "the weight must be a scalar integer or floating number of each client, but is of "
            f"type `{factor_type}`",
        )
    parameters = [FederatedType(type.member, CLIENTS), FederatedType(factor_type.member, CLIENTS)]
    operands, result = [operand.comp, factor.comp], FederatedType(type.member, SERVER)
    return bind_call(context, "federated_weighted_mean", parameters, operands, result)


def _is_weight(type: Type) -> bool:
    return isinstance(type, TensorType) and type.is_scalar() and is_ordered(type)


@entry_point
def federated_min(value: object) -> Value:
    """Return the smallest of the clients' values, elementwise."""
    return _extremum("federated_min", "minimum", value)


@entry_point
def federated_max(value: object) -> Value:
    """Return the largest of the clients' values, elementwise."""
    return _extremum("federated_max", "maximum", value)


def _extremum(uri: str, name: str, value: object) -> Value:
    context = federated_context(f"tff.{uri}")
    operand, type = federated_operand(value, context, f"the value to take the {name} of", CLIENTS)
    if not is_ordered(type):
        raise LanguageValueError(
            "E482",
            f"values of type `{type}` have no {name}: they must hold integers or floating numbers",
        )
    for leaf in leaves(type.member):
        if isinstance(leaf, TensorType) and (leaf.shape is None or None in leaf.shape):
            # The first extreme, that of no client, is the limit of the type in each place.
            raise LanguageValueError(
                "E482",
                f"values of type `{type}` have no {name}: the shape of `{leaf}` is not known",
                help="give each tensor a shape in the types of the computation",
            )
    return _reduced(context, uri, operand, type)


def _reduced(context: FederatedContext, uri: str, operand: Value, type: FederatedType) -> Value:
    parameter = FederatedType(type.member, CLIENTS)
    return bind_call(context, uri, [parameter], [operand.comp], FederatedType(type.member, SERVER))


@entry_point
def federated_aggregate(
    value: object, zero: object, accumulate: object, merge: object, report: object
) -> Value:
    """Return the result of a user-defined aggregation.

    `accumulate` adds a client's value to an accumulator, which starts as `zero`; `merge` combines
    two accumulators; and `report` turns the last one into the result: `{T}@CLIENTS`, `U`, `(<U,T>
    -> U)`, `(<U,U> -> U)` and `(U -> R)` to `R@SERVER`.
    """
    context = federated_context("tff.federated_aggregate")
    operand, type = federated_operand(value, context, "the value to aggregate", CLIENTS)
    start = convert(zero, None, context)
    hint = _pair(start.type_signature, type.member)
    step, step_type = function_operand(accumulate, hint, context, "accumulate")
    state = accumulator_type(step_type, "accumulate")
    placed = contains(start.type_signature, FederatedType)
    help = UNPLACED if placed else None
    check_operand(state, start.type_signature, "zero, where accumulate starts", help)
    after = step_type.result
    check_operand(FunctionType(_pair(after, type.member), after), step_type, "accumulate")
    join, join_type = function_operand(merge, _pair(after, after), context, "merge")
    check_operand(FunctionType(_pair(after, after), after), join_type, "merge")
    final, final_type = function_operand(report, join_type.result, context, "report")
    check_operand(FunctionType(join_type.result, final_type.result), final_type, "report")
    return bind_call(
        context,
        "federated_aggregate",
        [
            FederatedType(type.member, CLIENTS),
            state,
            FunctionType(_pair(state, type.member), state),
            FunctionType(_pair(state, state), state),
            FunctionType(state, final_type.result),
        ],
        [operand.comp, start.comp, by_position(step.comp), by_position(join.comp), final.comp],
        FederatedType(final_type.result, SERVER),
    )


def _pair(first: Type, second: Type) -> StructType:
    return StructType.of((None, None), (first, second))


@entry_point
def federated_secure_sum(value: object, max_input: object) -> Value:
    """Return the sum of the clients' integers from 0 to `max_input`, hidden from the server.

    `max_input` is one integer, or a structure of integers like that of the value.
    """
    return _secure_sum("federated_secure_sum", value, max_input, "max_input")


@entry_point
def federated_secure_sum_bitwidth(value: object, bitwidth: object) -> Value:
    """Return the sum of the clients' integers of `bitwidth` bits, hidden from the server.

    They are from 0 to 2 to the power of `bitwidth`, less one.  `bitwidth` is one integer, or a
    structure of integers like that of the value.
    """
    return _secure_sum("federated_secure_sum_bitwidth", value, bitwidth, "bitwidth")


def _secure_sum(uri: str, value: object, bound: object, role: str) -> Value:
    context = federated_context(f"tff.{uri}")
    operand, type, limit = secure_operands(value, bound, role, context)
    parameters = [FederatedType(type.member, CLIENTS), limit.type_signature]
    result = FederatedType(type.member, SERVER)
    return bind_call(context, uri, parameters, [operand.comp, limit.comp], result)


def secure_operands(
    value: object, bound: object, role: str, context: FederatedContext
) -> tuple[Value, FederatedType, Value]:
    """Return the clients' integers, their type, and the bound with one integer for each of them.

    Raises:
      LanguageTypeError: the value holds something else, or the bound has another structure.
    """
    operand, type = federated_operand(value, context, "the value to sum", CLIENTS)
    if not is_structure_of_integers(type):
        raise LanguageTypeError(
            "E482",
            f"values of type `{type}` cannot be summed securely: they must hold integers",
            help="scale and round floating numbers in a TensorFlow computation, as in "
            "tf.cast(tf.round(x * 1000.0), tf.int32), sum those, and divide the sum by the scale",
        )
    limit = convert(bound, None, context)
    if not is_single_integer_or_matches_structure(limit.type_signature, type.member):
        raise LanguageTypeError(
            "E478",
            f"{role} must be one integer, or a structure of integers like `{type.member}`, but is "
            f"of type `{limit.type_signature}`",
            help=UNPLACED if isinstance(limit.type_signature, FederatedType) else None,
        )
    return operand, type, run(_spread(limit, type.member))


def _spread(bound: Value, member: Type) -> Task[Value]:
    """Return `bound` in the structure of `member`, with single integers repeated."""
    if not isinstance(member, StructType):
        return bound
    is_single = isinstance(bound.type_signature, TensorType)
    parts: list[Value] = []
    for index, element in enumerate(member.types):
        parts.append((yield _spread(bound if is_single else bound[index], element)))
    return struct_value(parts, member.names, member.container)
