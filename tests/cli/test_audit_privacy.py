"""`tffc audit --privacy`: what it shows, what is missing, and what is asked wrongly."""

from __future__ import annotations

import json
import math
import pathlib

import pytest

from tests.cli.conftest import Run

ROUND = """\
import numpy as np
import tensorflow as tf
import tffc as tff

VECTOR = tff.TensorType(np.float32, [3])
STATE = tff.to_type([("mean", VECTOR), ("scale", np.float32)])


@tff.tf_computation
def first():
    return {"mean": tf.zeros([3]), "scale": 4.0}


@tff.tf_computation(VECTOR)
def clipped(x):
    return tf.clip_by_norm(x, 2.0), tf.reduce_max(x)


@tff.tf_computation(STATE, VECTOR)
def noisy(state, total):
    noise = tf.random.normal([3], stddev=state["scale"])
    return {"mean": (total + noise) / 100.0, "scale": state["scale"]}


@tff.federated_computation
def initialize():
    return tff.federated_eval(first, tff.SERVER)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(VECTOR))
def following(state, data):
    worked = tff.federated_map(clipped, data)
    following = tff.federated_map(noisy, (state, tff.federated_sum(worked[0])))
    largest = tff.federated_sum(worked[1])
    return following, tff.federated_zip({"largest": largest, "mean": following.mean})


rounds = tff.templates.IterativeProcess(initialize, following)
"""

ASK = ("audit", "round.py:rounds", "--privacy")


@pytest.fixture(autouse=True)
def module(run: Run) -> None:
    pathlib.Path("round.py").write_text(ROUND)


def test_a_missing_step_is_named_with_its_line(run: Run) -> None:
    ran = run(*ASK)
    assert ran.code == 0
    lines = ran.stdout[ran.stdout.index("privacy: ") :].splitlines()
    assert lines[0] == "privacy: not shown: 1 step missing"
    step = lines.index("  not shown: noise")
    assert lines[step + 1 : step + 4] == [
        "    of: output.largest, from largest",
        "    at: round.py:34",
        "    because: no noise is added to the sum",
    ]
    assert "    output output.largest: a sum without noise" in lines


def test_what_is_withheld_is_said(run: Run) -> None:
    ran = run(*ASK, "--not-released", "output.largest", "--rounds", "2", "--delta", "1e-5")
    lines = ran.stdout[ran.stdout.index("privacy: ") :].splitlines()
    assert lines[0].startswith("privacy: ε = 2.943")
    assert lines[0].endswith(" at δ = 1e-05 for 2 rounds, for a client added or removed")
    assert "  each round: Gaussian, noise multiplier 2" in lines
    assert "    nobody else sees output.largest" in lines
    assert "    the first round begins with the program's first state" in lines


def test_an_output_that_is_not_there(run: Run) -> None:
    ran = run(*ASK, "--not-released", "output.largst")
    assert ran.code == 1
    assert "error[E706]: 'output.largst' is not the path of an output" in ran.stderr
    assert "did you mean 'output.largest'?" in ran.stderr


def test_a_stored_program_needs_its_first_state(run: Run) -> None:
    assert run("trace", "round.py:following", "--out", "round.pb").code == 0
    assert run("trace", "round.py:initialize", "--out", "first.pb").code == 0
    ask = ("audit", "round.pb", "--privacy", "--not-released", "output.largest")
    ran = run(*ask)
    assert "  not shown: scale of the noise" in ran.stdout
    ran = run(*ask, "--initialize", "first.pb")
    assert "  each round: Gaussian, noise multiplier 2" in ran.stdout


def test_json(run: Run) -> None:
    ran = run(
        *ASK, "--not-released", "output.largest", "--sampling-rate", "0.1", "--format", "json"
    )
    answer = json.loads(ran.stdout)["privacy"]
    assert answer["shown"] is True
    assert math.isfinite(float(answer["epsilon"]))
    assert answer["sampling"] == "Poisson sampling, each client with probability 0.1"
    assert [bound["at_most"] for bound in answer["bounds"]] == ["2"]
    assert answer["mechanisms"][0]["scale"] == "4"
    assert answer["missing"] == []


def test_without_a_bound_nothing_is_claimed(run: Run) -> None:
    asked = ("--not-released", "output.largest", "--clients-per-round", "5", "--clients", "50")
    ran = run(*ASK, *asked)
    assert "privacy: not shown: 1 step missing" in ran.stdout
    assert "  not shown: accounting" in ran.stdout
    ran = run(*ASK, *asked, "--neighbours", "replace")
    assert "privacy: ε = " in ran.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sampling-rate", "0.1", "--clients-per-round", "5", "--clients", "9"), "not both"),
        (("--clients-per-round", "5"), "need each other"),
        (("--clients-per-round", "5", "--clients", "4"), "is larger than"),
        (("--delta", "1"), "--delta"),
        (("--rounds", "0"), "--rounds"),
    ],
)
def test_questions_that_make_no_sense(run: Run, options: tuple[str, ...], message: str) -> None:
    ran = run(*ASK, *options)
    assert ran.code == 2
    assert message in ran.stderr


