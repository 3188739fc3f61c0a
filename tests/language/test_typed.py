"""The typed form: printing it, and parsing it to the same node."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
from hypothesis import given, settings

from tests.language import generation
from tests.language.test_corpus import CORPUS, FILES, case_id, load_error
from tests.language.test_notation import programs
from tests.refusals import refusal
from tffc.language import (
    SERVER,
    AbstractType,
    Array,
    Binding,
    Block,
    Call,
    Compiled,
    Data,
    DType,
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
    StructWithPythonType,
    TensorType,
    Type,
    at_clients,
    at_server,
    to_array,
)
from tffc.language.notation import (
    SectionFolder,
    compact,
    formatted,
    parse,
    sections,
    structural,
    typed,
    write_sections,
)
from tffc.language.wire import from_bytes
from tffc.support.errors import NotationError

INT, FLOAT = TensorType(DType.INT32), TensorType(DType.FLOAT32)
X = Reference("x", INT)
GIVEN = {"5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9": b"0"}
"""The section whose payload is the byte `0`, by its digest."""

STYLES = (compact, formatted, structural, typed)
DIGEST = next(iter(GIVEN))


def lit(value: object, dtype: DType | None = None) -> Literal:
    array = to_array(value, dtype)
    return Literal(array, array.type)


def bits(dtype: DType, content: str, shape: tuple[int, ...] = ()) -> Literal:
    array = Array(dtype, shape, bytes.fromhex(content))
    return Literal(array, array.type)


def section(name: str | None = None, payload: bytes = b"0", type_: Type = INT) -> Compiled:
    return Compiled("xla", payload, FunctionType(INT, type_), name)


FORMS: list[tuple[Node, str]] = [
    (X, "&x:int32"),
    (Reference("x", INT, "ctx"), "&x@ctx:int32"),
    (Lambda("x", INT, X), "(x: int32 -> x)"),
    (Lambda("x", FLOAT, X), "(x: float32 -> &x:int32)"),
    (Lambda("x", INT, Reference("x", INT, "c")), "(x: int32 -> x@c)"),
    (Lambda("x", FLOAT, Lambda("x", INT, X)), "(x: float32 -> (x: int32 -> x))"),
    (Lambda(None, None, lit(1)), "( -> 1)"),
    (
        Lambda("x", INT, StructNode((Lambda("x", FLOAT, lit(1)), X))),
        "(x: int32 -> <\n  (x: float32 -> 1),\n  x\n>)",
    ),
    (
        Block((Binding("a", lit(1)), Binding("a", Reference("a", INT))), Reference("a", INT)),
        "(let\n  a: int32=1,\n  a: int32=a\n in a)",
    ),
    (Block((Binding("a", Reference("a", INT)),), lit(1)), "(let\n  a: int32=&a:int32\n in 1)"),
    (Block((), lit(1)), "(let\n\n in 1)"),
    (StructNode(()), "<>"),
    (StructNode((lit(1), lit(2)), ("a", None)), "<\n  a=1,\n  2\n>"),
    (Selection(StructNode((lit(1),)), 0), "<\n  1\n>[0]"),
    (Selection.by_name(StructNode((lit(1),), ("a",)), "a"), "<\n  a=1\n>.a"),
    (Call(Lambda("x", INT, X), lit(7)), "(x: int32 -> x)(7)"),
    (Call(Lambda(None, None, lit(7))), "( -> 7)()"),
    (PlacementNode(SERVER), "SERVER"),
    (Intrinsic("generic_zero", INT), "generic_zero:int32"),
    (
        Call(
            Intrinsic("federated_sum", FunctionType(at_clients(INT), at_server(INT))),
            Reference("v", at_clients(INT)),
        ),
        "federated_sum:({int32}@CLIENTS -> int32@SERVER)(&v:{int32}@CLIENTS)",
    ),
    # Names that are not bare.
    (Lambda("<lambda>_arg", INT, Reference("<lambda>_arg", INT)),
     "(<lambda>_arg: int32 -> <lambda>_arg)"),
    (Reference("fc_<lambda>_symbol_0", INT), "&fc_<lambda>_symbol_0:int32"),
    (StructNode((Lambda("lambda", INT, Reference("lambda", INT)),)),
     '<\n  ("lambda": int32 -> "lambda")\n>'),
    (Reference("let", INT), '&"let":int32'),
    (Reference("a b", INT), '&"a b":int32'),
    (Reference("", INT), '&"":int32'),
    (Reference('"\\\n\u00e9', INT), '&"\\"\\\\\\n\\u00e9":int32'),
    (Reference("é", INT), "&é:int32"),
    (Reference("nan", INT), '&"nan":int32'),
    (Reference("nan<lambda>", INT), "&nan<lambda>:int32"),
    (Reference("infj<lambda>x", INT), "&infj<lambda>x:int32"),
    (Reference("CLIENTS", INT), '&"CLIENTS":int32'),
    (Selection.by_name(StructNode((X,), ("a.b",)), "a.b"), '<\n  "a.b"=&x:int32\n>."a.b"'),
    # Constants.
    (lit(-7), "-7"),
    (lit(7, DType.INT64), "7:int64"),
    (lit(0.1), "0.1"),
    (lit(0.1, DType.FLOAT64), "0.1:float64"),
    (lit(1e-7), "1e-07"),
    (lit(float("nan")), "nan"),
    (lit(float("-inf")), "-inf"),
    (lit(-0.0), "-0.0"),
    (lit(True), "True"),
    (lit("a'é"), "b\"a'\\xc3\\xa9\""),
    (lit(b'"'), "b'\"'"),
    (lit(1j), "1j"),
    (lit(np.complex64(0.1 + 2j)), "(0.1+2j):complex64"),
    (lit(np.complex128(complex(-0.0, np.nan))), "(-0+nanj)"),
    (bits(DType.FLOAT32, "010080ff"), "0xff800001:float32"),
    (bits(DType.BFLOAT16, "c17f"), "0x7fc1:bfloat16"),
    (bits(DType.BFLOAT16, "c03f"), "1.5:bfloat16"),
    (bits(DType.FLOAT16, "0100"), "6e-08:float16"),
    (lit(np.array([1, 2], np.int32)), "[1 2]:int32[2]"),
    (lit(np.array([[1.5, 2], [3, 1e20]])), "[[1.5 2.0] [3.0 1e+20]]:float64[2,2]"),
    (lit(np.array(["a", "b c"])), "[b'a' b'b c']:str[2]"),
    (lit(np.zeros((0, 3), bool)), "[]:bool[0,3]"),
    (lit(np.zeros((1, 1, 1), np.uint8)), "[[[0]]]:uint8[1,1,1]"),
    (Literal(to_array(1), TensorType(DType.INT32)), "1"),
    (
        Literal(to_array(np.array([1], np.int32)), TensorType(DType.INT32, (None,))),
        "[1]:int32[1]:int32[?]",
    ),
    (
        Literal(to_array(5), TensorType(DType.INT32, None)),
        "5:int32:'int32'(shape=None)",
    ),
    # Types.
    (
        Intrinsic(
            "i",
            FunctionType(
                StructType([("a b", INT), SequenceType(StructType([]))]),
                TensorType(DType.BFLOAT16, (2, None)),
            ),
        ),
        'i:(<"a b"=int32,<>*> -> bfloat16[2,?])',
    ),
    (Intrinsic("i", FunctionType(None, PlacementNode(SERVER).type)), "i:( -> placement)"),
    (Intrinsic("i", AbstractType("T")), 'i:"T"'),
    # The table.
    (
        Call(section(), lit(1)),
        f"comp#d6b58c55(1)\nwhere\n  comp#d6b58c55: (int32 -> int32) xla sha256:{DIGEST}",
    ),
    (
        StructNode((section("add"), section("add"), section("a b"))),
        '<\n  comp#add,\n  comp#add,\n  comp#"a b"\n>\nwhere\n'
        f'  comp#add: (int32 -> int32) xla sha256:{DIGEST} "add"\n'
        f'  comp#"a b": (int32 -> int32) xla sha256:{DIGEST} "a b"',
    ),
    (
        StructNode((section("add"), section("add", type_=FLOAT))),
        "<\n  comp#add,\n  comp#add-2\n>\nwhere\n"
        f'  comp#add: (int32 -> int32) xla sha256:{DIGEST} "add"\n'
        f'  comp#add-2: (int32 -> float32) xla sha256:{DIGEST} "add"',
    ),
    (
        StructNode((Data("u/x", b"ab", INT), Data("u/x", b"ab", FLOAT), Data("", b"", INT))),
        "<\n  data#632d8708,\n  data#632d8708-2,\n  data#ba768b33\n>\nwhere\n"
        '  data#632d8708: int32 "u/x" 0x6162\n'
        '  data#632d8708-2: float32 "u/x" 0x6162\n'
        '  data#ba768b33: int32 "" 0x',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("node", "text"), FORMS, ids=[text[:40] for _, text in FORMS])
def test_form(node: Node, text: str) -> None:
    assert typed(node) == text
    assert parse(text, GIVEN) == node


@pytest.mark.parametrize("number", programs())
def test_printed_examples_return(number: str) -> None:
    node = programs()[number]
    back = parse(typed(node), sections(node))
    assert [style(back) for style in STYLES] == [style(node) for style in STYLES]


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(generation.written_nodes())
def test_every_node_returns(node: Node) -> None:
    text = typed(node)
    back = parse(text, sections(node))
    assert back == node
    assert typed(back) == text


@pytest.mark.skipif(not CORPUS, reason="TFFC_CORPUS names no folder of computations")
@pytest.mark.parametrize("file", FILES, ids=case_id)
def test_corpus_returns(file: pathlib.Path) -> None:
    if load_error(file) is None:
        node = from_bytes(file.read_bytes())
        assert parse(typed(node), sections(node)) == node


def test_spaces_do_not_matter_and_types_of_locals_may_be_left_out() -> None:
    spread = "( x : int32->( let a = x , b=a in <a,b> ) )"
    dense = "(x:int32->(let a:int32=x,b=a in<a,b>))"
    assert parse(spread) == parse(dense)


def test_python_containers_are_not_kept() -> None:
    listed = StructWithPythonType([INT], list)
    node = Lambda("x", listed, StructNode((Reference("x", StructType([INT])),), container=list))
    assert typed(node) == "(x: <int32> -> <\n  x\n>)"
    plain = StructType([INT])
    assert parse(typed(node)) == Lambda("x", plain, StructNode((Reference("x", plain),)))


def test_sections_in_a_folder(tmp_path: pathlib.Path) -> None:
    node = StructNode((section(), section(payload=b"1"), section("again")))
    write_sections(node, tmp_path / "sections")
    folder = SectionFolder(tmp_path / "sections")
    assert dict(folder) == sections(node)
    assert len(folder) == 2
    assert parse(typed(node), folder) == node
    with pytest.raises(KeyError):
        _ = folder["0" * 64]


DEEP = 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrap", ["lambda", "call", "struct", "block", "local", "selection", "type"]
)
def test_deep_programs_return(wrap: str) -> None:
    node: Node = X
    type_: Type = INT
    for _ in range(DEEP):
        match wrap:
            case "lambda":
                node = Lambda("x", INT, node)
            case "call":
                node = Call(Intrinsic("f", FunctionType(INT, INT)), node)
            case "struct":
                node = StructNode((node,))
            case "block":
                node = Block((Binding("a", X),), node)
            case "local":
                node = Block((Binding("a", node),), X)
            case "selection":
                node = Selection(StructNode((node,)), 0)
            case "type":
                type_ = FunctionType(None, StructType([type_]))
    node = Reference("x", type_) if wrap == "type" else node
    assert parse(typed(node)) == node


def test_wide_programs_return() -> None:
    node = StructNode((X,) * DEEP)
    assert parse(typed(node)) == node


# What is refused.


def test_near_names_are_shown() -> None:
    with pytest.raises(NotationError) as caught:
        parse("(value: int32 -> valeu)")
    assert "  note: bound are names like `value`\n" in str(caught.value)
    assert refusal(NotationError, parse, "&x:int33").endswith("  help: did you mean `int32`?")


def test_error_in_a_long_line_shows_a_part_of_it() -> None:
    with pytest.raises(NotationError) as caught:
        parse("<" + "1," * 500 + "$" + ",1" * 500 + ">")
    _, _, *place = str(caught.value).splitlines()
    assert place == [
        "    ..." + ",1" * 24 + ",$" + ",1" * 25 + "...",
        "    " + " " * 52 + "^",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "an expression"),
        ("let", "an expression"),
        ("<1", "`,`"),
        ("<1,>", "an expression"),
        ("(1)", "a name"),
        ("(x int32 -> x)", "`:`"),
        ("(let a 1 in a)", "`=`"),
        ("1 2", "the end of the text"),
        ("<1>[a]", "an integer"),
        ("<1>[1.5]", "an integer"),
        ("<a=1>.1", "a name"),
        ("&x", "`:`"),
        ("&x:", "a type"),
        ("&x:{int32}", "`@`"),
        ("&x:int32@HERE", "a placement, CLIENTS or SERVER"),
        ("&x:(int32 int32)", "`->`"),
        ("&x:int32[1", "`,`"),
        ("&x:int32[]", "an integer"),
        ("[1 x]", "an element or `]`"),
        ("[1", "an element or `]`"),
        ("0x00", "`:`"),
        ("[1]", "`:`"),
        ("comp#a where comp#a: int32 jax", "`tensorflow` or `xla`"),
        ("comp#a where comp#a: int32 xla 5", "`sha256:` and 64 hexadecimal digits"),
        ("data#a where data#a: int32 5", "a text in double quotes"),
        ('data#a where data#a: int32 "" 0x123', "bytes in hexadecimal, two digits each"),
        ('data#a where data#a: int32 "" 0x 5', "a section or data"),
    ],
)
def test_what_was_expected(text: str, expected: str) -> None:
    with pytest.raises(NotationError, match=re.escape(f"expected {expected}, found ")):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "[1 2]:int32[3]", "[[1 2]]:int32[2]", "[1]:int32", "1:int32[1]", "[]:int32[1]", "1.5:int32",
        "True:int32", "1:bool", "b'a':int32", "1:str", "1j:float32", "0x1ff:uint8", "1e40:float32",
        "3000000000", "1:uint8[0]", "-1:uint8", "nan:int32", "0x:int32", f"{'9' * 5000}",
    ],
)  # fmt: skip
def test_constants_that_do_not_fit(text: str) -> None:
    with pytest.raises(NotationError, match="this is not a constant of type"):
        parse(text)
