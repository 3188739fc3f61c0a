"""What operators configure is read, or refused with what it should be."""

from __future__ import annotations

import pathlib
import re
import tomllib
from typing import Any

import pytest

from tests.processes import ROOT
from tests.refusals import refusal
from tests.runtime.engines.programs import every_aggregation, process_of
from tffc.deploy.federation.settings import NodeSettings, RunSettings
from tffc.deploy.flower.app_folder import app_files
from tffc.runtime.engines.buffering import Buffering
from tffc.support.errors import LanguageValueError


def test_the_page_has_all_entries() -> None:
    page = (ROOT / "docs" / "flower.md").read_text()
    _, _, after = page.partition("\n## Run configuration\n")
    runs, _, after = after.partition("\n## Node configuration\n")
    nodes, _, _ = after.partition("\n## ")
    for kind, section in ((RunSettings, runs), (NodeSettings, nodes)):
        first = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
        listed = set(re.findall(r"`([\w-]+)`", " ".join(first)))
        names = {field.replace("_", "-") for field in kind.__dataclass_fields__}
        assert listed - {"data", "clients-out"} == names - {"data"}


def test_nothing_said_of_a_run() -> None:
    assert RunSettings.read({}) == RunSettings()


def test_an_app_says_of_everything_what_holds_without_it() -> None:
    files = app_files(process_of(every_aggregation, "mapreduce").bundle, "app")
    config = tomllib.loads(files["pyproject.toml"].decode())["tool"]["flwr"]["app"]["config"]
    assert RunSettings.read(config) == RunSettings()
    names = {field.replace("_", "-") for field in RunSettings.__dataclass_fields__}
    assert set(config) == names | {"data", "clients-out"}


def test_everything_said_of_a_run() -> None:
    config = {
        "rounds": 20,
        "min-nodes": 3,
        "min-replies": 2,
        "fraction": 0.5,
        "timeout": 60,
        "pause": 0,
        "attempts": 2,
        "seed": -7,
        "out": "/run",
        "resume": True,
        "secure-sums": "open",
        "bundle": "/bundle",
        "allow-effects": "files, network",
    }
    path = pathlib.Path
    assert RunSettings.read(config) == RunSettings(
        20, 3, 2, 0.5, 60.0, 0.0, 2, -7, path("/run"), True, "open", path("/bundle"),
        frozenset({"files", "network"}),
    )  # fmt: skip


def test_buffered_rounds() -> None:
    settings = RunSettings.read({"buffer": 2, "in-flight": 4, "max-age": 0})
    assert settings.buffering == Buffering(2, 4, 0)
    assert RunSettings.read({"buffer": "", "in-flight": "", "max-age": ""}).buffering is None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"buffer": 2},
            "buffered rounds need both 'buffer' and 'in-flight' in the run configuration [E766]\n"
            "  help: give the contributions of a step and the nodes that work at the same time, or "
            "leave out 'buffer', 'in-flight' and 'max-age'",
        ),
        (
            {"buffer": 2, "in-flight": 2, "fraction": 0.5},
            "'fraction' in the run configuration is not for buffered rounds: 'in-flight' says how "
            "many nodes work [E766]\n  help: leave it out, or 'buffer' and 'in-flight'",
        ),
        (
            {"buffer": 2, "in-flight": 2, "resume": True},
            "'resume' in the run configuration is not for buffered rounds: the nodes in flight are "
            "lost [E766]\n  help: leave it out, or 'buffer' and 'in-flight'",
        ),
        (
            {"buffer": 2, "in-flight": 2, "delays": "constant:1"},
            "'delays' in the run configuration has no effect: nodes work in real time [E766]\n"
            "  help: leave it out; tffc run simulates delays in its local engine",
        ),
    ],
)
def test_buffered_rounds_that_are_refused(config: dict[str, Any], message: str) -> None:
    assert refusal(LanguageValueError, RunSettings.read, config) == message


