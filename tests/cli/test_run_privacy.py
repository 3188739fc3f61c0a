"""A run with a privacy budget shows first what a round spends, and ends before it spends more."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
from collections.abc import Callable

import pytest

from tests.cli.conftest import Ran, Run
from tffc.runtime.runs.run_record import read_record

pytest.importorskip("dp_accounting")

PROGRAM = """\
import collections

import numpy as np
import tensorflow as tf
import tffc as tff

VALUE = tff.TensorType(np.float32, [3])
NONE, VALUES = tff.types.at_server(()), tff.types.at_clients(VALUE)
SCALE = tff.types.at_server(np.float32)


@tff.tf_computation(VALUE)
def clip(x):
    return tf.clip_by_norm(x, 1.0)


@tff.tf_computation(VALUE)
def add_noise(total):
    return total + tf.random.normal([3], stddev=5.0)


@tff.federated_computation
def nothing():
    return tff.federated_value((), tff.SERVER)


@tff.federated_computation(NONE, VALUES)
def noisy(state, values):
    return state, tff.federated_map(add_noise, tff.federated_sum(tff.federated_map(clip, values)))


@tff.federated_computation(NONE, VALUES)
def two_outputs(state, values):
    total = tff.federated_sum(tff.federated_map(clip, values))
    return state, collections.OrderedDict(
        private=tff.federated_map(add_noise, total), exact=total
    )


@tff.tf_computation(VALUE)
def mean_noise(mean):
    return mean + tf.random.normal([3], stddev=5.0)


@tff.federated_computation(NONE, VALUES)
def mean(state, values):
    return state, tff.federated_map(
        mean_noise, tff.federated_mean(tff.federated_map(clip, values))
    )


@tff.tf_computation
def five():
    return 5.0


@tff.federated_computation
def scale():
    return tff.federated_eval(five, tff.SERVER)


@tff.tf_computation(np.float32, VALUE)
def scaled_noise(deviation, total):
    return total + deviation * tf.random.normal([3])


@tff.federated_computation(SCALE, VALUES)
def by_state(deviation, values):
    total = tff.federated_sum(tff.federated_map(clip, values))
    return deviation, tff.federated_map(scaled_noise, (deviation, total))


@tff.federated_computation(SCALE, VALUES)
def other_state(deviation, values):
    total = tff.federated_sum(tff.federated_map(clip, values))
    return deviation, tff.federated_map(add_noise, total)


@tff.tf_computation(VALUE, VALUE)
def correlated_noise(before, total):
    noise = tf.random.normal([3], stddev=5.0)
    return noise, total + noise - 0.5 * before


@tff.tf_computation
def zeros():
    return tf.zeros([3])


@tff.federated_computation
def no_noise():
    return tff.federated_eval(zeros, tff.SERVER)


@tff.federated_computation(tff.types.at_server(VALUE), VALUES)
def less_noise(before, values):
    total = tff.federated_sum(tff.federated_map(clip, values))
    result = tff.federated_map(correlated_noise, (before, total))
    return result[0], result[1]


@tff.tf_computation(VALUE)
def length(x):
    return tf.norm(x)


@tff.federated_computation(NONE, VALUES)
def evaluation(state, values):
    return state, tff.federated_mean(tff.federated_map(length, values))


private = tff.templates.IterativeProcess(nothing, noisy)
exact = tff.templates.IterativeProcess(nothing, two_outputs)
averaged = tff.templates.IterativeProcess(nothing, mean)
stated = tff.templates.IterativeProcess(scale, by_state)
correlated = tff.templates.IterativeProcess(no_noise, less_noise)
any_state = tff.templates.IterativeProcess(scale, other_state)


def people():
    return {f"c{n}": np.array([n, 1, 0], np.float32) for n in range(20)}
