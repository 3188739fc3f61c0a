"""Operations on traced values, and what they build."""

from __future__ import annotations

import collections
import copy
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frontend.computations import traced

fc = tff.federated_computation
Clients, Server = tff.types.at_clients, tff.types.at_server
NAMED = [("a", np.int32), ("b", np.float32)]


STRUCTS = {
    "a copy": (lambda v: copy.deepcopy([v, v.b]), "(f_arg -> <f_arg,f_arg[1]>)"),
    "a field": (lambda v: v.b, "(f_arg -> f_arg[1])"),
    "a field by key": (lambda v: v["b"], "(f_arg -> f_arg[1])"),
    "a position": (lambda v: v[1], "(f_arg -> f_arg[1])"),
    "True is a position": (lambda v: v[True], "(f_arg -> f_arg[1])"),
    "a slice loses the names": (lambda v: v[:1], "(f_arg -> <f_arg[0]>)"),
    "a slice from the end": (lambda v: v[-1:], "(f_arg -> <f_arg[1]>)"),
    "a slice backwards": (lambda v: v[::-1], "(f_arg -> <f_arg[1],f_arg[0]>)"),
    "iteration": (lambda v: list(v), "(f_arg -> <f_arg[0],f_arg[1]>)"),
    "reversed": (lambda v: list(reversed(v)), "(f_arg -> <f_arg[1],f_arg[0]>)"),
    "length": (lambda v: len(v), "(f_arg -> 2)"),
    "a field of a struct spelled out": (
        lambda v: tff.to_value(collections.OrderedDict(x=v, y=1)).x.a,
        "(f_arg -> f_arg[0])",
    ),
    "equality is Python's": (lambda v: v == 1, "(f_arg -> False)"),
}


@pytest.mark.parametrize("case", STRUCTS)
def test_struct_values(case: str) -> None:
    body, text = STRUCTS[case]
    assert traced(body, NAMED) == text


def test_slice_is_a_list() -> None:
    assert repr(fc(lambda v: v[:1], NAMED).type_signature.result).endswith(" as list")


FEDERATED = {
    "clients": (
        lambda v: [v.a, v[1], v[:1]],
        Clients(NAMED),
        "(f_arg -> <federated_map(<(x -> x[0]),f_arg>),federated_map(<(x -> x[1]),f_arg>),"
        "federated_map(<(x -> <a=x[0]>),f_arg>)>)",
        "<{int32}@CLIENTS,{float32}@CLIENTS,{<a=int32>}@CLIENTS>",
    ),
    "clients, all equal": (
        lambda v: v.a,
        Clients(NAMED, all_equal=True),
        "(f_arg -> federated_map_all_equal(<(x -> x[0]),f_arg>))",
        "int32@CLIENTS",
    ),
    "server": (
        lambda v: list(v),
        Server(NAMED),
        "(f_arg -> <federated_apply(<(x -> x[0]),f_arg>),federated_apply(<(x -> x[1]),f_arg>)>)",
        "<int32@SERVER,float32@SERVER>",
    ),
    "empty slice": (
        lambda v: v[:0],
        Clients(NAMED),
        "(f_arg -> federated_map(<(x -> <>),f_arg>))",
        "{<>}@CLIENTS",
    ),
    "slice backwards": (
        lambda v: v[::-1],
        Clients(NAMED),
        "(f_arg -> federated_map(<(x -> <b=x[1],a=x[0]>),f_arg>))",
        "{<b=float32,a=int32>}@CLIENTS",
    ),
    "length": (lambda v: len(v), Clients(NAMED), "(f_arg -> 2)", "int32"),
}


@pytest.mark.parametrize("case", FEDERATED)
def test_federated_values(case: str) -> None:
    body, parameter, text, result = FEDERATED[case]
    assert traced(body, parameter) == text
    assert str(fc(body, parameter).type_signature.result) == result


def test_plus() -> None:
    assert traced(lambda x: x + 1, np.int32) == (
        "(f_arg -> (let fc_f_symbol_0=generic_plus(<f_arg,1>) in fc_f_symbol_0))"
    )
    assert traced(lambda x: 1 + x, np.int32) == (
        "(f_arg -> (let fc_f_symbol_0=generic_plus(<1,f_arg>) in fc_f_symbol_0))"
    )
    assert traced(lambda x, y: x + y, Clients(NAMED), Clients(NAMED)) == (
        "(f_arg -> (let fc_f_symbol_0=generic_plus(<f_arg[0],f_arg[1]>) in fc_f_symbol_0))"
    )


def test_names_of_values() -> None:
    seen: list[Any] = []

    @fc(NAMED, Clients(NAMED), np.int32)
    def f(x: Any, y: Any, z: Any) -> Any:
        seen.append(
            (dir(x), dir(y), dir(z), str(x.a), repr(z) == repr(z.comp), str(x.type_signature))
        )
        return x

    fields = ["a", "b", "comp", "type_signature"]
    assert seen == [
        (
            fields,
            fields,
            ["comp", "type_signature"],
            "f_arg[0][0]",
            True,
            "<a=int32,b=float32>",
        )
    ]
    assert f.__doc__ is None


def test_properties_come_before_fields_of_their_name() -> None:
    assert traced(lambda v: v["comp"], [("comp", np.int32)]) == "(f_arg -> f_arg[0])"
    assert traced(lambda v: str(v.type_signature), [("type_signature", np.int32)]) == (
        "(f_arg -> b'<type_signature=int32>')"
    )


def test_python_refuses_other_operations() -> None:
    for operation in (lambda v: v * 2, lambda v: -v, lambda v: v < 1, lambda v: int(v)):
        with pytest.raises(TypeError):
            fc(operation, np.int32)


def test_hasattr_and_getattr_default() -> None:
    assert traced(lambda v: (hasattr(v, "a"), hasattr(v, "c"), getattr(v, "c", 7)), NAMED) == (
        "(f_arg -> <True,False,7>)"
    )
