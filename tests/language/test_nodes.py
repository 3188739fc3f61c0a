"""Nodes: their types, equality, and what their constructors refuse."""

from __future__ import annotations

import copy
import pickle
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given

from tests.language import generation
from tffc.language import (
    SERVER,
    Binding,
    Block,
    Call,
    Compiled,
    Data,
    DType,
    FunctionType,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    PlacementType,
    Reference,
    Selection,
    StructNode,
    StructType,
    StructWithPythonType,
    TensorType,
    to_array,
)
from tffc.language.size import tree_size
from tffc.language.traverse import count, postorder, rewrite, walk
from tffc.support.errors import Span

INT, FLOAT = TensorType(DType.INT32), TensorType(DType.FLOAT32)
X, Y = Reference("x", INT), Reference("y", INT)
F = Reference("f", FunctionType(INT, FLOAT))
G = Reference("g", FunctionType(None, INT))
S = Reference("s", StructType([("a", INT), FLOAT]))


@pytest.mark.parametrize(
    ("node", "type_"),
    [
        (X, INT),
        (Selection(S, 1), FLOAT),
        (Selection.by_name(S, "a"), INT),
        (StructNode((X, Y), ("a", None)), StructType([("a", INT), INT])),
        (StructNode((X,), container=list), StructWithPythonType([INT], list)),
        (Call(F, X), FLOAT),
        (Call(G), INT),
        (Lambda("x", FLOAT, Y), FunctionType(FLOAT, INT)),
        (Lambda(None, None, Y), FunctionType(None, INT)),
        (Lambda("", None, Y), FunctionType(None, INT)),
        (Block((Binding("a", F),), X), INT),
        (Block((), X), INT),
        (Data("u", b"", INT), INT),
        (Compiled("xla", b"", F.type), F.type),
        (PlacementNode(SERVER), PlacementType()),
        (Literal(to_array(1), INT), INT),
        (
            Literal(to_array(np.array([1, 2])), TensorType(np.int64, None)),
            TensorType(np.int64, None),
        ),
    ],
)
def test_type(node: Node, type_: Any) -> None:
    assert node.type == type_


def test_call_accepts_what_is_assignable() -> None:
    wide = Reference("f", FunctionType(TensorType(np.int32, None), INT))
    assert Call(wide, Reference("x", TensorType(np.int32, (3,)))).type == INT


def test_equality_is_by_content() -> None:
    assert Call(F, X) == Call(Reference("f", FunctionType(INT, FLOAT)), Reference("x", INT))
    assert hash(StructNode((X,))) == hash(StructNode((Reference("x", INT),)))
    assert Reference("x", INT) != Reference("x", FLOAT)
    assert Reference("x", INT) != Reference("x", INT, "here")
    assert Selection(S, 0) != Selection.by_name(S, "a")
    assert StructNode((X,)) != StructNode((X,), ("a",))
    assert StructNode((X,)) != StructNode((X,), container=tuple)
    assert Lambda("x", INT, X) != Lambda("y", INT, X)
    assert X != "x"


def test_place_in_the_source_is_no_content() -> None:
    one = Block((Binding("a", X, Span("f.py", 1)),), X)
    assert one == Block((Binding("a", X, Span("g.py", 2)),), X)


# Walks.


def test_walks_visit_shared_nodes_once() -> None:
    pair = StructNode((X, X))
    node = StructNode((pair, pair))
    assert list(walk(node)) == [node, pair, X]
    assert list(postorder(node)) == [X, pair, node]
    assert (count(node), tree_size(node)) == (3, 7)


def test_rewrite_replaces_bottom_up_and_keeps_the_rest() -> None:
    kept = StructNode((Y,))
    block = Block((Binding("a", Call(F, X), Span("f.py", 3)),), StructNode((kept, X)))
    node = cast("Node", block)
    made = rewrite(node, lambda inner: Y if inner == X else None)
    assert str(made) == "(let a=f(y) in <<y>,y>)"
    assert made.children()[-1].children()[0] is kept
    assert isinstance(made, Block)
    assert made.locals[0].span == Span("f.py", 3)
    assert rewrite(node, lambda _: None) is node


def test_selection_keeps_its_name_while_the_struct_has_it() -> None:
    selection = Selection.by_name(S, "a")
    renamed = Reference("t", StructType([("b", INT), FLOAT]))
    assert str(selection.with_children((Reference("t", S.type),))) == "t.a"
    assert str(selection.with_children((renamed,))) == "t[0]"


@given(generation.nodes())
def test_nodes_are_rebuilt_from_their_children(node: Node) -> None:
    assert rewrite(node, lambda _: None) is node
    shifted = rewrite(node, lambda inner: Lambda(None, None, inner) if inner is node else None)
    assert shifted == Lambda(None, None, node)


@given(generation.written_nodes())
def test_nodes_are_pickled_and_copied(node: Node) -> None:
    returned = pickle.loads(pickle.dumps(node))
    assert returned == node
    assert hash(returned) == hash(node)
    assert returned.type == node.type
    assert copy.copy(node) is copy.deepcopy(node) is node


def test_pickled_nodes_keep_places_containers_and_sharing() -> None:
    pair = StructNode((X, X), container=list)
    node = Block((Binding("a", pair, Span("f.py", 1)),), StructNode((pair, pair)))
    returned = pickle.loads(pickle.dumps(node))
    assert returned == node
    assert returned.locals[0].span == Span("f.py", 1)
    assert count(returned) == count(node)


def test_the_place_of_a_pickled_function_is_a_span() -> None:
    node = Lambda("x", X.type, X, span=Span("f.py", 1))
    assert str(pickle.loads(pickle.dumps(node)).span) == "f.py:1"


DEEP = 10_000


@pytest.mark.slow
def test_deep_nodes() -> None:
    def make() -> Node:
        node: Node = X
        for _ in range(DEEP):
            node = Lambda("x", INT, node)
        return node

    node = make()
    assert node == make()
    assert hash(node) == hash(make())
    assert count(node) == tree_size(node) == DEEP + 1
    opened = f"Lambda('x', {INT!r}, "
    assert repr(node) == opened * DEEP + repr(X) + ")" * DEEP
    assert rewrite(node, lambda inner: Y if inner == X else None) != node
    assert pickle.loads(pickle.dumps(node)) == node
