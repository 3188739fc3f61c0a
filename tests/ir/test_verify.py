"""The verifier: each message once, and that sound programs pass."""

from __future__ import annotations

import pytest

from tffc.errors import VerificationError
from tffc.ir import (
    Binding,
    Block,
    Call,
    DType,
    Lambda,
    Node,
    Reference,
    Selection,
    Struct,
    TensorType,
)
from tffc.ir.verify import CALL_DOMINANT, CLOSED, UNIQUE_NAMES, verify

INT, FLOAT = TensorType(DType.INT32), TensorType(DType.FLOAT32)
X = Reference("x", INT)
IDENTITY = Lambda("x", INT, X)


def lambda_of(result: Node) -> Lambda:
    return Lambda("x", INT, result)


REFUSED = {
    "a parameter at another type": (
        lambda_of(Reference("x", FLOAT)),
        CLOSED,
        "`x` is bound to a value of type `int32` but used as `float32` [E140]",
    ),
    "a local at another type": (
        lambda_of(Block((Binding("y", X),), Reference("y", FLOAT))),
        CLOSED,
        "`y` is bound to a value of type `int32` but used as `float32` [E140]",
    ),
    "a name that nothing binds": (
        lambda_of(Struct((X, Reference("z", INT)))),
        CLOSED,
        "the name `z` of type `int32` is used but not bound [E141]\n"
        "  help: a computation has to receive every value it uses as its argument",
    ),
    "a local that uses itself": (
        Block((Binding("y", Reference("y", INT)),), Reference("y", INT)),
        CLOSED,
        "the name `y` of type `int32` is used but not bound [E141]\n"
        "  help: a computation has to receive every value it uses as its argument",
    ),
    "a name bound twice": (
        lambda_of(IDENTITY),
        UNIQUE_NAMES,
        "the name `x` is bound twice [E142]",
    ),
    "a local that is no call": (
        lambda_of(Block((Binding("y", X),), Reference("y", INT))),
        CALL_DOMINANT,
        "`y` is bound to a Reference [E143]",
    ),
    "a called lambda": (
        Lambda("y", INT, Call(IDENTITY, Reference("y", INT))),
        CALL_DOMINANT,
        "a lambda is called where it stands [E144]",
    ),
    "a selection from a struct literal": (
        lambda_of(Selection(Struct((X, X)), 1)),
        CALL_DOMINANT,
        "`<x,x>[1]` selects from a struct that stands there [E145]",
    ),
}


@pytest.mark.parametrize(
    ("root", "invariant", "message"), REFUSED.values(), ids=list(REFUSED.keys())
)
def test_refused(root: Node, invariant: str, message: str) -> None:
    with pytest.raises(VerificationError) as caught:
        verify(root, (invariant,))
    assert str(caught.value) == message


def test_shadowing_is_sound() -> None:
    inner = Lambda("x", FLOAT, Reference("x", FLOAT))
    body = Block(
        (Binding("y", X), Binding("y", Struct((Reference("y", INT),)))), Struct((inner, X))
    )
    verify(lambda_of(body), (CLOSED,))


def test_shared_subtrees_are_visited_once() -> None:
    node: Node = X
    for _ in range(200):
        node = Struct((node, node))
    verify(lambda_of(Selection(node, 0)), (CLOSED,))
