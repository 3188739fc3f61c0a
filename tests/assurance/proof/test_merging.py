"""Proofs of MergeableForm: `merge` joins the results of groups, whatever the groups are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.backends.test_mergeable import reduced
from tests.corpus.cases import MISSING, Case, cases, each_case
from tests.corpus.table import agrees
from tffc.assurance.proof.prove import Answer, Proof, prove
from tffc.backends import compile_form
from tffc.language import Node
from tffc.language.notation import parse
from tffc.support.errors import TffcError

PAIR = "<<int32,int32>,<int32,int32>>"
TWO_SUMS = parse(
    "(p: <int32@SERVER,{<int32,int32>}@CLIENTS> -> (let "
    "a=federated_sum:({<int32,int32>}@CLIENTS -> <int32,int32>@SERVER)(p[1]) in <p[0],a>))"
)
ADDED = "generic_plus:(<int32,int32> -> int32)"


def proof(program: Node, **parts: str) -> Proof:
    """The proof of a form of a program, with some components given as text."""
    components = compile_form(program, "mergeable").components()
    changed = {name: parse(text) for name, text in parts.items()}
    assert all(changed[name].type == components[name].type for name in changed)
    return prove(program, "mergeable", {**components, **changed})


def merging(*elements: str, of: str = "<<int32>,<int32>>") -> str:
    """A merge whose elements are expressions of `x`, the pair of results."""
    return f"(x: {of} -> <{','.join(elements)}>)"


@pytest.mark.parametrize(
    ("operator", "extra"),
    [
        ("federated_sum", ""),
        ("federated_min", ""),
        ("federated_max", ""),
        ("federated_secure_sum", "int32 9"),
        ("federated_secure_sum_bitwidth", "int32 9"),
        ("federated_secure_modular_sum", "int32 9"),
        ("federated_secure_modular_sum", "int32@SERVER p[0]"),
    ],
)
def test_operators(operator: str, extra: str) -> None:
    assert proof(reduced(operator, extra=extra)).answer is Answer.PROVED


@pytest.mark.parametrize("kind", ["float32", "<float32[2],float32>"])
def test_means(kind: str) -> None:
    assert proof(reduced("federated_mean", kind)).answer is Answer.PROVED


SUM = reduced("federated_sum")
MODULAR = reduced("federated_secure_modular_sum", extra="int32 9")


@pytest.mark.parametrize(
    ("program", "merge"),
    [
        (SUM, merging(f"{ADDED}(<x[0][0],{ADDED}(<x[1][0],x[1][0]>)>)")),
        (SUM, merging("generic_multiply:(<int32,int32> -> int32)(<x[0][0],x[1][0]>)")),
        (SUM, merging(f"{ADDED}(<x[0][0],x[0][0]>)")),
        (SUM, merging(f"{ADDED}(<x[0][0],1>)")),
        (SUM, merging("x[0][0]")),
        (SUM, merging("x[1][0]")),
        (SUM, merging("0")),
        (reduced("federated_secure_sum", extra="int32 9"), merging("x[0][0]")),
        # The sum of two remainders is no remainder.
        (MODULAR, merging(f"{ADDED}(<x[0][0],x[1][0]>)")),
        (reduced("federated_max"), merging(f"{ADDED}(<x[0][0],x[1][0]>)")),
        (
            TWO_SUMS,
            merging(
                f"<{ADDED}(<x[0][0][1],x[1][0][1]>),{ADDED}(<x[0][0][0],x[1][0][0]>)>",
                of="<<<int32,int32>>,<<int32,int32>>>",
            ),
        ),
        (
            TWO_SUMS,
            merging(
                f"<{ADDED}(<x[0][0][0],x[1][0][0]>),{ADDED}(<x[0][0][1],x[1][0][0]>)>",
                of="<<<int32,int32>>,<<int32,int32>>>",
            ),
        ),
    ],
)
def test_wrong_merging_is_disproved(program: Node, merge: str) -> None:
    found = proof(program, merge=merge)
    assert found.answer is Answer.DIFFERENT
    assert found.difference is not None
    assert found.difference.leaf.startswith("merge's result[0]")


def test_a_modulus_that_goes_with_the_sum_is_that_of_a_group() -> None:
    program = reduced("federated_secure_modular_sum", extra="int32@SERVER p[0]")
    of = "<<<int32,int32>>,<<int32,int32>>>"
    lost = f"<{ADDED}(<x[0][0][0],x[1][0][0]>),x[0][0][1]>"
    assert proof(program, merge=merging(lost, of=of)).answer is Answer.DIFFERENT
    doubled = f"<x[0][0][0],{ADDED}(<x[0][0][1],x[1][0][1]>)>"
    assert proof(program, merge=merging(doubled, of=of)).answer is Answer.DIFFERENT


def test_the_text_of_a_difference() -> None:
    difference = proof(SUM, merge=merging("x[0][0]")).difference
    assert difference is not None
    assert (difference.leaf, difference.reason) == ("merge's result[0]", "other operations")


TAKEN = "{int32}@CLIENTS"


def test_results_of_groups_that_cannot_be_merged() -> None:
    # What `up_to_merge` gives is no aggregate, but a function of one.
    plain = (
        f"(p: <int32@SERVER,{TAKEN}> -> (let a=federated_sum:({TAKEN} -> int32@SERVER)(p[1]),"
        "b=federated_apply:(<(int32 -> int32),int32@SERVER> -> int32@SERVER)(<(v: int32 -> "
        f"{ADDED}(<v,v>)),a>),"
        "c=federated_zip_at_server:(<int32@SERVER> -> <int32>@SERVER)(<b>) in c))"
    )
    program = parse(
        f"(p: <int32@SERVER,{TAKEN}> -> (let a=federated_sum:({TAKEN} -> int32@SERVER)(p[1]),"
        "b=federated_apply:(<(int32 -> int32),int32@SERVER> -> int32@SERVER)(<(v: int32 -> "
        f"{ADDED}(<v,v>)),a>) in <p[0],b>))"
    )
    last = (
        f"(x: <top_level_arg=<int32@SERVER,{TAKEN}>,merge_result=<int32>@SERVER> -> (let "
        "a=federated_apply:(<(<int32> -> int32),<int32>@SERVER> -> int32@SERVER)"
        "(<(v: <int32> -> v[0]),x[1]>) in <x[0][0],a>))"
    )
    found = proof(program, up_to_merge=plain, after_merge=last)
    assert (found.answer, found.construct) == (
        Answer.UNDECIDED,
        "a result of a group that is no aggregation",
    )


def test_what_is_done_once_in_each_group() -> None:
    draw = tff.tf_computation(lambda: tf.random.uniform([], 0, 9, tf.int32))
    add = tff.tf_computation(lambda x, y: x + y, np.int32, np.int32)
    state, data = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)

    @tff.federated_computation(state, data)
    def once(state, data):
        sent = tff.federated_broadcast(tff.federated_eval(draw, tff.SERVER))
        return state, tff.federated_sum(tff.federated_map(add, (data, sent)))

    @tff.federated_computation(state, data)
    def each(state, data):
        own = tff.federated_eval(draw, tff.CLIENTS)
        return state, tff.federated_sum(tff.federated_map(add, (data, own)))

    def answer(program: Any) -> Proof:
        form = compile_form(program.node, "mergeable", allow_impure_duplicates=True)
        return prove(program.node, "mergeable", form.components())

    found = answer(once)
    assert found.answer is Answer.UNDECIDED
    assert found.construct == "a draw or an effect in each group"
    assert answer(each).answer is Answer.PROVED


@pytest.mark.skipif(not cases(), reason=MISSING)
@each_case(cases())
def test_recorded_computations(case: Case) -> None:
    """Whatever compiles to MapReduceForm does to MergeableForm, is proved, and gives the recorded
    results in every grouping of the clients."""
    try:
        program = case.program()
        compile_form(program, "mapreduce")
    except TffcError:
        return
    form = compile_form(program, "mergeable")
    assert prove(program, "mergeable", form.components()).answer is Answer.PROVED
    assert agrees(case, form)
