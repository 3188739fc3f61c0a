"""The operators of the language, as functions of values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from tffc.language.type_parts import distinct_leaves
from tffc.language.types import FederatedType, FunctionType, StructType, TensorType, Type
from tffc.language.values.concrete import Federated, flatten, unflatten
from tffc.language.values.refusals import (
    MAX_BITWIDTH,
    beyond_bounds,
    mean_of_integers,
    negative_bound,
    too_many_bits,
)
from tffc.runtime.interpreter import arithmetic
from tffc.support.errors import ExecutionError
from tffc.support.trampoline import Task


class Machine(Protocol):
    """The part of the interpreter that operators need to call functions."""

    clients: int

    def apply(self, function: Any, argument: Any) -> Task[Any]: ...


def _map(machine: Machine, argument: Any) -> Task[Any]:
    function, value = argument
    members = yield _apply_each(machine, function, value.at_each(machine.clients))
    return Federated(tuple(members), all_equal=False)


def _map_everywhere(machine: Machine, argument: Any) -> Task[Any]:
    """Apply a function once for all members: `federated_map_all_equal`, `federated_apply`."""
    function, value = argument
    return Federated.everywhere((yield machine.apply(function, value.members[0])))


def _evaluate_at_clients(machine: Machine, argument: Any) -> Task[Any]:
    members = yield _apply_each(machine, argument, (None,) * machine.clients)
    return Federated(tuple(members), all_equal=False)


def _evaluate_at_server(machine: Machine, argument: Any) -> Task[Any]:
    return Federated.everywhere((yield machine.apply(argument, None)))


def _apply_each(machine: Machine, function: Any, arguments: Iterable[Any]) -> Task[list[Any]]:
    results: list[Any] = []
    for argument in arguments:
        results.append((yield machine.apply(function, argument)))
    return results


def _broadcast(clients: int, type: FunctionType, argument: Any) -> Any:
    return argument


def _value(clients: int, type: FunctionType, argument: Any) -> Any:
    return Federated.everywhere(argument)


def _zip_at_clients(clients: int, type: FunctionType, argument: Any) -> Any:
    parts = [part.at_each(clients) for part in flatten(argument, _parameter(type))]
    members = [
        unflatten((part[client] for part in parts), _parameter(type)) for client in range(clients)
    ]
    return Federated(tuple(members), all_equal=False)


def _zip_at_server(clients: int, type: FunctionType, argument: Any) -> Any:
    parts = flatten(argument, _parameter(type))
    return Federated.everywhere(unflatten((part.members[0] for part in parts), _parameter(type)))


# Aggregations.


def _aggregate(machine: Machine, argument: Any) -> Task[Any]:
    value, total, accumulate, _, report = argument
    for member in value.at_each(machine.clients):
        total = yield machine.apply(accumulate, (total, member))
    return Federated.everywhere((yield machine.apply(report, total)))


Add: TypeAlias = Callable[[Sequence[Any], Type], Any]
"""A function that sums the clients' values of a type."""


def _sum(add: Add, clients: int, type: FunctionType, argument: Any) -> Any:
    member = _member(_parameter(type))
    return Federated.everywhere(add(argument.at_each(clients), member))


def add_in_shards(shards: Iterable[Sequence[Any]], type: Type) -> Any:
    """Return the sum of values, adding up each shard first and then the shards' sums in order."""
    # Where shapes are unknown there is no zero for an empty shard to start from.
    if not _is_defined(type):
        shards = list(filter(None, shards)) or [()]
    totals = (_total(shard, type) for shard in shards)
    return functools.reduce(lambda one, other: arithmetic.plus(one, other, type), totals)


def _total(values: Iterable[Any], type: Type) -> Any:
    """Return the sum of values, from zero or, if shapes are not known, from the first value."""
    values = list(values)
    total = arithmetic.zeros(type) if not values or _is_defined(type) else values.pop(0)
    for value in values:
        total = arithmetic.plus(total, value, type)
    return total


def _is_defined(type: Type) -> bool:
    return all(
        isinstance(leaf, TensorType) and leaf.is_fully_defined() for leaf in distinct_leaves(type)
    )


def _mean(add: Add, clients: int, type: FunctionType, argument: Any) -> Any:
    member = _member(_parameter(type))
    _check_mean(member)
    values = argument.at_each(clients)
    count = add([arithmetic.ones_like(value, member) for value in values], member)
    return Federated.everywhere(arithmetic.quotient(add(values, member), count, member))


def _weighted_mean(add: Add, clients: int, type: FunctionType, argument: Any) -> Any:
    member, weight = (_member(part) for part in _struct(_parameter(type)))
    _check_mean(member)
    values, weights = (part.at_each(clients) for part in argument)
    products = [
        arithmetic.times(value, by, member, weight)
        for value, by in zip(values, weights, strict=True)
    ]
    total, count = add(products, member), add(weights, weight)
    return Federated.everywhere(arithmetic.quotient(total, count, member, weight))


def _check_mean(type: Type) -> None:
    """Check that values of `type` have a mean: integers do not."""
    for leaf in distinct_leaves(type):
        if isinstance(leaf, TensorType) and leaf.element_type.is_integer:
            raise mean_of_integers(type)


def _minimum(clients: int, type: FunctionType, argument: Any) -> Any:
    member = _member(_parameter(type))
    values = (arithmetic.largest(member), *argument.at_each(clients))
    choose = functools.partial(arithmetic.minimum, type=member)
    return Federated.everywhere(functools.reduce(choose, values))


