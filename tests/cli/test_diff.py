"""`tffc diff`: equal and different programs, and the three exit codes."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.cli.conftest import ROUND, Run
from tests.processes import ROOT

MAPPED = """\
import numpy as np
import tensorflow as tf
import tffc as tff


@tff.tf_computation(np.int32)
def scale(x):
    return {}


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def {}(state, data):
    moved = tff.federated_map(scale, data)
    return state, tff.federated_sum(moved)
"""


@pytest.fixture(autouse=True)
def programs(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "one.py").write_text(MAPPED.format("x * 2", "count"))
    (tmp_path / "same.py").write_text(MAPPED.format("x * 2", "another_name"))
    (tmp_path / "constant.py").write_text(MAPPED.format("x * 3", "count"))
    (tmp_path / "other.py").write_text(MAPPED.format("x * 2 + 1", "count"))


@pytest.mark.parametrize(
    ("first", "second"),
    [("one.py:count", "one.py:count"), ("one.py:count", "same.py:another_name")],
)
def test_the_same(run: Run, first: str, second: str) -> None:
    ran = run("diff", first, second)
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "")


def test_a_binding_more(run: Run) -> None:
    ran = run("diff", "round.py", "one.py:count")
    assert ran.code == 2
    assert ran.stdout == (
        "computation: changed\n"
        "   count_arg: <state=int32@SERVER,data={int32}@CLIENTS> = parameter\n"
        "  -fc_count_symbol_0: int32@SERVER = federated_sum(count_arg[1])\n"
        "  -result: <int32@SERVER,int32@SERVER> = <count_arg[0],fc_count_symbol_0>\n"
        "  +fc_count_symbol_0_1: {int32}@CLIENTS = federated_map(<comp#be9b61b4,count_arg[1]>)\n"
        "  +fc_count_symbol_1: int32@SERVER = federated_sum(fc_count_symbol_0_1)\n"
        "  +result: <int32@SERVER,int32@SERVER> = <count_arg[0],fc_count_symbol_1>\n"
        "  + comp#be9b61b4: (int32 -> int32)\n"
    )


def test_another_section(run: Run) -> None:
    lines = run("diff", "one.py:count", "other.py:count").stdout.splitlines()
    assert [line[2] for line in lines[1:6]] == [" ", "-", "+", " ", " "]
    assert lines[6].endswith(": +1 AddV2, +1 Const")
    assert lines[7:] == [
        "    called at other.py:13: moved = tff.federated_map(scale, data)",
        "    added AddV2 add",
        "    added Const add/y int32 1",
        "    Identity: input 0 is AddV2 add, was Mul mul",
    ]


def test_another_constant(run: Run) -> None:
    """The line is one of the second program, and unknown if that is a file."""
    lines = run("diff", "one.py:count", "constant.py:count").stdout.splitlines()
    assert lines[6].endswith(": the same operations")
    place = "    called at constant.py:13: moved = tff.federated_map(scale, data)"
    assert lines[7:] == [place, "    Const mul/y: 2 -> 3"]
    run("trace", "one.py:count", "-o", "one.pb")
    lines = run("diff", "constant.py:count", "one.pb").stdout.splitlines()
    assert lines[7:] == ["    Const mul/y: 3 -> 2"]


def test_forms_of_files(run: Run, tmp_path: pathlib.Path) -> None:
    """A module, its message, its text and its bundle hold one program."""
    run("trace", "one.py:count", "-o", "one.pb")
    run("print", "one.pb", "--style", "typed", "--sections", "sections")
    (tmp_path / "one.sexpr").write_text(run("print", "one.pb", "--style", "typed").stdout)
    run("compile", "one.pb", "--form", "mapreduce", "--out", "bundle")
    pairs = (("one.py:count", "one.pb"), ("one.pb", "one.sexpr"), ("bundle", "one.sexpr"))
    for first, second in pairs:
        assert run("diff", first, second).code == 0
    assert run("diff", "other.py:count", "bundle").code == 2


@pytest.mark.slow
def test_a_process_and_its_bundle(run: Run) -> None:
    process = f"{ROOT}/examples/digits/federated_averaging.py:training"
    run("compile", process, "--form", "mapreduce", "--out", "bundle")
    assert run("diff", process, "bundle").code == 0
    assert run("diff", "bundle", process).code == 0


def test_bundles(run: Run) -> None:
    for name in ("one", "other"):
        run("compile", f"{name}.py:count", "--form", "mapreduce", "--out", name)
    ran = run("diff", "one", "other", "--json")
    assert ran.code == 2
    found = json.loads(ran.stdout)
    assert [(each["component"], each["change"]) for each in found] == [
        ("computation", "changed"),
        ("work", "changed"),
    ]
    assert found[1]["sections"][0].endswith(": +1 AddV2, +1 Const")
    assert "  added Const c1/add/y int32 1" in found[1]["sections"]


def test_components_that_only_one_has(run: Run) -> None:
    run("compile", "one.py:count", "--form", "mapreduce", "--out", "one")
    run("compile", "one.py:count", "--form", "distribute-aggregate", "--out", "other")
    lines = run("diff", "one", "other").stdout.splitlines()
    assert lines[:2] == ["prepare: removed", "work: removed"]
    assert lines[-1] == "server_result: added"


@pytest.mark.parametrize("args", [("one.py:count",), ("one.py:count", "missing.pb"), ("--no",)])
def test_errors(run: Run, args: tuple[str, ...]) -> None:
    assert "rror" in run("diff", *args).refusal
