"""The verifier: each message once, and that sound programs pass."""

from __future__ import annotations

import collections

import pytest

from tests.refusals import refusal
from tffc.language import (
    SERVER,
    Binding,
    Block,
    Call,
    DType,
    FunctionType,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    SequenceType,
    StructNode,
    StructType,
    TensorType,
    Type,
    at_clients,
    at_server,
)
from tffc.language.calls import apply, zip_placed
from tffc.language.invariants import (
    CALL_DOMINANT,
    CLOSED,
    INVARIANTS,
    NO_CONTAINERS,
    NO_IDENTITY_MAPS,
    NO_MEANS,
    NO_SELECT,
    NO_UNUSED_BINDINGS,
    UNIQUE_NAMES,
)
from tffc.language.verify import first_violation, verify
from tffc.support.errors import LONGEST_LINE, Span, VerificationError

INT, FLOAT = TensorType(DType.INT32), TensorType(DType.FLOAT32)
X = Reference("x", INT)
IDENTITY = Lambda("x", INT, X)


def lambda_of(result: Node) -> Lambda:
    return Lambda("x", INT, result)


def operator(uri: str, parameter: Type, result: Type) -> Intrinsic:
    return Intrinsic(uri, FunctionType(parameter, result))


def select() -> Node:
    """A `federated_select` of whatever the names `keys`, `bound` and `value` stand for."""
    function = Lambda("pair", StructType([INT, INT]), Selection(ref("pair", [INT, INT]), 0))
    operands = (
        ref("keys", at_clients(TensorType(DType.INT32, (2,)))),
        ref("bound", at_server(INT)),
        ref("value", at_server(INT)),
        function,
    )
    parameter = StructType([node.type for node in operands])
    uri = "federated_select"
    return Call(operator(uri, parameter, at_clients(SequenceType(INT))), StructNode(operands))


def ref(name: str, type_: object) -> Reference:
    return Reference(name, type_ if isinstance(type_, Type) else StructType(type_))


V = ref("v", at_clients(FLOAT))
S = ref("s", at_server(FLOAT))
Pair = collections.namedtuple("Pair", ["a"])

HOLDS_S = Block((Binding("t", S),), ref("x", FLOAT))

