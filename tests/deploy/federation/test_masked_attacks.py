"""A server that is not honest, and nodes of masked sums that answer it."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import subprocess
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
import tffc.tff.backends.mapreduce
from tests.deploy.federation.nodes import DEAD, GOOD, Together, make_node, run
from tests.deploy.flower.processes import node_keys
from tests.processes import ROOT
from tests.runtime.engines.programs import process_of
from tests.runtime.engines.sources import Values, numbers
from tests.runtime.masking.sums import plays
from tffc.deploy.federation.asking import TooFewError
from tffc.deploy.federation.masked_steps import MaskedStep
from tffc.deploy.federation.messages import Record, Reply, Request
from tffc.deploy.federation.node import Node
from tffc.deploy.federation.tasks import Memory
from tffc.language.notation import parse, sections, typed
from tffc.runtime.engines.process import Process

pytestmark = pytest.mark.slow

NAMES = tuple(f"silo-{n}" for n in range(4))


@tff.tf_computation(np.int32, np.int32)
def weighed(value: Any, weight: Any) -> Any:
    return value * weight


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients([np.float32, np.int32]))
def weighed_sum(state: Any, data: Any) -> Any:
    weight = tff.federated_broadcast(tff.federated_value(3, tff.SERVER))
    total = tff.federated_secure_sum(tff.federated_map(weighed, (data[1], weight)), 1000)
    return state, total


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients([np.float32, np.int32]))
def both_sums(state: Any, data: Any) -> Any:
    return state, (tff.federated_secure_sum(data[1], 1000), tff.federated_sum(data[1]))


@pytest.fixture(scope="module")
def process() -> Process:
    return process_of(weighed_sum)


class Server(Together):
    """Changes what it sends to some nodes, and keeps what it sends."""

    def __init__(self, nodes: Mapping[str, Node], log: list[str]) -> None:
        super().__init__(nodes)
        self.log = log
        self.change: Callable[[str, str, Request], Request] = lambda kind, name, request: request
        self.sent: list[tuple[str, str, Record]] = []

    def send(self, kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
        changed = {
            name: self.change(kind, name, Request.from_record(record)).to_record()
            for name, record in records.items()
        }
        self.sent += [(kind, name, record) for name, record in changed.items()]
        super().send(kind, changed)


def server_of(
    process: Process,
    clients: Callable[[int], Values] = lambda node: numbers(10 * node, 2),
    config: Mapping[str, Any] = MappingProxyType({}),
) -> Server:
    log: list[str] = []
    nodes = {
        name: make_node(process.bundle, clients(at), log, config) for at, name in enumerate(NAMES)
    }
    return Server(nodes, log)


def told(server: Server) -> set[str]:
    """The codes of what nodes told their operators."""
    return {line.partition("[")[2][:4] for line in server.log}


def errors(server: Server) -> set[Any]:
    return {record.entries["error"] for record in server.seen} - {""}


# Parameters of aggregations.


@tff.tf_computation()
def limit() -> Any:
    return tf.constant(8)


@tff.tf_computation(np.int32, np.int32)
def added(total: Any, value: Any) -> Any:
    return tf.where(total < 100, total + value, total)


@tff.tf_computation(np.int32)
def itself(total: Any) -> Any:
    return tf.identity(total)


AGGREGATES: dict[str, Callable[[Any], Any]] = {
    "bound": lambda data: tff.federated_secure_sum(data, limit()),
    "bits": lambda data: tff.federated_secure_sum_bitwidth(data, limit()),
    "modulus": lambda data: tff.backends.mapreduce.federated_secure_modular_sum(data, limit()),
    "first accumulator": lambda data: tff.federated_aggregate(data, limit(), added, added, itself),
}


def aggregating(name: str) -> Process:
    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.int32))
    def each(state: Any, data: Any) -> Any:
        return state, AGGREGATES[name](data)

    return process_of(each, "distribute-aggregate")


@pytest.mark.parametrize("sums", ["open", "masked"])
@pytest.mark.parametrize("name", AGGREGATES)
def test_a_node_aggregates_by_the_parameters_of_its_own_program(name: str, sums: str) -> None:
    """A larger modulus, for example, would show the server more than the program says."""
    process = aggregating(name)
    read: list[str] = []

    class Watched(Values):
        def read(self, client: str) -> Any:
            read.append(client)
            return super().read(client)

    def clients(node: int) -> Values:
        return Watched([np.int32(node), np.int32(1)])

    good = run(process, server_of(process, clients), secure_sums=sums, attempts=1)
    assert good.rounds[0].clients == NAMES
    read.clear()
    prepare = process.steps.prepare

    def lying(state: Any) -> Any:
        (parameter, *rest), sent = prepare(state)
        return (parameter + 1, *rest), sent

    # All nodes are told the same.
    process.steps.prepare = lying  # pyright: ignore[reportAttributeAccessIssue]  # a server's lie
    server = server_of(process, clients)
    with pytest.raises(TooFewError):
        run(process, server, secure_sums=sums, attempts=1)
    assert errors(server) == told(server) == {"E779"}
    assert not read


def test_parameters_that_are_not_apart_from_the_state() -> None:
    bundle = aggregating("bound").bundle
    prepare = bundle.components["server_prepare"]
    text = typed(prepare)
    made = "<\n    fc_each_symbol_0,\n    server_prepare_arg\n  >"
    assert made in text
    whole = text.replace(made, "kept").replace(
        "\n in <", f",\n kept: <int32,<>@SERVER>={made} in <"
    )
    components = {**bundle.components, "server_prepare": parse(whole, sections(prepare))}
    process = Process(dataclasses.replace(bundle, components=components))
    server = server_of(process, lambda node: Values([np.int32(node)]))
    with pytest.raises(TooFewError):
        run(process, server, secure_sums="masked", attempts=1)
    assert errors(server) == told(server) == {"E775"}


# D1.


@plays("model inconsistency")
@pytest.mark.parametrize("victims", [NAMES[:1], NAMES[3:], NAMES[:2], NAMES[1:]], ids=len)
@pytest.mark.parametrize("is_kept", [False, True])
def test_nodes_that_are_sent_another_model_do_not_compute(
    process: Process, victims: tuple[str, ...], is_kept: bool
) -> None:
    """Or other values that aggregations need, such as bounds."""
    server = server_of(process)

    def change(kind: str, name: str, request: Request) -> Request:
        if kind == "work" and name in victims:
            sealed, _ = cast("tuple[Any, ...]", request.sent)
            if is_kept:
                return dataclasses.replace(request, carried=(request.carried, np.int32(0)))
            return dataclasses.replace(request, sent=(sealed, np.int32(0)))
        return request

    server.change = change
    if len(victims) > 1:
        with pytest.raises(TooFewError):
            run(process, server, secure_sums="masked", attempts=1)
    else:
        ran = run(process, server, secure_sums="masked", attempts=1)
        assert set(ran.rounds[0].clients) == set(NAMES) - set(victims)
    assert errors(server) >= {"E981"}


@plays("model inconsistency")
@pytest.mark.parametrize("field", ["sent", "round", "threshold", "segments", "attempt"])
@pytest.mark.parametrize("victim", [NAMES[0], NAMES[3]])
def test_a_node_is_told_of_another_sum_from_the_beginning(
    process: Process, field: str, victim: str
) -> None:
    """Nobody sends a vector, nor even reads its clients' data."""
    read: list[str] = []

    class Watched(Values):
        def read(self, client: str) -> Any:
            read.append(client)
            return super().read(client)

    server = server_of(process, lambda node: Watched(numbers(10 * node, 2).values))

    def change(kind: str, name: str, request: Request) -> Request:
        if name != victim:
            return request
        if field == "round":
            return dataclasses.replace(request, round=request.round + 1)
        if field == "attempt":
            _, step = request.attempt.split("/")
            return dataclasses.replace(request, attempt=f"{'ab' * 16}/{step}")
        if kind != "keys":
            return request
        own, threshold, segments, sent = cast("tuple[Any, ...]", request.sent)
        terms = {
            "sent": (own, threshold, segments, bytes(32)),
            "threshold": (own, threshold + 1, segments, sent),
            "segments": (own, threshold, (*segments, *segments), sent),
        }
        return dataclasses.replace(request, sent=terms[field])

    server.change = change
    if field in ("round", "attempt"):
        # Its replies belong to another attempt, and the others do without it.
        ran = run(process, server, secure_sums="masked", attempts=1)
        assert set(ran.rounds[0].clients) == set(NAMES) - {victim}
        return
    with pytest.raises(TooFewError):
        run(process, server, secure_sums="masked", attempts=1)
    assert not [r for r in map(Reply.from_record, server.seen) if isinstance(r.totals, list)]
    assert read == []


