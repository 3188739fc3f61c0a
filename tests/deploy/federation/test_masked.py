"""Secure sums under masks between nodes: exact, whoever drops out, and nothing twice."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest

import tffc as tff
from tests.deploy.federation.nodes import (
    ANSWERS,
    DEAD,
    GOOD,
    LATE,
    Together,
    make_node,
    run,
)
from tests.deploy.flower.processes import node_keys
from tests.runtime.engines.programs import process_of
from tests.runtime.engines.sources import Values, numbers
from tffc.deploy.federation.asking import TooFewError
from tffc.deploy.federation.masked_steps import MaskedStep
from tffc.deploy.federation.messages import Record, Reply
from tffc.runtime.engines.process import Process
from tffc.runtime.masking.keys import read_private_key, read_public_key
from tffc.support.errors import ExecutionError

pytestmark = pytest.mark.slow

FORMS = pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
NAMES = tuple(f"silo-{n}" for n in range(5))
STEPS = len(MaskedStep)
CLIENTS = 3
"""How many each node has."""


@tff.tf_computation(np.int32)
def many(x: Any) -> Any:
    import tensorflow as tf

    return tf.stack([x, 2 * x, x * 1000])


@tff.tf_computation(np.int32)
def small(x: Any) -> Any:
    return x % 7


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients([np.float32, np.int32]))
def every_secure_sum(state: Any, data: Any) -> Any:
    return state, (
        tff.federated_secure_sum(tff.federated_map(many, data[1]), 100_000),
        tff.federated_secure_sum_bitwidth(data[1], 10),
        tff.backends.mapreduce.federated_secure_modular_sum(tff.federated_map(small, data[1]), 7),
        tff.federated_sum(data[1]),
        tff.federated_mean(data[0]),
    )


def expected(names: tuple[str, ...]) -> list[Any]:
    first = [CLIENTS * NAMES.index(name) for name in names]
    values = [n for start in first for n in range(start, start + CLIENTS)]
    total = sum(values)
    return [[total, 2 * total, 1000 * total], total, sum(v % 7 for v in values) % 7, total]


def together_of(
    process: Process,
    plan: Any = lambda attempt, name: GOOD,
    configs: Mapping[str, Mapping[str, Any]] | None = None,
    clients: Callable[[int], Values] = lambda node: numbers(CLIENTS * node, CLIENTS),
) -> Together:
    """Five nodes of three clients each; the plan is asked once for each step of each attempt."""
    configs = configs or {}
    log: list[str] = []
    nodes = {
        name: make_node(process.bundle, clients(at), log, configs.get(name))
        for at, name in enumerate(NAMES)
    }
    made = Together(nodes, plan)
    made.log = log
    return made


def check(output: Any, names: tuple[str, ...]) -> None:
    found = [np.asarray(part).tolist() for part in output[:4]]
    assert found == expected(names)


@FORMS
def test_sums_are_those_without_masks(form: str) -> None:
    process = process_of(every_secure_sum, form)
    ran = run(process, together_of(process), secure_sums="masked", rounds=2)
    for each in ran.rounds:
        assert each.clients == NAMES
        check(each.output, NAMES)
    openly = run(process, together_of(process), secure_sums="open")
    assert repr(openly.rounds[0].output) == repr(ran.rounds[0].output)
    assert ran.log == []


@FORMS
@pytest.mark.parametrize("step", range(STEPS))
def test_one_node_drops_out(form: str, step: int) -> None:
    """Before its vector arrives it is not in the sum, later it is."""
    process = process_of(every_secure_sum, form)

    def plan(attempt: int, name: str) -> str:
        return DEAD if name == "silo-2" and attempt >= step else GOOD

    ran = run(process, together_of(process, plan), secure_sums="masked")
    (only,) = ran.rounds
    is_in = step > list(MaskedStep).index(MaskedStep.WORK)
    assert only.clients == (NAMES if is_in else tuple(n for n in NAMES if n != "silo-2"))
    check(only.output, only.clients)


@pytest.mark.parametrize("step", range(STEPS))
def test_an_answer_to_the_step_before(step: int) -> None:
    """It comes too late, and counts in no other step."""
    process = process_of(every_secure_sum, "mapreduce")

    def plan(attempt: int, name: str) -> str:
        return LATE if name == "silo-2" and attempt == step else GOOD

    ran = run(process, together_of(process, plan), secure_sums="masked")
    (only,) = ran.rounds
    check(only.output, only.clients)
    assert ran.waited == []


@pytest.mark.parametrize("step", range(STEPS))
def test_too_many_drop_out_and_the_round_begins_again(step: int) -> None:
    process = process_of(every_secure_sum, "mapreduce")

    def plan(attempt: int, name: str) -> str:
        return DEAD if name in ("silo-1", "silo-3") and attempt == step else GOOD

    ran = run(process, together_of(process, plan), secure_sums="masked")
    (only,) = ran.rounds
    assert only.clients == NAMES
    check(only.output, NAMES)
    assert ran.waited == [1.0]
    assert any("and a masked sum needs 4: the round begins again" in line for line in ran.log)


@pytest.mark.slow
def test_whoever_drops_out_sums_are_exact() -> None:
    process = process_of(every_secure_sum, "mapreduce")
    generator = np.random.default_rng(7)

    for _ in range(20):
        actions = {(a, n): generator.choice([*ANSWERS, DEAD, LATE], p=[0.85, 0.05, 0.05, 0.05])
                   for a in range(40) for n in NAMES}  # fmt: skip

        def plan(attempt: int, name: str, actions: Any = actions) -> str:
            return str(actions.get((attempt, name), GOOD))

        together = together_of(process, plan)
        ran = run(process, together, secure_sums="masked", attempts=20)
        (only,) = ran.rounds
        assert len(only.clients) >= 4
        check(only.output, only.clients)


def test_two_nodes_are_too_few() -> None:
    process = process_of(every_secure_sum, "mapreduce")
    together = together_of(process)
    together.nodes = {name: together.nodes[name] for name in NAMES[:2]}
    with pytest.raises(TooFewError) as caught:
        run(process, together, secure_sums="masked", attempts=1)
    assert "0 of 2 participants gave their shares" in str(caught.value)
    assert {record.entries["error"] for record in together.seen} == {"", "E980"}


def test_what_a_node_sends_tells_nothing_of_its_sum() -> None:
    process = process_of(every_secure_sum, "mapreduce")
    together = together_of(process)
    run(process, together, secure_sums="masked", rounds=2)
    worked = [r for r in map(Reply.from_record, together.seen) if isinstance(r.totals, list)]
    assert len(worked) == 2 * len(NAMES)
    seen: set[tuple[int, ...]] = set()
    for at, reply in enumerate(worked):
        node = NAMES[len(NAMES) - 1 - at % len(NAMES)]  # The last one is asked first.
        _, _, summed, _ = cast("tuple[Any, ...]", reply.totals)
        vector = tuple(np.ravel(summed[0]).tolist())
        (open_sum, *_) = expected((node,))
        assert not set(vector) & set(open_sum)
        seen.add(vector)
    assert len(seen) == len(worked)


def test_no_step_is_done_twice() -> None:
    process = process_of(every_secure_sum, "mapreduce")
    together = together_of(process)
    sent: list[tuple[str, Record]] = []
    given = together.send

    def send(kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
        sent.append((kind, records["silo-0"]))
        given(kind, records)

    together.send = send
    run(process, together, secure_sums="masked")
    node = together.nodes["silo-0"]
    assert [kind for kind, _ in sent] == [step.value for step in MaskedStep]
    for kind, record in sent[1:]:
        reply = Reply.from_record(node.answer(record, kind))
        assert (reply.error, reply.totals) == ("E788", None)
    assert together.log[-1] == (
        "the server asks for the step 'revealed' of a masked sum, and the next one is 'none' "
        "[E788]\n"
        "  note: a step that is done twice could show what masks hide\n"
        "  help: let the round begin again"
    )


# Nodes that know one another.


@pytest.fixture
def configs(tmp_path: pathlib.Path) -> dict[str, dict[str, str]]:
    """Nodes with keys, which know those of the others."""
    known = tmp_path / "known"
    known.mkdir()
    found: dict[str, dict[str, str]] = {}
    for name in NAMES:
        private, public = node_keys()
        (tmp_path / name).write_bytes(private)
        (known / f"{name}.pub").write_bytes(public)
        found[name] = {"key": str(tmp_path / name), "known": str(known), "name": name}
    return found


def test_nodes_sign_what_they_say(configs: Any) -> None:
    process = process_of(every_secure_sum, "mapreduce")
    together = together_of(process, configs=configs)
    ran = run(process, together, secure_sums="masked")
    check(ran.rounds[0].output, NAMES)
    assert together.log == []


def test_a_node_that_nobody_knows(configs: Any, tmp_path: pathlib.Path) -> None:
    process = process_of(every_secure_sum, "mapreduce")
    (tmp_path / "silo-4").write_bytes(node_keys()[0])
    together = together_of(process, configs=configs)
    with pytest.raises(TooFewError):
        run(process, together, secure_sums="masked", attempts=1)
    assert "what silo-4 says is not signed with a key it knows" in together.log[0]


def test_a_node_whose_key_nobody_has_stops_the_sum(configs: Any) -> None:
    process = process_of(every_secure_sum, "mapreduce")
    pathlib.Path(configs["silo-4"]["known"], "silo-4.pub").unlink()
    together = together_of(process, configs=configs)
    with pytest.raises(TooFewError, match="1 of 5 participants gave their shares"):
        run(process, together, secure_sums="masked", attempts=1)
    assert sorted(together.log) == [
        f"{name} takes no further part in a masked sum: it knows no public key of silo-4 [E985]\n"
        "  help: give it that key if the participant is one, or let the server ask the others alone"
        for name in NAMES[:4]
    ]


def test_a_node_that_is_called_otherwise() -> None:
    process = process_of(every_secure_sum, "mapreduce")
    together = together_of(process, configs={"silo-3": {"name": "north"}})
    ran = run(process, together, secure_sums="masked")
    assert ran.rounds[0].clients == tuple(name for name in NAMES if name != "silo-3")
    assert together.log == [
        "the server calls the node 'silo-3', which is 'north' [E766]\n"
        "  help: register the node under its name, or leave the name out of its configuration"
    ]


def test_a_key_that_is_not_there(tmp_path: pathlib.Path) -> None:
    process = process_of(every_secure_sum, "mapreduce")
    path = str(tmp_path / "none")
    together = together_of(process, configs={"silo-3": {"key": path}})
    run(process, together, secure_sums="masked")
    assert together.log == [
        f"cannot read the key {path}: No such file or directory [E787]\n"
        "  help: give the path of a key that the node's user may read"
    ]


@pytest.mark.parametrize("read", [read_private_key, read_public_key])
def test_a_file_that_holds_no_key(read: Any) -> None:
    with pytest.raises(ExecutionError) as caught:
        read(b"no key")
    assert caught.value.code == "E787"
    assert str(caught.value).startswith(
        "a file does not hold a key that participants of masked sums sign with: "
    )


# Programs.


@tff.federated_computation(
    tff.types.at_server(()), tff.types.at_clients(tff.types.TensorType(np.int32, [None]))
)
def of_any_size(state: Any, data: Any) -> Any:
    return state, tff.federated_secure_sum(data, 1000)


@FORMS
def test_sums_of_a_size_that_types_do_not_say(form: str) -> None:
    process = process_of(of_any_size, form)
    clients = Values([np.arange(3, dtype=np.int32)])
    together = together_of(process, clients=lambda node: clients)
    with pytest.raises(TooFewError):
        run(process, together, secure_sums="masked", attempts=1)
    assert together.log[0] == (
        "the node's secure sums are of another size than the server says [E789]\n"
        "  help: let all clients add tensors of one shape, which the program's types say"
    )


def test_a_program_without_secure_sums_takes_one_step() -> None:
    process = process_of(without, "mapreduce")
    together = together_of(process)
    ran = run(process, together, secure_sums="masked")
    assert ran.rounds[0].output == sum(range(15))
    assert together.attempt == 1


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients([np.float32, np.int32]))
def without(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(data[1])


@FORMS
def test_a_policy_that_demands_secure_sums(form: str, tmp_path: pathlib.Path) -> None:
    process = process_of(only_secure, form)
    policy = tmp_path / "policy.yaml"
    policy.write_text("protection: secure\n")
    configs = {name: {"policy": str(policy)} for name in NAMES}
    together = together_of(process, configs=configs)
    ran = run(process, together, secure_sums="masked")
    assert ran.rounds[0].output == sum(range(15))
    with pytest.raises(TooFewError):
        run(process, together, secure_sums="open", attempts=1)


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients([np.float32, np.int32]))
def only_secure(state: Any, data: Any) -> Any:
    return state, tff.federated_secure_sum(data[1], 1000)
