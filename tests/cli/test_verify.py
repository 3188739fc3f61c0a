"""`tffc verify`, and `tffc compile --verify`."""

from __future__ import annotations

import json
import pathlib
import re

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


FAILING = """\
import numpy as np
import tensorflow as tf
import tffc as tff


def required(holds, value):
    with tf.control_dependencies([tf.debugging.Assert(holds, ["not so"])]):
        return tf.identity(value)


@tff.tf_computation(np.int32)
def never(x):
    return required(False, x)


@tff.tf_computation(np.int32)
def of_seven(x):
    return required(tf.equal(x, 777), x)


@tff.tf_computation
def seven():
    return 777


@tff.tf_computation
def text():
    return "777"


@tff.tf_computation(np.int32)
def by_python(x):
    return tf.ensure_shape(tf.numpy_function(lambda y: y, [x], tf.int32), [])


@tff.tf_computation(np.int32)
def zero(x):
    return required(tf.equal(x, 0), x)


def at_the_server(work):
    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
    def round_(state, data):
        return tff.federated_map(work, state), tff.federated_sum(data)

    return round_


fails, python, often = at_the_server(never), at_the_server(by_python), at_the_server(zero)
after = at_the_server(of_seven)


@tff.federated_computation
def initialize():
    return tff.federated_eval(seven, tff.SERVER)


process = tff.templates.IterativeProcess(initialize, after)
"""
COUNTS = ("trials", "compared", "failed", "unknown")


@pytest.fixture
def failing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("form", [(), ("--form", "mapreduce")], ids=["passes", "form"])
def test_no_result_is_no_success(form: tuple[str, ...], run: Run) -> None:
    ran = run("verify", "failing.py:fails", *form)
    assert (ran.code, ran.stdout) == (3, "")
    assert ran.stderr.startswith(
        "error[E904]: no argument had a result on both sides, so nothing was compared: 0 of 20 "
        "compared, 20 failed on both sides\n = note: failed on both sides, 20 times: TensorFlow "
        "could not carry out a computation: assertion failed: [not so]\n"
    )
    answer = json.loads((ran := run("verify", "failing.py:fails", *form, "--json")).stdout)
    assert ran.code == 3
    assert (answer["agrees"], answer["code"]) == (None, "E904")
    assert [answer[name] for name in COUNTS] == [20, 0, 20, 0]
    ((failure),) = answer["failures"]
    assert failure["trials"] == 20
    assert "[not so]" in failure["message"]


@pytest.mark.usefixtures("failing")
def test_what_differs_in_each_run_is_no_success(run: Run) -> None:
    ran = run("verify", "failing.py:python", "--form", "mapreduce", "--json")
    answer = json.loads(ran.stdout)
    assert (ran.code, answer["agrees"]) == (3, None)
    assert [answer[name] for name in COUNTS] == [20, 0, 0, 20]


@pytest.mark.usefixtures("failing")
def test_few_results(run: Run) -> None:
    ran = run("verify", "failing.py:often", "--form", "mapreduce")
    assert ran.code == 0
    assert ran.stderr.startswith("warning[E904]: few arguments had results to compare: ")
    first, form, failures = ran.stdout.splitlines()
    assert re.fullmatch(
        r"failing.py:often: 20 arguments, \d of them with results to compare, and the same results "
        "from",
        first,
    )
    assert form == "  the form mapreduce"
    assert failures.startswith("failed on both sides, 1")
    answer = json.loads(run("verify", "failing.py:often", "--form", "mapreduce", "--json").stdout)
    assert answer["agrees"] is True
    assert answer["compared"] + answer["failed"] == answer["trials"] == 20
    assert [warning["code"] for warning in answer["warnings"]] == ["E904"]


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("name", ["fails", "often", "process"])
def test_compiling_what_cannot_be_verified(name: str, run: Run, tmp_path: pathlib.Path) -> None:
    ran = run("compile", f"failing.py:{name}", "--form", "mapreduce", "-o", "out", "--verify")
    assert ran.code == (3 if name == "fails" else 0)
    assert (tmp_path / "out").exists() is (name != "fails")


@pytest.mark.usefixtures("failing")
def test_the_first_state_of_a_process(run: Run, tmp_path: pathlib.Path) -> None:
    form = ("--form", "mapreduce", "--json")
    answer = json.loads(run("verify", "failing.py:process", *form).stdout)
    # A made-up state fails, and is replaced by the program's own.
    assert [answer[name] for name in COUNTS] == [30, 20, 10, 0]
    assert run("verify", "failing.py:after", *form).code == 3
    assert run("trace", "failing.py:after", "-o", "after.pb").code == 0
    assert run("trace", "failing.py:initialize", "-o", "first.pb").code == 0
    assert run("verify", "after.pb", *form).code == 3
    ran = run("verify", "after.pb", *form, "--initialize", "first.pb")
    assert [json.loads(ran.stdout)[name] for name in COUNTS] == [30, 20, 10, 0]
    options = ("--form", "mapreduce", "-o", "out", "--verify")
    assert run("compile", "after.pb", *options).code == 3
    assert run("compile", "after.pb", *options, "--initialize", "first.pb").code == 0
    ran = run("verify", "after.pb", *form[:2], "--initialize", "after.pb")
    assert ran.code == 2
    assert "--initialize is for a round, which takes a state" in ran.stderr
    assert run("trace", "failing.py:text", "-o", "text.pb").code == 0
    ran = run("verify", "after.pb", *form[:2], "--initialize", "text.pb")
    assert ran.stderr.startswith("error[E853]: the first state is of type `str`, but")


@pytest.mark.usefixtures("failing")
def test_the_first_state_with_real_clients(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "clients.csv").write_text("name,reading\na,1\nb,2\nc,3\n")
    data = ("--data", "csv:clients.csv?client=name&columns=reading", "--trials", "4")
    ran = run("verify", "failing.py:process", "--form", "mapreduce", "--json", *data)
    assert [json.loads(ran.stdout)[name] for name in COUNTS] == [6, 4, 2, 0]


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
