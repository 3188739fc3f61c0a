"""Programs with an unknown operator, or with the wrong one."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.programs import rounds
from tests.refusals import refusal
from tffc.backends import compile_form
from tffc.language import Intrinsic, Node
from tffc.language.intrinsics import INTRINSICS
from tffc.language.nodes import Compiled
from tffc.language.notation import parse
from tffc.language.traverse import rewrite, walk
from tffc.support.errors import FormError, TffcError

FORMS = ["mapreduce", "broadcast", "distribute-aggregate"]
SUM = "({int32}@CLIENTS -> int32@SERVER)"


def program(output: str) -> Node:
    """A round whose output is this expression of its `state` and `data`."""
    return parse(
        "(round:<int32@SERVER,{int32}@CLIENTS> -> (let state: int32@SERVER=round[0],"
        f"data: {{int32}}@CLIENTS=round[1] in <state,{output}>))"
    )


OTHERWISE = (
    "broadcasts and aggregations of the language move values; an operator of your own works where "
    "its operands are"
)
MOVING = {
    "from the clients": (
        f"federated_summ:{SUM}(data)",
        "`v_1 = federated_summ(...)` moves values, and the operator federated_summ is not known to "
        "do that [E533]\n"
        f"  note: it is of type `{SUM}`\n"
        "  help: did you mean 'federated_sum'?",
    ),
    "to the clients": (
        f"federated_sum:{SUM}(mine:(int32@SERVER -> {{int32}}@CLIENTS)(state))",
        "`v_1 = mine(...)` moves values, and the operator mine is not known to do that [E533]\n"
        "  note: it is of type `(int32@SERVER -> {int32}@CLIENTS)`\n"
        f"  help: {OTHERWISE}",
    ),
    "from both": (
        "mine:(<int32@SERVER,{int32}@CLIENTS> -> int32@SERVER)(<state,data>)",
        "`v_1 = mine(...)` moves values, and the operator mine is not known to do that [E533]\n"
        "  note: it is of type `(<int32@SERVER,{int32}@CLIENTS> -> int32@SERVER)`\n"
        f"  help: {OTHERWISE}",
    ),
    "known as no function": (
        f"generic_zero:{SUM}(data)",
        "`v_1 = generic_zero(...)` moves values, and the operator generic_zero is not known to do "
        "that [E533]\n"
        f"  note: it is of type `{SUM}`\n"
        f"  help: {OTHERWISE}",
    ),
    "to nowhere": (
        "federated_value_at_server:(int32 -> int32@SERVER)(mine:(int32@SERVER -> int32)(state))",
        "`v_1 = mine(...)` moves values, and the operator mine is not known to do that [E533]\n"
        "  note: it is of type `(int32@SERVER -> int32)`\n"
        f"  help: {OTHERWISE}",
    ),
}


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
@pytest.mark.parametrize("name", MOVING)
def test_an_unknown_operator_that_moves_values(name: str, form: str) -> None:
    output, message = MOVING[name]
    assert refusal(FormError, compile_form, program(output), form) == message


LOCAL = {
    "at the server": ("mine:(int32@SERVER -> int32@SERVER)(state)", "v_1 = mine(...)"),
    "at the clients": (
        f"federated_sum:{SUM}(mine:({{int32}}@CLIENTS -> {{int32}}@CLIENTS)(data))",
        "v_1 = mine(...)",
    ),
    "in a function": (
        f"federated_sum:{SUM}(federated_map:(<(int32 -> int32),{{int32}}@CLIENTS> -> "
        "{int32}@CLIENTS)(<mine:(int32 -> int32),data>))",
        "v_1 = federated_map(...)",
    ),
    "in an aggregation": (
        "federated_aggregate:(<{int32}@CLIENTS,int32,(<int32,int32> -> int32),"
        "(<int32,int32> -> int32),(int32 -> int32)> -> int32@SERVER)(<data,0,"
        "generic_plus:(<int32,int32> -> int32),generic_plus:(<int32,int32> -> int32),"
        "mine:(int32 -> int32)>)",
        "v_1 = federated_aggregate(...)",
    ),
}


@pytest.mark.parametrize("name", LOCAL)
def test_an_unknown_operator_that_works_where_its_operands_are(name: str) -> None:
    output, place = LOCAL[name]
    assert refusal(FormError, compile_form, program(output), "mapreduce") == (
        f"the operator mine cannot be part of local code in this form [E522]\n  note: in `{place}`"
    )
    kept = compile_form(program(output), "distribute-aggregate").decompile()
    assert "mine" in [node.uri for node in walk(kept) if isinstance(node, Intrinsic)]


def replaced(root: Node, index: int, uri: str) -> Node:
    """The program with another operator for one of its operators and sections, if it has any."""
    found = list(dict.fromkeys(n for n in walk(root) if isinstance(n, (Intrinsic, Compiled))))
    if not found:
        return root
    old = found[index % len(found)]
    new = Intrinsic(uri, old.type)
    return rewrite(root, lambda node: new if node == old else None)


@pytest.mark.slow
@given(rounds(), st.integers(0, 1000), st.sampled_from(["mine", *INTRINSICS]))
def test_another_operator_is_compiled_or_refused(root: Node, index: int, uri: str) -> None:
    with contextlib.suppress(TffcError):
        root = replaced(root, index, uri)
    for form in FORMS:
        with contextlib.suppress(TffcError):
            compile_form(root, form).decompile()


VALUES = {
    "at the server": ("mine:int32@SERVER", "int32@SERVER"),
    "at both": (
        f"federated_sum:{SUM}(mine:<int32@SERVER,{{int32}}@CLIENTS>[1])",
        "<int32@SERVER,{int32}@CLIENTS>",
    ),
    "nowhere": ("federated_value_at_server:(int32 -> int32@SERVER)(mine:int32)", "int32"),
}


@pytest.mark.parametrize("name", VALUES)
def test_an_unknown_operator_that_is_no_function(name: str) -> None:
    output, type = VALUES[name]
    with pytest.raises(FormError) as caught:
        compile_form(program(output), "mapreduce")
    assert caught.value.message == f"an Intrinsic of type `{type}` cannot be put into a graph"
