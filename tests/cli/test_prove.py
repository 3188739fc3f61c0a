"""`tffc prove`."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from tests.cli.conftest import ROUND, Run

OTHER = ROUND.replace("federated_sum", "federated_max")
IMPURE = """\
import numpy as np
import tensorflow as tf
import tffc as tff


@tff.tf_computation
def draw():
    return tf.random.uniform([])


@tff.tf_computation(np.float32, np.float32)
def add(x, y):
    return x + y


@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def noise(state, data):
    drawn = tff.federated_eval(draw, tff.SERVER)
    sent = tff.federated_map(add, (tff.federated_broadcast(drawn), data))
    return drawn, tff.federated_sum(sent)
"""
"""A round that needs one random number in two components."""

UNKNOWN = (
    "(round:<int32@SERVER,{int32}@CLIENTS> -> (let state: int32@SERVER=round[0] in "
    "<state,mine:(int32@SERVER -> int32@SERVER)(state)>))"
)
"""A round with an operator that only some system knows."""


PROCESS = (
    ROUND
    + """

@tff.federated_computation
def first():
    return tff.federated_value(np.int32(1), tff.SERVER)


@tff.federated_computation
def other():
    return tff.federated_value(np.int32(2), tff.SERVER)


process = tff.templates.IterativeProcess(first, count)
"""
)


@pytest.fixture(autouse=True)
def modules(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "other.py").write_text(OTHER)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_proved(run: Run, form: str) -> None:
    assert run("compile", "round.py", "--form", form, "--out", "out").code == 0
    ran = run("prove", "out")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.startswith("out: proved, ")
    assert run("prove", "round.py", "out").stdout == ran.stdout


def test_proved_as_json(run: Run) -> None:
    run("compile", "round.py", "--form", "mapreduce", "--out", "out")
    found = json.loads(run("prove", "out", "--json").stdout)
    assert found["answer"] == "proved"
    assert sorted(found["digests"])[:2] == ["components/accumulate", "components/merge"]


def test_different(run: Run) -> None:
    run("compile", "round.py", "--form", "mapreduce", "--out", "out")
    ran = run("prove", "other.py", "out")
    assert (ran.code, ran.stdout) == (1, "")
    message = "the form mapreduce computes something else than the program: the result[1] differs"
    assert f"error[E902]: {message}" in " ".join(ran.stderr.split())
    assert "--> other.py:7" in ran.stderr


def test_different_as_json(run: Run) -> None:
    run("compile", "round.py", "--form", "mapreduce", "--out", "out")
    ran = run("prove", "other.py", "out", "--json")
    found = json.loads(ran.stdout)
    assert ran.code == 1
    assert (found["answer"], found["code"]) == ("different", "E902")
    assert found["difference"]["leaf"] == "the result[1]"
    assert found["difference"]["line"] == 7


def test_one_number_drawn_twice(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "noise.py").write_text(IMPURE)
    duplicate = "--allow-impure-duplicates"
    run("compile", "noise.py", "--form", "mapreduce", "--out", "out", duplicate)
    ran = run("prove", "out")
    assert ran.code == 1
    assert "what the program does once, the form does twice" in " ".join(ran.stderr.split())


def test_not_decided(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine.txt").write_text(UNKNOWN)
    form = "distribute-aggregate"
    assert run("compile", "mine.txt", "--form", form, "--out", "out").code == 0
    ran = run("prove", "out")
    assert (ran.code, ran.stdout) == (3, "")
    assert " ".join(ran.stderr.split()) == (
        "error[E961]: it is not decided whether the form distribute-aggregate computes what the "
        "program does: no rule is about an unknown operator = note: found: mine = help: tffc "
        "verify tries it on arguments"
    )
    assert json.loads(run("prove", "out", "--json").stdout)["construct"] == "an unknown operator"


def test_components_of_another_type(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "wide.py").write_text(ROUND.replace("int32", "int64"))
    run("compile", "round.py", "--form", "mapreduce", "--out", "out")
    assert "E501" in run("prove", "wide.py", "out").refusal


def test_three_arguments(run: Run) -> None:
    assert run("prove", "a", "b", "c").code == 2


def test_compiled_and_proved(run: Run, tmp_path: pathlib.Path) -> None:
    run("compile", "round.py", "--form", "mapreduce", "--out", "plain")
    ran = run("compile", "round.py", "--form", "mapreduce", "--out", "out", "--prove")
    assert (ran.code, ran.stderr) == (0, "wrote out: mapreduce, 10 components, proved\n")
    manifests = (tmp_path / name / "manifest.json" for name in ("plain", "out"))
    plain, proved = (json.loads(path.read_text()) for path in manifests)
    recorded = proved.pop("proof")
    assert proved == plain
    assert recorded["prover"] == 6
    assert recorded["files"] == {
        name: digest for name, digest in plain["files"].items() if name.endswith(".pb")
    }


def test_a_first_state_that_is_given_is_proved(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "process.py").write_text(PROCESS)
    run("trace", "process.py:other", "-o", "other.pb")
    given = ("--initialize", "other.pb", "--prove")
    ran = run("compile", "process.py:process", "--form", "mapreduce", "--out", "out", *given)
    assert (ran.code, "wrote out" in ran.stderr) == (0, True)
    assert ran.stderr.endswith("wrote out: mapreduce, 10 components, proved\n")
    unsaid = "  except the first state: "
    assert run("prove", "out").stdout.endswith(
        f"{unsaid}the bundle does not hold the program of it; to prove it too, name the process: "
        "tffc prove MODULE.py:NAME out\n"
    )
    run("trace", "process.py:process", "-o", "round.pb")
    assert run("prove", "round.pb", "out").stdout.endswith(
        f"{unsaid}round.pb holds only the round; to prove it too, name the module of the process: "
        "tffc prove MODULE.py:NAME out\n"
    )
    assert run("prove", "process.py:process.next", "out").stdout.endswith(
        f"{unsaid}process.py:process.next is only the round; to prove it too, name the iterative "
        "process\n"
    )
    ran = run("prove", "process.py:process", "out")
    assert ran.code == 1
    assert "the first state computes something else than the program" in ran.stderr


def test_a_first_state_that_a_bundle_lacks_is_not_proved(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "process.py").write_text(PROCESS)
    run("compile", "process.py:count", "--form", "mapreduce", "--out", "out")
    ran = run("prove", "process.py:process", "out")
    assert (ran.code, ran.stdout.startswith("out: proved, ")) == (0, True)
    assert ran.stdout.endswith("  except the first state: the bundle does not make it\n")


BUFFERED = (
    ROUND
    + """
