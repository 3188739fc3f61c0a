"""Commands on the processes that TFF's builders return: measured and weighted aggregations."""

from __future__ import annotations

import pathlib

import pytest

from tests.cli.conftest import Run

MODULE = """\
import collections

import numpy as np
import tffc as tff

SERVER, CLIENTS = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)


@tff.federated_computation
def zero():
    return tff.federated_value(0, tff.SERVER)


def add(state, value):
    total = tff.federated_sum(value)
    return tff.templates.MeasuredProcessOutput(total, total, state)


def add_both(state, value, weight):
    return tff.templates.MeasuredProcessOutput(
        state, tff.federated_sum(value), tff.federated_sum(weight)
    )


def build(function, *types):
    return tff.templates.AggregationProcess(
        zero, tff.federated_computation(function, SERVER, *types)
    )


aggregation = build(add, CLIENTS)
weighted = build(add_both, CLIENTS, CLIENTS)


def data():
    return {"a": 1, "b": 2}


def pairs():
    return {"a": {"value": 1, "weight": 10}, "b": {"value": 2, "weight": 20}}
"""

ROUNDS = (
    "(<state=int32@SERVER,data={int32}@CLIENTS> -> "
    "<int32@SERVER,<result=int32,measurements=int32>@SERVER>)"
)


@pytest.fixture(autouse=True)
def module(tmp_path: pathlib.Path) -> None:
    (tmp_path / "sums.py").write_text(MODULE)


def test_an_aggregation_is_compiled(run: Run) -> None:
    assert run("check", "sums.py:aggregation", "--form", "mapreduce").code == 0
    ran = run("trace", "sums.py:aggregation", "-o", "round.pb")
    assert ran.stderr + ran.stdout == f"wrote round.pb: {ROUNDS}\n"
    printed = run("print", "sums.py:aggregation").stdout
    assert printed.startswith("; initialize: ( -> int32@SERVER)\n")
    ran = run("compile", "sums.py:weighted", "--form", "mapreduce", "--out", "weighted")
    assert (ran.code, ran.stderr) == (0, "wrote weighted: mapreduce, 10 components\n")


def test_a_part_of_an_aggregation(run: Run) -> None:
    ran = run("check", "sums.py:aggregation.next", "--form", "mapreduce")
    assert ran.code == 1
    assert ran.stderr.startswith("error[E510]")
    ran = run("print", "sums.py:aggregation.initialize")
    assert ran.stdout.startswith("( -> (let\n")
    ran = run("check", "sums.py", "--form", "mapreduce")
    assert ran.stderr.startswith("error[E449]: sums.py has 2 candidates, so one must be named\n")


@pytest.mark.tensorflow
def test_rounds_of_aggregations(run: Run) -> None:
    args = ("--rounds", "2", "--log", "csv")
    ran = run("run", "sums.py:aggregation", "--data", "python:sums.py:data", *args)
    assert ran.stdout == (
        "round,clients,skipped,metrics.result,metrics.measurements\n1,2,0,3,0\n2,2,0,3,3\n"
    )
    ran = run("run", "sums.py:weighted", "--data", "python:sums.py:pairs", *args)
    assert ran.stdout.splitlines()[1] == "1,2,0,3,30"
    ran = run("verify", "sums.py:weighted", "--form", "mapreduce")
    assert ran.code == 0


QUERIES = """\
import numpy as np
import tffc as tff


@tff.federated_computation(
    tff.types.at_clients(np.float32), tff.types.at_clients(np.float32)
)
def query(values, weights):
    return tff.federated_mean(values, weights)


def data():
    return {
        "roof": {"values": np.float32(1), "weights": np.float32(1)},
        "wall": {"values": np.float32(5), "weights": np.float32(3)},
    }
"""


@pytest.mark.tensorflow
def test_every_command_takes_a_query(run: Run, tmp_path: pathlib.Path) -> None:
    """A query of two arguments is a round without state of clients that hold a struct."""
    (tmp_path / "query.py").write_text(QUERIES)
    data = ("--data", "python:query.py:data")
    ran = run("compile", "query.py", "--form", "mapreduce", "--out", "query", "--verify", "--prove")
    assert ran.code == 0, ran.stderr
    for source in ("query.py", "query"):
        ran = run("run", source, *data, "--rounds", "1", "--log", "csv")
        assert ran.stdout.splitlines()[1] == "1,2,0,4.0", ran.stderr
        ran = run("audit", source)
        assert "\nclients' data: data.values, data.weights\n" in ran.stdout
        assert run("explore", source, "-o", "page.html").code == 0
    assert run("verify", "query.py", "--form", "distribute-aggregate").code == 0
    assert run("prove", "query.py", "query").code == 0
    assert run("diff", "query.py", "query").code == 0
    assert run("check", "query.py", "--form", "broadcast").code == 1
