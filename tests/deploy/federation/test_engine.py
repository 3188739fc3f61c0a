"""Rounds on a federation give what the local engine gives, whatever its nodes do."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tffc as tff
from tests.deploy.federation.nodes import (
    ALL,
    ANSWERS,
    BROKEN,
    DEAD,
    DOUBLED,
    EMPTY,
    FAILS,
    FLOWER,
    GONE,
    LATE,
    OTHER,
    Defective,
    Delivery,
    Together,
    counted,
    in_turn,
    make_node,
    planned,
    run,
)
from tests.refusals import refusal
from tests.runtime.engines.programs import every_aggregation, process_of, scaled
from tests.runtime.engines.sources import SomeBad, Values, numbers
from tffc.deploy.federation.asking import Arrival, TooFewError
from tffc.deploy.federation.engine import FederationEngine, Nodes
from tffc.deploy.federation.settings import RunSettings
from tffc.runtime.engines.engine import Cohort, RoundResult
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.operations.counts import read_counts
from tffc.support.errors import DataError, ExecutionError

FORMS = pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
NONE = tff.types.at_server(())
FLOATS = tff.types.at_clients(np.float32)
NAMES: tuple[str, ...] = ("north", "south", "west")
PARTS = {"north": (0, 4), "south": (4, 1), "west": (5, 7)}
"""The clients of each node: the first one, and how many."""


CLIENTS = {name: numbers(*part) for name, part in PARTS.items()}


def together_of(
    process: Process,
    *actions: Mapping[str, str],
    clients: Mapping[str, Values] = CLIENTS,
    deliver: Delivery = in_turn,
) -> Together:
    nodes = {name: make_node(process.bundle, clients[name], []) for name in NAMES}
    return Together(nodes, planned(actions), deliver)


def locally(process: Process, names: tuple[str, ...] = NAMES, state: Any = ()) -> RoundResult:
    values = [value for name in sorted(names) for value in numbers(*PARTS[name]).values]
    source = Values(values)
    return LocalEngine(process).run_round(state, Cohort(source, source.clients))


def assert_close(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@FORMS
def test_every_aggregation(form: str) -> None:
    process = process_of(every_aggregation, form)
    ran = run(process, together_of(process), secure_sums="open")
    (only,) = ran.rounds
    assert_close(only.output, locally(process).output)
    assert only.output[2] == sum(range(12))
    assert (only.clients, only.skipped) == (NAMES, ())
    assert ran.log == ["round 1: secure sums are not masked; the server sees parts"]


@tff.tf_computation(np.float32, np.float32)
def added(x: Any, y: Any) -> Any:
    return x + y


@tff.federated_computation(tff.types.at_server(np.float32), FLOATS)
def moving(state: Any, data: Any) -> Any:
    """Clients see the state; the new state is it and the mean of what they make of it."""
    shifted = tff.federated_map(added, (tff.federated_broadcast(state), data))
    mean = tff.federated_mean(shifted)
    return tff.federated_map(added, (state, mean)), mean


@tff.tf_computation(np.float32)
def doubled(x: Any) -> Any:
    return x + x


@tff.tf_computation
def ten() -> Any:
    return np.float32(10)


@tff.federated_computation(tff.types.at_server((np.float32, np.float32)), FLOATS)
def kept_apart(state: Any, data: Any) -> Any:
    """Where aggregations begin is computed beforehand; half of the state is the server's alone."""
    total = tff.federated_aggregate(data, ten(), added, added, doubled)
    secret = tff.federated_map(added, (state[1], total))
    return tff.federated_zip((state[0], secret)), total


SECRET = np.float32(123456.789)


