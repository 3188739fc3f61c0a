"""A node whose policy has an ε judges it by the first state that it has, and counts its rounds."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy import test_correlated_noise as correlated
from tests.assurance.privacy.programs.events import program
from tests.deploy.federation.nodes import make_node
from tests.deploy.federation.test_node import answered
from tests.runtime.engines.sources import Values
from tffc.backends.compiler import compile_bundle
from tffc.deploy.federation.messages import Record, Request, program_digest
from tffc.deploy.federation.node import Node
from tffc.deploy.federation.round_counts import FILE
from tffc.runtime.engines.process import Process

pytest.importorskip("dp_accounting")

DATA = Values([np.ones(4, np.float32), np.zeros(4, np.float32)])

SHOWN = "epsilon: {at-most: 5, delta: 1e-6, rounds: 3}\n"
"""Three rounds of `sum_clip_by_norm` have an ε of 4.14."""


def process_of(name: str) -> Process:
    process: Any = program(name)
    return Process(
        compile_bundle(process.next.node, "mapreduce", initialize=process.initialize.node)
    )


@pytest.fixture(scope="module")
def process() -> Process:
    return process_of("sum_clip_by_norm")


def request_for(process: Process, round: int = 1, attempt: str = "attempt") -> Record:
    carried, sent = process.steps.prepare(process.first_state().value)
    carried = process.steps.shared(carried)
    return Request(program_digest(process), round, attempt, "open", carried, sent).to_record()


@dataclasses.dataclass
class Site:
    """A node with a policy, and a memory in a folder; `log` has what its operator is told."""

    folder: pathlib.Path
    policy: str
    memory: bool = True
    log: list[str] = dataclasses.field(default_factory=list[str])

    def node(self, process: Process) -> Node:
        """The node, as after a restart."""
        file = self.folder / "policy.yaml"
        file.write_text(self.policy)
        config = {"policy": str(file)}
        if self.memory:
            config["memory"] = str(self.folder / "memory")
        return make_node(process.bundle, DATA, self.log, config)


def test_a_node_takes_part_in_as_many_rounds_as_its_policy_allows(
    process: Process, tmp_path: pathlib.Path
) -> None:
    site = Site(tmp_path, SHOWN)
    node = site.node(process)
    replies = [answered(node, request_for(process, number)) for number in range(1, 5)]
    assert [reply.error for reply in replies] == ["", "", "", "E777"]
    assert [reply.clients for reply in replies] == [2, 2, 2, 0]
    assert site.log == [
        "the node has taken part in 3 rounds of the program, and its policy allows 3 [E777]\n"
        "  note: attempts at a round that came to nothing count too\n"
        "  help: run no more rounds with the data of this node, or have the policy allow more"
    ]


def test_a_restart_does_not_make_it_forget(process: Process, tmp_path: pathlib.Path) -> None:
    site = Site(tmp_path, SHOWN)
    errors = [answered(site.node(process), request_for(process)).error for _ in range(4)]
    assert errors == ["", "", "", "E777"]
    counts = json.loads((tmp_path / "memory" / FILE).read_text())
    assert counts == {program_digest(process): 3}


def test_attempts_count(process: Process, tmp_path: pathlib.Path) -> None:
    site = Site(tmp_path, SHOWN)
    node = site.node(process)
    errors = [answered(node, request_for(process, 1, f"attempt-{n}")).error for n in range(4)]
    assert errors == ["", "", "", "E777"]


def test_each_program_has_its_own_count(process: Process, tmp_path: pathlib.Path) -> None:
    site = Site(tmp_path, SHOWN)
    for _ in range(3):
        answered(site.node(process), request_for(process))
    other = process_of("sum_minimum_formula")
    assert answered(site.node(other), request_for(other)).error == ""
    assert answered(site.node(process), request_for(process)).error == "E777"


def test_without_a_memory_it_takes_no_part(process: Process, tmp_path: pathlib.Path) -> None:
    site = Site(tmp_path, SHOWN, memory=False)
    assert answered(site.node(process), request_for(process)).error == "E766"
    assert site.log == [
        "the node's policy has an epsilon for a number of rounds, and the node would forget how "
        "many there were [E766]\n"
        "  help: give it a folder of its own, as 'memory' in its configuration"
    ]


@pytest.mark.parametrize("content", ["[]", "{", '{"a": -1}', '{"a": "1"}'])
def test_a_damaged_memory_counts_as_none(
    process: Process, tmp_path: pathlib.Path, content: str
) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / FILE).write_text(content)
    site = Site(tmp_path, SHOWN)
    assert answered(site.node(process), request_for(process)).error == "E959"
    (said,) = site.log
    assert said.startswith(f"what the node remembers of rounds in {tmp_path / 'memory'} cannot be")


def test_more_than_the_policy_allows(process: Process, tmp_path: pathlib.Path) -> None:
    site = Site(tmp_path, "epsilon: {at-most: 4, delta: 1e-6, rounds: 3}\n")
    assert answered(site.node(process), request_for(process)).error == "E776"
    assert "epsilon: the rounds: ε = 4." in site.log[0]
    assert not (tmp_path / "memory").exists()


def test_a_node_gains_nothing_by_sampling_that_it_does_not_see(
    process: Process, tmp_path: pathlib.Path
) -> None:
    text = "epsilon: {at-most: 1, delta: 1e-6, rounds: 3, sampling-rate: 0.01}\n"
    assert tff.audit(process.bundle, policy=_file(tmp_path, text)).verdict.value == "passes"
    site = Site(tmp_path, text)
    assert answered(site.node(process), request_for(process)).error == "E776"


def _file(folder: pathlib.Path, text: str) -> pathlib.Path:
    path = folder / "sampled.yaml"
    path.write_text(text)
    return path


def test_without_the_first_state_what_depends_on_it_is_not_shown(tmp_path: pathlib.Path) -> None:
    process = process_of("scale_in_state")
    request = request_for(process)
    site = Site(tmp_path, SHOWN)
    assert answered(site.node(process), request).error == ""
    bare = Process(dataclasses.replace(process.bundle, initialize=None))
    request = Record({**request.entries, "program": program_digest(bare)}, request.arrays)
    assert answered(site.node(bare), request).error == "E776"
    assert "epsilon: following: scale of the noise is not shown" in site.log[-1]


def test_a_program_that_may_be_buffered(process: Process, tmp_path: pathlib.Path) -> None:
    discounted = tff.tf_computation(lambda age: 1.0 / (1.0 + age), np.float32).node
    bundle = dataclasses.replace(process.bundle, discount=discounted)
    buffered = Process(bundle)
    site = Site(tmp_path, SHOWN)
    assert answered(site.node(buffered), request_for(buffered)).error == "E776"
    assert "a node cannot see that they are not buffered" in site.log[-1]


def test_the_policy_of_a_node_s_demands_counts_too(
    process: Process, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "policy.yaml").write_text(SHOWN)
    demands = tmp_path / "node.yaml"
    demands.write_text("policy: policy.yaml\n")
    config = {"demands": str(demands), "memory": str(tmp_path / "memory")}
    log: list[str] = []
    node = make_node(process.bundle, DATA, log, config)
    errors = [answered(node, request_for(process, number)).error for number in range(1, 5)]
    assert errors == ["", "", "", "E777"]
    (tmp_path / "policy.yaml").write_text(
        "epsilon: {at-most: 1, delta: 1e-6, rounds: 3, sampling-rate: 0.01}\n"
    )
    assert answered(node, request_for(process, 9)).error == "E880"


def test_noise_of_several_rounds_rests_on_what_a_node_does_not_see(tmp_path: pathlib.Path) -> None:
    program: Any = correlated.process_of(correlated.less(0.5))
    bundle = compile_bundle(program.next.node, "mapreduce", initialize=program.initialize.node)
    site = Site(tmp_path, "epsilon: {at-most: 1000, delta: 1e-6, rounds: 3}\n")
    process = Process(bundle)
    assert answered(site.node(process), request_for(process)).error == "E776"
    assert "a node cannot see that no two rounds begin with the same state" in site.log[0]
    demands = tmp_path / "node.yaml"
    demands.write_text("policy: policy.yaml\n")
    config = {"demands": str(demands), "memory": str(tmp_path / "memory")}
    log: list[str] = []
    node = make_node(bundle, DATA, log, config)
    assert answered(node, request_for(process)).error != ""
    assert "a node cannot see that no two rounds begin with the same state" in "".join(log)
