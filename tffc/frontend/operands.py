"""Checking the operands of operators, and binding their calls."""

from __future__ import annotations

from collections.abc import Sequence

from tffc.frontend.context import FederatedContext
from tffc.frontend.conversion import Convertible, check_scope, convert
from tffc.frontend.hints import alternative, described, likely_fix, move_to
from tffc.frontend.value import Value, scope_of
from tffc.frontend.zipping import why_not_zipped, zipped, zipped_type
from tffc.language import calls
from tffc.language.nodes import Node
from tffc.language.type_base import TypeNotAssignableError
from tffc.language.type_parts import without_containers
from tffc.language.types import FederatedType, FunctionType, Placement, StructType, Type
from tffc.support.errors import LanguageTypeError


def federated_operand(
    source: object, context: FederatedContext, role: str, placement: Placement | None = None
) -> tuple[Value, FederatedType]:
    """Convert `source` to a federated value; return it and its type.

    A struct of federated values is zipped in place.  `role` names the operand in errors.

    Raises:
      LanguageTypeError: it is not federated and cannot be zipped, or not at `placement`.
    """
    value = convert(source, None, context)
    if not isinstance(value.type_signature, FederatedType):
        type = zipped_type(value.type_signature)
        if type is None:
            raise _not_federated(value.type_signature, role, placement)
        value = zipped(value, type)
    type = value.type_signature
    assert isinstance(type, FederatedType)
    if placement is not None and type.placement is not placement:
        raise LanguageTypeError(
            "E471",
            f"{role} must be at {placement}, but is of type `{type}`",
            help=move_to(FederatedType(type.member, placement)),
        )
    return value, type


def _not_federated(type: Type, role: str, placement: Placement | None) -> LanguageTypeError:
    notes: tuple[str, ...] = ()
    if isinstance(type, FunctionType):
        help = "the function comes first and the value after it"
    elif isinstance(type, StructType):
        reason, help = why_not_zipped(type)
        notes = (f"a struct can stand for a federated value, but {reason}",)
    else:
        where = f"tff.{placement}" if placement else "tff.SERVER"
        help = f"place it first: tff.federated_value(x, {where})"
    return LanguageTypeError(
        "E470", f"{role} must be federated, but is of type `{type}`", notes=notes, help=help
    )


def function_operand(
    source: object, hint: Type | None, context: FederatedContext, role: str
) -> tuple[Value, FunctionType]:
    """Convert `source` to a function; return it and its type.

    A polymorphic computation is traced for parameters of type `hint`.

    Raises:
      LanguageTypeError: it is not a function of the program, or a polymorphic one without a hint.
    """
    if isinstance(source, Convertible):
        value = source.as_value(hint)
        check_scope(scope_of(value), context)
    elif not isinstance(source, Value) and callable(source):
        raise LanguageTypeError(
            "E417",
            f"{role} must be a computation, but is {described(source)}",
            help=alternative(source),
        )
    else:
        value = convert(source, None, context)
    type = value.type_signature
    if not isinstance(type, FunctionType):
        raise LanguageTypeError(
            "E413",
            f"{role} must be a function, but is of type `{type}`",
            help="the function comes first and the value after it"
            if isinstance(type, FederatedType)
            else None,
        )
    return value, type


def check_operand(target: Type, source: Type, role: str, help: str | None = None) -> None:
    """Raise TypeNotAssignableError unless `source` is assignable to `target`.

    `help` is the fix, if more is known than the two types tell.
    """
    try:
        target.check_assignable_from(source)
    except TypeNotAssignableError as error:
        error.notes = (f"this is {role}", *error.notes)
        error.help = help or likely_fix(target, source)
        raise


def accumulator_type(function: FunctionType, role: str) -> Type:
    """Return the type of the first parameter of a function that accumulates.

    Raises:
      LanguageTypeError: the function does not take two arguments.
    """
    parameter = function.parameter
    if not isinstance(parameter, StructType) or len(parameter) != 2:
        raise LanguageTypeError(
            "E474",
            f"{role} must take an accumulator and the next value, but is of type `{function}`",
        )
    return parameter.types[0]


def bind_call(
    context: FederatedContext,
    uri: str,
    parameters: Sequence[Type],
    operands: Sequence[Node],
    result: Type,
) -> Value:
    """Bind the operator `uri`, applied to `operands` that fit `parameters`, to a symbol."""
    if len(operands) == 1:
        parameter, argument = parameters[0], operands[0]
    else:
        parameter = StructType.of((None,) * len(parameters), tuple(parameters))
        argument = calls.pack(operands)
    plain = without_containers(parameter), without_containers(result)
    return Value(context.bind(calls.intrinsic_call(uri, *plain, argument)), result, context)