@FORMS
def test_nodes_see_nothing_of_what_only_the_server_keeps(form: str) -> None:
    process = process_of(kept_apart, form)
    clients = Values([np.float32(1), np.float32(2)])
    together = Together({"north": make_node(process.bundle, clients, [])})
    settings = RunSettings(min_nodes=1, min_replies=1)
    engine = FederationEngine(process, together, settings, [].append)
    state = (np.float32(7), SECRET)
    found = engine.run_round(state, Cohort(Nodes(["north"]), ("north",)))
    assert found.output == 26
    assert found.state[1] == SECRET + np.float32(26)
    (record,) = together.asked
    assert not any(np.any(array == SECRET) for array in record.arrays)
    assert SECRET.tobytes() not in record.entries["rest"]


@tff.federated_computation(NONE, FLOATS)
def summed(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(data)


def test_the_order_of_names_decides_and_not_that_of_answers() -> None:
    """In the order of the names 1 is left, and in that of the answers nothing."""
    process = process_of(summed, "mapreduce")
    clients = [Values([np.float32(value)]) for value in (1e8, -1e8, 1)]
    held = dict(zip(NAMES, clients, strict=True))
    for deliver in (in_turn, lambda arrived, answers: [*answers, *arrived]):
        together = together_of(process, clients=held, deliver=deliver)
        assert run(process, together).rounds[0].output == 1


def test_clients_keep_what_a_round_of_a_broadcast_form_gives_them(tmp_path: Any) -> None:
    process = process_of(scaled, "broadcast")
    clients = Values([np.int32(2), np.int32(3)])
    log: list[str] = []
    node = make_node(process.bundle, clients, log, {"out": str(tmp_path)})
    together = Together({"north": node})
    settings = RunSettings(min_nodes=1, min_replies=1)
    engine = FederationEngine(process, together, settings, [].append)
    found = engine.run_round(np.int32(7), Cohort(Nodes(["north"]), ("north",), round=3))
    assert (found.state, found.output, log) == (7, (), [])
    files = sorted((tmp_path / "clients" / "round-3").iterdir())
    assert [file.name for file in files] == ["00000.npz", "00001.npz"]
    held = [array for file in files for array in np.load(file).values()]
    assert [int(array) for array in held] == [14, 21]
    assert not any(record.arrays for record in together.seen)


def test_a_node_without_a_folder_for_what_clients_have() -> None:
    process = process_of(scaled, "broadcast")
    log: list[str] = []
    node = make_node(process.bundle, Values([np.int32(2)]), log)
    together = Together({"north": node})
    settings = RunSettings(min_nodes=1, min_replies=1)
    engine = FederationEngine(process, together, settings, [].append)
    with pytest.raises(TooFewError):
        engine.run_round(np.int32(7), Cohort(Nodes(["north"]), ("north",)))
    assert log == [
        "clients have something in the end of a round, and the node has no folder for it [E766]\n"
        "  help: start the node with --node-config 'out=\"/path/to/folder\" ...'"
    ]


# Faults.


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (LATE, "south did not answer in time"),
        (DEAD, "south did not answer in time"),
        (FAILS, "south does not take part: E763, A message from another version or program"),
        (FLOWER, "south does not take part: Flower reports its error 2"),
        (EMPTY, "south does not take part: it has no clients for the round"),
        (OTHER, "south does not take part: it answers for another program"),
    ],
)
def test_a_node_that_takes_no_part(action: str, line: str) -> None:
    process = process_of(every_aggregation, "mapreduce")
    ran = run(process, together_of(process, {"south": action}), secure_sums="open")
    (only,) = ran.rounds
    assert (only.clients, only.skipped) == (("north", "west"), ("south",))
    assert_close(only.output, locally(process, ("north", "west")).output)
    assert counted(ran.log)[line] == 1


def test_an_answer_to_an_earlier_attempt_is_passed_over() -> None:
    process = process_of(every_aggregation, "mapreduce")
    late = together_of(process, {"south": LATE}, {"south": DEAD})
    ran = run(process, late, secure_sums="open", rounds=2)
    assert [each.skipped for each in ran.rounds] == [("south",), ("south",)]
    assert "round 2: south answers too late an earlier attempt" in ran.log
    assert "round 2: south did not answer in time" in ran.log


