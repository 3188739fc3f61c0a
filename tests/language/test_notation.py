"""The compact, formatted and structural forms."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.refusals import refusal
from tffc.language import nodes
from tffc.language.array import to_array
from tffc.language.dtypes import DType
from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.notation import compact, formatted, labels, structural
from tffc.language.types import (
    SERVER,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
    at_clients,
    at_server,
)
from tffc.support.errors import NotationError

INT, FLOAT = TensorType(DType.INT32), TensorType(DType.FLOAT32)
PAIR = StructType([INT, INT])


def ref(name: str, type_: Type = INT) -> Reference:
    return Reference(name, type_)


def lit(value: object, dtype: DType | None = None) -> Literal:
    array = to_array(value, dtype)
    return Literal(array, array.type)


def struct(*values: Node, **named: Node) -> StructNode:
    return StructNode.from_pairs([*((None, value) for value in values), *named.items()])


def let(result: Node, **bindings: Node) -> Block:
    return Block(tuple(Binding(name, value) for name, value in bindings.items()), result)


def comp(name: str, parameter: Type, result: Type) -> Compiled:
    return Compiled("tensorflow", b"", FunctionType(parameter, result), name)


def intrinsic(uri: str, parameter: object, result: object) -> Intrinsic:
    return Intrinsic(uri, FunctionType(parameter, result))


def call(function: Node, *arguments: Node) -> Call:
    """A call on one argument, or on the struct of several."""
    return Call(function, arguments[0] if len(arguments) == 1 else struct(*arguments))


def bfloat16(value: float) -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16(value)


X, Y = ref("x"), ref("y")
F, G = ref("f", FunctionType(INT, INT)), ref("g", FunctionType(None, INT))


def simple() -> Node:
    name = "fc_simple_symbol_"
    add_one = comp("95175ae7", INT, INT)
    shared = ref(f"{name}0", at_clients(INT, all_equal=True))
    mapped = intrinsic("federated_map", [add_one.type, at_clients(INT)], at_clients(INT))
    bindings = {
        f"{name}0": call(
            intrinsic("federated_broadcast", at_server(INT), shared.type),
            ref("simple_arg", at_server(INT)),
        ),
        f"{name}1": call(mapped, add_one, shared),
        f"{name}2": call(
            intrinsic("federated_sum", at_clients(INT), at_server(INT)),
            ref(f"{name}1", at_clients(INT)),
        ),
    }
    return Lambda("simple_arg", at_server(INT), let(ref(f"{name}2", at_server(INT)), **bindings))


def combine() -> Node:
    parameter = StructType([("a", INT), ("b", INT)])
    argument = ref("combine_arg", parameter)
    return Lambda("combine_arg", parameter, struct(Selection(argument, 0), Selection(argument, 1)))


def attributes() -> Node:
    member = StructType([("a", INT), ("b", FLOAT)])
    argument, x = ref("attrs3_arg", at_clients(member)), ref("x", member)

    def select(result: Node) -> Node:
        function = Lambda("x", member, result)
        mapping = intrinsic(
            "federated_map", [function.type, argument.type], at_clients(result.type)
        )
        return call(mapping, function, argument)

    parts = [Selection(x, 0), Selection(x, 1), struct(a=Selection(x, 0))]
    return Lambda("attrs3_arg", argument.type, struct(*map(select, parts)))


def first_of_pair() -> Lambda:
    return Lambda("<lambda>_arg", PAIR, Selection(ref("<lambda>_arg", PAIR), 0))


def wrapped_first_of_pair() -> Lambda:
    return Lambda("a", PAIR, Call(first_of_pair(), ref("a", PAIR)))


def aggregate() -> Node:
    accumulate, merge = wrapped_first_of_pair(), wrapped_first_of_pair()
    report = Lambda("<lambda>_arg", INT, ref("<lambda>_arg"))
    argument = ref("agg_arg", at_clients(INT))
    types = [argument.type, INT, accumulate.type, merge.type, report.type]
    value = call(
        intrinsic("federated_aggregate", types, at_server(INT)),
        argument,
        lit(0),
        accumulate,
        merge,
        report,
    )
    result = ref("fc_agg_symbol_0", at_server(INT))
    return Lambda("agg_arg", argument.type, let(result, fc_agg_symbol_0=value))


def reduce() -> Node:
    stream, operator = SequenceType(INT), wrapped_first_of_pair()
    pair = StructType([stream, INT])
    argument = ref("red_arg", at_clients(stream))
    zero = ref("fc_red_symbol_0", at_clients(INT, all_equal=True))
    inner = ref("arg", pair)
    body = call(
        intrinsic("sequence_reduce", [stream, INT, operator.type], INT),
        Selection(inner, 0),
        Selection(inner, 1),
        operator,
    )
    step = Lambda("arg", pair, body)
    zipped = call(
        intrinsic("federated_zip_at_clients", [argument.type, zero.type], at_clients(pair)),
        argument,
        zero,
    )
    mapped = call(
        intrinsic("federated_map", [step.type, zipped.type], at_clients(INT)), step, zipped
    )
    start = call(intrinsic("federated_value_at_clients", INT, zero.type), lit(0))
    result = ref("fc_red_symbol_1", at_clients(INT))
    return Lambda(
        "red_arg", argument.type, let(result, fc_red_symbol_0=start, fc_red_symbol_1=mapped)
    )


def programs() -> dict[str, Node]:
    named = ref("s", StructType([("a", INT), ("b", FLOAT)]))
    nested = ref("s", StructType([INT, [FLOAT]]))
    add = comp("add", PAIR, PAIR)
    tf1 = comp("tf1", INT, INT)
    clients = ref("c", at_clients(INT))
    curried = ref("h", FunctionType(INT, FunctionType(INT, INT)))
    a, b, c = ref("a"), ref("b"), ref("c")
    float_y = ref("y", FLOAT)
    return {
        "P1": X,
        "P2": Reference("x", INT, "ctx"),
        "P3": lit(7),
        "P4": lit(np.float32(0.1)),
        "P5": lit("aé"),
        "P6": PlacementNode(SERVER),
        "P7": Intrinsic("generic_zero", INT),
        "P8": tf1,
        "P9": Selection.by_name(named, "a"),
        "P10": Selection(Selection(nested, 1), 0),
        "P11": struct(),
        "P12": Lambda(None, None, X),
        "P13": Lambda("x", INT, X),
        "P14": lit(np.array([[1, 2], [3, 4]], np.int32)),
        "P15": struct(X),
        "P16": StructNode((X, lit(7), struct()), ("a", None, "b")),
        "P17": StructNode((struct(X, Y), struct(d=ref("z"))), (None, "c")),
        "P18": Lambda("x", INT, Lambda("y", FLOAT, struct(X, float_y))),
        "P19": Call(G),
        "P20": Call(F, X),
        "P21": Call(F, Call(F, X)),
        "P22": Call(Lambda("x", INT, X), lit(7)),
        "P23": Call(Call(curried, X), Y),
        "P24": Call(add, struct(X, Y)),
        "P25": Selection(Call(ref("g2", FunctionType(None, PAIR))), 0),
        "P26": let(Y),
        "P27": let(a, a=lit(7)),
        "P28": let(StructNode((a, b), (None, "n")), a=Call(F, X), b=Call(F, a)),
        "P29": Lambda("x", INT, let(a, a=Call(F, X))),
        "P30": let(let(c, c=a), a=let(b, b=X)),
        "P31": StructNode((Lambda("x", INT, Call(F, X)), let(a, a=lit(1))), (None, "k")),
        "P32": call(
            intrinsic("federated_map", [tf1.type, clients.type], clients.type), tf1, clients
        ),
        "P33": Call(F, Selection(struct(X, Call(F, Y)), 1)),
        "P34": simple(),
        "P35": combine(),
        "P36": attributes(),
        "P37": aggregate(),
        "P38": reduce(),
    }  # fmt: skip


def examples() -> list[list[str]]:
    """For each example of printed_forms.txt its number, type and three texts."""
    text = pathlib.Path(__file__).with_name("printed_forms.txt").read_text()
    pattern = (
        r"=== (P\d+) [^\n]*\n(.*?)\n--- compact\n(.*?)\n--- formatted\n(.*?)\n"
        r"--- structural\n(.*?)\n(?====|\Z)"
    )
    return [list(found) for found in re.findall(pattern, text, re.DOTALL)]


EXAMPLES = examples()


def test_there_is_a_program_for_every_example() -> None:
    assert [example[0] for example in EXAMPLES] == list(programs())
    assert len(EXAMPLES) == 38


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[0])
def test_example(example: list[str]) -> None:
    number, *expected = example
    node = programs()[number]
    assert [str(node.type), compact(node), formatted(node), structural(node)] == expected
    assert str(node) == compact(node)


@pytest.mark.parametrize(
    ("value", "dtype", "text", "drawn"),
    [
        (0.1, DType.FLOAT64, "0.1", "0.1"),
        (0.1, DType.FLOAT16, "0.1", "0.0999755859375"),
        (np.complex64(0.1 + 2j), None, "(0.1+2j)", "(0.10000000149011612+2j)"),
        (1e-7, None, "1e-07", "1.0000000116860974e-07"),
        (1e20, None, "1e+20", "1.0000000200408773e+20"),
        (float("nan"), None, "nan", "nan"),
        (-0.0, None, "-0.0", "-0.0"),
        (1j, None, "1j", "1j"),
        (True, None, "True", "True"),
        (False, None, "False", "False"),
        (-1, DType.INT8, "-1", "-1"),
        (255, DType.UINT8, "255", "255"),
        (2**64 - 1, None, None, None),
        ("s", None, "b's'", "b's'"),
        ("é", None, r"b'\xc3\xa9'", r"b'\xc3\xa9'"),
        (np.array([1, 2]), None, "[1 2]", "[1 2]"),
        (np.array([], np.int32), None, "[]", "[]"),
        (np.arange(2000), None, "[   0    1    2 ... 1997 1998 1999]", None),
        (np.array(["a", "b"]), None, "[b'a' b'b']", "[b'a' b'b']"),
        (
            np.array([[1.5, 2], [3, 4]], np.float32), None,
            "[[1.5 2. ]\n [3.  4. ]]", "[[1.5 2. ]\n [3.  4. ]]",
        ),
    ],
)  # fmt: skip
def test_literal(value: object, dtype: DType | None, text: str | None, drawn: str | None) -> None:
    if text is None:
        value, dtype, text = np.uint64(2**64 - 1), None, "18446744073709551615"
    node = lit(value, dtype)
    assert compact(node) == formatted(node) == text
    assert structural(node) == f"Lit({drawn or text})"


@pytest.mark.parametrize(
    ("value", "text", "drawn"),
    [
        # NumPy 2 prints these four in scientific notation.
        (np.array([89243344], np.float32), "[89243344.]", "[89243344.]"),
        (np.array([-17472], np.float16), "[-17472.]", "[-17472.]"),
        (np.complex64(3.1792727e12j), "3179272700000j", "3179272732672j"),
        (np.float32(4.0549134e13), "40549134000000.0", "40549134368768.0"),
        (np.array([1e8, 1]), "[1.e+08 1.e+00]", None),
        (np.array([0.00009, 0.5]), "[9.e-05 5.e-01]", None),
        (np.array([1000.5, 1]), "[1.0005e+03 1.0000e+00]", None),
        (np.array([np.nan, -np.inf, 1.25]), "[ nan -inf 1.25]", None),
        (np.array([np.nan, 1e-9]), "[   nan 1.e-09]", None),
        (np.array([np.nan]), "[nan]", None),
        (np.array([1.5 - 2j, 10j]), "[1.5 -2.j 0. +10.j]", None),
        (np.complex128(complex(-0.0, 1)), "(-0+1j)", "(-0+1j)"),
        (np.complex128(complex(np.nan, -np.inf)), "(nan-infj)", "(nan-infj)"),
        (np.float32(np.inf), "inf", "inf"),
        (bfloat16(1.0), "1", "1"),
        (bfloat16(5.1e9), "5.10027e+09", "5.10027e+09"),
        (np.array([bfloat16(0.1)]), "[0.100098]", "[0.100098]"),
    ],
)
def test_number(value: object, text: str, drawn: str | None) -> None:
    node = lit(value)
    assert compact(node) == text
    assert structural(node) == f"Lit({drawn or text})"


def test_edges_of_a_large_array() -> None:
    values = np.full((2, 600), 0.5, np.float32)
    values[:, 300] = 1e-20
    edge = "0.5 0.5 0.5 ... 0.5 0.5 0.5"
    assert compact(lit(values)) == f"[[{edge}]\n [{edge}]]"


def test_numpys_print_options_do_not_matter() -> None:
    node = lit(np.array([1 / 3], np.float64))
    labels.literal_text.cache_clear()
    with np.printoptions(precision=2, legacy="1.13"):
        assert compact(node) == "[0.33333333]"


def test_newline_in_a_literal_is_neither_indented_nor_a_row() -> None:
    node = struct(lit(np.array([[0, 1], [2, 3]])), lit(1))
    assert formatted(node) == "<\n  [[0 1]\n [2 3]],\n  1\n>"
    assert structural(node) == "Struct\n|\n[Lit([[0 1]\n [2 3]]), Lit(1)]"


def test_data_is_named_by_a_hash_of_its_content() -> None:
    node = Data("type.googleapis.com/x.Y", b"abc", INT)
    assert compact(node) == "data#7a36acdc"
    assert structural(node) == "Data(7a36acdc)"
    assert compact(Data("type.googleapis.com/x.Y", b"abd", INT)) != compact(node)


def test_names_of_sections_can_be_given() -> None:
    node = Call(comp("tf1", INT, INT), X)
    assert compact(node, lambda _: "given") == "comp#given(x)"
    assert formatted(node, lambda _: "given") == "comp#given(x)"
    assert "Compiled(given)" in structural(node, lambda _: "given")


def test_rows_of_spaces_in_a_drawing() -> None:
    # An operator may have an empty name; its drawing is no wider than nothing.
    node = Call(Intrinsic("", FunctionType(INT, INT)), X)
    assert structural(node) == " Call\n/    \\\n      Ref(x)"


DEEP = 10_000
WRAPS = ("lambda", "selection", "call", "struct", "block", "local")


def deep(wrap: str) -> Node:
    node: Node = X
    for _ in range(DEEP):
        match wrap:
            case "lambda":
                node = Lambda("x", INT, node)
            case "selection":
                node = Selection(StructNode((node,)), 0)
            case "call":
                node = Call(F, node)
            case "struct":
                node = StructNode((node,))
            case "block":
                node = let(node, a=X)
            case "local":
                node = let(X, a=node)
    return node


def test_deep_nesting_prints_on_one_line() -> None:
    texts = {wrap: compact(deep(wrap)) for wrap in WRAPS}
    assert texts["lambda"] == "(x -> " * DEEP + "x" + ")" * DEEP
    assert texts["selection"] == "<" * DEEP + "x" + ">[0]" * DEEP
    assert texts["call"] == "f(" * DEEP + "x" + ")" * DEEP
    assert texts["struct"] == "<" * DEEP + "x" + ">" * DEEP
    assert texts["block"] == "(let a=x in " * DEEP + "x" + ")" * DEEP
    assert texts["local"] == "(let a=" * DEEP + "x" + " in x)" * DEEP


def refuses(style: Callable[[Node], str], node: Node) -> bool:
    try:
        style(node)
    except NotationError as error:
        return error.code == "E202"
    return False


@pytest.mark.slow
def test_deep_nesting_is_refused_only_where_indentation_makes_it_long() -> None:
    indented = [wrap for wrap in WRAPS if refuses(formatted, deep(wrap))]
    assert indented == ["selection", "struct", "local"]
    drawn = [wrap for wrap in WRAPS if refuses(structural, deep(wrap))]
    assert drawn == ["selection", "call", "struct", "block", "local"]


def test_deep_drawings_that_stay_narrow() -> None:
    assert structural(deep("lambda")) == "Lambda(x)\n|\n" * DEEP + "Ref(x)"


@pytest.mark.slow
def test_wide_structs_and_blocks_print() -> None:
    wide = StructNode((X,) * DEEP)
    assert compact(wide) == "<" + ",".join("x" * DEEP) + ">"
    assert formatted(wide) == "<\n" + ",\n".join(["  x"] * DEEP) + "\n>"
    assert structural(wide) == "Struct\n|\n[" + ", ".join(["Ref(x)"] * DEEP) + "]"
    locals_ = tuple(Binding(f"v{index}", Call(F, X)) for index in range(DEEP))
    assert len(structural(Block(locals_, X)).splitlines()) == 5


def test_text_that_is_too_long_is_refused() -> None:
    assert refusal(NotationError, structural, deep("struct")) == (
        "the text of the program is longer than 67108864 characters [E202]\n"
        "  help: print it in the compact style, or print a part of it"
    )


@pytest.mark.parametrize("style", [compact, formatted, structural])
def test_program_too_large_as_a_tree_is_refused(style) -> None:
    node: nodes.Node = X
    for _ in range(64):
        node = struct(node, node)
    assert refusal(NotationError, style, node) == (
        "the program has 36893488147419103231 nodes when it is written out, more than the "
        "4194304 that are printed [E201]\n"
        "  note: it has 65 distinct nodes, shared between places\n"
        "  help: bind shared nodes in a block"
    )
