"""The normaliser: printed text in, printed text out, and how it bears depth."""

from __future__ import annotations

import pytest

from tests.refusals import refusal
from tffc.language import (
    Binding,
    Block,
    Call,
    DType,
    FunctionType,
    Lambda,
    Literal,
    Node,
    Reference,
    Selection,
    StructNode,
    StructType,
    TensorType,
    Type,
    to_array,
)
from tffc.language.invariants import CALL_DOMINANT, CLOSED, UNIQUE_NAMES
from tffc.language.notation import compact
from tffc.language.verify import verify
from tffc.passes import call_dominant
from tffc.support.errors import VerificationError

INT = TensorType(DType.INT32)
UNARY = FunctionType(INT, INT)
ARGUMENT = Reference("p", StructType([("f", UNARY), ("x", INT)]))
NAMED = StructType([("a", INT), ("b", INT)])
TWICE = FunctionType(INT, StructType([INT, INT]))
F, X = Selection(ARGUMENT, 0), Selection(ARGUMENT, 1)


def ref(name: str, type_: Type = INT) -> Reference:
    return Reference(name, type_)


def lit(value: int) -> Literal:
    return Literal(to_array(value), INT)


def let(*bindings: tuple[str, Node], result: Node) -> Block:
    return Block(tuple(Binding(name, value) for name, value in bindings), result)


def program(body: Node) -> Lambda:
    return Lambda("p", ARGUMENT.type, body)


CASES = {
    "a chain of names is followed": (
        let(("y", X), ("z", ref("y")), result=ref("z")),
        "(p -> p[1])",
    ),
    "nested calls are bound inside out": (
        Call(F, Call(F, X)),
        "(p -> (let v_1=p[0](p[1]),v_2=p[0](v_1) in v_2))",
    ),
    "an argument that is a call runs once": (
        Call(Lambda("a", INT, StructNode((ref("a"), ref("a")))), Call(F, X)),
        "(p -> (let v_1=p[0](p[1]) in <v_1,v_1>))",
    ),
    "a function passed on runs at each call": (
        Call(
            Lambda(
                "h", UNARY, StructNode((Call(ref("h", UNARY), X), Call(ref("h", UNARY), lit(5))))
            ),
            Lambda("q", INT, Call(F, ref("q"))),
        ),
        "(p -> (let v_1=p[0](p[1]),v_2=p[0](5) in <v_1,v_2>))",
    ),
    "a thunk called twice runs twice": (
        let(
            ("thunk", Lambda(None, None, Call(F, lit(1)))),
            result=StructNode((Call(ref("thunk", FunctionType(None, INT))),) * 2),
        ),
        "(p -> (let v_1=p[0](1),v_2=p[0](1) in <v_1,v_2>))",
    ),
    "equal calls are not merged": (
        StructNode((Call(F, X), Call(F, X))),
        "(p -> (let v_1=p[0](p[1]),v_2=p[0](p[1]) in <v_1,v_2>))",
    ),
    "a call outside a lambda stays outside": (
        let(("d", Call(F, lit(2))), result=Lambda("x", INT, ref("d"))),
        "(p -> (let d=p[0](2) in (x -> d)))",
    ),
    "an unused call vanishes": (
        Call(Lambda("u", INT, lit(7)), Call(F, X)),
        "(p -> 7)",
    ),
    "a selection from a struct is its element": (
        Selection(StructNode((Call(F, X), lit(3))), 1),
        "(p -> 3)",
    ),
    "the user's names are kept, and told apart": (
        StructNode(
            (let(("s", Call(F, X)), result=ref("s")), let(("s", Call(F, X)), result=ref("s")))
        ),
        "(p -> (let s=p[0](p[1]),s_1=p[0](p[1]) in <s,s_1>))",
    ),
    "an inner parameter does not capture": (
        Call(
            Call(Lambda("y", INT, Lambda("p", INT, StructNode((ref("p"), ref("y"))))), X),
            lit(9),
        ),
        "(p -> <9,p[1]>)",
    ),
    "a closure keeps the binding it saw": (
        let(
            ("x", X),
            ("f", Lambda("y", INT, ref("x"))),
            ("x", lit(1)),
            result=StructNode((Call(ref("f", UNARY), lit(2)), ref("x"))),
        ),
        "(p -> <p[1],1>)",
    ),
    "a local may use an older one of its name": (
        let(("x", lit(1)), ("x", StructNode((ref("x"),))), result=ref("x", StructType([INT]))),
        "(p -> <1>)",
    ),
    "inlining keeps the names that the parameter's type gives": (
        Call(
            Lambda("n", StructType([("a", INT)]), ref("n", StructType([("a", INT)]))),
            StructNode((X,)),
        ),
        "(p -> <a=p[1]>)",
    ),
    "each element keeps its place when it gets a name": (
        Call(
            Lambda("n", NAMED, ref("n", NAMED)),
            StructNode((lit(4), X)),
        ),
        "(p -> <a=4,b=p[1]>)",
    ),
    "a function that makes no calls gives each argument its own": (
        let(
            ("f", Lambda("y", INT, StructNode((ref("y"), ref("y"))))),
            result=StructNode((Call(ref("f", TWICE), X), Call(ref("f", TWICE), lit(3)))),
        ),
        "(p -> <<p[1],p[1]>,<3,3>>)",
    ),
    "selections are followed from the outside in": (
        Selection(
            Selection(StructNode((lit(1), StructNode((lit(2), lit(3), X)))), 1),
            2,
        ),
        "(p -> p[1])",
    ),
}


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES.keys())
def test_normal_form(body: Node, expected: str) -> None:
    found = call_dominant(program(body))
    assert compact(found) == expected
    assert found.type == program(body).type
    verify(found, (CLOSED, UNIQUE_NAMES, CALL_DOMINANT))


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES.keys())
def test_idempotent(body: Node, expected: str) -> None:
    once = call_dominant(program(body))
    assert call_dominant(once) == once