"""

BUNDLES = ("private", "exact", "averaged", "stated", "any_state", "correlated")


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    from click.testing import CliRunner

    from tffc.cli.application import application

    folder = tmp_path_factory.mktemp("bundles")
    (folder / "dp.py").write_text(PROGRAM)
    for name in BUNDLES:
        args = ["compile", f"{folder}/dp.py:{name}", "--form", "mapreduce"]
        result = CliRunner().invoke(application, [*args, "--out", str(folder / name)])
        assert result.exit_code == 0, result.output
    return folder


Budgeted = Callable[..., Ran]


@pytest.fixture
def budgeted(run: Run, bundles: pathlib.Path, tmp_path: pathlib.Path) -> Budgeted:
    """Runs rounds of a bundle."""
    shutil.copytree(bundles, tmp_path, dirs_exist_ok=True)

    def invoke(name: str, rounds: int, *options: str) -> Ran:
        words = ("--data", "python:dp.py:people", "--rounds", str(rounds))
        return run("run", name, *words, *options)

    return invoke


BUDGET = ("--privacy-budget", "2")

SPENT = """\
error[E542]: round 6 would exceed the privacy budget, ε = 2 at δ = 1e-06
 = note: the 5 rounds that were done have ε = 1.99453; with this one it would be 2.20412
 = note: {}
 = help: begin another run with more noise, a lower sampling rate, or a larger budget
