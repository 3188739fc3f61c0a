"""Queries and rounds of several values, which are made rounds before anything reads them."""

from __future__ import annotations

import pytest

from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_bundle
from tffc.backends.forms.queries import as_round
from tffc.language.nodes import Lambda
from tffc.language.notation import parse
from tffc.language.traverse import walk
from tffc.support.errors import FormError

SUMS = ("mapreduce", "distribute-aggregate")

QUERY = "(x: {float32}@CLIENTS -> federated_mean:({float32}@CLIENTS -> float32@SERVER)(x))"
TWO = """(x: <a={float32}@CLIENTS,b={int32}@CLIENTS> ->
  <mean=federated_mean:({float32}@CLIENTS -> float32@SERVER)(x.a),
   sum=federated_sum:({int32}@CLIENTS -> int32@SERVER)(x.b)>)"""
SEVERAL = """(x: <float32@SERVER,{float32}@CLIENTS,{int32}@CLIENTS> ->
  <federated_sum:({float32}@CLIENTS -> float32@SERVER)(x[1]),
   federated_sum:({int32}@CLIENTS -> int32@SERVER)(x[2])>)"""
LOCAL = "(x: <{float32}@CLIENTS,{int32}@CLIENTS> -> x[1])"

ROUNDS = [
    (QUERY, "(<state=<>@SERVER,data={float32}@CLIENTS> -> <<>@SERVER,float32@SERVER>)"),
    (
        TWO,
        "(<state=<>@SERVER,data=<a={float32}@CLIENTS,b={int32}@CLIENTS>> -> "
        "<<>@SERVER,<mean=float32@SERVER,sum=int32@SERVER>>)",
    ),
    (
        SEVERAL,
        "(<state=float32@SERVER,data=<{float32}@CLIENTS,{int32}@CLIENTS>> -> "
        "<float32@SERVER,int32@SERVER>)",
    ),
]


@pytest.mark.parametrize("form", SUMS)
@pytest.mark.parametrize(("text", "type"), ROUNDS, ids=["query", "two", "several"])
def test_bundles_are_proved(text: str, type: str, form: str) -> None:
    bundle = compile_bundle(parse(text), form)
    assert str(bundle.computation.type) == type
    assert prove(bundle.computation, form, bundle.components).answer is Answer.PROVED
    # What the user wrote is in it, and not a rewriting of it.
    written = parse(text)
    assert isinstance(written, Lambda)
    assert written.result in walk(bundle.computation)
    assert as_round(bundle.computation, form) is bundle.computation


def test_a_query_at_the_clients() -> None:
    bundle = compile_bundle(parse(LOCAL), "broadcast")
    assert str(bundle.computation.type) == (
        "(<state=<>@SERVER,data=<{float32}@CLIENTS,{int32}@CLIENTS>> -> {int32}@CLIENTS)"
    )


OTHERS = [
    "(x: {float32}@CLIENTS -> x)",  # at the clients, where the form needs the server
    "(x: <float32@SERVER,{float32}@CLIENTS> -> x[0])",  # the new state or the output?
    "(x: <float32@SERVER,int32@SERVER,{float32}@CLIENTS> -> <x[0],x[1]>)",  # two states?
    "(x: <{float32}@CLIENTS,float32@SERVER> -> <x[1],x[1]>)",
    "federated_sum:({float32}@CLIENTS -> float32@SERVER)",
]


@pytest.mark.parametrize("text", OTHERS)
def test_what_may_mean_something_else_stays_refused(text: str) -> None:
    program = parse(text)
    assert as_round(program, "mapreduce") is program
    with pytest.raises(FormError) as caught:
        compile_bundle(program, "mapreduce")
    assert f"found `{program.type}`" in caught.value.message
