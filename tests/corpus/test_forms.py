"""Recorded computations as forms: accepted and refused as TFF does, with parts of the same types,
and the recorded results when their parts are run."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.corpus.cases import MISSING, Case, cases
from tests.forms import run_broadcast, run_mapreduce
from tffc.backends import (
    BroadcastForm,
    DistributeAggregateForm,
    MapReduceForm,
    compile_form,
    compile_initialize,
)
from tffc.backends.forms import local_type
from tffc.errors import TffcError
from tffc.execution.values import Federated, to_python, to_value
from tffc.ir.wire import from_bytes, to_bytes

pytestmark = pytest.mark.skipif(not cases(), reason=MISSING)

OWN_LIMITS = {
    "mapreduce": {"sequence_map_reduce", "neg_select_keys", "secure_select_round"},
    "broadcast": set[str](),
    "distribute-aggregate": {
        "agg_encoded_sum",
        "custom_aggregate",
        "dataset_concat_aggregation",
        "fedavg_compression",
        "mr_mnist",
        "mr_temperature",
        "neg_select_keys",
        "secure_select_round",
        "strings_in_aggregate",
    },
}
"""Rounds that TFF refuses for what it lacks, not for what is wrong with them."""

WITH_ROUNDS = [case for case in cases() if case.has("io.json")]


def compile_or_refuse(case: Case, form: str) -> Any:
    """The form, or None where both sides refuse; fails where only one does."""
    recorded = case.forms.get(form.replace("-", "_"), {})
    if recorded.get("ok") or str(case) in OWN_LIMITS[form]:
        return compile_form(case.program(), form)
    if case.folder.name.startswith("negproto"):
        with pytest.raises(TffcError):
            compile_form(case.program(), form)
    else:
        program = case.program()
        with pytest.raises(TffcError):
            compile_form(program, form)
    return None


@pytest.mark.parametrize("case", cases(), ids=str)
@pytest.mark.parametrize("form", ["mapreduce", "broadcast"])
def test_types_of_parts(case: Case, form: str) -> None:
    made = compile_or_refuse(case, form)
    if made is None:
        return
    recorded = case.forms[form]
    for name, part in made.components().items():
        assert from_bytes(to_bytes(part)) == part
        if recorded.get("ok"):
            assert str(part.type) == recorded["components"][name]["type"], name


@pytest.mark.parametrize("case", cases(), ids=str)
def test_distribute_aggregate(case: Case) -> None:
    made = compile_or_refuse(case, "distribute-aggregate")
    if made is None:
        return
    assert isinstance(made, DistributeAggregateForm)
    for part in made.components().values():
        assert from_bytes(to_bytes(part)) == part
    recorded = case.forms["distribute_aggregate"]
    if not recorded.get("ok"):
        return
    theirs = {name: unnamed(part["type"]) for name, part in recorded["components"].items()}
    ours = {name: str(part.type) for name, part in made.components().items()}
    sent = without_injected(theirs["server_to_client_broadcast"])
    assert ours["server_to_client_broadcast"] == sent
    assert result_of(ours["client_to_server_aggregation"]) == result_of(
        theirs["client_to_server_aggregation"]
    )
    state = re.search(
        r"intermediate_state=(.*)>\)$", recorded["components"]["server_prepare"]["type"]
    )
    assert state is not None
    _, temporary = made.server_prepare.type.result.children()
    assert count_tensors(str(temporary)) <= count_tensors(state.group(1))


def unnamed(text: str) -> str:
    return re.sub(r"(intrinsic_args_from_before_comp|intermediate_state)=", "", text)


def without_injected(text: str) -> str:
    """Without the empty struct that TFF broadcasts to keep aggregation parameters early."""
    for placement, end in (("SERVER", " ->"), ("CLIENTS", ")")):
        text = text.replace(f",<>@{placement}>{end}", f">{end}")
        text = text.replace(f"<<>@{placement}>{end}", f"<>{end}")
    return text


def result_of(text: str) -> str:
    return text.split(" -> ")[-1]


def count_tensors(text: str) -> int:
    return len(
        re.findall(r"\b(?:u?int\d+|float\d+|bool|str|complex\d+)\b", re.sub(r"\w+=", "", text))
    )


@pytest.mark.parametrize("case", WITH_ROUNDS, ids=str)
@pytest.mark.parametrize("form", ["mapreduce", "broadcast"])
def test_recorded_results(case: Case, form: str) -> None:
    made = compile_or_refuse(case, form)
    if made is None:
        return
    recorded = case.rounds()
    for index, one in enumerate(recorded.rounds):
        state, clients = arguments(made, one)
        result = local_type(made.type_signature.result)
        if isinstance(made, MapReduceForm):
            found = to_python(run_mapreduce(made, state, clients), result)
        else:
            assert isinstance(made, BroadcastForm)
            found = [to_python(value, result) for value in run_broadcast(made, state, clients)]
        assert not recorded.compare_result(index, found)


def arguments(form: MapReduceForm | BroadcastForm, recorded: Any) -> tuple[Any, list[Any]]:
    """The state and every client's data of a recorded round."""
    assert form.type_signature.parameter is not None
    state, data = to_value(recorded.arg, form.type_signature.parameter)
    members = data.members * (recorded.n_clients if data.all_equal else 1)
    return unplaced(state), list(members)


def unplaced(value: Any) -> Any:
    if isinstance(value, Federated):
        return value.members[0]
    return tuple(unplaced(inner) for inner in value)


@pytest.mark.parametrize("case", [c for c in cases() if c.has("init.pb")], ids=str)
def test_first_state(case: Case) -> None:
    recorded = case.forms["init_form"]
    (part,) = recorded["components"].values()
    assert str(compile_initialize(case.program("init")).type) == part["type"]
