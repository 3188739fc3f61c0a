"""`tffc verify`, and `tffc compile --verify`."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.cli.conftest import ROUND, Run
from tests.processes import ROOT

SENSORS = ROOT / "examples" / "temperature" / "sensors"
SUM = """\
import numpy as np
import tffc as tff


@tff.tf_computation(np.int32, np.int32)
def add(x, y):
    return x + y


@tff.tf_computation(np.int32, np.int32)
def subtract(x, y):
    return x - y


@tff.tf_computation(np.int32)
def same(x):
    return x


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def total(state, data):
    return state, tff.federated_aggregate(data, 0, add, subtract, same)
"""
"""A round whose partial sums are merged wrongly."""


@pytest.fixture(autouse=True)
def modules(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "sum.py").write_text(SUM)


def test_agreement(run: Run) -> None:
    ran = run("verify", "round.py", "--form", "mapreduce", "--trials", "8")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == (
        "round.py: 8 arguments, and the same results from\n  the form mapreduce\n"
    )


def test_nothing_to_compare(run: Run) -> None:
    ran = run("verify", "round.py", "--trials", "1")
    assert ran.stdout == "round.py: nothing changed the program; it ran on 1 argument\n"


def test_agreement_as_json(run: Run) -> None:
    found = json.loads(run("verify", "round.py", "--form", "broadcast", "--json").stdout)
    assert (found["agrees"], found["code"]) == (False, "E510")
    found = json.loads(run("verify", "sum.py:total", "--passes", "call-dominant", "--json").stdout)
    assert (found["agrees"], found["trials"]) == (True, 20)
    assert {(w["code"], pathlib.Path(w["file"]).name, w["line"]) for w in found["warnings"]} == {
        ("E901", "sum.py", 22)
    }


def test_an_aggregation_that_depends_on_order(run: Run) -> None:
    ran = run("verify", "sum.py:total", "--trials", "4")
    assert ran.code == 0
    assert ran.stderr.startswith(
        "warning[E901]: in this aggregation, zero is not an identity of merge\n"
        "  --> sum.py:22:19\n"
        "   |\n"
        "22 |     return state, tff.federated_aggregate(data, 0, add, subtract, same)\n"
    )


def test_real_data(run: Run) -> None:
    source = str(ROOT / "examples" / "temperature" / "temperature.py") + ":mean_temperature"
    ran = run("verify", source, "--form", "mapreduce", "--data", str(SENSORS), "--trials", "3")
    assert ran.code == 0
    assert ran.stdout.splitlines()[0].endswith(": 3 arguments, and the same results from")


def test_real_data_for_what_is_no_round(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "add.py").write_text(SUM.split("@tff.federated_computation")[0])
    assert run("verify", "add.py:same", "--data", str(SENSORS)).refusal == (
        "error[E903]: real data is for a round, which takes a state and clients' data; found "
        "`(int32 -> int32)`\n"
        " = help: try arguments that are made up; leave --data out\n"
    )


def test_compiling_with_verification(run: Run, tmp_path: pathlib.Path) -> None:
    options = ("--form", "mapreduce", "--out", "out", "--verify")
    assert run("compile", "round.py", *options).code == 0
    assert (tmp_path / "out" / "manifest.json").exists()


def test_compiling_what_depends_on_order_warns(run: Run) -> None:
    ran = run("compile", "sum.py:total", "--form", "mapreduce", "--out", "out", "--verify")
    # The form merges two partial sums, as the program does where it is run in shards.
    assert ran.code == 0
    assert "warning[E901]: in this aggregation, merge is not commutative\n" in ran.stderr


def test_a_typed_text(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "pair.sexpr").write_text("(x: <int32,int32> -> (y: <int32,int32> -> y[0])(x))")
    ran = run("verify", "pair.sexpr", "--passes", "call-dominant")
    assert ran.stdout == (
        "pair.sexpr: 20 arguments, and the same results from\n  the pass call-dominant, step 1\n"
    )


def test_what_holds_already_counts(run: Run) -> None:
    assert run("verify", "round.py", "--passes", "share-equal-calls", "--trials", "1").code == 0


def test_a_program_that_is_not_closed(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "open.sexpr").write_text("(x: int32 -> &y:int32)")
    ran = run("verify", "open.sexpr")
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error[E141]: the name `y` of type `int32` is used but not bound")
