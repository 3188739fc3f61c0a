"""The reference interpreter: scope, functions, every operator, clients, depth, refusals."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tffc as tff
from tffc.language import (
    CLIENTS,
    SERVER,
    Binding,
    Block,
    Call,
    Data,
    FunctionType,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    Reference,
    Selection,
    SequenceType,
    StructNode,
    StructType,
    TensorType,
    Type,
    at_clients,
    at_server,
    to_array,
    to_type,
)
from tffc.runtime.interpreter import interpreter
from tffc.support.errors import TffcError

INT, FLOAT = np.int32, np.float32
tfc, fc = tff.tf_computation, tff.federated_computation
I = TensorType(INT)  # noqa: E741  # as the notation names it
F = TensorType(FLOAT)


def lit(value: Any) -> Literal:
    array = to_array(value)
    return Literal(array, array.type)


def ref(name: str, type_: Any = I) -> Reference:
    return Reference(name, to_type(type_))


def let(*bindings: tuple[str, Node], result: Node) -> Block:
    return Block(tuple(Binding(name, value) for name, value in bindings), result)


def function(name: str, body: Node, type_: Any = I) -> Lambda:
    return Lambda(name, to_type(type_), body)


def operator(uri: str, parameter: Any, result: Any) -> Lambda:
    """The operator as a program."""
    parameter = to_type(parameter)
    intrinsic = Intrinsic(uri, FunctionType(parameter, to_type(result)))
    return Lambda("x", parameter, Call(intrinsic, Reference("x", parameter)))


def run(program: Node, argument: Any = None) -> Any:
    """The result, with arrays as lists."""
    return plain(interpreter.run(program, argument))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(element) for name, element in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(element) for element in value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


# The calculus.

PROGRAMS: list[tuple[Node, Any]] = [
    (lit(7), 7),
    (lit("é"), "é".encode()),
    (lit(np.array([1, 2], INT)), [1, 2]),
    (PlacementNode(CLIENTS), CLIENTS),
    (StructNode((lit(1), lit(2)), ("a", "b")), collections.OrderedDict(a=1, b=2)),
    (Selection(StructNode((lit(1), lit(2))), 1), 2),
    (
        let(("x", lit(1)), ("x", StructNode((ref("x"), lit(2)))), result=ref("x", [INT, INT])),
        [1, 2],
    ),
    (let(("x", lit(1)), result=let(("x", lit(2)), result=ref("x"))), 2),
    (
        let(("x", lit(1)), result=StructNode((let(("x", lit(2)), result=ref("x")), ref("x")))),
        (2, 1),
    ),
    (
        let(
            ("x", lit(1)),
            ("f", Lambda(None, None, ref("x"))),
            ("x", lit(2)),
            result=Call(ref("f", FunctionType(None, INT))),
        ),
        1,
    ),
    (
        let(
            ("y", lit(1)),
            result=let(
                ("f", Lambda(None, None, ref("y"))),
                ("y", lit(2)),
                result=Call(ref("f", FunctionType(None, INT))),
            ),
        ),
        1,
    ),
    (
        Call(Call(function("x", function("y", StructNode((ref("x"), ref("y"))))), lit(1)), lit(2)),
        (1, 2),
    ),
    (
        Call(
            function("f", Call(ref("f", FunctionType(I, I)), lit(3)), FunctionType(I, I)),
            function("x", ref("x")),
        ),
        3,
    ),
    (Intrinsic("generic_zero", StructType([I, TensorType(FLOAT, [2])])), (0, [0.0, 0.0])),
]


@pytest.mark.parametrize(("program", "value"), PROGRAMS, ids=lambda x: str(x)[:40])
def test_calculus(program: Node, value: Any) -> None:
    assert run(program) == value


def test_a_section_called_once_runs_once() -> None:
    @tfc
    def draw() -> Any:
        from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

        return load_tensorflow().random.uniform([])

    once = let(("r", Call(draw.node)), result=StructNode((ref("r", FLOAT), ref("r", FLOAT))))
    first, second = interpreter.run(once)
    assert first == second
    first, second = interpreter.run(StructNode((Call(draw.node), Call(draw.node))))
    assert first != second


def test_functions_as_arguments() -> None:
    twice = fc(lambda f, x: f(f(x)), tff.FunctionType(INT, INT), INT)
    assert twice(tfc(lambda x: x * 3, INT), 2) == 18
    assert twice(fc(lambda x: x + x, INT), 2) == 8
    with pytest.raises(TypeError, match="is not assignable"):
        twice(tfc(lambda x: x, FLOAT), 2)


def test_containers_of_argument_and_result() -> None:
    swap = fc(lambda a, b: {"b": b, "a": [a]}, INT, FLOAT)
    assert swap(1, 2.0) == {"b": 2.0, "a": [1]}
    assert type(swap(1, 2.0)) is dict
    assert swap(b=2.0, a=1) == swap({"b": 2.0, "a": 1}) == swap((1, 2.0))


# Operators.

PAIR_AT_CLIENTS = at_clients([INT, FLOAT])
ARRAY = TensorType(FLOAT, [2])

add_ints = function(
    "p",
    Call(Intrinsic("generic_plus", FunctionType([I, I], I)), ref("p", [INT, INT])),
    [INT, INT],
)
UNARY = function(
    "x",
    Call(Intrinsic("generic_plus", FunctionType([I, I], I)), StructNode((ref("x"), lit(1)))),
)


def with_function(uri: str, fn: Lambda, value: Any, result: Any, before: bool = True) -> Lambda:
    """A program that passes its argument to an operator, together with a function."""
    value = to_type(value)
    given = StructNode((fn, ref("x", value)) if before else (ref("x", value), fn))
    intrinsic = Intrinsic(uri, FunctionType(given.type, to_type(result)))
    return function("x", Call(intrinsic, given), value)


def aggregate(zero: Node) -> Lambda:
    total = StructType([I, I])
    accumulate = function(
        "p",
        StructNode(
            (
                Call(
                    add_ints,
                    StructNode(
                        (
                            Selection(Selection(ref("p", [total, I]), 0), 0),
                            Selection(ref("p", [total, I]), 1),
                        )
                    ),
                ),
                Call(
                    add_ints, StructNode((Selection(Selection(ref("p", [total, I]), 0), 1), lit(1)))
                ),
            )
        ),
        [total, I],
    )
    merge = function("p", Selection(ref("p", [total, total]), 0), [total, total])
    report = function("t", ref("t", total), total)
    operands = StructNode((ref("x", at_clients(I)), zero, accumulate, merge, report))
    intrinsic = Intrinsic("federated_aggregate", FunctionType(operands.type, at_server(total)))
    return function("x", Call(intrinsic, operands), at_clients(I))


def select(uri: str) -> Lambda:
    keys, source = at_clients((INT, [2])), at_server((FLOAT, [3]))
    pick = tfc(lambda v, k: v[k], (FLOAT, [3]), INT).node
    picked = Lambda(
        "p",
        StructType([TensorType(FLOAT, [3]), I]),
        Call(pick, Reference("p", StructType([TensorType(FLOAT, [3]), I]))),
    )
    parameter = StructType([keys, at_server(I), source])
    given = StructNode((*(Selection(Reference("x", parameter), i) for i in range(3)), picked))
    intrinsic = Intrinsic(uri, FunctionType(given.type, at_clients(SequenceType(FLOAT))))
    return Lambda("x", parameter, Call(intrinsic, given))


def sums(uri: str, member: Any, bound: Any) -> Lambda:
    return operator(uri, [at_clients(member), bound], at_server(member))


def over_clients(uri: str, member: Any) -> Lambda:
    return operator(uri, at_clients(member), at_server(member))


OPERATORS: list[tuple[Node, Any, Any]] = [
    (operator("federated_broadcast", at_server(INT), at_clients(INT, all_equal=True)), 3, 3),
    (operator("federated_value_at_server", INT, at_server(INT)), 3, 3),
    (operator("federated_value_at_clients", INT, at_clients(INT, all_equal=True)), 3, 3),
    (with_function("federated_map", UNARY, at_clients(I), at_clients(I)), [1, 2], [2, 3]),
    (
        with_function("federated_map_all_equal", UNARY, at_clients(I, True), at_clients(I, True)),
        1,
        2,
    ),
    (with_function("federated_apply", UNARY, at_server(I), at_server(I)), 1, 2),
    (
        operator("federated_zip_at_clients", [at_clients(INT), at_clients(FLOAT)], PAIR_AT_CLIENTS),
        ([1, 2], [3.0, 4.0]),
        [(1, 3.0), (2, 4.0)],
    ),
    (
        operator(
            "federated_zip_at_clients",
            [at_clients(INT, True), [at_clients(FLOAT)]],
            at_clients([INT, [FLOAT]]),
        ),
        (1, ([3.0, 4.0],)),
        [(1, [3.0]), (1, [4.0])],
    ),
    (
        operator(
            "federated_zip_at_server", [at_server(INT), at_server(FLOAT)], at_server([INT, FLOAT])
        ),
        (1, 2.0),
        [1, 2.0],
    ),
    (over_clients("federated_sum", INT), [1, 2, 2**31 - 1], -(2**31) + 2),
    (over_clients("federated_sum", INT), [], 0),
    (over_clients("federated_sum", (FLOAT, [2])), [[1.0, 2.0], [3.0, 4.0]], [4.0, 6.0]),
    (over_clients("federated_sum", ()), [(), ()], ()),
    (over_clients("federated_sum", (FLOAT, [None])), [[1.0, 2.0], [3.0, 4.0]], [4.0, 6.0]),
    (over_clients("federated_mean", FLOAT), [1.0, 2.0], 1.5),
    (over_clients("federated_mean", FLOAT), [], "nan"),
    (over_clients("federated_mean", np.complex64), [1j, 3j], 2j),
    (over_clients("federated_mean", (FLOAT, [None])), [[1.0, 2.0], [3.0, 4.0]], [2.0, 3.0]),
    (over_clients("federated_min", INT), [2, 1, 3], 1),
    (over_clients("federated_min", INT), [], 2**31 - 1),
    (over_clients("federated_max", np.int64), [], -(2**63)),
    (over_clients("federated_max", FLOAT), [1.0, float("nan")], "nan"),
    (
        over_clients("federated_max", [INT, (FLOAT, [2])]),
        [(1, [1.0, 2.0]), (0, [2.0, 1.0])],
        [1, [2.0, 2.0]],
    ),
    (
        operator("federated_weighted_mean", [at_clients(FLOAT), at_clients(INT)], at_server(FLOAT)),
        ([1.0, 2.0], [1, 3]),
        1.75,
    ),
    (
        operator(
            "federated_weighted_mean",
            [at_clients([FLOAT, (np.float64, [1])]), at_clients(FLOAT)],
            at_server([FLOAT, (np.float64, [1])]),
        ),
        ([(1.0, [1.0]), (2.0, [3.0])], [1.0, 1.0]),
        [1.5, [2.0]],
    ),
    (
        operator(
            "federated_weighted_mean", [at_clients(FLOAT), at_clients(FLOAT)], at_server(FLOAT)
        ),
        ([1.0], [0.0]),
        "nan",
    ),
    (aggregate(StructNode((lit(10), lit(0)))), [1, 2], (13, 2)),
    (aggregate(StructNode((lit(10), lit(0)))), [], (10, 0)),
    (sums("federated_secure_sum", INT, INT), ([1, 8], 8), 9),
    (sums("federated_secure_sum", INT, INT), ([0, 8], 8), 8),
    (sums("federated_secure_sum", [INT, (np.int64, [2])], INT), ([(1, [2, 3])], 8), [1, [2, 3]]),
    (sums("federated_secure_sum", [INT, INT], [INT, INT]), ([(1, 20)], (8, 20)), [1, 20]),
    (sums("federated_secure_sum_bitwidth", INT, INT), ([1, 7], 3), 8),
    (sums("federated_secure_sum_bitwidth", INT, INT), ([1, 8], 40), 9),
    (sums("federated_secure_sum_bitwidth", INT, INT), ([], 3), 0),
    (sums("federated_secure_modular_sum", INT, INT), ([4, 3, -9], 5), 3),
    (sums("federated_secure_modular_sum", INT, INT), ([2**31 - 2] * 5, 2**31 - 1), 2**31 - 6),
    (sums("federated_secure_modular_sum", [INT, INT], INT), ([(4, 9), (3, 2)], 5), [2, 1]),
    (select("federated_select"), ([[0, 2], [1, 1]], 3, [5.0, 6.0, 7.0]), [[5.0, 7.0], [6.0, 6.0]]),
    (select("federated_secure_select"), ([[0, 2]], 2, [5.0, 6.0, 7.0]), [[5.0, 7.0]]),
    (with_function("sequence_map", UNARY, SequenceType(I), SequenceType(I)), [1, 2], [2, 3]),
    (operator("sequence_sum", SequenceType(INT), INT), [1, 2], 3),
    (operator("sequence_sum", SequenceType([INT, FLOAT]), [INT, FLOAT]), [], [0, 0.0]),
    (operator("generic_plus", [np.int8, np.int8], np.int8), (127, 1), -128),
    (operator("generic_plus", [at_server(INT), at_server(INT)], at_server(INT)), (1, 2), 3),
    (
        operator("generic_plus", [at_clients(INT), at_clients(INT)], at_clients(INT)),
        ([1, 2], [3, 4]),
        [4, 6],
    ),
    (
        operator("generic_multiply", [[INT, FLOAT], [INT, FLOAT]], [INT, FLOAT]),
        ((2, 3.0), (4, 5.0)),
        [8, 15.0],
    ),
    (operator("generic_divide", [FLOAT, FLOAT], FLOAT), (1.0, 4.0), 0.25),
    (operator("generic_divide", [INT, INT], np.float64), (1, 4), 0.25),
    (operator("generic_divide", [FLOAT, FLOAT], FLOAT), (1.0, 0.0), float("inf")),
]


@pytest.mark.parametrize(("program", "argument", "value"), OPERATORS, ids=lambda x: str(x)[:60])
def test_operator(program: Node, argument: Any, value: Any) -> None:
    found = interpreter.run(program, argument)
    if value == "nan":
        assert np.isnan(found)
    else:
        assert as_lists(plain(found)) == as_lists(value)


def as_lists(value: Any) -> Any:
    return [as_lists(element) for element in value] if isinstance(value, (list, tuple)) else value


def test_element_types_are_kept() -> None:
    for dtype in (np.int8, np.uint16, np.int64, np.float16, np.float64, np.complex64):
        total = interpreter.run(over_clients("federated_sum", dtype), [dtype(1), dtype(2)])
        assert type(total) is dtype
    dtype = ml_dtypes.bfloat16
    total = interpreter.run(over_clients("federated_sum", dtype), [dtype(1), dtype(2)])
    assert type(total) is dtype
    assert (
        interpreter.run(over_clients("federated_mean", np.float16), [np.float16(1)]).dtype
        == "float16"
    )


def test_sequence_reduce() -> None:
    @fc(SequenceType(INT))
    def total(data: Any) -> Any:
        return tff.sequence_reduce(data, 10, tfc(lambda a, b: a + b, INT, INT))

    assert total([1, 2]) == 13
    assert total([]) == 10


def test_evaluation_at_each_client() -> None:
    one = tfc(lambda: 1)

    @fc(at_clients(INT))
    def evaluate(x: Any) -> Any:
        return tff.federated_eval(one, CLIENTS), tff.federated_eval(one, SERVER)

    assert evaluate([5, 6, 7]) == ([1, 1, 1], 1)


# Clients.


def test_without_clients() -> None:
    @fc
    def nobody() -> Any:
        value = tff.federated_value(1, CLIENTS)
        return value, tff.federated_sum(value), tff.federated_eval(tfc(lambda: 1), CLIENTS)

    assert nobody() == (1, 0, [])


def test_what_is_equal_everywhere_counts_for_each_client() -> None:
    @fc(at_clients(INT), at_server(INT))
    def spread(x: Any, y: Any) -> Any:
        everywhere = tff.federated_broadcast(y)
        return tff.federated_sum(everywhere), tff.federated_map(tfc(lambda x: x, INT), everywhere)

    assert spread([1, 2, 3], 5) == (15, [5, 5, 5])


def test_a_value_equal_everywhere_where_any_would_do() -> None:
    identity = function("y", ref("y", at_clients(I)), at_clients(I))
    parameter = StructType([at_clients(I), at_clients(I, all_equal=True)])
    program = Lambda("x", parameter, Call(identity, Selection(Reference("x", parameter), 1)))
    assert run(program, ([1, 2], 7)) == [7, 7]


# Depth.

DEPTH = 10_000


@pytest.mark.slow
def test_depth_of_blocks_calls_structs_and_lambdas() -> None:
    node: Node = lit(1)
    for index in range(DEPTH):
        node = Block((Binding(f"x{index}", node),), ref(f"x{index}"))
    for _ in range(DEPTH):
        node = Call(function("x", ref("x")), node)
    for _ in range(DEPTH):
        node = StructNode((node,))
    for _ in range(DEPTH):
        node = Selection(node, 0)
    assert run(node) == 1


def test_depth_of_scopes() -> None:
    node: Node = StructNode((ref("x0"), ref(f"x{DEPTH - 1}")))
    for index in reversed(range(DEPTH)):
        node = function(f"x{index}", node)
    for index in range(DEPTH):
        node = Call(node, lit(index))
    assert run(node) == (0, DEPTH - 1)


def test_width() -> None:
    locals_ = tuple(Binding(f"x{i}", ref("x") if i else lit(1)) for i in range(DEPTH))
    program = function("x", Block(locals_, StructNode(tuple(ref(local.name) for local in locals_))))
    assert run(program, 1) == (1,) * DEPTH


@pytest.mark.slow
def test_depth_of_values() -> None:
    kind: Type = I
    value: Any = 1
    for _ in range(DEPTH):
        kind, value = StructType([kind]), (value,)
    total: Any = interpreter.run(over_clients("federated_sum", kind), [value, value])
    for _ in range(DEPTH):
        (total,) = total
    assert total == 2


# Refusals.


def refusal(attempt: Callable[[], Any]) -> str:
    with pytest.raises(TffcError) as caught:
        attempt()
    caught.value.span = None
    return str(caught.value)


REFUSED: list[tuple[Node, Any, str]] = [
    (
        sums("federated_secure_modular_sum", INT, INT),
        ([1], 0),
        "an integer cannot be divided by 0 [E722]\n  help: give divisors that are not 0",
    ),
    (
        over_clients("federated_sum", np.str_),
        [],
        "there is no arithmetic on values of type `str` [E731]"
        "\n  help: convert them to numbers first, in a TensorFlow computation",
    ),
    (
        over_clients("federated_sum", (FLOAT, [None])),
        [],
        "there is no value of type `float32[?]` to start from, because the shape of `float32[?]` "
        "is not known [E731]\n  help: give the tensors a fixed shape",
    ),
    (
        over_clients("federated_mean", INT),
        [1],
        "a mean of integers is not an integer, so there is none of type `int32` [E731]\n"
        "  help: convert the values to floating-point numbers first",
    ),
    (
        sums("federated_secure_sum_bitwidth", INT, INT),
        ([1], 63),
        "a secure sum takes numbers of up to 62 bits, not 63 [E734]",
    ),
    (
        sums("federated_secure_sum", INT, INT),
        ([1, 9], 8),
        "client 1 adds 9 to a secure sum whose values are at most 8 [E735]\n"
        "  help: raise the bound of the sum, or clip the values before it",
    ),
    (
        sums("federated_secure_sum", INT, INT),
        ([1, -9], 8),
        "client 1 adds -9 to a secure sum whose values are at least 0 [E735]\n"
        "  help: raise the bound of the sum, or clip the values before it",
    ),
    (
        sums("federated_secure_sum", INT, INT),
        ([1], -8),
        "the bound of a secure sum is -8, which is negative [E734]\n"
        "  help: give a bound of 0 or more: clients add values from 0 up to it",
    ),
    (
        sums("federated_secure_sum_bitwidth", INT, INT),
        ([1], -1),
        "the bound of a secure sum is -1, which is negative [E734]\n"
        "  help: give a bound of 0 or more: clients add values from 0 up to it",
    ),
    (
        sums("federated_secure_sum_bitwidth", INT, INT),
        ([8], 3),
        "client 0 adds 8 to a secure sum whose values are at most 7 [E735]\n"
        "  help: raise the bound of the sum, or clip the values before it",
    ),
    (
        function("x", ref("x", [at_clients(I), at_clients(F)]), [at_clients(I), at_clients(F)]),
        ([1], [1.0, 2.0]),
        "the argument gives values of type `{int32}@CLIENTS` for 1 clients, but values of type "
        "`{float32}@CLIENTS` for 2 [E723]\n"
        "  help: give each list as many values as there are clients",
    ),
    (
        ref("x"),
        None,
        "the program uses 'x', which nothing binds [E741]\n"
        "  help: a computation that uses values of another one cannot be run by itself",
    ),
    (
        let(
            ("f", Lambda(None, None, ref("y"))),
            ("y", lit(1)),
            result=Call(ref("f", FunctionType(None, I))),
        ),
        None,
        "the program uses 'y', which nothing binds [E741]\n"
        "  help: a computation that uses values of another one cannot be run by itself",
    ),
    (
        Data("type", b"", I),
        None,
        "the program uses data of type `int32` that only the system it was written for can find "
        "[E741]"
        "\n  help: take the value as an argument of the program in place of the data",
    ),
    (
        Call(Intrinsic("no_such", FunctionType(None, I))),
        None,
        "the program uses the operator 'no_such', which is not known here [E741]"
        "\n  help: write it with operators of the language, or replace it in a pass",
    ),
]


@pytest.mark.parametrize(("program", "argument", "text"), REFUSED, ids=lambda x: str(x)[:40])
def test_refusal(program: Node, argument: Any, text: str) -> None:
    assert refusal(lambda: interpreter.run(program, argument)) == text


def test_a_failure_is_placed_in_the_program() -> None:
    divide = tfc(lambda x: 1 // x, INT)

    @fc(at_clients(INT))
    def program(x: Any) -> Any:
        return tff.federated_map(divide, x)

    with pytest.raises(TffcError) as caught:
        program([1, 0])
    span = caught.value.span
    assert span is not None
    assert span.file == __file__
    assert span.line == test_a_failure_is_placed_in_the_program.__code__.co_firstlineno + 5


def test_every_operator_of_the_language_is_known() -> None:
    from tffc.language.intrinsics import INTRINSICS
    from tffc.runtime.interpreter.operators import CALLING_OPERATORS, OPERATORS

    assert {*OPERATORS, *CALLING_OPERATORS, "generic_zero"} == set(INTRINSICS)