REFUSED = {
    "a parameter at another type": (
        lambda_of(Reference("x", FLOAT)),
        CLOSED,
        "`x` is bound to a value of type `int32` but used as `float32` [E140]\n"
        "  note: in the program:\n"
        "    (x -> x)\n"
        "          ^",
    ),
    "a local at another type": (
        lambda_of(Block((Binding("y", X), Binding("z", StructNode((ref("y", FLOAT),)))), X)),
        CLOSED,
        "`y` is bound to a value of type `int32` but used as `float32` [E140]\n"
        "  note: in the binding `z`:\n"
        "    z=<y>\n"
        "       ^",
    ),
    "a name that nothing binds": (
        lambda_of(StructNode((X, Reference("z", INT)))),
        CLOSED,
        "the name `z` of type `int32` is used but not bound [E141]\n"
        "  note: in the program:\n"
        "    (x -> <x,z>)\n"
        "             ^\n"
        "  help: a computation has to receive every value it uses as its argument",
    ),
    "a local that uses itself": (
        Block((Binding("y", Reference("y", INT)),), Reference("y", INT)),
        CLOSED,
        "the name `y` of type `int32` is used but not bound [E141]\n"
        "  note: in the binding `y`:\n"
        "    y=y\n"
        "      ^\n"
        "  help: a computation has to receive every value it uses as its argument",
    ),
    "a name bound twice": (
        Block((Binding("y", IDENTITY), Binding("z", IDENTITY)), X),
        UNIQUE_NAMES,
        "the name `x` is bound twice [E142]\n"
        "  note: in the binding `y`:\n"
        "    y=(x -> x)\n"
        "      ^^^^^^^^",
    ),
    "a local that is not a call": (
        lambda_of(Block((Binding("y", X),), Reference("y", INT))),
        CALL_DOMINANT,
        "`y` is bound to a Reference [E142]\n  note: in the binding `y`:\n    y=x\n      ^",
    ),
    "a called lambda": (
        Lambda("y", INT, Call(IDENTITY, Reference("y", INT))),
        CALL_DOMINANT,
        "a lambda is called where it stands [E142]\n"
        "  note: in the program:\n"
        "    (y -> (x -> x)(y))\n"
        "          ^^^^^^^^^^^",
    ),
    "a call inside of an expression": (
        lambda_of(StructNode((Call(ref("f", FunctionType(INT, INT)), X),))),
        CALL_DOMINANT,
        "a call is not the value of a binding [E142]\n"
        "  note: in the program:\n"
        "    (x -> <f(x)>)\n"
        "           ^^^^",
    ),
    "a selection from a struct literal": (
        lambda_of(Selection(StructNode((X, X)), 1)),
        CALL_DOMINANT,
        "an element is selected from a struct that stands there [E142]\n"
        "  note: in the program:\n"
        "    (x -> <x,x>[1])\n"
        "          ^^^^^^^^",
    ),
    "a zip of placed values at the wrong place": (
        Call(
            operator("federated_zip_at_server", StructType([V.type]), at_server([FLOAT])),
            StructNode((V,)),
        ),
        NO_MEANS,
        "federated_zip_at_server takes values placed at SERVER, found one of type "
        "`{float32}@CLIENTS` [E135]\n"
        "  note: in the program:\n"
        "    federated_zip_at_server(<v>)\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    "a zip that gives something else": (
        Call(
            operator("federated_zip_at_server", StructType([S.type]), at_server([INT])),
            StructNode((S,)),
        ),
        NO_MEANS,
        "federated_zip_at_server of `<float32@SERVER>` gives `<float32>`, not `<int32>@SERVER` "
        "[E135]\n"
        "  note: in the program:\n"
        "    federated_zip_at_server(<s>)\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    "a mapped function that holds a placed value": (
        Block(
            (Binding("m", apply(Lambda("x", FLOAT, HOLDS_S), V)),),
            V,
        ),
        NO_MEANS,
        "a function given to federated_map holds a placed value, of type `float32@SERVER` "
        "[E148]\n"
        "  note: in the binding `t`:\n"
        "    t=s\n"
        "      ^\n"
        "  help: such a function runs on plain values; give it the value as an operand, zipped",
    ),
    "a Python container": (
        Lambda("x", INT, StructNode((X,), ("a",), Pair)),
        NO_CONTAINERS,
        "a Struct names a Python container in its type [E142]\n"
        "  note: in the program:\n"
        "    (x -> <a=x>)\n"
        "          ^^^^^",
    ),
    "a map of the identity": (
        apply(Lambda("x", FLOAT, ref("x", FLOAT)), V),
        NO_IDENTITY_MAPS,
        "an operator maps the identity [E142]\n"
        "  note: in the program:\n"
        "    federated_map(<(x -> x),v>)\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    "a binding that nothing uses": (
        lambda_of(Block((Binding("y", StructNode((X,))),), X)),
        NO_UNUSED_BINDINGS,
        "nothing uses `y` [E142]\n  note: in the binding `y`:\n    y=<x>\n      ^^^",
    ),
    "a mean": (
        Call(operator("federated_mean", V.type, at_server(FLOAT)), V),
        NO_MEANS,
        "the operator federated_mean computes a mean [E142]\n"
        "  note: in the program:\n"
        "    federated_mean(v)\n"
        "    ^^^^^^^^^^^^^^\n"
        "  help: the pass desugar-means writes it in terms of other operators",
    ),
    "a selection of slices": (
        select(),
        NO_SELECT,
        "the operator federated_select selects slices of a server value [E142]\n"
        "  note: in the program:\n"
        "    federated_select(<keys,bound,value,(pair -> pair[0])>)\n"
        "    ^^^^^^^^^^^^^^^^\n"
        "  help: the pass lower-select writes it in terms of other operators",
    ),
}


@pytest.mark.parametrize(
    ("root", "invariant", "message"), REFUSED.values(), ids=list(REFUSED.keys())
)
def test_refused(root: Node, invariant: str, message: str) -> None:
    assert refusal(VerificationError, verify, root, (invariant,)) == message


def test_every_invariant_is_refused_somewhere() -> None:
    assert {invariant for _, invariant, _ in REFUSED.values()} == set(INVARIANTS)


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
