"""Programs up to the names they bind."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.language.generation import nodes
from tffc.language import (
    Block,
    DType,
    FunctionType,
    Lambda,
    Node,
    Reference,
    StructNode,
    TensorType,
)
from tffc.language.alpha import Names, canonical, rename_binders
from tffc.language.invariants import UNIQUE_NAMES
from tffc.language.notation import parse
from tffc.language.scope import free_names, free_references
from tffc.language.size import size_limit
from tffc.language.traverse import count
from tffc.language.verify import first_violation
from tffc.support.errors import VerificationError

INT = TensorType(DType.INT32)

EQUAL = {
    "parameters": ("(x: int32 -> x)", "(y: int32 -> y)"),
    "locals": ("(let a: int32=1,b: int32=2 in <a,b>)", "(let b: int32=1,a: int32=2 in <b,a>)"),
    "shadowing": ("(x: int32 -> (x: bool -> x))", "(x: int32 -> (y: bool -> y))"),
    "no parameter": ("( -> 1)", "( -> 1)"),
}

DIFFERENT = {
    "another binder": ("(x: int32 -> (y: int32 -> x))", "(x: int32 -> (y: int32 -> y))"),
    "free names": ("&x: int32", "&y: int32"),
    "a free and a bound name": ("(x: int32 -> x)", "(x: int32 -> &y: int32)"),
    "types": ("(x: int32 -> x)", "(x: int64 -> x)"),
    "names of elements": ("(x: <a=int32> -> x)", "(x: <b=int32> -> x)"),
}


@pytest.mark.parametrize(("first", "second"), EQUAL.values(), ids=EQUAL.keys())
def test_equal(first: str, second: str) -> None:
    assert canonical(parse(first)) == canonical(parse(second))


@pytest.mark.parametrize(("first", "second"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_different(first: str, second: str) -> None:
    assert canonical(parse(first)) != canonical(parse(second))


@given(nodes())
def test_renaming_keeps_what_is_free_and_makes_names_unique(node: Node) -> None:
    renamed = rename_binders(node, Names(set(free_names(node))).fresh)
    assert free_references(renamed) == free_references(node)
    assert renamed.type == node.type
    assert first_violation(renamed, (UNIQUE_NAMES,)) is None or first_violation(node, ())
    assert canonical(renamed) == canonical(node)


def test_shared_structs_stay_shared() -> None:
    node: Node = Reference("x", INT)
    for _ in range(200):
        node = StructNode((node, node))
    assert count(rename_binders(Lambda("x", INT, node), lambda name: name + "_")) == 202


def test_a_function_in_two_places_gets_two_names() -> None:
    function = Lambda("x", INT, Reference("x", INT))
    renamed = rename_binders(StructNode((function, function)), Names(set()).fresh)
    assert str(renamed) == "<(x -> x),(x_1 -> x_1)>"


@pytest.mark.slow
def test_depth_is_no_limit() -> None:
    node: Node = Reference("x", INT)
    for _ in range(10_000):
        node = Lambda("x", INT, node)
    assert canonical(node) == canonical(node)
    assert isinstance(canonical(node), Lambda)


def test_too_many_binders_are_refused() -> None:
    node: Node = Lambda("x", INT, Reference("x", INT))
    for _ in range(10):
        node = StructNode((node, node))
    with size_limit(1000), pytest.raises(VerificationError) as caught:
        canonical(node)
    assert str(caught.value) == (
        "the program binds 1024 names when it is written out, more than the 1000 that can be told "
        "apart [E201]\n"
        "  help: bind shared functions in a block"
    )


def test_contexts_stay() -> None:
    node = Lambda("x", INT, Reference("x", INT, "somewhere"))
    assert str(rename_binders(node, lambda name: "y")) == "(y -> y@somewhere)"


def test_names_are_numbered_past_those_taken() -> None:
    block = parse("(let x: int32=1,x_1: int32=2 in <x,&x_2: int32>)")
    assert isinstance(block, Block)
    names = Names.outside(block)
    assert [names.fresh(stem) for stem in ("x", "y", "x", "y")] == ["x_3", "y", "x_4", "y_1"]


def test_functions_of_functions() -> None:
    unary = FunctionType(INT, INT)
    node = Lambda("f", unary, Lambda("f", INT, Reference("f", INT)))
    assert str(rename_binders(node, Names(set()).fresh)) == "(f -> (f_1 -> f_1))"
