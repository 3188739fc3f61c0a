"""A node's policy means what `tffc audit` says that it means."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np
import pytest

import tffc as tff
from tests.deploy.federation.nodes import make_node
from tests.deploy.federation.test_node import answered, policy, request_for
from tests.runtime.engines.programs import NONE, process_of
from tests.runtime.engines.sources import Values
from tffc.assurance.audit.audit import audit
from tffc.graphs.proto import GraphDef
from tffc.language import Compiled
from tffc.language.wire import read_tensorflow, write_tensorflow
from tffc.runtime.engines.process import Process


@tff.federated_computation(NONE, tff.types.at_clients(np.int32))
def finds_the_largest(state: object, readings: object) -> object:
    return state, tff.federated_max(readings)


@pytest.fixture
def process() -> Process:
    return process_of(finds_the_largest, "mapreduce")


def renamed(process: Process) -> Process:
    """Return a process whose clients' work has nodes of other names."""
    work = process.bundle.components["work"]
    assert isinstance(work, Compiled)
    payload = work.payload.replace(b"Identity", b"Odentity")
    content = read_tensorflow(payload)
    graph = GraphDef.FromString(content.graph_def)
    for node in graph.node:
        node.op = node.op.replace("Odentity", "Identity")
    message = content._replace(graph_def=graph.SerializeToString(deterministic=True))
    changed = dataclasses.replace(work, payload=write_tensorflow(message))
    components = {**process.bundle.components, "work": changed}
    return Process(dataclasses.replace(process.bundle, components=components))


def error_of(process: Process, folder: pathlib.Path, text: str) -> str:
    """Return the code with which a node with this policy refuses a round, or empty."""
    node = make_node(process.bundle, Values([np.int32(3), np.int32(4)]), [], policy(folder, text))
    return answered(node, request_for(process)).error


def test_components_that_are_proved_are_enough(process: Process, tmp_path: pathlib.Path) -> None:
    other = renamed(process)
    assert other.bundle.digests() != process.bundle.digests()
    assert error_of(other, tmp_path, "protection: system\n") == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("never-leave: [readings]\n", "E776"),
        ("never-leave: ['*']\n", "E776"),
        ("never-leave: [reading]\n", "E977"),
        ("never-leave: ['readings[0]']\n", "E977"),
        ("never-leave: [{pattern: data.user, optional: true}]\n", ""),
        ("single-client: false\n", "E776"),
        ("single-client: true\n", ""),
        ("noise: true\n", "E971"),
        ("operators: [federated_maximum]\n", "E971"),
    ],
)
def test_rules_of_a_node(process: Process, tmp_path: pathlib.Path, text: str, code: str) -> None:
    assert error_of(process, tmp_path, text) == code


def test_an_exception_of_a_node_is_for_a_content(process: Process, tmp_path: pathlib.Path) -> None:
    (channel,) = audit(process.bundle.computation, "mapreduce").channels
    text = (
        "single-client: false\nexceptions: [{{channel: largest, content: {}, rule: single-client, "
        "reason: reviewed, expires: 2999-01-01}}]\n"
    )
    assert error_of(process, tmp_path, text.format(channel.content)) == ""
    assert error_of(process, tmp_path, text.format("a" * 32)) == "E977"
