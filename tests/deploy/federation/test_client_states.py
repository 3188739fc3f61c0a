"""Clients that keep states at nodes: what each has in each round, and what a node forgets."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.deploy.federation.nodes import (
    ANSWERS,
    DEAD,
    DOUBLED,
    GOOD,
    LATE,
    Plan,
    Together,
    make_node,
    planned,
)
from tests.deploy.federation.test_node import answered
from tests.runtime.engines.programs import process_of, tallied
from tests.runtime.engines.sources import SomeBad, Values
from tffc.deploy.federation.client_states import RECEIPT, NodeStates, names_for
from tffc.deploy.federation.engine import FederationEngine
from tffc.deploy.federation.messages import Request, StateNames, program_digest
from tffc.deploy.federation.node import Node
from tffc.deploy.federation.rounds import run_federation
from tffc.deploy.federation.settings import RunSettings
from tffc.runtime.data.identity import source_identity
from tffc.runtime.engines.client_states import ClientStates, StateInMemory
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State
from tffc.runtime.runs.run_folder import RunFolder
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.support.errors import DataError

PROCESS = process_of(tallied, "client-state")
FIRST = State(np.int32(3), PROCESS.program, 0)
NAMES = tuple(f"silo-{n}" for n in range(4))
VALUES = {name: [np.int32(10 * at + n) for n in range(2)] for at, name in enumerate(NAMES)}


def node_of(name: str, folder: pathlib.Path, log: list[str], **config: Any) -> Node:
    settings = {"out": str(folder / name), "least-participants": 3, **config}
    return make_node(PROCESS.bundle, Values(VALUES[name]), log, settings)


def together(folder: pathlib.Path, plan: Plan = lambda attempt, name: GOOD) -> Together:
    log: list[str] = []
    federation = Together({name: node_of(name, folder, log) for name in NAMES}, plan)
    federation.log = log
    return federation


def rounds_of(
    federation: Together,
    rounds: int,
    state: State = FIRST,
    receipts: ClientStates | None = None,
    **settings: Any,
) -> Iterator[Round]:
    chosen = {"pause": 0.0, "secure_sums": "open", "min_replies": 3, **settings}
    run_settings = RunSettings(rounds=rounds, **chosen)
    engine = FederationEngine(PROCESS, federation, run_settings, federation.log.append)
    return run_federation(
        engine, state, run_settings, federation.log.append, lambda _: None, receipts
    )


def expected(nodes: Sequence[Sequence[str]]) -> list[int]:
    """The sums of rounds in which these nodes take part, in plain Python."""
    states = {name: [0, 0] for name in NAMES}
    sums: list[int] = []
    for number, names in enumerate(nodes, 1):
        own = {name: [int(value) for value in VALUES[name]] for name in names}
        pairs = [(k, v) for name in names for k, v in zip(states[name], own[name], strict=True)]
        sums.append(sum(2 + number + k + v for k, v in pairs))
        for name in names:
            states[name] = [k + v for k, v in zip(states[name], own[name], strict=True)]
    return sums


def sums(rounds: Sequence[Round]) -> list[int]:
    assert all(each.output[0] == each.output[1] for each in rounds)
    return [int(each.output[0]) for each in rounds]


@pytest.mark.parametrize("secure_sums", ["open", "masked"])
def test_each_client_begins_with_what_it_kept(tmp_path: pathlib.Path, secure_sums: str) -> None:
    federation = together(tmp_path)
    rounds = list(rounds_of(federation, 3, secure_sums=secure_sums))
    assert sums(rounds) == expected([NAMES] * 3), federation.log
    # Nothing that the server has seen or saved says what a client has kept.
    last = rounds[-1].client_states
    assert last is not None
    assert all(len(last.of(name)) == 65 for name in NAMES)


def test_of_a_round_that_is_repeated_only_the_last_attempt_counts(tmp_path: pathlib.Path) -> None:
    actions: list[Mapping[str, str]] = [
        {},
        {"silo-0": DEAD, "silo-1": LATE},  # too few, so the round begins again
        {"silo-2": DOUBLED},
        {"silo-3": LATE},  # enough without
        {"silo-0": DEAD},
    ]
    federation = together(tmp_path, planned(actions))
    rounds = list(rounds_of(federation, 5))
    took_part = [
        [name for name in NAMES if actions[attempt].get(name, GOOD) in ANSWERS]
        for attempt in (0, 2, 3, 4)
    ]
    assert sums(rounds) == expected([*took_part, NAMES]), federation.log


def test_a_run_goes_on_and_its_nodes_begin_again(tmp_path: pathlib.Path) -> None:
    def begun(*, resume: bool) -> tuple[RunFolder, State]:
        folder = RunFolder(tmp_path / "run", PROCESS, client_state=RECEIPT)
        identity = RunIdentity.of(
            PROCESS, Sampling(None, seed=0), source_identity(Values([])), skip_bad_clients=False
        )
        state = folder.begin(identity, None, resume=resume)
        return folder, state or FIRST

    outputs: list[Round] = []
    for rounds in (2, 3, 4):
        folder, state = begun(resume=rounds > 2)
        for each in rounds_of(together(tmp_path), rounds, state, folder.client_states):
            folder.save(each)
            outputs.append(each)
        # One more, which is lost at the server: it goes back.
        last = outputs[-1].state
        lost = rounds_of(together(tmp_path), rounds + 1, last, folder.client_states)
        next(lost)
        folder.close()
    assert sums(outputs) == expected([NAMES] * 4)


def test_a_client_that_is_left_out_keeps_its_state(tmp_path: pathlib.Path) -> None:
    federation = together(tmp_path)
    (first,) = rounds_of(federation, 1)
    bad = SomeBad(VALUES["silo-3"])
    config = {"out": str(tmp_path / "silo-3"), "skip-bad-clients": True}
    federation.nodes = {
        **federation.nodes,
        "silo-3": make_node(PROCESS.bundle, bad, federation.log, config),
    }
    _ = list(rounds_of(federation, 2, first.state, first.client_states))
    files = sorted((tmp_path / "silo-3").glob("states/*/*/*/*/*.npz"))
    states = {file.parent.suffix: [] for file in files}
    for file in files:
        states[file.parent.suffix].append(int(np.load(file)["0"]))
    assert states.pop(".first") == [30, 31]
    assert list(states.values()) == [[60, 31]]


def request(states: StateNames | None, program: str = "", number: int = 1) -> Any:
    carried, sent = PROCESS.steps.prepare(np.int32(3))
    carried = PROCESS.steps.shared(carried)
    program = program or program_digest(PROCESS)
    return Request(program, number, "attempt", "open", carried, sent, states).to_record()


RUN, ONE, TWO, THREE = (str(n) * 32 for n in range(4))
NODE = "f" * 32


def names_of(before: str, after: str, run: str = RUN, node: str = NODE) -> StateNames:
    return StateNames(run, node, before, after)


def test_a_node_keeps_what_the_server_can_go_back_to(tmp_path: pathlib.Path) -> None:
    node = node_of("silo-0", tmp_path, log := [])

    def work(before: str, after: str) -> str:
        return answered(node, request(names_of(before, after))).error

    def names() -> list[str]:
        return sorted(path.name[:1] for path in tmp_path.glob("*/states/*/*/*/*") if path.is_dir())

    assert (work("", ONE), work("", TWO), names()) == ("", "", ["1", "2"])
    assert (work(ONE, THREE), names()) == ("", ["1", "3"])
    assert (work(ONE, "4" * 32), names()) == ("", ["1", "3", "4"])
    assert (work("4" * 32, "5" * 32), names()) == ("", ["4", "5"])
    # A message that comes late changes nothing.
    assert (work(ONE, "6" * 32), names()) == ("E774", ["4", "5"])
    assert (work("", "7" * 32), names()) == ("", ["4", "5", "7"])
    assert "the node does not have the states of its clients after 1111" in log[0]


@pytest.mark.parametrize(
    "states",
    [
        None,
        names_of("", ONE, run="../" + "0" * 29),
        names_of("", ONE, node=".."),
        names_of("*", ONE),
        names_of("", ""),
        names_of("", ONE + "\n"),
        names_of("", ONE, run=""),
    ],
)
def test_names_that_no_server_gives(tmp_path: pathlib.Path, states: StateNames | None) -> None:
    reply = answered(node_of("silo-0", tmp_path, []), request(states))
    assert (reply.error, list(tmp_path.iterdir())) == ("E763", [])


def test_nodes_may_share_a_folder(tmp_path: pathlib.Path) -> None:
    federation = together(tmp_path)
    log = federation.log
    shared = str(tmp_path / "shared")
    federation.nodes = {name: node_of(name, tmp_path, log, out=shared) for name in NAMES}
    assert sums(list(rounds_of(federation, 4))) == expected([NAMES] * 4)


def test_a_node_that_has_no_name_is_left_out(tmp_path: pathlib.Path) -> None:
    federation = together(tmp_path)
    unnamed = node_of("silo-3", tmp_path, federation.log)
    federation.nodes = {**federation.nodes, "node-12345678901": unnamed}
    (only,) = rounds_of(federation, 1)
    assert only.clients == NAMES
    assert any("node-12345678901 is left out: give it a name" in line for line in federation.log)


def test_a_node_answers_a_request_once(tmp_path: pathlib.Path) -> None:
    node = node_of("silo-0", tmp_path, log := [])
    errors = [answered(node, request(names_of("", ONE))).error for _ in range(2)]
    assert errors == ["", "E774"]
    assert "the node has already answered this request" in log[0]


def test_other_parts_are_other_clients(tmp_path: pathlib.Path) -> None:
    errors: list[str] = []
    for parts, names in (
        (2, names_of("", ONE)),
        (2, names_of(ONE, TWO)),
        (3, names_of(TWO, THREE)),
    ):
        config = {"partition-id": 0, "num-partitions": parts}
        errors.append(answered(node_of("silo-0", tmp_path, [], **config), request(names)).error)
    assert errors == ["", "", "E774"]


def test_a_node_without_a_folder(tmp_path: pathlib.Path) -> None:
    node = node_of("silo-0", tmp_path, log := [], out="")
    assert answered(node, request(names_of("", ONE))).error == "E766"
    assert "the node has no folder for it" in log[0]


def test_another_program_does_not_get_the_states(tmp_path: pathlib.Path) -> None:
    type = PROCESS.client_state_type
    assert type is not None
    NodeStates(tmp_path, "a" * 64, names_of("", ONE), type).keep([("x", np.int32(7))])
    same = NodeStates(tmp_path, "a" * 64, names_of(ONE, TWO), type)
    assert same.before().of("x") == 7
    other = NodeStates(tmp_path, "b" * 64, names_of(ONE, TWO), type)
    with pytest.raises(Exception, match="does not have the states"):
        other.before()


@pytest.mark.parametrize("receipt", [b"x", b"\xff/" + ONE.encode(), f"{TWO}/{ONE}".encode()])
def test_a_run_that_was_changed(receipt: bytes) -> None:
    receipts = ClientStates(RECEIPT, {"silo-0": StateInMemory(receipt)})
    with pytest.raises(DataError, match="does not say which states its clients have") as caught:
        names_for(receipts, RUN, ["silo-0"], ONE)
    assert caught.value.code == "E938"
