"""Calls while tracing: of computations, of function values, nested, captured and polymorphic."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frontend.computations import traced
from tests.refusals import error_without_place
from tffc.frontend.computation import Computation
from tffc.support.errors import ContextError, TffcError

fc = tff.federated_computation
Clients, Server = tff.types.at_clients, tff.types.at_server
Function = tff.FunctionType


@fc(np.int32, np.int32)
def add(a: Any, b: Any) -> Any:
    return a + b


@fc(np.int64)
def wide(x: Any) -> Any:
    return x


def zipper(type_: Any) -> Computation:
    return fc(lambda y: y, type_)


ADD = "(add_arg -> (let fc_add_symbol_0=generic_plus(<add_arg[0],add_arg[1]>) in fc_add_symbol_0))"
ID = "(<lambda>_arg -> <lambda>_arg)"
PAIRS = [Clients(np.int32), Clients(np.int32)]
NESTED = [[Clients(np.int32), Clients(np.int32)]]


def called(text: str) -> str:
    return f"(f_arg -> (let fc_f_symbol_0={text} in fc_f_symbol_0))"


ARGUMENTS = {
    "positional": (lambda x: add(x, 1), f"{ADD}(<a=f_arg,b=1>)"),
    "by name": (lambda x: add(a=x, b=1), f"{ADD}(<a=f_arg,b=1>)"),
    "names in another order": (lambda x: add(b=1, a=x), f"{ADD}(<a=f_arg,b=1>)"),
    "mixed": (lambda x: add(x, b=1), f"{ADD}(<a=f_arg,b=1>)"),
    "one tuple": (lambda x: add((x, 1)), f"{ADD}(<f_arg,1>)"),
    "one list": (lambda x: add([x, 1]), f"{ADD}(<f_arg,1>)"),
    "one mapping": (
        lambda x: add(collections.OrderedDict(a=x, b=1)),
        f"{ADD}(<a=f_arg,b=1>)",
    ),
    "a constant takes the type of the parameter": (
        lambda x: wide(1),
        "(wide_arg -> wide_arg)(1)",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(case: str) -> None:
    body, text = ARGUMENTS[case]
    assert traced(body, np.int32) == called(text)


def test_constant_takes_the_dtype_of_the_parameter() -> None:
    # The trace makes a block.
    call = fc(lambda: wide(1)).node.result.locals[0].value
    assert str(call.argument.type) == "int64"


ZIPPED = {
    "a struct at clients": (
        PAIRS,
        Clients([np.int32, np.int32]),
        f"{ID}(federated_zip_at_clients(f_arg))",
    ),
    "a struct at the server": (
        [Server(np.int32), Server(np.int32)],
        Server([np.int32, np.int32]),
        f"{ID}(federated_zip_at_server(f_arg))",
    ),
    "names are added": (
        PAIRS,
        Clients([("a", np.int32), ("b", np.int32)]),
        f"{ID}(federated_zip_at_clients(f_arg))",
    ),
    "inside a struct of one": (
        NESTED,
        [Clients([np.int32, np.int32])],
        f"{ID}((let _var1=f_arg in <federated_zip_at_clients(_var1[0])>))",
    ),
    "inside a named struct of one": (
        [("q", NESTED[0])],
        [("q", Clients([np.int32, np.int32]))],
        f"{ID}((let _var1=f_arg in <q=federated_zip_at_clients(_var1[0])>))",
    ),
    "inside a struct of several, at any depth": (
        [NESTED[0], np.int32, NESTED],
        [Clients([np.int32, np.int32]), np.int32, [Clients([np.int32, np.int32])]],
        f"{ID}((let _var1=f_arg in <federated_zip_at_clients(_var1[0]),_var1[1],"
        "<federated_zip_at_clients(_var1[2][0])>>))",
    ),
}


@pytest.mark.parametrize("case", ZIPPED)
def test_arguments_are_zipped(case: str) -> None:
    given, wanted, text = ZIPPED[case]
    assert traced(lambda x: zipper(wanted)(x), given) == called(text)


def test_lists_of_values_are_zipped() -> None:
    text = traced(lambda x, y: zipper(Clients([np.int32, np.int32]))([x, y]), *PAIRS)
    assert text == called(f"{ID}(federated_zip_at_clients(<f_arg[0],f_arg[1]>))")


def test_calls_of_function_values() -> None:
    one = Function(np.int32, np.int32)
    pair = Function([("a", np.int32), ("b", np.float32)], np.int32)
    assert traced(lambda g: g(1), one) == called("f_arg(1)")
    assert traced(lambda g: g(), Function(None, np.int32)) == called("f_arg()")
    assert traced(lambda g: g(1, 2.0), pair) == called("f_arg(<a=1,b=2.0>)")
    assert traced(lambda g: g(b=2.0, a=1), pair) == called("f_arg(<a=1,b=2.0>)")
    assert traced(lambda g, s: g(*s), Function([np.int32] * 2, np.int32), [np.int32] * 2) == (
        called("f_arg[0](<f_arg[1][0],f_arg[1][1]>)")
    )


def test_nested_traces_of_one_name() -> None:
    def outer(x: Any) -> Any:
        def outer(x: Any) -> Any:
            def outer(x: Any) -> Any:
                return x

            return fc(outer, np.int32)(x)

        return fc(outer, np.int32)(x)

    assert str(fc(outer, np.int32).node) == (
        "(outer_arg -> (let fc_outer_symbol_0=(outer_1_arg -> (let fc_outer_1_symbol_0="
        "(outer_2_arg -> outer_2_arg)(outer_1_arg) in fc_outer_1_symbol_0))(outer_arg) in "
        "fc_outer_symbol_0))"
    )


def test_captured_values() -> None:
    def capture(x: Any) -> Any:
        @fc(np.int32)
        def inner(y: Any) -> Any:
            return (x, y)

        return inner(x)

    assert str(fc(capture, np.int32).node) == (
        "(capture_arg -> (let fc_capture_symbol_0=(inner_arg -> <capture_arg,inner_arg>)"
        "(capture_arg) in fc_capture_symbol_0))"
    )


def test_bindings_belong_to_the_innermost_trace() -> None:
    def outer(x: Any) -> Any:
        @fc(np.int32)
        def inner(y: Any) -> Any:
            return x + y

        return inner(1)

    assert str(fc(outer, np.int32).node) == (
        "(outer_arg -> (let fc_outer_symbol_0=(inner_arg -> (let fc_inner_symbol_0="
        "generic_plus(<outer_arg,inner_arg>) in fc_inner_symbol_0))(1) in fc_outer_symbol_0))"
    )


def test_leaked_values_are_refused() -> None:
    leaked: list[Any] = []

    @fc(Clients(np.int32))
    def first(x: Any) -> Any:
        leaked.append(tff.federated_sum(x))
        return x

    def second(x: Any) -> Any:
        return tff.federated_broadcast(leaked[0])

    assert str(error_without_place(ContextError, lambda: fc(second, Clients(np.int32)))) == (
        "a value of the trace of 'first' is used in that of 'second', where it means nothing "
        "[E431]\n  help: give it to 'second' as an argument, or return it from 'first'"
    )


def test_leaks_are_found_between_siblings_of_one_name() -> None:
    leaked: list[Any] = []

    def sibling(y: Any) -> Any:
        leaked.append(y + 1)
        return leaked[0]

    def outer(x: Any) -> Any:
        fc(sibling, np.int32)
        return fc(sibling, np.int32)(x)

    assert "[E431]" in str(error_without_place(TffcError, lambda: fc(outer, np.int32)))


def test_computations_with_captured_values_are_refused_elsewhere() -> None:
    kept: list[Computation] = []

    @fc(np.int32)
    def outer(x: Any) -> Any:
        kept.append(fc(lambda y: (x, y), np.int32))
        return x

    assert "[E431]" in str(
        error_without_place(TffcError, lambda: fc(lambda z: kept[0](z), np.int32))
    )
    assert str(error_without_place(TffcError, lambda: kept[0](1))) == (
        "the computation cannot be run by itself, for it uses values of the trace of 'outer' "
        "[E431]\n  help: make them arguments of the computation"
    )
    assert "cannot be serialized by itself" in str(
        error_without_place(TffcError, lambda: tff.serialize_computation(kept[0]))
    )


def test_values_may_leave_an_inner_trace_if_they_are_of_the_outer() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        @fc(np.int32)
        def inner(y: Any) -> Any:
            kept.append(x[0])
            return y

        return kept[0]

    assert str(fc(f, [np.int32]).node) == "(f_arg -> f_arg[0])"


POLYMORPHIC = {
    "one argument is a struct of one": (
        lambda x: fc(lambda a: (a, a))(x),
        "(<lambda>_arg -> <<lambda>_arg[0],<lambda>_arg[0]>)(<f_arg>)",
    ),
    "a keyword": (
        lambda x: fc(lambda a, b: (a, b))(x, b=2.0),
        "(<lambda>_arg -> <<lambda>_arg[0],<lambda>_arg[1]>)(<f_arg,b=2.0>)",
    ),
    "keywords in the order of the call": (
        lambda x: fc(lambda a, b: a)(b=1, a=x),
        "(<lambda>_arg -> <lambda>_arg[1])(<b=1,a=f_arg>)",
    ),
    "containers": (
        lambda x: fc(lambda a: a)([x, {"k": x}]),
        "(<lambda>_arg -> <lambda>_arg[0])(<<f_arg,<k=f_arg>>>)",
    ),
}


@pytest.mark.parametrize("case", POLYMORPHIC)
def test_polymorphic_calls(case: str) -> None:
    body, text = POLYMORPHIC[case]
    assert traced(body, np.int32) == called(text)


def test_polymorphic_computations_are_traced_once_for_each_type() -> None:
    traces: list[str] = []

    @fc
    def poly(a: Any) -> Any:
        traces.append(str(a.type_signature))
        return a

    fc(lambda x: (poly(x), poly(x), poly(1.0), poly([x]), poly((x,))), np.int32)
    assert traces == ["int32", "float32", "<int32>", "<int32>"]


POLYMORPHIC_REFUSED = {
    "too few arguments": (
        lambda: fc(lambda x: fc(lambda a, b: a)(x), np.int32),
        "the function '<lambda>'(a, b) cannot be called with an argument of type `<int32>` "
        "[E407]\n  help: the elements of the argument are passed one by one, those with names as "
        "keywords",
    ),
    "returned": (
        lambda: fc(lambda x: fc(lambda a: a), np.int32),
        "the types of the parameters of the polymorphic computation '<lambda>' are not known here "
        "[E414]\n  note: it was returned by '<lambda>'\n  help: give them to its decorator",
    ),
    "serialized": (
        # Wrong on purpose.
        lambda: tff.serialize_computation(fc(lambda a: a)),
        "only a computation can be serialized, not an object of class 'PolymorphicComputation' "
        "[E417]\n  help: give its decorator the types of its parameters",
    ),
    "an argument without type": (
        lambda: fc(lambda x: fc(lambda a: a)({1, 2}), np.int32),
        "an object of class 'set' has no type in the language [E460]\n  help: give a list or tuple",
    ),
}


@pytest.mark.parametrize("case", POLYMORPHIC_REFUSED)
def test_polymorphic_refused(case: str) -> None:
    make, text = POLYMORPHIC_REFUSED[case]
    assert str(error_without_place(TypeError, make)) == text


def test_equal_computations() -> None:
    assert fc(lambda x: x, np.int32) == fc(lambda y: y, np.int32)
    assert hash(fc(lambda x: x, np.int32)) == hash(fc(lambda y: y, np.int32))
    assert fc(lambda x: x, np.int32) != fc(lambda x: x, np.int64)
    assert fc(lambda x: x, np.int32) != 1
    assert repr(add) == "<computation of type (<a=int32,b=int32> -> int32)>"


def test_round_trip() -> None:
    again = tff.deserialize_computation(tff.serialize_computation(add))
    assert again == add
    assert again.node == add.to_building_block()
    assert str(again.type_signature) == str(add.type_signature)
    assert again.__doc__ is None
    assert (add.__module__, again.__module__) == (__name__, Computation.__module__)


def test_a_computation_is_read_from_bytes() -> None:
    with pytest.raises(TypeError) as caught:
        tff.deserialize_computation("round.pb")  # type: ignore[arg-type]  # wrong on purpose
    line = test_a_computation_is_read_from_bytes.__code__.co_firstlineno + 2
    assert str(caught.value) == (
        "a computation is read from bytes, not from an object of class 'str' [E198]\n"
        f"  at {__file__}:{line}"
    )


def test_errors_in_a_message_are_at_the_line_that_reads_it() -> None:
    with pytest.raises(ValueError, match="E203") as caught:
        tff.deserialize_computation(b"x")
    line = test_errors_in_a_message_are_at_the_line_that_reads_it.__code__.co_firstlineno + 2
    # TffcError has a span.
    assert str(caught.value.span) == f"{__file__}:{line}"  # type: ignore[attr-defined]  # TffcError has a span


def test_only_functions_are_computations() -> None:
    from tffc.language import Reference, TensorType

    with pytest.raises(TypeError) as caught:
        Computation.from_node(Reference("x", TensorType(np.int32)))
    assert str(caught.value) == (
        "a computation is a function, but this is of type `int32` [E413]\n"
        "  help: make it a function without parameters, of type `( -> int32)`"
    )


@pytest.mark.slow
def test_nested_ten_thousand_deep() -> None:
    nested = fc(lambda x: x, np.int32)
    for _ in range(10_000):
        nested = wrap(nested)
    assert str(nested.type_signature) == "(int32 -> int32)"


def wrap(inner: Computation) -> Computation:
    return fc(lambda x: inner(x), np.int32)


def test_an_argument_may_be_named_self() -> None:
    by_name = fc(lambda g: g(self=1, b=2.0), Function([("self", np.int32), ("b", np.float32)], int))
    assert "(<self=1,b=2.0>)" in str(by_name.node)
    callee = fc(lambda self, b: b, np.int32, np.int32)
    assert "(<self=f_arg,b=1>)" in traced(lambda x: callee(self=x, b=1), np.int32)