"""


def rounds_of(ran: Ran) -> int:
    return len(ran.stdout.splitlines()) - 1


def test_a_run_ends_before_the_round_that_exceeds_its_budget(
    budgeted: Budgeted, tmp_path: pathlib.Path
) -> None:
    ran = budgeted("private", 10, *BUDGET, "--out", "out", "--report", "report.html")
    assert (ran.code, rounds_of(ran)) == (1, 5)
    line = (
        "ε = 1.99453 at δ = 1e-06 for the 5 rounds that were done, for a client added or removed; "
        "the formula of the Gaussian mechanism, in dp-accounting "
    )
    assert f"\nprivacy: {line}" in f"\n{ran.stderr}"
    assert ran.stderr.endswith(SPENT.format("the state after round 5 is in out/state.npz"))
    assert sorted(path.name for path in (tmp_path / "out/outputs").iterdir())[-1] == "round-5.npz"
    page = (tmp_path / "report.html").read_text()
    assert line in page
    assert "<td>ε = 2 at δ = 1e-06</td>" in page


@pytest.mark.slow
def test_a_run_that_is_resumed_says_the_same_again(budgeted: Budgeted) -> None:
    budgeted("private", 3, *BUDGET, "--out", "out")
    ran = budgeted("private", 10, *BUDGET, "--out", "out", "--resume")
    assert (ran.code, rounds_of(ran)) == (1, 2)
    assert ran.stderr.endswith(SPENT.format("the state after round 5 is in out/state.npz"))
    for _ in range(2):
        ran = budgeted("private", 10, *BUDGET, "--out", "out", "--resume")
        stopped = "no further round was finished; the run in out is as it was"
        assert (ran.code, ran.stdout, ran.stderr) == (1, "", SPENT.format(stopped))
    assert budgeted("private", 5, *BUDGET, "--out", "out", "--resume").code == 0


def test_a_budget_that_is_not_spent(budgeted: Budgeted, run: Run) -> None:
    ran = budgeted("private", 5, *BUDGET, "--out", "out")
    assert (ran.code, rounds_of(ran)) == (0, 5)
    assert run("show", "out").stdout.splitlines()[-1].startswith("privacy: ε = 1.99453 at δ")


def test_a_budget_without_a_folder(budgeted: Budgeted) -> None:
    ran = budgeted("private", 10, *BUDGET)
    assert (ran.code, rounds_of(ran)) == (1, 5)
    assert "privacy: ε = 1.99453" in ran.stderr


def test_a_budget_that_is_too_small_for_a_round(budgeted: Budgeted, tmp_path: pathlib.Path) -> None:
    ran = budgeted("private", 3, "--privacy-budget", "0.1", "--out", "out")
    assert ran.refusal == (
        "error[E542]: round 1 would exceed the privacy budget, ε = 0.1 at δ = 1e-06\n"
        " = note: no round was done; with this one it would be 0.834118\n"
        " = note: no round was finished\n"
        " = help: begin another run with more noise, a lower sampling rate, or a larger budget\n"
    )
    assert not (tmp_path / "out" / "run.json").exists()


def test_a_rate_is_gained_from_if_its_seed_is_secret(budgeted: Budgeted) -> None:
    secret = budgeted("private", 2, *BUDGET, "--sampling-rate", "0.1")
    known = budgeted("private", 2, *BUDGET, "--sampling-rate", "0.1", "--seed", "3")
    numbers = [float(re.findall(r"ε = (\S+)", ran.stderr)[0]) for ran in (secret, known)]
    assert numbers[0] < 0.3 < 1.2 < numbers[1]
    assert "without amplification by sampling" in known.stderr
    assert "without amplification by sampling" not in secret.stderr


def test_the_budget_is_part_of_the_run(budgeted: Budgeted) -> None:
    budgeted("private", 2, *BUDGET, "--out", "out")
    for options, now in (
        ((), "no privacy budget"),
        (
            ("--privacy-budget", "3"),
            "a privacy budget of ε = 3 at δ = 1e-06 for the neighbours add-or-remove, and rounds "
            "with gaussian 5.0",
        ),
    ):
        ran = budgeted("private", 4, *options, "--out", "out", "--resume")
        assert ran.code == 1
        assert (
            " = note: it has a privacy budget of ε = 2 at δ = 1e-06 for the neighbours "
            f"add-or-remove, and rounds with gaussian 5.0, and here {now}\n"
        ) in ran.stderr


NOT_SHOWN = "error[E541]: the privacy of this run is not shown, so it can keep no budget\n"
UNKNOWN = "error[E541]: it is not known what was spent before the state that the run begins with\n"


@pytest.mark.parametrize(
    ("name", "options", "note"),
    [
        ("exact", (), "output.exact, from sum: noise is not shown: no noise is added to the sum"),
        (
            "correlated",
            (),
            "noise that is correlated between rounds has an ε for a number of them, and none for "
            "each",
        ),
        (
            "private",
            ("--clients-per-round", "3"),
            "with a fixed number of clients in a round, one that is added takes the place of "
            "another; a sampling rate does not do so, and a client's data replaced is covered",
        ),
        (
            "private",
            ("--neighbours", "replace", "--skip-bad-clients"),
            "a client whose data cannot be read is left out, which is not to have other data",
        ),
        (
            "private",
            ("--delays", "constant:1"),
            "buffered rounds and delays tell who took part, and when",
        ),
        (
            "private",
            ("--show-clients",),
            "what clients' code shows is no part of what is counted",
        ),
        (
            "private",
            ("--sampling-rate", "0.5", "--least-clients", "2"),
            "that a round has too few clients, which ends the run, shows how many were drawn",
        ),
        (
            "averaged",
            ("--neighbours", "replace"),
            "the number of clients counts, and no least number of them is demanded",
        ),
        (
            "averaged",
            ("--neighbours", "replace", "--sampling-rate", "0.5"),
            "the number of clients counts, and with a sampling rate a round may have none",
        ),
    ],
)
def test_what_no_budget_can_be_kept_for(
    budgeted: Budgeted, name: str, options: tuple[str, ...], note: str
) -> None:
    ran = budgeted(name, 2, *BUDGET, *options)
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.startswith(NOT_SHOWN)
    assert f" = note: {note}" in ran.stderr
    assert ran.stderr.count(" = note: ") == 1


def test_an_output_that_nobody_else_sees(budgeted: Budgeted, tmp_path: pathlib.Path) -> None:
    options = ("--not-released", "output.exact", "--out", "out")
    ran = budgeted("exact", 2, *BUDGET, *options)
    assert ran.code == 0
    record = json.loads((tmp_path / "out/run.json").read_text())["privacy"]
    assert record["withheld"] == ["output.exact"]
    ran = budgeted("exact", 2, *BUDGET, "--not-released", "output.loss")
    assert ran.refusal.startswith("error[E706]: 'output.loss' is not the path of an output\n")


def test_a_mean_of_a_least_number_of_clients(budgeted: Budgeted) -> None:
    ran = budgeted("averaged", 2, *BUDGET, "--neighbours", "replace", "--least-clients", "10")
    assert ran.code == 0
    assert "ε = 0.2" in ran.stderr


# What was spent before.


@pytest.mark.slow
def test_the_rounds_of_an_earlier_run_count(budgeted: Budgeted, tmp_path: pathlib.Path) -> None:
    budgeted("private", 3, *BUDGET, "--out", "one")
    budgeted("private", 1, *BUDGET, "--out", "two", "--continue-from", "one")
    ran = budgeted("private", 10, *BUDGET, "--out", "three", "--state-in", "two/state.npz")
    assert (ran.code, rounds_of(ran)) == (1, 1)
    assert "the 5 rounds that were done have ε = 1.99453" in ran.stderr
    record = read_record(tmp_path / "three")
    assert record is not None
    assert record.identity.privacy is not None
    assert [each.rounds for each in record.identity.privacy.earlier] == [3, 1]
    ran = budgeted("private", 10, *BUDGET, "--out", "three", "--resume")
    assert "the 5 rounds that were done have ε = 1.99453" in ran.stderr


@pytest.mark.slow
def test_the_rounds_of_a_run_without_a_budget_count(budgeted: Budgeted) -> None:
    budgeted("private", 4, "--out", "one")
    ran = budgeted("private", 10, *BUDGET, "--continue-from", "one")
    assert (ran.code, rounds_of(ran)) == (1, 1)


def test_a_run_of_unknown_origin(budgeted: Budgeted) -> None:
    budgeted("private", 1, "--out", "one")
    budgeted("private", 1, "--out", "two", "--continue-from", "one", "--state-out", "s.npz")
    ran = budgeted("private", 1, *BUDGET, "--continue-from", "two")
    assert ran.refusal == (
        f"{UNKNOWN} = note: the run in two began with the state of another one\n"
        " = help: tffc explain E541 says what a run with a privacy budget needs\n"
    )
    ran = budgeted("private", 1, *BUDGET, "--state-in", "s.npz")
    assert " = note: s.npz is not the state of a run, which would say it\n" in ran.refusal


def test_a_state_that_is_not_that_of_its_run(budgeted: Budgeted, tmp_path: pathlib.Path) -> None:
    budgeted("stated", 1, *BUDGET, "--out", "one")
    budgeted("any_state", 2, *BUDGET, "--out", "two")
    shutil.copy(tmp_path / "two/state.npz", tmp_path / "one/state.npz")
    ran = budgeted("stated", 1, *BUDGET, "--state-in", "one")
    assert " = note: one/state.npz is not the last state of the run\n" in ran.refusal


@pytest.mark.slow
def test_a_state_of_another_program(budgeted: Budgeted, tmp_path: pathlib.Path) -> None:
    budgeted("any_state", 2, *BUDGET, "--out", "one")
    ran = budgeted("stated", 1, *BUDGET, "--continue-from", "one", "--out", "two")
    assert ran.refusal.startswith(NOT_SHOWN)
    ran = budgeted("any_state", 1, *BUDGET, "--continue-from", "one", "--out", "three")
    assert ran.code == 0
    budgeted("stated", 2, *BUDGET, "--out", "four")
    ran = budgeted("any_state", 9, *BUDGET, "--continue-from", "four", "--out", "five")
    assert rounds_of(ran) == 3
    # The state is not from the first one of the program, from here on.
    budgeted("any_state", 1, "--privacy-budget", "3", "--state-in", "five", "--out", "eight")
    for name, is_from_first in (("one", True), ("three", True), ("five", False), ("eight", False)):
        record = json.loads((tmp_path / name / "run.json").read_text())["privacy"]
        assert record["is_from_first"] == is_from_first
    ran = budgeted("stated", 9, *BUDGET, "--continue-from", "five", "--out", "six")
    assert ran.refusal.startswith(NOT_SHOWN)
    budgeted("stated", 2, "--out", "seven")
    ran = budgeted("any_state", 9, *BUDGET, "--continue-from", "seven")
    assert " = note: the run in seven is of another program, and had no budget\n" in ran.refusal


def test_an_earlier_run_for_other_neighbours(budgeted: Budgeted) -> None:
    budgeted("private", 1, *BUDGET, "--neighbours", "replace", "--out", "one")
    ran = budgeted("private", 1, *BUDGET, "--continue-from", "one")
    assert " = note: the run in one has a privacy budget of ε = 2 at δ = 1e-06" in ran.refusal


# What is shown of runs.


def test_the_rounds_of_a_run_by_its_bundle(budgeted: Budgeted, run: Run) -> None:
    budgeted("private", 2, "--sampling-rate", "0.1", "--out", "out")
    assert "privacy" not in run("show", "out").stdout
    shown = run("show", "out", "--privacy", "private", "--delta", "1e-5").stdout
    assert shown.splitlines()[-1].startswith("privacy: ε = 0.1")
    assert "at δ = 1e-05 for the 2 rounds that were done, for a client added" in shown
    shown = run("show", "out", "--privacy", "exact").stdout
    assert shown.endswith("privacy: not known: the run is one of another bundle\n")


def test_a_run_of_a_bundle_that_is_not_private(budgeted: Budgeted, run: Run) -> None:
    budgeted("exact", 1, "--out", "out")
    shown = run("show", "out", "--privacy", "exact").stdout
    assert "\nprivacy: not shown: output.exact, from sum: noise is not shown: no noise" in shown


def test_drawn_clients_are_shown_for_other_data(budgeted: Budgeted, run: Run) -> None:
    budgeted("private", 1, "--clients-per-round", "3", "--out", "one")
    shown = run("show", "one:1", "--privacy", "private").stdout
    assert "for the round that was done, for a client's data replaced by any other" in shown
    budgeted("private", 1, "--continue-from", "one", "--out", "two")
    shown = run("show", "two", "--privacy", "private").stdout
    assert "\nprivacy: not known: the run began with a state of which it is not known" in shown


def test_evaluations_are_not_counted(budgeted: Budgeted, run: Run) -> None:
    data = ("--evaluate", "dp.py:evaluation", "--evaluate-data", "python:dp.py:people")
    budgeted("private", 1, *BUDGET, *data, "--out", "out")
    assert run("show", "out").stdout.endswith(
        "; evaluations are not in it, for they release something of their own data\n"
    )


def test_a_damaged_record(budgeted: Budgeted, run: Run, tmp_path: pathlib.Path) -> None:
    budgeted("private", 1, *BUDGET, "--out", "out")
    file = tmp_path / "out/run.json"
    file.write_text(file.read_text().replace('"gaussian"', '"cauchy"'))
    ran = run("show", "out")
    assert ran.code == 1
    assert "the record of the run has the mechanism 'cauchy' with 1 number" in ran.stderr
    file.write_text(file.read_text().replace('"is_from_first": true', '"is_from_first": 1'))
    assert "its 'privacy' is not right" in run("show", "out").stderr


def test_without_dp_accounting(
    budgeted: Budgeted, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgeted("private", 1, *BUDGET, "--out", "out")
    budgeted("private", 1, "--out", "other")
    monkeypatch.setitem(__import__("sys").modules, "dp_accounting", None)
    said = (
        "privacy: not known: accounting for privacy needs dp-accounting, which cannot be imported"
    )
    assert run("show", "out").stdout.splitlines()[-1] == said
    assert run("show", "other", "--privacy", "private").stdout.splitlines()[-1] == said
    assert said.removeprefix("privacy: ") in run("report", "out").stdout
    ran = budgeted("private", 1, *BUDGET)
    assert ran.refusal.startswith("error[E701]: accounting for privacy needs dp-accounting")


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("out", "--privacy", "private"), "the run has a budget, and is shown with it"),
        (("out/state.npz", "--privacy", "private"), "out/state.npz is not the folder of a run"),
    ],
)
def test_a_bundle_without_effect(
    budgeted: Budgeted, run: Run, args: tuple[str, ...], error: str
) -> None:
    budgeted("private", 1, *BUDGET, "--out", "out")
    ran = run("show", *args)
    assert ran.code == 2
    assert ran.stderr.endswith(f"Error: '--privacy' has no effect: {error}\n")