import tensorflow as tf

slowly = tff.buffered(discount=lambda age: 1 / tf.sqrt(1 + tf.cast(age, tf.float32)))(count)
fast = tff.buffered(discount=lambda age: 1 / (1 + tf.cast(age, tf.float32)))(count)
"""
)


def test_a_discount_is_proved(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "buffered.py").write_text(BUFFERED)
    words = ("--form", "mergeable", "--prove", "--out")
    for name in ("slowly", "count"):
        assert run("compile", f"buffered.py:{name}", *words, name).code == 0
    ran = run("prove", "buffered.py:slowly", "slowly")
    assert (ran.code, ran.stdout.count("\n")) == (0, 1)
    ran = run("prove", "buffered.py:fast", "slowly")
    assert ran.code == 1
    assert "the discount computes something else than the program" in ran.stderr
    ran = run("prove", "buffered.py:fast", "slowly", "--json")
    answers = json.loads(ran.stdout)
    assert (ran.code, answers["answer"], answers["discount"]["answer"]) == (
        1,
        "proved",
        "different",
    )
    # Of these, nothing is known to compare it with.
    unsaid = "  except the discount: "
    assert run("prove", "slowly").stdout.endswith(
        f"{unsaid}the bundle does not hold the program of it; to prove it too, name the round: "
        "tffc prove MODULE.py:NAME slowly\n"
    )
    assert run("prove", "buffered.py:count", "slowly").stdout.endswith(
        f"{unsaid}buffered.py:count does not say that its rounds may be buffered\n"
    )
    assert run("prove", "buffered.py:slowly", "count").stdout.endswith(
        f"{unsaid}the bundle does not have it\n"
    )


def test_nothing_is_written_unless_it_is_proved(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine.txt").write_text(UNKNOWN)
    form = "distribute-aggregate"
    assert run("compile", "mine.txt", "--form", form, "--out", "out", "--prove").code == 3
    assert not (tmp_path / "out").exists()


def test_a_required_proof(run: Run, tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "a.npz", np.int32(3))
    run("compile", "round.py", "--form", "mapreduce", "--out", "plain")
    run("compile", "round.py", "--form", "mapreduce", "--out", "out", "--prove")
    words = ("--data", "a.npz", "--rounds", "1", "--require-proof")
    ran = run("run", "plain", *words)
    assert ran.code == 1
    assert " ".join(ran.stderr.split()) == (
        "error[E962]: plain must be proved by version 6 of the prover; it does not say so = "
        "help: compile it with tffc compile --prove, and run the bundle"
    )
    assert "E962" not in run("run", "out", *words).stderr
    manifest = tmp_path / "out" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["proof"]["files"]["components/work.pb"] = "0" * 64
    manifest.write_text(json.dumps(content))
    assert "E962" in run("run", "out", *words).stderr
    content["proof"] = {"prover": True, "files": {}}
    manifest.write_text(json.dumps(content))
    assert "its 'proof' is not right" in " ".join(run("run", "out", *words).stderr.split())