def _maximum(clients: int, type: FunctionType, argument: Any) -> Any:
    member = _member(_parameter(type))
    values = (arithmetic.smallest(member), *argument.at_each(clients))
    choose = functools.partial(arithmetic.maximum, type=member)
    return Federated.everywhere(functools.reduce(choose, values))


# Secure sums.


def _secure_sum(clients: int, type: FunctionType, argument: Any) -> Any:
    member, bound = _secure_types(type)
    value, limit = argument
    values = value.at_each(clients)
    _check_limit(values, limit, member, bound)
    return Federated.everywhere(_total(values, member))


def _secure_sum_bitwidth(clients: int, type: FunctionType, argument: Any) -> Any:
    member, bound = _secure_types(type)
    value, bits = argument
    values = value.at_each(clients)
    limits: list[int] = []
    for part in flatten(bits, bound):
        width = int(np.max(part))
        if width > MAX_BITWIDTH:
            raise too_many_bits(width)
        if np.any(np.less(part, 0)):
            raise negative_bound(np.min(part))
        limits.append(2**width - 1)
    _check_limit(values, unflatten(iter(limits), bound), member, bound)
    return Federated.everywhere(_total(values, member))


def _check_limit(values: Iterable[Any], limit: Any, type: Type, bound: Type) -> None:
    limits = flatten(limit, bound)
    for most in limits:
        if np.any(np.less(most, 0)):
            raise negative_bound(np.min(most))
    for client, value in enumerate(values):
        parts = flatten(value, type)
        spread = limits * len(parts) if len(limits) == 1 else limits
        for part, most in zip(parts, spread, strict=True):
            beyond = beyond_bounds(part, most)
            if beyond:
                raise ExecutionError(
                    "E735",
                    f"client {client} {beyond}",
                    help="raise the bound of the sum, or clip the values before it",
                )


def _secure_modular_sum(clients: int, type: FunctionType, argument: Any) -> Any:
    member, bound = _secure_types(type)
    value, modulus = argument
    values = value.at_each(clients) or (arithmetic.zeros(member),)
    return Federated.everywhere(arithmetic.sum_modulo(values, modulus, member, bound))


def _secure_types(type: FunctionType) -> tuple[Type, Type]:
    value, bound = _struct(_parameter(type))
    return _member(value), bound


# Selections from the server.


def _select(machine: Machine, argument: Any) -> Task[Any]:
    keys, _, source, function = argument
    members: list[Any] = []
    for wanted in keys.at_each(machine.clients):
        pairs = [(source.members[0], key) for key in wanted]
        members.append((yield _apply_each(machine, function, pairs)))
    return Federated(tuple(members), all_equal=False)


# Sequences, and operators on values of any type.


def _sequence_map(machine: Machine, argument: Any) -> Task[Any]:
    function, elements = argument
    return (yield _apply_each(machine, function, elements))


def _sequence_reduce(machine: Machine, argument: Any) -> Task[Any]:
    elements, total, function = argument
    for element in elements:
        total = yield machine.apply(function, (total, element))
    return total


def _sequence_sum(clients: int, type: FunctionType, argument: Any) -> Any:
    return _total(argument, type.result)


def _combine(
    combine: Callable[[Any, Any, Type, Type], Any], clients: int, type: FunctionType, argument: Any
) -> Any:
    """Apply an operator on two values: `generic_plus` and the like."""
    return combine(*argument, *_struct(_parameter(type)))


def _parameter(type: FunctionType) -> Type:
    assert type.parameter is not None
    return type.parameter


def _struct(type: Type) -> StructType:
    assert isinstance(type, StructType)
    return type


def _member(type: Type) -> Type:
    assert isinstance(type, FederatedType)
    return type.member


SUMS: dict[str, Callable[[Add, int, FunctionType, Any], Any]] = {
    "federated_mean": _mean,
    "federated_sum": _sum,
    "federated_weighted_mean": _weighted_mean,
}
"""Operators that sum clients' values, as functions of the summing function, the number of clients,
the concrete type and the argument."""

OPERATORS: dict[str, Callable[[int, FunctionType, Any], Any]] = {
    "federated_broadcast": _broadcast,
    "federated_max": _maximum,
    "federated_min": _minimum,
    "federated_secure_modular_sum": _secure_modular_sum,
    "federated_secure_sum": _secure_sum,
    "federated_secure_sum_bitwidth": _secure_sum_bitwidth,
    "federated_value_at_clients": _value,
    "federated_value_at_server": _value,
    "federated_zip_at_clients": _zip_at_clients,
    "federated_zip_at_server": _zip_at_server,
    "generic_divide": functools.partial(_combine, arithmetic.quotient),
    "generic_multiply": functools.partial(_combine, arithmetic.times),
    "generic_plus": functools.partial(_combine, arithmetic.plus),
    "sequence_sum": _sequence_sum,
    **{uri: functools.partial(operator, _total) for uri, operator in SUMS.items()},
}
"""Operators on values, as functions of the number of clients, the concrete type and the
argument."""

CALLING_OPERATORS: dict[str, Callable[[Machine, Any], Task[Any]]] = {
    "federated_aggregate": _aggregate,
    "federated_apply": _map_everywhere,
    "federated_eval_at_clients": _evaluate_at_clients,
    "federated_eval_at_server": _evaluate_at_server,
    "federated_map": _map,
    "federated_map_all_equal": _map_everywhere,
    "federated_secure_select": _select,
    "federated_select": _select,
    "sequence_map": _sequence_map,
    "sequence_reduce": _sequence_reduce,
}
"""Operators that call functions among their operands, as tasks of the machine and the argument."""
