"""The language's operators, defined as TensorFlow operations and folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from tffc.assurance.proof import arithmetic, folds
from tffc.assurance.proof.attributes import (
    argument_kinds,
    flag_attribute,
    map_label,
    shapes_attribute,
    text_attribute,
    types_attribute,
)
from tffc.assurance.proof.carried import Carried
from tffc.assurance.proof.sequences import Place, element_symbols, itself, sequence_operation
from tffc.assurance.proof.terms import OWN, PURE, Terms
from tffc.assurance.proof.undecided import Undecided
from tffc.assurance.proof.values import (
    Value,
    elements_of,
    from_leaves,
    in_dataset_order,
    leaf_terms,
    leaves_of,
    term_of,
)
from tffc.language.nodes import Intrinsic
from tffc.language.types import (
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.support.trampoline import Task

EACH = Place("each client")
ALL_ALIKE = Place("all clients alike")


class Machine(Protocol):
    """The part of the symbolic machine that operators use."""

    terms: Terms
    place: Place
    carried: Carried

    def at(self, place: Place, function: Value, argument: Value | None) -> Task[Value]: ...

    def declare(self, kind: Type, value: Value) -> None: ...

    def iterate(self, kind: Type, sequence: int) -> None: ...


Computing: TypeAlias = Callable[[Machine, Intrinsic, Value], Value]
Calling: TypeAlias = Callable[[Machine, Intrinsic, Value], Task[Value]]

# Placement.


def _as_it_is(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    return argument


def _broadcast(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    machine.carried.broadcast += leaf_terms(argument)
    return argument


def _map(place: Place | None) -> Calling:
    """Return an operator that applies a function at a place, or where the program runs if None."""

    def compute(machine: Machine, operator: Intrinsic, argument: Value) -> Task[Value]:
        function, value = elements_of(argument)
        return machine.at(place or machine.place, function, value)

    return compute


def _evaluate(place: Place | None) -> Calling:
    """Return an operator that calls a function without argument, at a place chosen as in `_map`."""

    def compute(machine: Machine, operator: Intrinsic, argument: Value) -> Task[Value]:
        return machine.at(place or machine.place, argument, None)

    return compute


def _select(machine: Machine, operator: Intrinsic, argument: Value) -> Task[Value]:
    """Return for each client the sequence of the function's results for the client's keys."""
    keys, _, source, function = elements_of(argument)
    machine.carried.broadcast += leaf_terms(source)
    parameter = _parameter(operator)
    assert isinstance(parameter, StructType)
    kind = _member(parameter.types[0])
    result = _member(_signature(operator).result)
    if not isinstance(kind, TensorType) or not kind.shape or not isinstance(result, SequenceType):
        raise Undecided("a selection by keys that are not a vector")
    key = TensorType(kind.element_type, kind.shape[1:])
    label = (
        "TensorSliceDataset",
        ("Toutput_types", types_attribute([key])),
        ("is_files", flag_attribute(False)),
        ("metadata", text_attribute(b"")),
        ("output_shapes", shapes_attribute([key])),
        ("replicate_on_split", flag_attribute(False)),
    )
    slices = itself(machine.terms, label, (term_of(keys),), OWN, EACH)

    def select(key: Value) -> Task[Value]:
        return machine.at(EACH.inner(), function, (source, key))

    return _mapped(machine, EACH, select, slices, (key, result.element))


# Sequences.


def _sequence_map(machine: Machine, operator: Intrinsic, argument: Value) -> Task[Value]:
    function, whole = elements_of(argument)
    sequence = term_of(whole)
    parameter, result = _parameter(operator), _signature(operator).result
    assert isinstance(parameter, StructType)
    before = parameter.types[1]
    assert isinstance(before, SequenceType)
    assert isinstance(result, SequenceType)
    machine.iterate(before, sequence)
    place = machine.place

    def apply(element: Value) -> Task[Value]:
        return machine.at(place.inner(), function, element)

    return _mapped(machine, place, apply, sequence, (before.element, result.element))


def _mapped(
    machine: Machine,
    place: Place,
    apply: Callable[[Value], Task[Value]],
    sequence: int,
    elements: tuple[Type, Type],
) -> Task[Value]:
    """Return the sequence of the results of a function; `elements` are the element types of
    the sequence and of the new one."""
    terms, (before, after) = machine.terms, elements
    kinds = argument_kinds(in_dataset_order(before, leaves_of(before)))
    symbols = element_symbols(terms, place, 0, kinds)
    element = from_leaves(before, in_dataset_order(before, list(symbols), back=True))
    machine.declare(before, element)
    value: Value = yield apply(element)
    body = in_dataset_order(after, leaf_terms(value))
    outputs = in_dataset_order(after, leaves_of(after))
    if tuple(body) == symbols and argument_kinds(outputs) == kinds:
        return sequence
    label = map_label(outputs)
    return sequence_operation(terms, label, (sequence,), tuple(body), (), PURE, place, kinds)


def _sequence_reduce(machine: Machine, operator: Intrinsic, argument: Value) -> Task[Value]:
    whole, zero, function = elements_of(argument)
    sequence = term_of(whole)
    parameter, result = _parameter(operator), _signature(operator).result
    assert isinstance(parameter, StructType)
    before = parameter.types[0]
    assert isinstance(before, SequenceType)
    place, carried = machine.place, leaves_of(result)
    if not carried:
        return zero
    machine.iterate(before, sequence)
    kinds = argument_kinds([*carried, *in_dataset_order(before.element, leaves_of(before.element))])
    symbols = element_symbols(machine.terms, place, len(carried), kinds)
    running = from_leaves(result, symbols[: len(carried)])
    ordered = in_dataset_order(before.element, list(symbols[len(carried) :]), back=True)
    pair = running, from_leaves(before.element, ordered)
    machine.declare(StructType([result, before.element]), pair)
    value: Value = yield machine.at(place.inner(), function, pair)
    return _reduced(machine, result, sequence, zero, leaf_terms(value), kinds)


def _sequence_sum(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    element = _signature(operator).result
    terms, kinds = machine.terms, leaves_of(element)
    if not kinds:
        return from_leaves(element, ())
    sequence = term_of(argument)
    machine.iterate(_parameter(operator), sequence)
    arguments = argument_kinds([*kinds, *in_dataset_order(element, kinds)])
    symbols = element_symbols(terms, machine.place, len(kinds), arguments)
    ordered = in_dataset_order(element, list(symbols[len(kinds) :]), back=True)
    body = [
        arithmetic.operation(terms, "AddV2", (first, second), kind)
        for first, second, kind in zip(symbols, ordered, kinds, strict=False)
    ]
    zeros = arithmetic.zeros(terms, element)
    return _reduced(machine, element, sequence, zeros, body, arguments)


def _reduced(
    machine: Machine,
    kind: Type,
    sequence: int,
    zero: Value,
    body: list[int],
    kinds: list[tuple[int, bytes]],
) -> Value:
    carried = leaves_of(kind)
    label = (
        "ReduceDataset",
        ("Tstate", types_attribute(carried)),
        ("output_shapes", shapes_attribute(carried)),
        ("output_types", types_attribute(carried)),
        ("use_inter_op_parallelism", flag_attribute(True)),
    )
    data = (sequence, *leaf_terms(zero))
    reduced = sequence_operation(
        machine.terms, label, data, tuple(body), (), OWN, machine.place, kinds
    )
    return from_leaves(kind, (machine.terms.output(reduced, i) for i in range(len(carried))))


# Arithmetic.


def _binary(op: str) -> Computing:
    def compute(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
        first, second = elements_of(argument)
        return arithmetic.binary(machine.terms, op, first, second, _pair(operator))

    return compute


def _divide(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    first, second = elements_of(argument)
    return arithmetic.quotient(machine.terms, first, second, _pair(operator))


def _zero(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    return arithmetic.zeros(machine.terms, operator.type)


# Aggregations.


def _sum(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    kind = _member(_parameter(operator))
    return _total(machine, argument, kind)


def _total(machine: Machine, value: Value, kind: Type) -> Value:
    """Return the sum of what all clients hand on."""
    return _folded(machine, "AddV2", value, folds.nothing(machine.terms, kind), kind)


def _folded(machine: Machine, op: str, value: Value, zero: Value, kind: Type) -> Value:
    """Return what all clients hand on, combined leaf by leaf by one operation."""
    machine.carried.aggregated += leaf_terms(value)
    whole, steps = folds.plain(machine.terms, op, value, zero, kind)
    for accumulator in (value, whole, *steps):
        machine.declare(kind, accumulator)
    return whole


def _mean(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    kind = _member(_parameter(operator))
    ones = arithmetic.ones_like(machine.terms, argument, kind)
    return _quotient_of_sums(machine, argument, kind, ones, kind)


def _weighted_mean(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    value, weight = elements_of(argument)
    kind, other = map(_member, _pair(operator))
    return _quotient_of_sums(machine, value, kind, weight, other)


def _quotient_of_sums(
    machine: Machine, value: Value, kind: Type, weight: Value, other: Type
) -> Value:
    """Return a mean.  A form hands on the products or, where the system multiplies, the values."""
    terms = machine.terms
    machine.carried.aggregated += leaf_terms(value)
    products = arithmetic.binary(terms, "Mul", value, weight, (kind, other))
    sum_of_products = _total(machine, products, kind)
    return arithmetic.quotient(
        terms, sum_of_products, _total(machine, weight, other), (kind, other)
    )


def _extreme(op: str, largest: bool) -> Computing:
    def compute(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
        kind = _member(_parameter(operator))
        zero = arithmetic.limits(machine.terms, kind, largest)
        return _folded(machine, op, argument, zero, kind)

    return compute


def _aggregate(machine: Machine, operator: Intrinsic, argument: Value) -> Task[Value]:
    value, zero, accumulate, merge, report = elements_of(argument)
    machine.carried.aggregated += leaf_terms(value)
    parameter = _parameter(operator)
    assert isinstance(parameter, StructType)
    function = parameter.types[2]
    assert isinstance(function, FunctionType)
    assert isinstance(function.parameter, StructType)
    accumulator = function.parameter.types[0]
    symbols = folds.Symbols(machine.terms, accumulator, _member(parameter.types[0]))
    taken = yield machine.at(folds.ACCUMULATE, accumulate, (symbols.one, symbols.update))
    merged = yield machine.at(folds.MERGE, merge, (symbols.one, symbols.other))
    whole = folds.fold(symbols, zero=zero, accumulated=taken, merged=merged, update=value)
    machine.declare(accumulator, whole)
    return (yield machine.at(machine.place, report, whole))


def _secure(machine: Machine, operator: Intrinsic, argument: Value) -> Value:
    value, bound = elements_of(argument)
    machine.carried.secured += leaf_terms(value)
    kinds = _pair(operator)
    return folds.secure(machine.terms, operator.uri, value, bound, (_member(kinds[0]), kinds[1]))


def _signature(operator: Intrinsic) -> FunctionType:
    assert isinstance(operator.type, FunctionType)
    return operator.type


def _parameter(operator: Intrinsic) -> Type:
    parameter = _signature(operator).parameter
    assert parameter is not None
    return parameter


def _pair(operator: Intrinsic) -> tuple[Type, Type]:
    parameter = _parameter(operator)
    assert isinstance(parameter, StructType)
    first, second = parameter.types
    return first, second


def _member(kind: Type) -> Type:
    return kind.member if isinstance(kind, FederatedType) else kind


OPERATORS: Mapping[str, Computing] = {
    "federated_broadcast": _broadcast,
    "federated_max": _extreme("Maximum", largest=False),
    "federated_mean": _mean,
    "federated_min": _extreme("Minimum", largest=True),
    "federated_secure_modular_sum": _secure,
    "federated_secure_sum": _secure,
    "federated_secure_sum_bitwidth": _secure,
    "federated_sum": _sum,
    "federated_value_at_clients": _as_it_is,
    "federated_value_at_server": _as_it_is,
    "federated_weighted_mean": _weighted_mean,
    "federated_zip_at_clients": _as_it_is,
    "federated_zip_at_server": _as_it_is,
    "generic_divide": _divide,
    "generic_multiply": _binary("Mul"),
    "generic_plus": _binary("AddV2"),
    "generic_zero": _zero,
    "sequence_sum": _sequence_sum,
}
"""Operators that call no functions; they take the machine, the operator and the argument."""

CALLING: Mapping[str, Calling] = {
    "federated_aggregate": _aggregate,
    "federated_apply": _map(None),
    "federated_eval_at_clients": _evaluate(EACH),
    "federated_eval_at_server": _evaluate(None),
    "federated_map": _map(EACH),
    "federated_map_all_equal": _map(ALL_ALIKE),
    "federated_secure_select": _select,
    "federated_select": _select,
    "sequence_map": _sequence_map,
    "sequence_reduce": _sequence_reduce,
}
"""Operators that call functions among their operands."""
