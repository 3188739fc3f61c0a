"""The verifier: each message once, and that sound programs pass."""

from __future__ import annotations

from tests.refusals import refusal
from tffc.language import (
    SERVER,
    Binding,
    Block,
    DType,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
    StructType,
    TensorType,
    Type,
    at_server,
)
from tffc.language.calls import zip_placed
from tffc.language.invariants import CLOSED, UNIQUE_NAMES
from tffc.language.verify import first_violation, verify
from tffc.support.errors import LONGEST_LINE, Span, VerificationError

INT, FLOAT = TensorType(DType.INT32), TensorType(DType.FLOAT32)
X = Reference("x", INT)
IDENTITY = Lambda("x", INT, X)


def lambda_of(result: Node) -> Lambda:
    return Lambda("x", INT, result)


def ref(name: str, type_: object) -> Reference:
    return Reference(name, type_ if isinstance(type_, Type) else StructType(type_))


S = ref("s", at_server(FLOAT))


def test_a_lambda_that_stands_twice_is_shown_where_it_stands_first() -> None:
    root = Block((Binding("y", IDENTITY), Binding("z", IDENTITY)), X)
    assert refusal(VerificationError, verify, root, (UNIQUE_NAMES,)) == (
        "the name `x` is bound twice [E142]\n"
        "  note: in the binding `y`:\n"
        "    y=(x -> x)\n"
        "      ^^^^^^^^"
    )


def test_the_line_of_the_binding_is_named() -> None:
    span = Span("round.py", 12)
    outer = Block((Binding("z", Reference("y", INT)),), X)
    root = lambda_of(Block((Binding("o", outer, span),), X))
    violation = first_violation(root)
    assert violation is not None
    assert violation.place.span == span


def test_long_bindings_are_cut_around_the_term() -> None:
    root = lambda_of(StructNode((*(X,) * 100, Reference("y", INT), *(X,) * 100)))
    violation = first_violation(root)
    assert violation is not None
    note = violation.place.note()
    assert note is not None
    _, shown, carets = note.split("\n")
    assert shown.startswith("    ...,x,x,")
    assert shown.endswith(",x,x...")
    assert len(shown) == len("    ......") + LONGEST_LINE
    assert shown[carets.index("^")] == "y"


def test_shadowing_is_sound() -> None:
    inner = Lambda("x", FLOAT, Reference("x", FLOAT))
    body = Block(
        (Binding("y", X), Binding("y", StructNode((Reference("y", INT),)))), StructNode((inner, X))
    )
    verify(lambda_of(body), (CLOSED,))


def test_shared_subtrees_are_visited_once() -> None:
    node: Node = X
    for _ in range(200):
        node = StructNode((node, node))
    verify(lambda_of(Selection(node, 0)), (CLOSED,))


def test_programs_too_large_to_print_are_refused_without_an_excerpt() -> None:
    node: Node = Reference("y", INT)
    for _ in range(200):
        node = StructNode((node, node))
    violation = first_violation(lambda_of(node))
    assert violation is not None
    assert violation.error().notes == ()


def test_depth_is_no_limit() -> None:
    node: Node = Reference("y", INT)
    for _ in range(10_000):
        node = StructNode((node,))
    violation = first_violation(lambda_of(node))
    assert violation is not None
    assert violation.place.note() is not None


def test_zips_at_their_place_are_sound() -> None:
    verify(zip_placed(StructNode((S, StructNode((S,)))), SERVER), ())