# D2.


def without(server: Server, name: str) -> None:
    server.nodes = {each: node for each, node in server.nodes.items() if each != name}


@plays("differences between sums of one round")
@pytest.mark.parametrize("left_out", NAMES)
def test_a_new_run_does_not_repeat_a_round(process: Process, left_out: str) -> None:
    """With the memory of nodes, which is that of a run."""
    server = server_of(process)
    run(process, server, secure_sums="masked")
    without(server, left_out)
    with pytest.raises(TooFewError):
        run(process, server, secure_sums="masked", attempts=1)
    assert errors(server) == {"E774"}


@plays("a node that starts again")
@pytest.mark.parametrize("left_out", NAMES)
def test_a_node_with_a_folder_remembers_after_a_restart(
    process: Process, left_out: str, tmp_path: pathlib.Path
) -> None:
    log: list[str] = []

    def nodes() -> dict[str, Node]:
        return {
            name: make_node(
                process.bundle, numbers(10 * at, 2), log, {"memory": str(tmp_path / name)}
            )
            for at, name in enumerate(NAMES)
        }

    run(process, Server(nodes(), log), secure_sums="masked", rounds=2)
    again = Server(nodes(), log)
    without(again, left_out)
    for rounds in (1, 2):
        with pytest.raises(TooFewError):
            run(process, again, secure_sums="masked", attempts=1, rounds=rounds)
    assert errors(again) == {"E774"}
    held = (tmp_path / NAMES[0] / "masked-sums.json").read_text()
    assert "secret" not in held
    assert "participant" not in held


