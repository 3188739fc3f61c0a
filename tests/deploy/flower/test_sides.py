"""Both sides of an app, over Flower's own messages, in this process."""

from __future__ import annotations

import io
import json
import logging
import pathlib
import re
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.deploy.federation.test_engine import FORMS, moving
from tests.deploy.federation.test_node import request_for
from tests.refusals import refusal
from tests.runtime.engines.programs import every_aggregation, process_of, scaled
from tffc.backends.bundle.bundle import Bundle, write_bundle
from tffc.backends.compiler import compile_bundle
from tffc.deploy.export.target import write_exported
from tffc.deploy.federation.tasks import Done, Memory, Task
from tffc.deploy.federation.tasks import refusal as refusal_with
from tffc.deploy.flower.app_folder import app_files
from tffc.deploy.flower.bundle_file import encode_bundle_file, fetch_from, read_app_bundle
from tffc.language.types import to_type
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.operations.counts import read_counts
from tffc.runtime.runs.kept_states import states_of_run
from tffc.runtime.runs.observed import read_observed
from tffc.runtime.runs.run_identity import Timing
from tffc.runtime.runs.run_record import read_record
from tffc.support.errors import BundleError, DataError, LanguageValueError, TffcError

flwr = pytest.importorskip("flwr", reason="needs tffc[flower]")

from flwr.app import ArrayRecord, ConfigRecord, Error, Message, RecordDict  # noqa: E402  # pyright: ignore[reportMissingImports]  # an extra

from tests.deploy.flower.grid import GridHere, app_at, context  # noqa: E402  # after the skip
from tffc.deploy.flower.records import to_flower  # noqa: E402  # after the skip
from tffc.deploy.flower.sides import serve  # noqa: E402  # after the skip