def test_a_round_with_too_few_answers_begins_again_from_the_same_state(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFFC_METRICS", str(tmp_path))
    process = process_of(every_aggregation, "mapreduce")
    actions = {"south": DEAD, "west": LATE}, {"north": EMPTY, "west": BROKEN}
    ran = run(process, together_of(process, *actions), secure_sums="open", pause=3.0)
    (only,) = ran.rounds
    assert only.clients == NAMES
    assert_close(only.output, locally(process).output)
    assert ran.waited == [3.0, 3.0]
    again = "1 of 3 nodes answered in round 1, and 2 are needed: the round begins again in 3 s"
    assert ran.log.count(again) == 2
    assert read_counts(tmp_path)["rounds"] == {"repeated": 2, "finished": 1}


def test_it_is_given_up_after_a_number_of_attempts() -> None:
    process = process_of(every_aggregation, "mapreduce")
    actions = [{"south": DEAD, "west": FLOWER}] * 9
    together = together_of(process, *actions)
    with pytest.raises(TooFewError) as caught:
        run(process, together, secure_sums="open", attempts=4)
    assert together.attempt == 4
    assert str(caught.value) == (
        "1 of 3 nodes answered in round 1, and 2 are needed [E770]\n"
        "  note: that was attempt 4, the last one\n"
        "  help: see the log for what each node answered; wait longer, or let fewer be enough"
    )


def test_no_state_comes_of_nodes_without_clients() -> None:
    process = process_of(every_aggregation, "mapreduce")
    actions = [dict.fromkeys(NAMES, EMPTY)] * 2
    together = together_of(process, *actions)
    with pytest.raises(TooFewError, match="0 of 3 nodes answered"):
        run(process, together, secure_sums="open", attempts=2, min_replies=1)


def test_rounds_wait_for_nodes() -> None:
    process = process_of(every_aggregation, "mapreduce")
    together = together_of(process)
    asked = iter([[], ["north"], list(NAMES), list(NAMES)])
    together.names = lambda: next(asked)
    ran = run(process, together, secure_sums="open", min_nodes=3)
    assert ran.rounds[0].clients == NAMES
    assert ran.waited == [2.0, 2.0]


def test_too_few_nodes() -> None:
    process = process_of(every_aggregation, "mapreduce")
    together = together_of(process, {"west": GONE})
    with pytest.raises(TooFewError) as caught:
        run(process, together, secure_sums="open", min_nodes=3, timeout=3.0, attempts=1)
    assert str(caught.value) == (
        "2 nodes are there, and a round needs 3 [E770]\n"
        "  note: that was attempt 1, the last one\n"
        "  help: start more nodes, or let fewer be enough with min-nodes"
    )


def test_a_fraction_of_the_nodes_is_asked() -> None:
    process = process_of(every_aggregation, "mapreduce")
    given: dict[str, Any] = {"secure_sums": "open", "min_replies": 1, "rounds": 6}
    ran = run(process, together_of(process), fraction=0.4, **given)
    assert {len(each.clients) for each in ran.rounds} == {2}
    assert len({each.clients for each in ran.rounds}) > 1
    again = run(process, together_of(process), fraction=0.4, **given)
    assert [e.clients for e in again.rounds] == [e.clients for e in ran.rounds]
    other = run(process, together_of(process), fraction=0.4, seed=1, **given)
    assert [e.clients for e in other.rounds] != [e.clients for e in ran.rounds]


ACTIONS = st.lists(
    st.fixed_dictionaries({name: st.sampled_from(ALL) for name in NAMES}), max_size=5
)


@pytest.mark.slow
@settings(max_examples=30)
@given(ACTIONS, st.integers(1, 3))
def test_whatever_nodes_do(actions: list[dict[str, str]], least: int) -> None:
    """Every round that finishes has the sum of those who took part in it, and only those."""
    process = process_of(every_aggregation, "mapreduce")
    together = together_of(process, *actions)
    given: dict[str, Any] = {"min_nodes": 1, "min_replies": least, "rounds": 2}
    ran = run(process, together, secure_sums="open", attempts=6, timeout=9.0, **given)
    assert len(ran.rounds) == 2
    plan = planned(actions)
    taken = iter(_attempts(plan, least))
    for each in ran.rounds:
        assert each.clients == next(taken)
        firsts = (PARTS[name] for name in each.clients)
        assert each.output[2] == sum(sum(range(a, a + n)) for a, n in firsts)
        assert not np.isnan(each.output[0])


def _attempts(plan: Any, least: int) -> Iterator[tuple[str, ...]]:
    """Who takes part in each attempt that is enough."""
    for attempt in itertools.count():
        good = tuple(name for name in NAMES if plan(attempt, name) in ANSWERS)
        if len(good) >= least:
            yield good


def test_doubled_answers_count_once() -> None:
    process = process_of(every_aggregation, "distribute-aggregate")
    doubled = dict.fromkeys(NAMES, DOUBLED)
    ran = run(process, together_of(process, doubled), secure_sums="open")
    assert ran.rounds[0].output[2] == sum(range(12))


def test_the_first_answer_counts() -> None:
    """A node that answers again, and otherwise, has answered already."""
    process = process_of(every_aggregation, "mapreduce")

    def again(arrived: list[Arrival], answers: list[Arrival]) -> list[Arrival]:
        (answer,) = answers
        first = [*arrived, answer][0]
        return [*arrived, answer, first._replace(node=answer.node)]

    ran = run(process, together_of(process, deliver=again), secure_sums="open")
    assert ran.rounds[0].output[2] == sum(range(12))


# What a server is told, and what it demands.


def test_errors_of_nodes_carry_neither_values_nor_names() -> None:
    process = process_of(every_aggregation, "mapreduce")
    clients = {
        "north": Values([(np.float32(1), np.int32(4321))]),
        "south": SomeBad([(np.float32(1), np.int32(1))] * 2),
        "west": Defective([0]),
    }
    log: list[str] = []
    together = Together({n: make_node(process.bundle, c, log) for n, c in clients.items()})
    with pytest.raises(TooFewError):
        run(process, together, secure_sums="open", attempts=1)
    assert any("the client 00000 adds 4321 to a secure sum" in line for line in log)
    assert any(line.startswith("no data of 00001 [E000]") for line in log)
    assert "KeyError: 'a defect'" in log
    seen = repr(together.seen)
    assert "4321" not in seen
    assert "0000" not in seen.replace(str(together.seen[0].entries["program"]), "")
    assert {record.entries["error"] for record in together.seen} == {"E663", "E000", "E772"}


def test_an_error_that_a_node_made_up() -> None:
    process = process_of(every_aggregation, "mapreduce")

    def lies(arrived: list[Arrival], answers: list[Arrival]) -> list[Arrival]:
        (answer,) = answers
        if answer.node == "west" and answer.record is not None:
            entries = {**answer.record.entries, "error": "E1\x1b[2J"}
            answer = answer._replace(record=answer.record._replace(entries=entries))
        return [*arrived, answer]

    ran = run(process, together_of(process, deliver=lies), secure_sums="open")
    assert (
        counted(ran.log)["west does not take part: it answers an error that is not known here"] == 1
    )


def test_secure_sums_are_refused_unless_they_may_be_unmasked() -> None:
    process = process_of(every_aggregation, "mapreduce")
    with pytest.raises(ExecutionError) as caught:
        FederationEngine(process, Together({}), RunSettings(), [].append)
    assert str(caught.value) == (
        "the program has secure sums, and it is not said how nodes add them [E766]\n"
        '  help: give secure-sums="masked" in the run configuration, or "open" where the server '
        "may see the sum of each node's clients"
    )
    FederationEngine(process_of(moving, "mapreduce"), Together({}), RunSettings(), [].append)


def test_the_data_of_a_node_is_nowhere_else() -> None:
    assert refusal(DataError, lambda: Nodes(["north"]).read("north")) == (
        "the data of the node north is nowhere but there [E768]\n"
        "  help: run what needs it at the node, as tffc run does there"
    )
