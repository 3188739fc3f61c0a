"""Rounds whose clients keep a state: their form, what it refuses, and what is proved of it."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

from tests.runtime.engines.programs import tallied
from tffc.assurance.audit.audit import audit
from tffc.assurance.proof.prove import Answer, prove
from tffc.assurance.validation.arguments import cases
from tffc.assurance.validation.real_data import RealData
from tffc.assurance.validation.validate import validate
from tffc.backends import compile_form
from tffc.backends.forms.kinds import form_for
from tffc.backends.forms.queries import as_round
from tffc.language import FunctionType, Node
from tffc.language.notation import parse
from tffc.passes.table import default_pipeline
from tffc.support.errors import FormError, ValidationError

ROUND = as_round(tallied.node)


def test_each_component_has_its_type() -> None:
    assert compile_form(ROUND, "client-state").summary() == textwrap.dedent(
        """\
        prepare                   : (int32 -> <int32>)
        work                      : (<<data=int32,total=int32>,<int32>> -> WORKED)
        zero                      : ( -> <int32>)
        accumulate                : (<<int32>,<int32>> -> <int32>)
        merge                     : (<<int32>,<int32>> -> <int32>)
        report                    : (<int32> -> <int32>)
        secure_sum_bitwidth       : ( -> <int32>)
        secure_sum_max_input      : ( -> <>)
        secure_modular_sum_modulus: ( -> <>)
        update                    : (<int32,<<int32>,<int32>,<>,<>>> -> <int32,<int32,int32>>)"""
    ).replace("WORKED", "<<int32>,<int32>,<>,<>,int32>")


def test_it_is_the_form_of_what_returns_three_values() -> None:
    assert form_for(ROUND) == "client-state"


def test_the_form_is_verified_and_proved() -> None:
    assert isinstance(ROUND.type, FunctionType)
    report = validate(
        ROUND, list(cases(ROUND.type.parameter, 20, 1)), default_pipeline(), "client-state"
    )
    assert report.stages[-1] == "the form client-state"
    assert prove(ROUND, "client-state", parts()).answer is Answer.PROVED


def parts() -> dict[str, Node]:
    return dict(compile_form(ROUND, "client-state").components())


def test_another_state_at_a_client_is_not_proved_and_not_verified() -> None:
    """The components of a program whose clients keep what they should send."""
    swapped = as_round(_swapped().node)
    others = dict(compile_form(swapped, "client-state").components())
    assert prove(ROUND, "client-state", {**parts(), "work": others["work"]}).answer is not (
        Answer.PROVED
    )
    assert isinstance(ROUND.type, FunctionType)
    data = RealData(ROUND.type, [np.int32(3), np.int32(4)], 20, seed=0)
    with pytest.raises(ValidationError):
        validate(
            ROUND,
            data,
            default_pipeline(),
            "client-state",
            compile=lambda *_, **__: compile_form(swapped, "client-state"),
        )


def _swapped() -> Any:
    import tffc as tff
    from tests.runtime.engines.programs import INT, one_more, tally

    @tff.federated_computation(tff.types.at_server(int), INT, INT)
    def swapped(key: Any, data: Any, total: Any) -> Any:
        kept, sent = tff.federated_map(tally, (tff.federated_broadcast(key), data, total))
        sums = tff.federated_sum(sent), tff.federated_secure_sum_bitwidth(sent, 20)
        return tff.federated_map(one_more, key), kept, sums

    return swapped


def test_another_form_names_this_one() -> None:
    with pytest.raises(FormError) as caught:
        compile_form(ROUND, "mapreduce")
    assert "take the form client-state" in str(caught.value.help)


def test_decompiled_and_compiled_again_it_is_the_same_form() -> None:
    form = compile_form(ROUND, "client-state")
    again = compile_form(form.decompile(), "client-state")
    assert again.summary() == form.summary()
    assert prove(ROUND, "client-state", again.components()).answer is Answer.PROVED


STATE_AS_DATA = (
    "(s:<int32@SERVER,<{int32}@CLIENTS,{int32}@CLIENTS>> -> "
    "<s[0],s[1][0],federated_sum:({int32}@CLIENTS -> int32@SERVER)(s[1][1])>)"
)


def test_a_channel_of_the_state_depends_on_what_was_kept_in_it() -> None:
    """The sum is of the state alone, which is the data of the round before."""
    (channel,) = audit(parse(STATE_AS_DATA), "client-state").channels
    assert channel.depends.elements == ("data[0]", "data[1]")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "(s:<int32@SERVER,<{int32}@CLIENTS,{int32}@CLIENTS>> -> <s[0],s[0]>)",
            "a round whose clients have states returns three values",
        ),
        (
            "(s:<int32@SERVER,<{int32}@CLIENTS,{int32}@CLIENTS>> -> <s[0],s[0],s[0]>)",
            "the second result of the round, the clients' new states, is one value placed at",
        ),
        (
            "(s:<int32@SERVER,<{int32}@CLIENTS,{int32}@CLIENTS>> -> <s[0],s[1],s[0]>)",
            "the second result of the round, the clients' new states, is one value placed at",
        ),
        (
            "(s:<int32@SERVER,{int32}@CLIENTS> -> <s[0],s[1],s[0]>)",
            "what a client holds is a struct of two, its data and its state; found",
        ),
        (
            "(s:<int32@SERVER,<{int32}@CLIENTS,{float32}@CLIENTS>> -> <s[0],s[1][0],s[0]>)",
            "the new state of a client is of type `int32`, the state before it of type `float32`",
        ),
        (
            "(s:<int32@SERVER,<{int32}@CLIENTS,{int32*}@CLIENTS>> -> <s[0],s[1][1],s[0]>)",
            "the state of a client consists of tensors",
        ),
        (
            "(s:<int32@SERVER,<{int32}@CLIENTS,{int32}@CLIENTS>> -> <s[0],s[1][1],s[1][0]>)",
            "the output of a round is placed at the server",
        ),
        (
            "(s:<int32@SERVER,<{int32}@CLIENTS,{int32}@CLIENTS>> -> <s[1][0],s[1][1],s[0]>)",
            "the new state of a round is placed at the server",
        ),
    ],
)
def test_what_is_refused(program: str, message: str) -> None:
    with pytest.raises(FormError, match=message.replace("[", r"\[")):
        compile_form(parse(program), "client-state")