CLOCK = """\
import numpy as np
import tensorflow as tf
import tffc as tff

VECTOR = tff.TensorType(np.float32, [3])
NOTHING = tff.types.at_server(())


@tff.tf_computation(VECTOR)
def clipped(x):
    return tf.clip_by_norm(x, 1.0)


@tff.tf_computation(VECTOR)
def noisy(total):
    time = tf.floor(tf.timestamp() * 1e6)
    seed = tf.cast(tf.stack([time, tf.zeros_like(time)]), tf.int64)
    return total + 2.0 * tf.random.stateless_normal([3], seed=seed)


@tff.federated_computation(NOTHING, tff.types.at_clients(VECTOR))
def timed(state, data):
    total = tff.federated_sum(tff.federated_map(clipped, data))
    return state, tff.federated_map(noisy, total)
"""

ASSUMED = (
    "    the time that Timestamp in clock.py:24 reads, in 1e+06 steps a second, cannot be guessed, "
    "and is never the same twice, in no other round and at no other client"
)


def test_whoever_asks_vouches_for_seeds(run: Run) -> None:
    pathlib.Path("clock.py").write_text(CLOCK)
    ask = ("audit", "clock.py:timed", "--privacy")
    ran = run(*ask)
    assert "privacy: not shown: 2 steps missing" in ran.stdout
    ran = run(*ask, "--secret-seeds")
    assert "  each round: Gaussian, noise multiplier 2" in ran.stdout
    assert ASSUMED in ran.stdout.splitlines()


def test_a_policy_vouches_for_seeds(run: Run) -> None:
    pathlib.Path("clock.py").write_text(CLOCK)
    policy = pathlib.Path("policy.yaml")
    demand = "epsilon: {at-most: 9, delta: 1e-6, rounds: 2"
    policy.write_text(demand + "}")
    ask = ("audit", "clock.py:timed", "--policy", "policy.yaml")
    assert run(*ask).code == 1
    policy.write_text(demand + ", secret-seeds: true}")
    ran = run(*ask)
    assert ran.code == 0
    assert "with seeds that are secret" in ran.stdout
    policy.write_text(demand + ", secret-seeds: 1}")
    assert "E971" in run(*ask).stderr


KEPT = """\
import numpy as np
import tensorflow as tf
import tffc as tff

VECTOR = tff.TensorType(np.float32, [3])


@tff.tf_computation
def first():
    return tf.zeros([3])


@tff.tf_computation(VECTOR)
def clipped(x):
    return tf.clip_by_norm(x, 1.0)


@tff.tf_computation(VECTOR, VECTOR)
def noisy(kept, total):
    noise = tf.random.normal([3], stddev=2.0)
    return noise, total + noise - kept


@tff.federated_computation
def initialize():
    return tff.federated_eval(first, tff.SERVER)


@tff.federated_computation(tff.types.at_server(VECTOR), tff.types.at_clients(VECTOR))
def following(kept, data):
    total = tff.federated_sum(tff.federated_map(clipped, data))
    new = tff.federated_map(noisy, (kept, total))
    return new[0], new[1]


rounds = tff.templates.IterativeProcess(initialize, following)
"""

TOGETHER = """\
  all rounds together: Gaussian, noise multiplier 1.154701

  mechanism 1: correlated normal noise
    of: total
    combined: sum over clients
    scale: other noise in each round
    drawn: from round to round, beginning with the first state
    added: Sub in kept.py:32

  bound of each client: the L2 norm is at most 1
    of: total
    by: RealDiv in kept.py:31

  releases
    output output: mechanism 1
  rests on
"""


def test_noise_that_is_correlated_between_rounds(run: Run) -> None:
    """The noise of three rounds is three draws of each prefix, of which a client changes all."""
    pathlib.Path("kept.py").write_text(KEPT)
    ask = ("audit", "kept.py:rounds", "--privacy", "--rounds", "3")
    ran = run(*ask, "--participations", "1")
    assert TOGETHER in ran.stdout
    assert "    each client takes part in at most 1 round\n" in ran.stdout
    ran = run(*ask, "--format", "json")
    assert json.loads(ran.stdout)["privacy"]["all_rounds"] == [
        f"Gaussian, noise multiplier {2 / 14**0.5:.7g}"
    ]
    page = run(*ask, "--format", "html").stdout
    assert "All rounds together" in page
    assert f"multiplier {2 / 14**0.5:.7g}" in page
    ran = run(*ask, "--sampling-rate", "0.1")
    assert "no accountant has a bound for noise correlated between rounds" in ran.stdout


def test_participations_bound_the_rounds_that_are_counted(run: Run) -> None:
    ask = (*ASK, "--not-released", "output.largest", "--rounds")
    once = run(*ask, "1").stdout
    most = run(*ask, "9", "--participations", "1").stdout
    (line,) = [text for text in once.splitlines() if text.startswith("privacy: ")]
    assert line.replace("1 round,", "9 rounds,") in most