@pytest.fixture
def data(tmp_path: pathlib.Path) -> str:
    """A folder with the data of twelve clients."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(12):
        write_client(folder, f"{number:02}", np.float32(1 / (number + 3)), np.int32(number))
    return str(folder)


def write_client(folder: pathlib.Path, name: str, *values: Any) -> None:
    np.savez(folder / f"{name}.npz", **{str(at): value for at, value in enumerate(values)})


def write(bundle: Bundle, folder: pathlib.Path) -> pathlib.Path:
    write_exported(folder, app_files(bundle, "app"))
    return folder


def parts(data: str, count: int = 3) -> dict[int, dict[str, Any]]:
    return {
        100 + n: {"data": data, "partition-id": n, "num-partitions": count, "name": f"silo-{n}"}
        for n in range(count)
    }


def run(app: pathlib.Path, nodes: Any, config: dict[str, Any], **given: Any) -> tuple[Any, Any]:
    """The rounds that an app runs with nodes, and the grid."""
    client, module = app_at(app)
    config = {"min-nodes": 1, "pause": 0, "timeout": 5, **config}
    grid = GridHere(client, nodes, config, **given)
    rounds = list(serve(module.parent / "bundle.json", grid, context(0, {}, config)))
    return rounds, grid


@tff.tf_computation(np.int32)
def one_more(count: Any) -> Any:
    return count + 1


@tff.federated_computation(
    tff.types.at_server(()),
    tff.types.at_clients([np.float32, np.int32]),
    tff.types.at_clients(np.int32),
)
def counting(state: Any, data: Any, count: Any) -> Any:
    count = tff.federated_map(one_more, count)
    return state, count, tff.federated_sum(count)


@tff.buffered(discount=lambda age: 1 / (1 + tf.cast(age, tf.float32)))
@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients([np.float32, np.int32]))
def buffered_mean(state: Any, data: Any) -> Any:
    return state, tff.federated_mean(data[0])


@FORMS
def test_a_round(form: str, tmp_path: pathlib.Path, data: str) -> None:
    app = write(process_of(every_aggregation, form).bundle, tmp_path / "app")
    (only,), grid = run(app, parts(data), {"secure-sums": "open"})
    assert only.clients == ("silo-0", "silo-1", "silo-2")
    assert only.output[2:5] == (66, 0, np.float32(1 / 3))
    assert only.output[5:] == (66, 66)
    kinds = [message.metadata.message_type for message in grid.sent]
    assert kinds == ["query.describe"] * 3 + ["train.work"] * 3
    ends = [message for message in grid.received if "arrays" in message.content]
    assert all(isinstance(m.content["arrays"], ArrayRecord) for m in ends)


@FORMS
def test_secure_sums_under_masks(form: str, tmp_path: pathlib.Path, data: str) -> None:
    app = write(process_of(every_aggregation, form).bundle, tmp_path / "app")
    (only,), grid = run(app, parts(data, 4), {"secure-sums": "masked"})
    assert only.output[2] == 66
    assert only.output[5:] == (66, 66)
    kinds = [message.metadata.message_type for message in grid.sent]
    steps = ("keys", "shares", "work", "confirmed", "revealed")
    assert kinds[4:] == [f"train.{step}" for step in steps for _ in range(4)]


def test_buffered_rounds(tmp_path: pathlib.Path, data: str) -> None:
    app = write(tff.compile(buffered_mean, "mergeable"), tmp_path / "app")
    out = tmp_path / "run"
    config = {"rounds": 4, "buffer": 2, "in-flight": 3, "max-age": 5, "out": str(out)}
    rounds, grid = run(app, parts(data), config)
    assert [len(one.clients) for one in rounds] == [2] * 4
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["ages"] for row in rows] == [list(one.contributions.ages) for one in rounds]
    assert all("simulated" not in row for row in rows)
    assert all(seen.seconds > 0 for seen in read_observed(out).values())
    record = read_record(out)
    assert record is not None
    assert record.identity.timing == Timing(Buffering(2, 3, 5), None)
    sent = [message for message in grid.sent if message.metadata.message_type == "train.work"]
    # The nodes in flight at the end have been asked too.
    assert len(sent) == 4 * 2 + 1
    means = {f"silo-{n}": np.mean([1 / (n + 3 * k + 3) for k in range(4)]) for n in range(3)}
    assert rounds[0].output == pytest.approx(np.mean([means[name] for name in rounds[0].clients]))


def test_clients_that_keep_states(tmp_path: pathlib.Path, data: str) -> None:
    app = write(process_of(counting, "client-state").bundle, tmp_path / "app")
    config = {"out": str(tmp_path / "run"), "clients-out": str(tmp_path / "clients")}
    nodes = {n: {"partition-id": n - 100, "num-partitions": 3} for n in (100, 101, 102)}
    config["data"] = data
    first, _ = run(app, nodes, {**config, "rounds": 2})
    second, _ = run(app, nodes, {**config, "rounds": 3, "resume": True})
    assert [int(each.output) for each in (*first, *second)] == [12, 24, 36]
    with pytest.raises(DataError) as caught:
        states_of_run(tmp_path / "run", to_type(np.int32))
    assert caught.value.message == (
        f"the states of clients of the run in {tmp_path / 'run'} are at the nodes of Flower"
    )


def test_registered_names_are_not_asked_for(tmp_path: pathlib.Path, data: str) -> None:
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    names = {100: "north", 101: "south", 102: "west"}
    (only,), grid = run(app, parts(data), {"secure-sums": "open"}, names=names)
    assert only.clients == ("north", "south", "west")
    assert {message.metadata.message_type for message in grid.sent} == {"train.work"}


def test_two_nodes_of_one_name(
    tmp_path: pathlib.Path, data: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    nodes = {n: {**config, "name": "same"} for n, config in parts(data).items()}
    with caplog.at_level("INFO", "flwr"):
        (only,), _ = run(app, nodes, {"secure-sums": "open", "min-replies": 1})
    assert only.clients == ("same",)
    assert "two nodes are called same: one of them is left out" in caplog.messages


def test_nodes_that_are_offline_are_not_asked(tmp_path: pathlib.Path, data: str) -> None:
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    client, module = app_at(app)
    config = {"min-nodes": 1, "timeout": 5, "secure-sums": "open"}
    grid = GridHere(client, parts(data), config)
    grid.offline.add(101)
    (only,) = serve(module.parent / "bundle.json", grid, context(0, {}, config))
    assert only.clients == ("silo-0", "silo-2")


def test_a_simulation_divides_the_data_of_the_run(tmp_path: pathlib.Path, data: str) -> None:
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    nodes = {n: {"partition-id": n, "num-partitions": 4} for n in range(4)}
    (only,), _ = run(app, nodes, {"secure-sums": "open", "data": data})
    assert only.clients == ("0", "1", "2", "3")
    assert only.output[2] == 66


def broken(node: int, reply: Message) -> list[Message]:
    """What node 101 answers has lost its arrays, and node 102 has failed."""
    if node == 101 and "arrays" in reply.content and len(reply.content["arrays"]):
        reply.content["arrays"] = ArrayRecord({})
    if node == 102 and reply.metadata.message_type == "train.work":
        error = Error(2, "/home/someone/secret")
        reply.__dict__.update(_content=None, _error=error)
    return [reply]


@pytest.mark.parametrize("kind", ["query.describe", "query.lacks", "train.keep", "train.work"])
def test_no_exception_gets_to_flower(
    tmp_path: pathlib.Path, data: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Flower sends the texts of exceptions to the server, and they may hold paths and values."""
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    client, _ = app_at(app)
    secret = tmp_path / "secret"
    secret.write_text("not a folder")
    request = to_flower(request_for(process_of(every_aggregation, "mapreduce")))
    odd = RecordDict({"tffc": ConfigRecord({"shapes": [1]})})
    for config in ({"worker": str(secret / "worker")}, {"cache": str(secret)}, {"key": b"x"}):
        at_node = context(1, {"data": data, **config}, {})
        for content in (RecordDict(), odd, request):
            reply = client(Message(content, 1, kind), at_node)
            assert not reply.has_error()
            assert "secret" not in str(reply.content)


