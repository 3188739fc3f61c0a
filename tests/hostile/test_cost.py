"""Cost is bounded before it is paid: small programs that stand for astronomically large ones."""

from __future__ import annotations

import pytest

from tests.hostile import doubling
from tffc.backends import compile_form
from tffc.errors import TffcError, VerificationError
from tffc.ir.dtypes import DType
from tffc.ir.nodes import Call, Lambda, Node, Reference, Struct
from tffc.ir.notation import compact, parse
from tffc.ir.size import size_limit
from tffc.ir.types import TensorType
from tffc.passes import call_dominant

pytestmark = pytest.mark.usefixtures("hang")

DOUBLE = f"{doubling.PLUS}(<y,y>)"
INT = TensorType(DType.INT32)


def refusal(error: TffcError) -> str:
    return "\n".join((f"{error.code}: {error.message}", *error.notes, error.help or ""))


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        (doubling.function_tower(200), "(p -> p)"),
        (doubling.composed_tower(200), "(p -> p)"),
        (doubling.choosing_tower(200), "(p -> p)"),
        (doubling.swapping_tower(200), "(p -> <p[0],p[1]>)"),
        (doubling.leaf_of_struct_tower(200), "(p -> p)"),
    ],
    ids=["functions", "compositions", "choices", "swaps", "structs"],
)
def test_what_makes_no_calls_is_inlined_in_the_time_of_what_it_shares(text: str, flat: str) -> None:
    assert compact(call_dominant(parse(text))) == flat


@pytest.mark.parametrize("text", [doubling.mapped_tower(200), doubling.mapped_leaf(200)])
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_round_compiles_where_its_result_is_small(text: str, form: str) -> None:
    assert compile_form(parse(text), form).components()


def shared_applications(levels: int) -> Node:
    """`e = <e,e>[0]` and so on by a function that gives the first of two, without any names."""
    pair = Reference("pair", Struct((Reference("x", INT),) * 2).type)
    first = parse("(pair: <int32,int32> -> pair[0])")
    assert isinstance(first, Lambda)
    assert first.parameter_type == pair.type
    node: Node = Reference("x", INT)
    for _ in range(levels):
        node = Call(first, Struct((node, node)))
    return Lambda("x", INT, node)


def test_nodes_that_are_shared_without_a_name_are_evaluated_once() -> None:
    assert compact(call_dominant(shared_applications(200))) == "(x -> x)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            doubling.function_tower(40, DOUBLE),
            "E321: the program makes 1099511627776 calls when its functions are inlined, more than "
            "the 262144 that are made\n"
            "`f19` alone makes 524288 calls each time it is called\n"
            "what is shared is written out at each of its places; use it at fewer, or allow more",
        ),
        (
            doubling.mapped_tower(40, DOUBLE),
            "E321: the program makes 1099511627778 calls when its functions are inlined, more than "
            "the 262144 that are made\n"
            "`f19` alone makes 524288 calls each time it is called\n"
            "what is shared is written out at each of its places; use it at fewer, or allow more",
        ),
        (
            doubling.composed_tower(40, DOUBLE),
            "E321: the program makes 1099511627776 calls when its functions are inlined, more than "
            "the 262144 that are made\n"
            "`f19` alone makes 524288 calls each time it is called\n"
            "what is shared is written out at each of its places; use it at fewer, or allow more",
        ),
    ],
    ids=["functions", "mapped", "compositions"],
)
def test_calls_are_counted_before_they_are_made(text: str, message: str) -> None:
    with pytest.raises(VerificationError) as caught:
        call_dominant(parse(text))
    assert refusal(caught.value) == message


def test_each_call_that_is_allowed_is_made() -> None:
    program = parse(doubling.function_tower(6, DOUBLE))
    with size_limit(64 * 16):
        assert compact(call_dominant(program)).count("generic_plus") == 64
    with size_limit(64 * 16 - 1), pytest.raises(VerificationError, match="makes 64 calls"):
        call_dominant(program)


def test_steps_without_calls_are_bounded() -> None:
    """A permutation of 100 elements comes back to the first order after 223,092,870 steps."""
    names, cycles = list(range(100)), (2, 3, 5, 7, 11, 13, 17, 19, 23)
    start = 0
    for size in cycles:
        names[start : start + size] = [*names[start + 1 : start + size], start]
        start += size
    kind = f"<{','.join(['int32'] * len(names))}>"
    lines = [f"f0=(y: {kind} -> <{','.join(f'y[{name}]' for name in names)}>)"]
    lines += [f"f{i}=(y: {kind} -> f{i - 1}(f{i - 1}(y)))" for i in range(1, 40)]
    program = parse(f"(p: {kind} -> (let {','.join(lines)} in f39(p)))")
    with size_limit(1000), pytest.raises(VerificationError) as caught:
        call_dominant(program)
    assert refusal(caught.value).splitlines()[::2] == [
        "E322: the functions of the program are not inlined in 1000 steps",
        "call functions fewer times, or allow more",
    ]
