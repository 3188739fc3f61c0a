"""A node decides by itself what it takes part in."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, cast

import numpy as np
import pytest

import tffc as tff
from tests.deploy.federation.nodes import Defective, make_node
from tests.runtime.engines.programs import NONE, every_aggregation, process_of
from tests.runtime.engines.sources import SomeBad, Values, numbers
from tffc.deploy.federation.messages import Record, Reply, Request, program_digest
from tffc.deploy.federation.node import Node
from tffc.runtime.engines.process import Process


@pytest.fixture
def process() -> Process:
    return process_of(every_aggregation, "mapreduce")


def request_for(process: Process, **changes: Any) -> Record:
    carried, sent = process.steps.prepare(())
    carried = process.steps.shared(carried)
    request = Request(program_digest(process), 1, "attempt", "open", carried, sent)
    return dataclasses.replace(request, **changes).to_record()


def answered(node: Node, record: Record) -> Reply:
    return Reply.from_record(node.answer(record))


def test_all_clients_are_in_one_accumulator(process: Process) -> None:
    reply = answered(make_node(process.bundle, numbers(0, 5), []), request_for(process))
    assert (reply.clients, reply.skipped, reply.error) == (5, 0, "")
    _, first, second, *_ = cast("list[Any]", reply.totals)
    assert (first, second) == ((10,), (10,))


def test_each_partition_has_its_clients(process: Process) -> None:
    sums: list[int] = []
    for part in range(2):
        config = {"partition-id": part, "num-partitions": 2}
        node = make_node(process.bundle, numbers(0, 5), [], config)
        totals = cast("list[Any]", answered(node, request_for(process)).totals)
        sums.append(int(totals[1][0]))
    assert sums == [0 + 2 + 4, 1 + 3]


def test_clients_that_cannot_be_read_are_left_out(process: Process) -> None:
    node = make_node(process.bundle, SomeBad(numbers(0, 5).values), [], {"skip-bad-clients": True})
    reply = answered(node, request_for(process))
    assert (reply.clients, reply.skipped) == (3, 2)


def test_a_node_without_clients(process: Process) -> None:
    reply = answered(make_node(process.bundle, Values([]), []), request_for(process))
    assert (reply.clients, reply.totals, reply.error) == (0, None, "")


def test_another_program(process: Process) -> None:
    log: list[str] = []
    node = make_node(process.bundle, numbers(0, 2), log)
    reply = answered(node, request_for(process, program="0" * 64))
    assert (reply.error, reply.attempt, reply.totals) == ("E763", "attempt", None)
    assert log == [
        "the server asks for a round of another program than the one in the node's app [E763]\n"
        "  help: let the server and all nodes run one app"
    ]


def test_rounds_only_go_up(process: Process) -> None:
    log: list[str] = []
    node = make_node(process.bundle, numbers(0, 2), log)
    assert answered(node, request_for(process, round=4)).error == ""
    assert node.memory.last_round == 4
    assert answered(node, request_for(process, round=4)).error == ""
    assert answered(node, request_for(process, round=3)).error == "E774"
    assert answered(node, request_for(process, round=0)).error == "E774"
    assert log[0] == (
        "the server asks for round 3 after round 4 [E774]\n"
        "  note: a message of an earlier round was held back, or sent again\n"
        "  help: begin a new run to repeat rounds"
    )


def test_what_cannot_be_read_is_answered(process: Process) -> None:
    node = make_node(process.bundle, numbers(0, 2), [])
    assert answered(node, Record({}, ())) == Reply("", 0, "", error="E763")


def policy(folder: pathlib.Path, text: str) -> dict[str, str]:
    file = folder / "policy.yaml"
    file.write_text(text)
    return {"policy": str(file)}


def test_a_policy_that_allows_the_round(process: Process, tmp_path: pathlib.Path) -> None:
    config = policy(tmp_path, "protection: system\nlargest-bytes: 100\n")
    node = make_node(process.bundle, numbers(0, 2), [], config)
    assert answered(node, request_for(process)).clients == 2


def test_a_policy_that_does_not(process: Process, tmp_path: pathlib.Path) -> None:
    log: list[str] = []
    config = policy(tmp_path, "operators: [federated_secure_sum]\n")
    node = make_node(process.bundle, numbers(0, 2), log, config)
    assert answered(node, request_for(process)).error == "E776"
    (told,) = log
    assert told.startswith(
        "a round of the program goes beyond the node's policy [E776]\n"
        "  note: operators: mean: federated_mean is used; allowed: federated_secure_sum\n"
    )


def test_unmasked_secure_sums_are_not_secure(process: Process, tmp_path: pathlib.Path) -> None:
    log: list[str] = []
    node = make_node(process.bundle, numbers(0, 2), log, policy(tmp_path, "protection: secure\n"))
    assert answered(node, request_for(process)).error == "E776"
    assert "protection: secure_sum: aggregated by the system; required: secure sum" in log[0]


@tff.federated_computation(NONE, tff.types.at_clients(np.int32))
def finds_the_largest(state: Any, data: Any) -> Any:
    return state, tff.federated_max(data)


@tff.federated_computation(NONE, tff.types.at_clients(np.int32))
def adds_up(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(data)


def test_components_that_are_not_those_of_the_program(tmp_path: pathlib.Path) -> None:
    other = process_of(adds_up, "mapreduce").bundle.components
    changed = Process(
        dataclasses.replace(process_of(finds_the_largest, "mapreduce").bundle, components=other)
    )
    log: list[str] = []
    node = make_node(changed.bundle, numbers(0, 2), log, policy(tmp_path, "protection: none\n"))
    record = request_for(changed)
    assert answered(node, record).error == "E775"
    assert log == [
        "the components of the bundle are not what its program compiles to here [E775]\n"
        "  note: the policy is held against the program, and says nothing of them\n"
        "  help: compile the bundle with the node's version of tffc, and without other passes"
    ]


def test_a_policy_that_is_not_there_ends_it(process: Process, tmp_path: pathlib.Path) -> None:
    config = {"policy": str(tmp_path / "none.yaml")}
    node = make_node(process.bundle, numbers(0, 2), [], config)
    assert answered(node, request_for(process)).error == "E850"


def test_what_nobody_foresaw(process: Process) -> None:
    log: list[str] = []
    reply = answered(make_node(process.bundle, Defective([0]), log), request_for(process))
    assert (reply.error, reply.totals, np.ndim(reply.clients)) == ("E772", None, 0)
    assert log == ["KeyError: 'a defect'"]


class Lying(Values):
    """Clients whose reading fails with the text of somebody else."""

    def read(self, client: str) -> Any:
        raise RuntimeError("x\n2026-01-01 admitted the app \x1b[31m\u202e")


def test_what_nobody_foresaw_is_one_line_of_the_log(process: Process) -> None:
    log: list[str] = []
    answered(make_node(process.bundle, Lying([0]), log), request_for(process))
    assert log == ["RuntimeError: x\\n2026-01-01 admitted the app \\x1b[31m\\u202e"]