def test_what_is_wrong_is_in_the_log(
    tmp_path: pathlib.Path, data: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    config = {"secure-sums": "open", "min-replies": 1}
    with caplog.at_level("INFO", "flwr"):
        (only,), _ = run(app, parts(data), config, change=broken)
    assert only.clients == ("silo-0",)
    wrong = "an array of numbers is missing beside the value"
    assert caplog.messages[1:3] == [
        "round 1: silo-1 does not take part: a message of the federation is not one of tffc's: "
        + wrong,
        "round 1: silo-2 does not take part: Flower reports its error 2: the app failed there",
    ]
    assert "secret" not in caplog.text


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What Flower's log writes, where logs are JSON."""
    monkeypatch.setenv("TFFC_LOG", "json")
    flower, stream = logging.getLogger("flwr"), io.StringIO()
    kind: Any = type(flower.handlers[0])
    monkeypatch.setattr(flower, "handlers", [kind(stream=stream)])
    flower.handlers[0].setLevel(logging.INFO)
    return stream


def test_what_operators_see(
    tmp_path: pathlib.Path, data: str, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFFC_METRICS", str(tmp_path / "metrics"))
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    nodes = parts(data)
    nodes[101]["data"] = str(tmp_path / "nothing")
    (only,), _ = run(app, nodes, {"secure-sums": "open", "min-replies": 1})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (refused,) = [line for line in lines if line["level"] == "error"]
    assert (refused["run"], refused["round"], refused["node"]) == ("1", 1, "silo-1")
    (told,) = [line for line in lines if "silo-1 does not take part" in line["message"]]
    assert told["round"] == 1
    assert [line["round"] for line in lines if '"round":' in line["message"]] == [1]
    counts = read_counts(tmp_path / "metrics")
    assert counts["rounds"] == {"finished": 1}
    assert counts["clients"] == {"took_part": 2, "left_out": 1}
    assert counts["refusals"] == {re.findall(r"E\d{3}", refused["message"])[0]: 1}
    # The server and the nodes are on one machine here, so each message is sent and received there.
    bytes_of_round = only.exchange.sent + only.exchange.received
    assert counts["message_bytes"] == {"sent": bytes_of_round, "received": bytes_of_round}


def test_only_bundles_that_are_not_admitted_are_errors(
    tmp_path: pathlib.Path, data: str, log: io.StringIO
) -> None:
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    nodes = parts(data)
    for node, most in ((100, 10**9), (101, 1)):
        nodes[node]["demands"] = str(tmp_path / f"{node}.yaml")
        (tmp_path / f"{node}.yaml").write_text(f"proof: false\nbytes: {most}\n")
    run(app, nodes, {"secure-sums": "open", "min-replies": 1})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    decided = [line for line in lines if line["message"].startswith(("admitted", "refused"))]
    assert [(line["node"], line["level"], line["message"][:7]) for line in decided] == [
        ("silo-0", "info", "admitte"),
        ("silo-1", "error", "refused"),
    ]


@pytest.mark.parametrize(
    ("own", "expected"), [("", "/etc/demands.yaml"), ("/etc/own.yaml", "/etc/own.yaml")]
)
def test_a_worker_is_told_the_demands_of_the_machine(
    own: str, expected: str, tmp_path: pathlib.Path, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have begun before the machine had any, so its own environment is not asked."""
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    client, _ = app_at(app)
    tasks: list[Task] = []

    def ask(folder: pathlib.Path, task: Task) -> Done:
        tasks.append(task)
        return Done(refusal_with("E880").to_record(), Memory(), [])

    monkeypatch.setattr("tffc.deploy.flower.sides.ask_worker", ask)
    config = {"data": data, "worker": str(tmp_path / "worker"), "demands": own}
    request = to_flower(request_for(process_of(every_aggregation, "mapreduce")))
    for demands in ("/etc/demands.yaml", ""):
        monkeypatch.setenv("TFFC_DEMANDS", demands)
        reply = client(Message(request, 1, "train.work"), context(1, config, {}))
        assert reply.content["tffc"]["error"] == "E880"
    assert [task.node_config["demands"] for task in tasks] == [expected, own]


def test_a_log_that_is_no_json(
    tmp_path: pathlib.Path, data: str, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFFC_LOG", "yaml")
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    call = lambda: run(app, parts(data), {"secure-sums": "open"})  # noqa: E731
    assert "TFFC_LOG is 'yaml', expected 'json' or nothing [E895]" in refusal(
        LanguageValueError, call
    )


def test_a_message_that_is_not_ours(tmp_path: pathlib.Path, data: str) -> None:
    app = write(process_of(every_aggregation, "mapreduce").bundle, tmp_path / "app")
    client, _ = app_at(app)
    for content in (RecordDict(), RecordDict({"tffc": ConfigRecord({}), "arrays": ArrayRecord()})):
        message = Message(content, 100, "train.work")
        message.metadata.__dict__["_message_id"] = "m"
        reply = client(message, context(100, parts(data)[100], {}))
        assert reply.content["tffc"]["error"] == "E763"


def with_state(form: str) -> Bundle:
    @tff.tf_computation
    def begin() -> Any:
        return np.float32(1)

    return compile_bundle(moving.node, form, initialize=begin.node)


@FORMS
def test_a_run_is_kept_and_goes_on(form: str, tmp_path: pathlib.Path) -> None:
    bundle = with_state(form)
    app = write(bundle, tmp_path / "app")
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(4):
        write_client(folder, f"{number}", np.float32(number))
    nodes = parts(str(folder), 2)
    out = str(tmp_path / "run")
    first, _ = run(app, nodes, {"rounds": 2, "out": out})
    assert [each.number for each in first] == [1, 2]
    again, _ = run(app, nodes, {"rounds": 3, "out": out, "resume": True})
    assert [each.number for each in again] == [3]
    whole, _ = run(app, nodes, {"rounds": 3})
    assert again[0].state == whole[2].state
    assert whole[2].state.value == 1 + 2.5 + 5 + 10
    assert sorted(p.name for p in (tmp_path / "run" / "outputs").iterdir()) == [
        "round-1.npz",
        "round-2.npz",
        "round-3.npz",
    ]
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 3
    assert tff.load_state(tmp_path / "run") == whole[2].state.value
    with pytest.raises(DataError, match="already holds a run"):
        run(app, nodes, {"rounds": 3, "out": out})
    with pytest.raises(DataError, match=r"the run in .* is another one"):
        run(app, nodes, {"rounds": 4, "out": out, "resume": True, "seed": 1})


def test_a_run_that_cannot_begin_leaves_nothing(tmp_path: pathlib.Path) -> None:
    app = write(with_state("mapreduce"), tmp_path / "app")
    nodes = parts(str(tmp_path / "nowhere"))
    config = {"rounds": 2, "out": str(tmp_path / "run"), "attempts": 1}
    with pytest.raises(TffcError, match="0 of 3 nodes answered in round 1"):
        run(app, nodes, config)
    assert not (tmp_path / "run" / "run.json").exists()


def test_clients_keep_what_they_have(tmp_path: pathlib.Path) -> None:
    @tff.tf_computation
    def begin() -> Any:
        return np.int32(7)

    bundle = compile_bundle(scaled.node, "broadcast", initialize=begin.node)
    app = write(bundle, tmp_path / "app")
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(4):
        write_client(folder, f"{number}", np.int32(number))
    nodes = {n: {**c, "out": str(tmp_path / c["name"])} for n, c in parts(str(folder), 2).items()}
    run(app, nodes, {"rounds": 1})
    found = sorted(tmp_path.glob("silo-*/clients/round-1/*.npz"))
    assert [path.parts[-4] for path in found] == ["silo-0", "silo-0", "silo-1", "silo-1"]
    values = [int(value) for path in found for value in np.load(path).values()]
    assert values == [0, 14, 7, 21]


def with_little(bundle: Bundle, folder: pathlib.Path) -> pathlib.Path:
    """An app with room for little of a bundle."""
    files = app_files(bundle, "app")
    files["tffc_app/bundle.json"] = encode_bundle_file(bundle.encode(), 8000)
    write_exported(folder, files)
    return folder


def test_nodes_are_sent_what_an_app_has_no_room_for_once(
    tmp_path: pathlib.Path, data: str, caplog: pytest.LogCaptureFixture
) -> None:
    bundle = process_of(every_aggregation, "mapreduce").bundle
    write_bundle(bundle, tmp_path / "bundle")
    app = with_little(bundle, tmp_path / "app")
    nodes = {n: {**c, "cache": str(tmp_path / c["name"])} for n, c in parts(data).items()}
    config = {"secure-sums": "open", "bundle": str(tmp_path / "bundle")}
    sent = [f"silo-{n} was sent" for n in range(3)]
    with caplog.at_level("INFO", "flwr"):
        (only,), _ = run(app, nodes, config)
    assert only.output[2] == 66
    assert [line.rpartition(" sent")[0] + " sent" for line in caplog.messages[:3]] == sent
    caplog.clear()
    with caplog.at_level("INFO", "flwr"):
        (only,), grid = run(app, nodes, config)
    assert only.output[2] == 66
    assert "was sent" not in caplog.text
    assert "train.keep" not in [message.metadata.message_type for message in grid.sent]


def test_a_node_without_what_an_app_has_no_room_for(
    tmp_path: pathlib.Path, data: str, caplog: pytest.LogCaptureFixture
) -> None:
    bundle = process_of(every_aggregation, "mapreduce").bundle
    write_bundle(bundle, tmp_path / "bundle")
    app = with_little(bundle, tmp_path / "app")
    nodes = {n: {**c, "cache": "/proc/nowhere"} for n, c in parts(data).items()}
    config = {"secure-sums": "open", "bundle": str(tmp_path / "bundle"), "attempts": 1}
    with pytest.raises(TffcError, match="0 of 3 nodes answered"):
        run(app, nodes, config)
    assert "E762, A bundle file that cannot be found" in caplog.text
    assert "cannot keep a file of the bundle in /proc/nowhere" in caplog.text


def test_large_files_are_found_in_the_folder_of_the_bundle(tmp_path: pathlib.Path) -> None:
    bundle = with_state("mapreduce")
    write_bundle(bundle, tmp_path / "bundle")
    file = with_little(bundle, tmp_path / "app") / "tffc_app" / "bundle.json"
    with pytest.raises(TffcError, match="and does not hold it"):
        read_app_bundle(file)
    found = read_app_bundle(file, fetch_from(tmp_path / "bundle"))
    assert found.encode() == bundle.encode()
    said = refusal(BundleError, read_app_bundle, file, fetch_from(tmp_path / "app"))
    size = len(bundle.encode()["manifest.json"])
    assert said == (
        f"{file} names manifest.json, of {size} bytes, which is not here [E762]\n"
        "  help: begin a new run, in which the server sends what a node lacks; at the server, give "
        "the folder of the bundle itself"
    )
