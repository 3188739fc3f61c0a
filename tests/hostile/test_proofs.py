"""Hostile policies, and graphs that no prover should enter: refused, whatever they say."""

from __future__ import annotations

import contextlib
import pathlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import yaml

import tffc as tff
from tests.assurance.proof.edits import Draft
from tests.fuzz.mutations import damaged_text
from tests.hostile.bundles import VALUES
from tffc.assurance.audit.policy_reading import EXCEPTION, FIELDS, read_policy
from tffc.assurance.proof.prove import Answer, Proof, prove
from tffc.backends import compile_form
from tffc.language import Compiled
from tffc.language.size import size_limit
from tffc.support.errors import PolicyError

POLICY = """\
operators: [federated_secure_sum_bitwidth, federated_mean]
never-leave: ['data.user.*', '*.location']
largest-bytes: 4000000
protection: system
noise: true
effects: {clients: [], server: [files]}
exceptions:
  - {channel: loss, rule: protection, reason: reviewed, expires: 2030-01-31}
"""

YAML = (
    "", "- a", "a", "{", "&a [*a]", "{? [a] : 1}", "{? {a: b} : 1}", "1: 2", "null: 1", "[" * 3000,
    "operators: !!python/object/apply:os.system [ls]", "operators: !!set {a}", "noise: !!bool x",
    "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]", "exceptions: [{expires: 2030-13-01}]", "\0", "%",
    "exceptions: [{expires: 2030-01-31T00:00:00Z}]", "largest-bytes: 0x" + "f" * 9000, "---\n---",
    "protection: [secure]", "protection: {}", "exceptions: [{rule: [noise]}]", "never-leave: ['[']",
    "exceptions: [{rule: {}}]", "effects: {clients: [[files]]}", "operators: [~]", "<<: {a: b}",
    "largest-bytes: .inf", "largest-bytes: 1e999", "noise: 1", "noise: yes", "? noise", "!!map []",
)  # fmt: skip


def read(tmp_path: pathlib.Path, text: str) -> bool:
    """Whether a text is a policy; nothing else may come of it."""
    path = tmp_path / "policy.yaml"
    path.write_bytes(text.encode(errors="surrogatepass"))
    try:
        read_policy(path)
    except PolicyError as error:
        if not error.code.startswith("E97"):
            raise
        return False
    return True


@pytest.mark.parametrize("text", YAML, ids=range(len(YAML)))
def test_hostile_policy(tmp_path: pathlib.Path, text: str) -> None:
    read(tmp_path, text)


def test_every_key_of_every_kind(tmp_path: pathlib.Path) -> None:
    for value in VALUES:
        for fields, wrap in ((FIELDS, lambda e: e), (EXCEPTION, lambda e: {"exceptions": [e]})):
            for key in fields:
                with contextlib.suppress(yaml.YAMLError, UnicodeError):
                    read(tmp_path, yaml.safe_dump(wrap({key: value})))


def test_damaged_policies(tmp_path: pathlib.Path) -> None:
    generator = random.Random(0)
    found = [read(tmp_path, damaged_text(generator, [POLICY])) for _ in range(600)]
    assert any(found)
    assert not all(found)


# Functions of datasets, which the prover enters.


@tff.tf_computation(tff.SequenceType(np.int32))
def mapped(numbers: Any) -> Any:
    return numbers.map(lambda n: n + 1).map(lambda n: n + 2).reduce(0, lambda total, n: total + n)


@tff.federated_computation(
    tff.types.at_server(np.int32), tff.types.at_clients(tff.SequenceType(np.int32))
)
def counting(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(tff.federated_map(mapped, data))


def proof_of(edit: Callable[[Any], None]) -> Proof:
    """What the prover says after an edit of the graph of the work."""
    components = dict(compile_form(counting.node, "mapreduce").components())
    work = components["work"]
    assert isinstance(work, Compiled)
    draft = Draft(work, random.Random(0))
    edit(draft.graph)
    components["work"] = draft.finish()
    return prove(counting.node, "mapreduce", components)


def map_twice(graph: Any, function: Any, other: str) -> None:
    """Let a function map another over what it is given, twice, whatever that gives."""
    mapping = next(node for node in graph.node if node.op == "MapDataset")
    for number in range(2):
        node = function.node_def.add()
        node.CopyFrom(mapping)
        node.name = f"again_{number}"
        node.input[:] = [function.signature.input_arg[0].name]
        node.attr["f"].func.name = other


def mapped_first(graph: Any) -> Any:
    """The function that is mapped first."""
    name = next(node for node in graph.node if node.op == "MapDataset").attr["f"].func.name
    return next(each for each in graph.library.function if each.signature.name == name)


def test_a_function_that_maps_itself() -> None:
    def edit(graph: Any) -> None:
        function = mapped_first(graph)
        map_twice(graph, function, function.signature.name)

    found = proof_of(edit)
    assert (found.answer, found.construct) == (Answer.UNDECIDED, "a malformed graph")


def test_functions_that_map_another_twice_each() -> None:
    """Entering each function at each place would take twice as long for each of them."""

    def edit(graph: Any) -> None:
        function = mapped_first(graph)
        plain = type(function)()
        plain.CopyFrom(function)
        for number in range(40):
            following = graph.library.function.add()
            following.CopyFrom(plain)
            following.signature.name = f"function_{number}"
            map_twice(graph, function, following.signature.name)
            function = following

    with size_limit(10_000):
        found = proof_of(edit)
    assert (found.answer, found.construct) == (Answer.UNDECIDED, "size")


def test_a_deep_program() -> None:
    """A round in which one function is mapped after another is proved in time of its depth."""

    @tff.tf_computation(np.int32)
    def next_number(n: Any) -> Any:
        return n + 1

    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
    def deep(state: Any, data: Any) -> Any:
        for _ in range(300):
            data = tff.federated_map(next_number, data)
        return state, tff.federated_sum(data)

    found = prove(deep.node, "mapreduce", compile_form(deep.node, "mapreduce").components())
    assert found.answer is Answer.PROVED
    assert found.operations < 1000
