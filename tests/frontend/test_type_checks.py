"""Checks of types say what was found and what was expected."""

from __future__ import annotations

import numpy as np

import tffc as tff
from tests.refusals import refusal
from tffc.frontend.type_checks import (
    SumIncompatibleError,
    check_federated_type,
    check_is_structure_of_floats,
    check_is_sum_compatible,
)
from tffc.frontend.type_queries import uri_to_placement_literal
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.tff.type_instances import (
    UnassignableConcreteTypesError,
    check_all_abstract_types_are_bound,
    check_concrete_instance_of,
)

INTEGER = tff.to_type(np.int32)
VARIABLE = tff.AbstractType("T")


def test_kinds() -> None:
    assert refusal(LanguageTypeError, check_is_structure_of_floats, INTEGER) == (
        "expected floating tensors, in structs or not, but found the type `int32` [E168]"
    )
    at_server = tff.FederatedType(INTEGER, tff.SERVER)
    assert refusal(LanguageTypeError, check_federated_type, at_server, None, tff.CLIENTS) == (
        "expected a type placed at CLIENTS, but found the type `int32@SERVER` [E168]"
    )


def test_sums() -> None:
    check_is_sum_compatible(INTEGER)
    message = refusal(SumIncompatibleError, check_is_sum_compatible, tff.to_type(np.bool_))
    assert message.startswith("values of type `bool` cannot be summed [E482]")


def test_instances() -> None:
    generic = tff.FunctionType(VARIABLE, VARIABLE)
    check_concrete_instance_of(tff.FunctionType(INTEGER, INTEGER), generic)
    mixed = tff.FunctionType(INTEGER, np.float32)
    call = check_concrete_instance_of
    assert refusal(UnassignableConcreteTypesError, call, mixed, generic) == (
        "`(int32 -> float32)` is not an instance of `(T -> T)`: `T` is `int32`, and `float32` "
        "where it is used [E168]"
    )


def test_type_variables_are_defined() -> None:
    open_type = tff.FunctionType(None, VARIABLE)
    assert refusal(LanguageTypeError, check_all_abstract_types_are_bound, open_type) == (
        "no parameter defines the type variable `T` in `( -> T)` [E109]"
    )


def test_placements() -> None:
    assert uri_to_placement_literal("clients") is tff.CLIENTS
    assert refusal(LanguageValueError, uri_to_placement_literal, "moon") == (
        "no placement is called 'moon' [E105]\n  help: use 'clients' or 'server'"
    )


def test_containers() -> None:
    value = tff.Struct([("a", 1), ("b", 2)])
    pair = tff.to_type([np.int32, np.int32])
    assert refusal(LanguageValueError, tff.types.type_to_py_container, value, pair) == (
        "a value cannot be put into the containers of the type `<int32,int32>`: a list or tuple "
        "has no names [E161]"
    )


def test_a_computation_with_other_containers() -> None:
    pair = tff.federated_computation(lambda: [1, 2])
    made = tff.framework.ConcreteComputation.with_type(
        pair, tff.FunctionType(None, (np.int32, np.int32))
    )
    assert made() == (1, 2)


def test_types_made_alike_are_one_object() -> None:
    assert tff.TensorType(np.int32) is INTEGER
    assert tff.to_type([np.int32]) is tff.to_type([np.int32])
    assert tff.to_type([np.int32]) is not tff.to_type((np.int32,))
