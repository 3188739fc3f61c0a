"""Operations on traced values, and what they build."""

from __future__ import annotations

import collections
import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frontend.computations import traced
from tests.refusals import error_without_place

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
        seen.append((dir(x), dir(y), dir(z), str(x.a), repr(z), str(x.type_signature)))
        return x

    fields = ["a", "b", "comp", "type_signature"]
    assert seen == [
        (
            fields,
            fields,
            ["comp", "type_signature"],
            "f_arg[0][0]",
            "<traced value f_arg[2] of type int32>",
            "<a=int32,b=float32>",
        )
    ]
    assert f.__doc__ is None


def test_properties_come_before_fields_of_their_name() -> None:
    assert traced(lambda v: v["comp"], [("comp", np.int32)]) == "(f_arg -> f_arg[0])"
    assert traced(lambda v: str(v.type_signature), [("type_signature", np.int32)]) == (
        "(f_arg -> b'<type_signature=int32>')"
    )


REFUSED: dict[str, tuple[Callable[[Any], Any], Any, type[Exception], str]] = {
    "misspelt field": (
        lambda v: v.wieghts,
        [("weights", np.int32), ("bias", np.int32)],
        AttributeError,
        "no element named 'wieghts' in a value of type `<weights=int32,bias=int32>` [E441]\n"
        "  note: it has 'weights', 'bias'\n"
        "  help: did you mean 'weights'?",
    ),
    "misspelt key": (
        lambda v: v["c"],
        Clients(NAMED),
        AttributeError,
        "no element named 'c' in a value of type `{<a=int32,b=float32>}@CLIENTS` [E441]\n"
        "  note: it has 'a', 'b'",
    ),
    "field without names": (
        lambda v: v.a,
        [np.int32],
        AttributeError,
        "no element named 'a' in a value of type `<int32>` [E441]\n"
        "  help: its elements have no names; select them by position",
    ),
    "field of a tensor": (
        lambda v: v.shape,
        np.int32,
        AttributeError,
        "a value of type `int32` has no elements, so none is named 'shape' [E444]\n"
        "  help: work on tensors and sequences belongs in a TensorFlow computation",
    ),
    "field of a federated tensor": (
        lambda v: v.shape,
        Clients(np.int32),
        AttributeError,
        "a value of type `{int32}@CLIENTS` has no elements, so none is named 'shape' [E444]\n"
        "  help: work on tensors and sequences belongs in a TensorFlow computation, applied with "
        "tff.federated_map",
    ),
    "position past the end": (
        lambda v: v[2],
        NAMED,
        IndexError,
        "no element 2 in a value of type `<a=int32,b=float32>`, which has 2 elements [E441]\n"
        "  help: positions count from 0 and cannot be negative",
    ),
    "negative position of a federated value": (
        lambda v: v[-1],
        Clients(NAMED),
        ValueError,
        "no element -1 in a value of type `{<a=int32,b=float32>}@CLIENTS`, which has 2 elements "
        "[E441]\n  help: positions count from 0 and cannot be negative",
    ),
    "empty slice": (
        lambda v: v[:0],
        NAMED,
        IndexError,
        "a slice of a value of type `<a=int32,b=float32>` selects none of its elements [E441]"
        "\n  help: select at least one element, or write [] for a struct without elements",
    ),
    "key of another class": (
        lambda v: v[1.0],
        NAMED,
        TypeError,
        "an element is selected by an int, a name or a slice, not by 1.0 of type float [E441]\n"
        "  help: selections are made while tracing; convert it with int(...) if it is known",
    ),
    "position in a tensor": (
        lambda v: v[0],
        np.int32,
        TypeError,
        "a value of type `int32` has no elements, so it cannot be selected from by position "
        "[E444]\n"
        "  help: write it in a TensorFlow computation, and call that",
    ),
    "iteration over a tensor": (
        lambda v: list(v),
        Clients(np.int32),
        TypeError,
        "a value of type `{int32}@CLIENTS` has no elements, so it cannot be iterated over [E444]\n"
        "  help: write it in a TensorFlow computation `f`, and apply that to each constituent: "
        "tff.federated_map(f, x)",
    ),
    "length of a tensor": (
        lambda v: len(v),
        np.int32,
        TypeError,
        "a value of type `int32` has no elements, so it cannot be measured with len() [E444]\n"
        "  help: write it in a TensorFlow computation, and call that",
    ),
    "truth": (
        lambda v: 1 if v else 2,
        np.bool_,
        TypeError,
        "a value of type `bool` has no truth value while its program is traced [E443]\n"
        "  help: make the decision in a TensorFlow computation, for example with tf.cond or "
        "tf.where",
    ),
    "maybe different values at the server": (
        lambda v: v.a,
        tff.FederatedType(NAMED, tff.SERVER, False),
        TypeError,
        "elements of a value of type `{<a=int32,b=float32>}@SERVER` cannot be selected: its "
        "constituents at the server may differ [E446]"
        "\n  help: declare the type of the value with tff.types.at_server",
    ),
    "plus of two types": (
        lambda v: v + 1,
        np.float32,
        TypeError,
        "cannot add values of types `float32` and `int32` [E482]\n"
        "  note: both must be of one type, made of numbers",
    ),
    "plus of a constant": (
        lambda v: v + 1,
        tff.types.at_server(np.int32),
        TypeError,
        "cannot add values of types `int32@SERVER` and `int32` [E482]\n"
        "  note: both must be of one type, made of numbers\n"
        "  help: place it first: tff.federated_value(x, tff.SERVER)",
    ),
    "plus to a constant": (
        lambda v: 1 + v,
        tff.types.at_clients(np.int32),
        TypeError,
        "cannot add values of types `int32` and `{int32}@CLIENTS` [E482]\n"
        "  note: both must be of one type, made of numbers\n"
        "  help: place it first: tff.federated_value(x, tff.CLIENTS)",
    ),
    "plus across placements": (
        lambda v: v[0] + v[1],
        [tff.types.at_server(np.int32), tff.types.at_clients(np.int32)],
        TypeError,
        "cannot add values of types `int32@SERVER` and `{int32}@CLIENTS` [E482]\n"
        "  note: both must be of one type, made of numbers\n"
        "  help: bring both to one place: the server's value to the clients with "
        "tff.federated_broadcast, or the clients' to the server with tff.federated_sum",
    ),
    "times": (
        lambda v: 2 * v,
        np.int32,
        TypeError,
        "the operator * cannot be applied to a value of type `int32` while its program is traced "
        "[E443]\n  help: write it in a TensorFlow computation, and call that",
    ),
    "times a NumPy value": (
        lambda v: np.float32(2) * v,
        tff.types.at_clients(np.float32),
        TypeError,
        "the operator * cannot be applied to a value of type `{float32}@CLIENTS` while its "
        "program is traced [E443]\n  help: write it in a TensorFlow computation `f`, and apply "
        "that to each constituent: tff.federated_map(f, x)",
    ),
    "a comparison": (
        lambda v: v > 0,
        np.int32,
        TypeError,
        "the operator > cannot be applied to a value of type `int32` while its program is traced "
        "[E443]\n  help: write it in a TensorFlow computation, and call that",
    ),
    "a new field": (
        lambda v: setattr(v, "a", 1),
        NAMED,
        TypeError,
        "the element 'a' of a value of type `<a=int32,b=float32>` cannot be assigned to: values "
        "of a program do not change [E165]\n  help: make a new value of the elements that stay "
        "and those that differ: collections.OrderedDict(a=..., b=x.b)",
    ),
    "a new element": (
        lambda v: operator.setitem(v, 0, 1),
        Clients(NAMED),
        TypeError,
        "the element 0 of a value of type `{<a=int32,b=float32>}@CLIENTS` cannot be assigned to: "
        "values of a program do not change [E165]\n  help: make a new value of the elements that "
        "stay and those that differ: tff.federated_zip(collections.OrderedDict(a=..., b=x.b))",
    ),
    "a field less": (
        lambda v: delattr(v, "a"),
        NAMED,
        TypeError,
        "the element 'a' of a value of type `<a=int32,b=float32>` cannot be deleted: values of "
        "a program do not change [E165]\n  help: make a new value of the elements that stay and "
        "those that differ: collections.OrderedDict(a=..., b=x.b)",
    ),
    "a function of NumPy": (
        lambda v: np.mean(v),
        np.float32,
        TypeError,
        "NumPy and TensorFlow cannot compute with a value of type `float32` while its program is "
        "traced [E166]\n  help: write it in a TensorFlow computation, and call that",
    ),
    "a negative": (
        lambda v: -v,
        np.int32,
        TypeError,
        "the operator - cannot be applied to a value of type `int32` while its program is traced "
        "[E443]\n  help: write it in a TensorFlow computation, and call that",
    ),
    "plus of strings": (
        lambda v: v + v,
        np.str_,
        TypeError,
        "cannot add values of types `str` and `str` [E482]\n"
        "  note: both must be of one type, made of numbers",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    body, parameter, builtin, text = REFUSED[case]
    assert str(error_without_place(builtin, lambda: fc(body, parameter))) == text


def test_python_refuses_other_operations() -> None:
    for operation in (lambda v: v * 2, lambda v: -v, lambda v: v < 1, lambda v: int(v)):
        with pytest.raises(TypeError):
            fc(operation, np.int32)


def test_hasattr_and_getattr_default() -> None:
    assert traced(lambda v: (hasattr(v, "a"), hasattr(v, "c"), getattr(v, "c", 7)), NAMED) == (
        "(f_arg -> <True,False,7>)"
    )
