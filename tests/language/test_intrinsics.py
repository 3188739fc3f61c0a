"""Intrinsics: an instance of every signature, and what is not an instance."""

from __future__ import annotations

import numpy as np
import pytest

from tffc.language import (
    AbstractType,
    FunctionType,
    Intrinsic,
    SequenceType,
    StructType,
    TensorType,
    Type,
    at_clients,
    at_server,
)
from tffc.language.intrinsics import INTRINSICS, definition_of
from tffc.support.errors import LanguageTypeError

INT, FLOAT = TensorType(np.int32), TensorType(np.float32)
VECTOR = TensorType(np.int32, (3,))
ALL = at_clients(INT, all_equal=True)
MAP = FunctionType(INT, FLOAT)
SELECT = FunctionType([FLOAT, INT], INT)


def function(parameter: object, result: object) -> FunctionType:
    return FunctionType(parameter, result)


INSTANCES: dict[str, Type] = {
    "federated_aggregate": function(
        [
            at_clients(INT),
            FLOAT,
            function([FLOAT, INT], FLOAT),
            function([FLOAT, FLOAT], FLOAT),
            function(FLOAT, INT),
        ],
        at_server(INT),
    ),
    "federated_apply": function([MAP, at_server(INT)], at_server(FLOAT)),
    "federated_broadcast": function(at_server(INT), ALL),
    "federated_eval_at_clients": function(function(None, INT), at_clients(INT)),
    "federated_eval_at_server": function(function(None, INT), at_server(INT)),
    "federated_map": function([MAP, at_clients(INT)], at_clients(FLOAT)),
    "federated_map_all_equal": function([MAP, ALL], at_clients(FLOAT, all_equal=True)),
    "federated_mean": function(at_clients(FLOAT), at_server(FLOAT)),
    "federated_min": function(at_clients(INT), at_server(INT)),
    "federated_max": function(at_clients(INT), at_server(INT)),
    "federated_sum": function(at_clients(INT), at_server(INT)),
    "federated_weighted_mean": function([at_clients(FLOAT), at_clients(INT)], at_server(FLOAT)),
    "federated_secure_sum": function([at_clients(INT), INT], at_server(INT)),
    "federated_secure_sum_bitwidth": function([at_clients(INT), INT], at_server(INT)),
    "federated_secure_modular_sum": function([at_clients(INT), INT], at_server(INT)),
    "federated_select": function(
        [at_clients(VECTOR), at_server(INT), at_server(FLOAT), SELECT],
        at_clients(SequenceType(INT)),
    ),
    "federated_secure_select": function(
        [at_clients(VECTOR), at_server(INT), at_server(FLOAT), SELECT],
        at_clients(SequenceType(INT)),
    ),
    "federated_value_at_clients": function(INT, ALL),
    "federated_value_at_server": function(INT, at_server(INT)),
    "federated_zip_at_clients": function(
        [at_clients(INT), at_clients(FLOAT)], at_clients([INT, FLOAT])
    ),
    "federated_zip_at_server": function(
        [at_server(INT), at_server(FLOAT)], at_server([INT, FLOAT])
    ),
    "generic_plus": function([INT, INT], INT),
    "generic_multiply": function([INT, INT], INT),
    "generic_divide": function([INT, INT], FLOAT),
    "generic_zero": INT,
    "sequence_map": function([MAP, SequenceType(INT)], SequenceType(FLOAT)),
    "sequence_reduce": function([SequenceType(INT), FLOAT, function([FLOAT, INT], FLOAT)], FLOAT),
    "sequence_sum": function(SequenceType(INT), INT),
}


def test_every_intrinsic_has_an_example() -> None:
    assert INSTANCES.keys() == INTRINSICS.keys()


@pytest.mark.parametrize("uri", INTRINSICS)
def test_instance(uri: str) -> None:
    assert Intrinsic(uri, INSTANCES[uri]).type == INSTANCES[uri]


def test_how_intrinsics_communicate() -> None:
    def those(predicate: str) -> list[str]:
        return sorted(uri for uri, d in INTRINSICS.items() if getattr(d, predicate))

    assert those("is_broadcast") == [
        "federated_broadcast",
        "federated_secure_select",
        "federated_select",
    ]
    assert those("is_aggregation") == [
        "federated_aggregate",
        "federated_max",
        "federated_mean",
        "federated_min",
        "federated_secure_modular_sum",
        "federated_secure_sum",
        "federated_secure_sum_bitwidth",
        "federated_sum",
        "federated_weighted_mean",
    ]


def test_unknown_intrinsic_may_have_any_type() -> None:
    assert definition_of("other") is None
    assert Intrinsic("other", AbstractType("T")).type == AbstractType("T")


def refusal(uri: str, type_: Type) -> str:
    with pytest.raises(LanguageTypeError) as caught:
        Intrinsic(uri, type_)
    return str(caught.value)


def test_type_variables() -> None:
    assert refusal("generic_zero", AbstractType("T")) == (
        "the type `T` of generic_zero is not concrete [E109]"
    )


def test_definitions_that_differ() -> None:
    assert refusal("federated_map", function([MAP, at_clients(FLOAT)], at_clients(FLOAT))) == (
        "the type `(<(int32 -> float32),{float32}@CLIENTS> -> {float32}@CLIENTS)` is not an "
        "instance of federated_map, whose signature is "
        "`(<(T -> U),{T}@CLIENTS> -> {U}@CLIENTS)` [E135]\n"
        "  note: `int32` is not assignable from `T`=`float32`"
    )


def test_defining_uses_must_be_equivalent() -> None:
    assert refusal("generic_plus", function([INT, FLOAT], INT)) == (
        "the type `(<int32,float32> -> int32)` is not an instance of generic_plus, whose signature "
        "is `(<T,T> -> T)` [E135]\n  note: `T` is both `float32` and `int32`"
    )


def test_kinds_names_and_all_equality_must_agree() -> None:
    sum_ = "federated_sum, whose signature is `({T}@CLIENTS -> T@SERVER)` [E135]\n"
    assert refusal("federated_sum", function(ALL, at_server(INT))) == (
        f"the type `(int32@CLIENTS -> int32@SERVER)` is not an instance of {sum_}"
        "  note: `int32@CLIENTS` stands where `{T}@CLIENTS` is expected"
    )
    assert refusal("federated_sum", INT) == (
        f"the type `int32` is not an instance of {sum_}"
        "  note: `int32` stands where `({T}@CLIENTS -> T@SERVER)` is expected"
    )
    assert "stands where `<T,T>` is expected" in refusal(
        "generic_plus", function(StructType([("a", INT), INT]), INT)
    )


@pytest.mark.parametrize("uri", INTRINSICS)
def test_every_variable_that_stands_twice_is_defined(uri: str) -> None:
    defined: set[str] = set()
    used: list[str] = []
    stack: list[tuple[Type, bool]] = [(INTRINSICS[uri].signature, False)]
    while stack:
        type_, defining = stack.pop()
        match type_:
            case AbstractType() if defining:
                defined.add(type_.name)
            case AbstractType():
                used.append(type_.name)
            case FunctionType(parameter=Type() as parameter):
                stack += [(parameter, not defining), (type_.result, defining)]
            case _:
                stack += [(child, defining) for child in type_.children()]
    assert [name for name in used if name not in defined and used.count(name) > 1] == []