def test_nodes_are_not_sampled_independently_of_each_other() -> None:
    assert refusal(LanguageValueError, RunSettings.read, {"sampling-rate": 0.5}) == (
        "'sampling-rate' in the run configuration has no effect: which nodes take part depends on "
        "who is connected and replies [E766]\n"
        "  help: leave it out; 'fraction' asks a part of the nodes that are connected"
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("rounds", 0, "a number from 1 on"),
        ("rounds", True, "a number from 1 on"),
        ("rounds", "3", "a number from 1 on"),
        ("min-replies", 0, "a number from 1 on"),
        ("buffer", 0, "a number from 1 on"),
        ("max-age", -1, "a number from 0 on"),
        ("fraction", 1.5, "a number above 0, of at most 1"),
        ("fraction", 0, "a number above 0, of at most 1"),
        ("timeout", float("inf"), "seconds"),
        ("timeout", 0, "seconds"),
        ("seed", 0.5, "a whole number"),
        ("out", 7, "a path"),
        ("resume", 1, "true or false"),
        ("secure-sums", "closed", "'open' or 'masked'"),
        ("allow-effects", True, "kinds of effects with commas between them"),
    ],
)
def test_a_run_that_cannot_be(name: str, value: Any, expected: str) -> None:
    assert refusal(LanguageValueError, RunSettings.read, {name: value}) == (
        f"{name!r} in the run configuration is {value!r}, expected {expected} [E766]\n"
        "  help: docs/flower.md and docs/nvflare.md have tables of all entries"
    )


def test_a_node() -> None:
    config = {"data": "d", "policy": "p.yaml", "skip-bad-clients": True, "name": "north"}
    found = NodeSettings.read(config, {"data": "elsewhere"})
    assert found == NodeSettings(
        "d", policy=pathlib.Path("p.yaml"), name="north", skip_bad_clients=True
    )


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("polcy", "did you mean 'policy'?"),
        ("least_participants", "did you mean 'least-participants'?"),
        ("epsilon", "docs/flower.md and docs/nvflare.md have tables of all entries"),
    ],
)
def test_a_node_with_an_entry_that_there_is_not(name: str, help: str) -> None:
    assert refusal(LanguageValueError, NodeSettings.read, {"data": "d", name: "x"}, {}) == (
        f"{name!r} in the node's configuration is not an entry [E766]\n  help: {help}"
    )


def test_nodes_of_a_simulation_take_the_data_of_the_run() -> None:
    run = {"data": "d", "clients-out": "o"}
    found = NodeSettings.read({"partition-id": 1, "num-partitions": 3}, run)
    assert found == NodeSettings("d", 1, 3, out=pathlib.Path("o"))


def test_no_other_node_takes_the_data_of_the_run() -> None:
    assert refusal(LanguageValueError, NodeSettings.read, {}, {"data": "/home"}) == (
        "the node's configuration does not say where its clients' data is [E766]\n"
        "  help: start it with --node-config 'data=\"/path/to/data\"'; a run in the simulation is "
        "given it by --run-config"
    )


@pytest.mark.parametrize(
    "config", [{"partition-id": 3, "num-partitions": 3}, {"partition-id": 0}, {"num-partitions": 2}]
)
def test_partitions_that_cannot_be(config: dict[str, Any]) -> None:
    with pytest.raises(LanguageValueError, match="expected a number below num-partitions"):
        NodeSettings.read({"data": "d", **config}, {})


@pytest.mark.parametrize("least", [1, 0, -3, True, "5", 2.5])
def test_a_sum_of_one_participant_cannot_be_the_least(least: Any) -> None:
    with pytest.raises(LanguageValueError, match="expected a number from 2 on"):
        NodeSettings.read({"data": "d", "least-participants": least}, {})


def test_what_a_node_demands_of_masked_sums() -> None:
    config = {"data": "d", "least-participants": 10, "memory": "/kept"}
    settings = NodeSettings.read(config, {"least-participants": 2, "memory": "/elsewhere"})
    assert (settings.least_participants, settings.memory) == (10, pathlib.Path("/kept"))
    assert NodeSettings.read({"data": "d"}, {}).least_participants == 3
