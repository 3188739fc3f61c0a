"""The operators that place, move and map values.

Each checks its operands, builds one call of the operator's intrinsic and binds it to a symbol of
the federated computation being traced.
"""

from __future__ import annotations

from typing import Any

from tffc.frontend.context import FederatedContext, federated_context
from tffc.frontend.conversion import convert
from tffc.frontend.hints import addition_fix
from tffc.frontend.operands import bind_call, check_operand, federated_operand, function_operand
from tffc.frontend.packing import pack
from tffc.frontend.type_analysis import is_numeric
from tffc.frontend.value import Value
from tffc.frontend.zipping import why_not_zipped, zipped, zipped_type
from tffc.language.calls import by_position
from tffc.language.containers.struct import Struct
from tffc.language.dtypes import DType
from tffc.language.nodes import Call
from tffc.language.traverse import contains
from tffc.language.type_parts import check_placements
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, NotCallableError, StructureMismatchError


@entry_point
def federated_broadcast(value: object) -> Value:
    """Return the server's value at all clients: `T@SERVER` to `T@CLIENTS`."""
    context = federated_context("tff.federated_broadcast")
    operand, type = federated_operand(value, context, "the value to broadcast", SERVER)
    _check_all_equal(type, "the value to broadcast")
    result = FederatedType(type.member, CLIENTS, all_equal=True)
    return bind_call(context, "federated_broadcast", [type], [operand.comp], result)


@entry_point
def federated_map(fn: object, arg: object) -> Value:
    """Return the function applied to each member: `(T -> U)` and `{T}@CLIENTS` to `{U}@CLIENTS`.

    Likewise at the server, `T@SERVER` to `U@SERVER`.
    """
    context = federated_context("tff.federated_map")
    operand, type = federated_operand(arg, context, "the value to map")
    mapping, signature = function_operand(fn, type.member, context, "the mapping function")
    return map_value(context, mapping, signature, operand, type)


def map_value(
    context: FederatedContext,
    function: Value,
    signature: FunctionType,
    operand: Value,
    type: FederatedType,
) -> Value:
    """Bind the map of a function of type `signature` over a federated value of type `type`."""
    if signature.parameter is None:
        raise LanguageTypeError(
            "E474",
            f"the mapping function must take an argument of type `{type.member}`, but is of type "
            f"`{signature}`",
            help="tff.federated_eval(f, placement) calls a function without arguments",
        )
    check_operand(signature.parameter, type.member, "what the mapping function is applied to")
    if type.placement is SERVER:
        _check_all_equal(type, "the value to map")
        uri, operand_type = "federated_apply", type
    else:
        uri, operand_type = "federated_map", FederatedType(type.member, CLIENTS)
    result = FederatedType(signature.result, type.placement)
    return bind_call(context, uri, [signature, operand_type], [function.comp, operand.comp], result)


@entry_point
def federated_eval(fn: object, placement: Placement) -> Value:
    """Return the result of a parameterless function at each participant: `( -> T)` to
    `{T}@CLIENTS`."""
    context = federated_context("tff.federated_eval")
    function, signature = function_operand(fn, None, context, "the function to evaluate")
    if signature.parameter is not None:
        raise LanguageTypeError(
            "E474",
            f"the function to evaluate must take no argument, but is of type `{signature}`",
            help="tff.federated_map(f, x) applies a function to a federated value",
        )
    result = FederatedType(signature.result, placement)
    check_placements(result)
    uri = f"federated_eval_at_{placement.uri}"
    return bind_call(context, uri, [signature], [function.comp], result)


@entry_point
def federated_value(value: object, placement: Placement) -> Value:
    """Return an unplaced value at each participant: `T` to `T@CLIENTS` or `T@SERVER`."""
    context = federated_context("tff.federated_value")
    operand = convert(value, None, context)
    type = operand.type_signature
    if contains(type, FederatedType):
        raise LanguageTypeError(
            "E471",
            f"the value to place must not be federated, but is of type `{type}`",
            help="values are moved with tff.federated_broadcast and with aggregations",
        )
    result = FederatedType(type, placement, all_equal=True)
    check_placements(result)
    return bind_call(context, f"federated_value_at_{placement.uri}", [type], [operand.comp], result)