def test_block_around_lambda_moves_inside() -> None:
    maker = FunctionType(None, INT)
    root = let(
        ("k", Call(Lambda("m", maker, Call(ref("m", maker))), Lambda(None, None, lit(1)))),
        result=Lambda("x", INT, StructNode((ref("x"), ref("k")))),
    )
    assert compact(call_dominant(root)) == "(x -> <x,1>)"


def test_unbound_name_is_refused() -> None:
    assert refusal(VerificationError, call_dominant, Lambda("x", INT, ref("y"))) == (
        "the name `y` of type `int32` is used but not bound [E141]\n"
        "  help: a computation has to receive every value it uses as its argument"
    )


DEPTH = 10_000


def nested_calls() -> Node:
    node: Node = X
    for _ in range(DEPTH):
        node = Call(F, node)
    return node


def nested_blocks() -> Node:
    node: Node = X
    for _ in range(DEPTH):
        node = let(("a", node), result=Call(F, ref("a")))
    return node


def nested_structs() -> Node:
    node: Node = X
    for _ in range(DEPTH):
        node = StructNode((node,))
    return node


def nested_lambdas() -> Node:
    node: Node = StructNode((X,))
    for index in range(DEPTH):
        node = Lambda(f"a{index}", INT, node)
    return node


@pytest.mark.slow
@pytest.mark.parametrize("make", [nested_calls, nested_blocks, nested_structs, nested_lambdas])
def test_depth_is_no_limit(make) -> None:
    body = make()
    found = call_dominant(program(body))
    assert found.type == program(body).type


def test_doubling_a_struct_stays_linear() -> None:
    bindings: list[tuple[str, Node]] = [("a0", X)]
    for level in range(1, 200):
        before = ref(f"a{level - 1}", bindings[-1][1].type)
        bindings.append((f"a{level}", StructNode((before, before))))
    last = ref("a199", bindings[-1][1].type)
    for _ in range(199):
        last = Selection(last, 0)
    assert compact(call_dominant(program(let(*bindings, result=last)))) == "(p -> p[1])"