@plays("a node that starts again")
@pytest.mark.parametrize("content", ["", "[]", "{", '{"p": 1}', '{"p": {"round": "1"}}'])
def test_a_memory_that_is_damaged_ends_it(
    process: Process, content: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "masked-sums.json").write_text(content)
    server = server_of(process, config={"memory": str(tmp_path)})
    with pytest.raises(TooFewError):
        run(process, server, secure_sums="masked", attempts=1)
    assert told(server) == {"E959"}


def test_a_memory_that_cannot_be_written_ends_it(process: Process, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    server = server_of(process, config={"memory": str(tmp_path / "file")})
    with pytest.raises(TooFewError):
        run(process, server, secure_sums="masked", attempts=1)
    assert told(server) == {"E959"}


@plays("differences between sums of one round")
@pytest.mark.parametrize("first", ["masked", "open"])
def test_a_round_is_not_both_masked_and_open(process: Process, first: str) -> None:
    server = server_of(process)
    run(process, server, secure_sums=first)
    second = "open" if first == "masked" else "masked"
    with pytest.raises(TooFewError):
        run(process, server, secure_sums=second, attempts=1)
    assert errors(server) == {"E774"}


@plays("differences between sums of one round")
def test_the_last_step_is_asked_again_of_those_that_did_not_answer(process: Process) -> None:
    """Those that revealed shares take part in no other attempt, so this one goes on."""
    server = server_of(process)
    last = list(MaskedStep).index(MaskedStep.REVEALED)

    def plan(attempt: int, name: str) -> str:
        return DEAD if name in NAMES[:2] and last <= attempt < last + 2 else GOOD

    server.plan = plan
    ran = run(process, server, secure_sums="masked")
    assert ran.rounds[0].clients == NAMES
    assert ran.waited == [1.0, 1.0]
    assert [kind for kind, name, _ in server.sent if name == NAMES[0]].count("work") == 1
    assert ran.log[-1].endswith("the round begins again with its last step in 1 s")


def test_a_round_that_cannot_end_does_not_begin_again(process: Process) -> None:
    server = server_of(process)
    last = list(MaskedStep).index(MaskedStep.REVEALED)
    server.plan = lambda attempt, name: DEAD if name in NAMES[:2] and attempt >= last else GOOD
    with pytest.raises(TooFewError) as caught:
        run(process, server, secure_sums="masked", attempts=4)
    assert "2 of 4 participants gave their revealed shares" in str(caught.value)
    assert [kind for kind, name, _ in server.sent if name == NAMES[3]].count("revealed") == 1


@plays("steps done twice")
@pytest.mark.parametrize("step", list(MaskedStep))
def test_a_step_is_not_done_again_with_other_content(process: Process, step: MaskedStep) -> None:
    server = server_of(process)
    run(process, server, secure_sums="masked")
    node = server.nodes[NAMES[0]]
    for kind, name, record in server.sent:
        if (kind, name) == (step.value, NAMES[0]):
            reply = Reply.from_record(node.answer(record, kind))
            assert reply.error == ("E774" if step is MaskedStep.KEYS else "E788")


@plays("replays")
@pytest.mark.parametrize("round", [1, 2])
def test_requests_of_an_earlier_round_are_refused(process: Process, round: int) -> None:
    server = server_of(process)
    run(process, server, secure_sums="masked", rounds=3)
    node = server.nodes[NAMES[0]]
    for kind, name, record in server.sent:
        if name == NAMES[0] and record.entries["round"] == round:
            assert Reply.from_record(node.answer(record, kind)).error == "E774"


def test_a_sum_that_may_not_begin_does_not_end_the_one_before(process: Process) -> None:
    """A request of the first step that arrives twice."""
    server = server_of(process)
    first: dict[str, Record] = {}

    def change(kind: str, name: str, request: Request) -> Request:
        if kind == "keys":
            first[name] = request.to_record()
        elif kind == "confirmed":
            reply = server.nodes[name].answer(first[name], "keys")
            assert reply.entries["error"] == "E774"
        return request

    server.change = change
    ran = run(process, server, secure_sums="masked")
    assert ran.rounds[0].clients == NAMES


def test_after_a_refusal_the_sum_is_over(process: Process) -> None:
    server = server_of(process)

    def change(kind: str, name: str, request: Request) -> Request:
        if kind == "shares" and name == NAMES[0]:
            fewer = cast("tuple[Any, ...]", request.sent)[1:]
            bad = dataclasses.replace(request, sent=fewer).to_record()
            assert server.nodes[name].answer(bad, kind).entries["error"] == "E981"
        return request

    server.change = change
    ran = run(process, server, secure_sums="masked")
    assert ran.rounds[0].clients == NAMES[1:]
    assert errors(server) == {"E788"}


def test_survivors_that_are_too_few_for_the_run_are_not_revealed(process: Process) -> None:
    """So that the round can begin again."""
    server = server_of(process)
    server.plan = lambda attempt, name: DEAD if name == NAMES[0] and attempt < 3 else GOOD
    ran = run(process, server, secure_sums="masked", min_replies=4)
    assert ran.rounds[0].clients == NAMES
    assert ran.log[-1] == (
        "3 of 4 nodes answered in round 1, and 4 are needed: the round begins again in 1 s"
    )


def test_after_the_last_step_a_node_holds_no_secrets(process: Process) -> None:
    server = server_of(process)
    run(process, server, secure_sums="masked")
    for node in server.nodes.values():
        assert json.loads(node.memory.participant)["participant"] == ""


@plays("asking without masks")
@pytest.mark.parametrize("rule", ["protection: secure", "operators: [federated_mean]"])
def test_a_node_whose_policy_demands_masks_answers_nothing_else(
    process: Process, rule: str, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"{rule}\n")
    server = server_of(process, config={"policy": str(file)})
    with pytest.raises(TooFewError):
        run(process, server, secure_sums="open", attempts=1)
    assert errors(server) == {"E776"}


# D5.


@plays("wrong shares at the end")
@pytest.mark.parametrize("liars", [NAMES[:1], NAMES[:2]], ids=len)
def test_the_log_names_who_revealed_wrong_shares(
    process: Process, liars: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_of(process)
    answers = {name: server.nodes[name].answer for name in liars}

    def lie(name: str, record: Record, kind: str) -> Record:
        reply = Reply.from_record(answers[name](record, kind))
        if kind == "revealed":
            seeds, secrets = cast("tuple[Any, ...]", reply.totals)
            wrong = tuple((of, bytes(len(share))) for of, share in seeds)
            reply = dataclasses.replace(reply, totals=(wrong, secrets))
        return reply.to_record()

    for name in liars:
        monkeypatch.setattr(
            server.nodes[name], "answer", lambda record, kind, name=name: lie(name, record, kind)
        )
    if len(liars) == 1:
        ran = run(process, server, secure_sums="masked")
        assert ran.rounds[0].output == 3 * (1 + 21 + 41 + 61)
        assert ran.log == ["round 1: silo-0 revealed wrong shares"]
    else:
        with pytest.raises(TooFewError) as caught:
            run(process, server, secure_sums="masked", attempts=1)
        assert "wrong shares are from silo-0, silo-1" in str(caught.value)


# D7.


@plays("sums of few")
@pytest.mark.parametrize(("least", "is_enough"), [(2, True), (4, True), (5, False), (50, False)])
def test_a_node_demands_a_number_of_participants(
    process: Process, least: int, is_enough: bool
) -> None:
    server = server_of(process, config={"least-participants": least})
    if is_enough:
        assert run(process, server, secure_sums="masked").rounds[0].clients == NAMES
    else:
        with pytest.raises(TooFewError):
            run(process, server, secure_sums="masked", attempts=1)
        assert errors(server) == {"E980"}


@plays("sums of few")
@pytest.mark.parametrize("empty", NAMES)
def test_a_node_without_clients_does_not_count(process: Process, empty: str) -> None:
    def clients(node: int) -> Values:
        return Values([]) if NAMES[node] == empty else numbers(10 * node, 2)

    server = server_of(process, clients=clients)
    ran = run(process, server, secure_sums="masked")
    assert set(ran.rounds[0].clients) == set(NAMES) - {empty}
    demanding = server_of(process, clients, {"least-participants": 4})
    with pytest.raises(TooFewError):
        run(process, demanding, secure_sums="masked", attempts=1)
    assert errors(demanding) == {"E746", "E980"}


def policy(folder: pathlib.Path, least: int) -> dict[str, str]:
    file = folder / "policy.yaml"
    file.write_text(f"least-clients: {least}\n")
    return {"policy": str(file)}


@plays("sums of few")
@pytest.mark.parametrize(("least", "code"), [(1, ""), (8, ""), (9, "E980"), (100, "E980")])
def test_a_masked_sum_has_so_many_clients_over_all_nodes(
    process: Process, least: int, code: str, tmp_path: pathlib.Path
) -> None:
    server = server_of(process, config=policy(tmp_path, least))
    if not code:
        assert run(process, server, secure_sums="masked").rounds[0].clients == NAMES
        return
    with pytest.raises(TooFewError):
        run(process, server, secure_sums="masked", attempts=1)
    assert errors(server) == {code}


@plays("few clients at a node")
@pytest.mark.parametrize(("mode", "form"), [("open", "mapreduce"), ("masked", "mapreduce"),
                                            ("masked", "distribute-aggregate")])  # fmt: skip
@pytest.mark.parametrize(("least", "code"), [(2, ""), (3, "E746"), (8, "E746")])
def test_what_a_node_sends_unmasked_has_so_many_clients_of_its_own(
    mode: str, form: str, least: int, code: str, tmp_path: pathlib.Path
) -> None:
    both = process_of(both_sums, form)
    server = server_of(both, config=policy(tmp_path, least))
    if not code:
        ran = run(both, server, secure_sums=mode)
        assert [int(part) for part in ran.rounds[0].output] == [124, 124]
        return
    with pytest.raises(TooFewError):
        run(both, server, secure_sums=mode, attempts=1)
    assert errors(server) == {code}


# D8.

PAGE = ROOT / "docs" / "flower.md"


def test_nodes_that_follow_the_page(process: Process, tmp_path: pathlib.Path) -> None:
    """Its commands, run by a shell, and the configuration that it gives."""
    text = PAGE.read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    (commands,) = (block for block in blocks if "mkdir known-$silo" in block)
    ((key, known),) = re.findall(r'Silo 0 then has `key="(.*?)" known="(.*?)"`', text)
    keys = tmp_path / "keys"
    keys.mkdir()
    names = [f"silo-{silo}" for silo in range(3)]
    for name in names:
        private, public = node_keys()
        (keys / name).write_bytes(private)
        (keys / f"{name}.pub").write_bytes(public)
    subprocess.run(["sh", "-ec", commands], cwd=tmp_path, check=True)
    log: list[str] = []
    nodes: dict[str, Node] = {}
    for silo, name in enumerate(names):
        config = {
            field: value.replace("$PWD", str(tmp_path)).replace("-0", f"-{silo}")
            for field, value in (("key", key), ("known", known))
        }
        nodes[name] = make_node(process.bundle, numbers(10 * silo, 2), log, config)
    ran = run(process, Server(nodes, log), secure_sums="masked", rounds=2)
    assert [each.clients for each in ran.rounds] == [tuple(names)] * 2
    assert log == []


@plays("invented participants")
@pytest.mark.parametrize("own", [False, True])
def test_nodes_know_the_keys_of_the_others(
    process: Process, own: bool, tmp_path: pathlib.Path
) -> None:
    """As docs/flower.md says: the keys of the other nodes; its own does no harm."""
    pairs = {name: node_keys() for name in NAMES}
    log: list[str] = []
    nodes: dict[str, Node] = {}
    for at, name in enumerate(NAMES):
        folder = tmp_path / f"known-{name}"
        folder.mkdir()
        (tmp_path / name).write_bytes(pairs[name][0])
        for other, (_, public) in pairs.items():
            if own or other != name:
                (folder / f"{other}.pub").write_bytes(public)
        config = {"key": str(tmp_path / name), "known": str(folder), "name": name}
        nodes[name] = make_node(process.bundle, numbers(10 * at, 2), log, config)
    server = Server(nodes, log)
    assert run(process, server, secure_sums="masked").rounds[0].clients == NAMES
    assert log == []
    # A node that the others do not know.
    stranger = make_node(process.bundle, numbers(0, 2), log)
    server.nodes = {**nodes, "stranger": stranger}
    for node in nodes.values():
        node.memory = Memory()
    with pytest.raises(TooFewError):
        run(process, server, secure_sums="masked", attempts=1)
    assert "E985" in errors(server)