@entry_point
def federated_zip(value: object) -> Value:
    """Zip a struct of federated values: `<{T}@CLIENTS,{U}@CLIENTS>` to `{<T,U>}@CLIENTS`."""
    context = federated_context("tff.federated_zip")
    operand = convert(value, None, context)
    type = zipped_type(operand.type_signature)
    if type is None:
        operand_type = operand.type_signature
        reason, help = "it is not a struct", None
        if isinstance(operand_type, StructType):
            reason, help = why_not_zipped(operand_type)
        raise StructureMismatchError(
            "E471",
            "the value to zip must be a struct of federated values at one placement, but is of "
            f"type `{operand_type}`",
            notes=(reason,),
            help=help,
        )
    zipped_value = zipped(operand, type)
    return Value(context.bind(zipped_value.comp), type, context)


@entry_point
def federated_select(
    client_keys: object, max_key: object, server_val: object, select_fn: object
) -> Value:
    """Return the slices of the server's value that each client selects by its keys.

    `{int32[n]}@CLIENTS`, `int32@SERVER`, `T@SERVER` and `(<T,int32> -> U)` to `{U*}@CLIENTS`.
    """
    return _select("federated_select", client_keys, max_key, server_val, select_fn)


@entry_point
def federated_secure_select(
    client_keys: object, max_key: object, server_val: object, select_fn: Any
) -> Value:
    """Select as `federated_select` does, with the keys hidden from the server."""
    return _select("federated_secure_select", client_keys, max_key, server_val, select_fn)


def _select(
    uri: str, client_keys: object, max_key: object, server_val: object, select_fn: object
) -> Value:
    context = federated_context(f"tff.{uri}")
    keys, keys_type = federated_operand(client_keys, context, "client_keys", CLIENTS)
    member = keys_type.member
    if not _is_key_vector(member):
        raise LanguageTypeError(
            "E478",
            f"client_keys must be of type `{{int32[n]}}@CLIENTS` with n known, but is of type "
            f"`{keys_type}`",
        )
    scalar = TensorType(DType.INT32)
    limit = convert(max_key, None, context)
    check_operand(FederatedType(scalar, SERVER), limit.type_signature, "max_key")
    held, held_type = federated_operand(server_val, context, "server_val", SERVER)
    _check_all_equal(held_type, "server_val")
    hint = StructType.of((None, None), (held_type.member, scalar))
    select, signature = function_operand(select_fn, hint, context, "select_fn")
    wanted = FunctionType(hint, signature.result)
    check_operand(wanted, signature, "select_fn, which is called with server_val and a key")
    return bind_call(
        context,
        uri,
        [FederatedType(member, CLIENTS), FederatedType(scalar, SERVER), held_type, wanted],
        [keys.comp, limit.comp, held.comp, by_position(select.comp)],
        FederatedType(SequenceType(signature.result), CLIENTS),
    )


def _is_key_vector(type: Type) -> bool:
    return (
        isinstance(type, TensorType)
        and type.element_type is DType.INT32
        and type.is_fully_defined()
        and len(type.shape or ()) == 1
    )


def _check_all_equal(type: FederatedType, role: str) -> None:
    if not type.all_equal:
        raise LanguageTypeError(
            "E446",
            f"{role} must be one value, but its constituents may differ: its type is `{type}`",
            help="declare it without all_equal=False",
        )


class FederatedTrace(FederatedContext):
    """A federated trace, which defines what Python's syntax means for values."""

    def call(self, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Value:
        """Bind the call of a function value.

        Constants are converted to their own types here, not to those of the parameter.
        """
        callee = convert(function, None, self)
        signature = callee.type_signature
        if not isinstance(signature, FunctionType):
            raise NotCallableError(
                "E413",
                f"a value of type `{signature}` is not a function, so it cannot be called",
                help="call a value whose type has an arrow; does a parameter here hide a "
                "computation of the same name?",
            )
        packed = pack(signature.parameter, args, kwargs)
        if signature.parameter is None:
            return Value(self.bind(Call(callee.comp)), signature.result, self)
        argument = convert(packed, None, self)
        check_operand(signature.parameter, argument.type_signature, "the argument of the call")
        call = Call(callee.comp, argument.comp)
        return Value(self.bind(call), signature.result, self)

    def add(self, left: object, right: object) -> Value:
        """Bind the sum of two values of one type, elementwise."""
        first, second = convert(left, None, self), convert(right, None, self)
        type = first.type_signature
        if not type.is_equivalent_to(second.type_signature) or not is_numeric(type):
            raise LanguageTypeError(
                "E482",
                f"cannot add values of types `{type}` and `{second.type_signature}`",
                notes=("both must be of one type, made of numbers",),
                help=addition_fix(type, second.type_signature),
            )
        argument = convert(Struct.unnamed(first, second), None, self)
        pair = StructType.of((None, None), (type, type))
        return bind_call(self, "generic_plus", [pair], [argument.comp], type)
