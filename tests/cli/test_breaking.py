"""`tffc diff --breaking`, between two programs and between revisions."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest

from tests.cli.conftest import Run
from tests.cli.test_audit import ROUND

CHANGES = {
    "none": ("", "", 0, ""),
    "renamed": ("sent", "given", 0, ""),
    "data": (
        "user=np.int32)",
        "user=np.int64)",
        2,
        "DATA: data was <pixels=float32[4],user=int32>*, is <pixels=float32[4],user=int64>*\n",
    ),
    "wire": (
        "bitwidth=10",
        "bitwidth=12",
        2,
        "WIRE: round.py:27: count was federated_secure_sum_bitwidth of int32 bound by 10, is "
        "federated_secure_sum_bitwidth of int32 bound by 12\n",
    ),
    "privacy": (
        'tf.reduce_max(e["pixels"])',
        'tf.reduce_max(e["pixels"]) + tf.cast(e["user"], tf.float32)',
        2,
        "PRIVACY: round.py:26: total may depend on more of a client (data): data.user\n",
    ),
    "less protection": (
        "tff.federated_secure_sum_bitwidth(worked[1], bitwidth=10)",
        "tff.federated_sum(worked[1])",
        2,
        "WIRE: round.py:27: count was federated_secure_sum_bitwidth of int32 bound by 10, is "
        "federated_sum of int32\n"
        "PRIVACY: round.py:27: count was secure sum, is aggregated by the system\n",
    ),
    "result": (
        "return tff.federated_map(noisy, (state, total)), count",
        "return tff.federated_map(noisy, (state, total)), tff.federated_zip((count, count))",
        2,
        "RESULT: output is gone: int32\nRESULT: output[0] is new: int32\n"
        "RESULT: output[1] is new: int32\n",
    ),
}


@pytest.fixture(autouse=True)
def modules(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "before.py").write_text(ROUND)


@pytest.mark.parametrize("name", CHANGES)
def test_changes(run: Run, tmp_path: pathlib.Path, name: str) -> None:
    was, now, code, text = CHANGES[name]
    assert not was or was in ROUND
    (tmp_path / "round.py").write_text(ROUND.replace(was, now) if was else ROUND)
    ran = run("diff", "--breaking", "old/before.py:training", "round.py:training")
    assert (ran.code, ran.stdout, ran.stderr) == (code, text, "")


def test_inside(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND.replace("- threshold", "- 2.0 * threshold"))
    ran = run("diff", "--breaking", "old/before.py:training", "round.py:training")
    assert ran.code == 2
    assert ran.stdout.startswith("RESULT: ")
    assert "round computes something else: " in ran.stdout


def test_what_is_proved_to_compute_the_same(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(
        ROUND.replace("state + total +", "tf.identity(state + total) +")
    )
    ran = run("diff", "--breaking", "old/before.py:training", "round.py:training")
    assert ran.code == 0
    assert ran.stdout.startswith("INSIDE: round has changed, and is proved to compute the same")


def test_what_fails_can_be_chosen(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND.replace("bitwidth=10", "bitwidth=12"))
    args = ("diff", "--breaking", "old/before.py:training", "round.py:training", "--fail-on")
    assert run(*args, "privacy,state").code == 0
    assert run(*args, "wire").code == 2
    ran = run(*args, "wires")
    assert ran.code != 0
    assert "'--fail-on' takes state, data, wire, privacy, result, inside, not 'wires'" in ran.stderr


def test_formats(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND.replace("bitwidth=10", "bitwidth=12"))
    args = ("diff", "--breaking", "old/before.py:training", "round.py:training", "--format")
    (found,) = json.loads(run(*args, "json").stdout)
    assert (found["breaks"], found["fails"], found["file"], found["line"]) == (
        "WIRE",
        True,
        "round.py",
        27,
    )
    assert run(*args, "github").stdout.startswith(
        "::error file=round.py,line=27,title=tffc diff%3A WIRE::count was "
    )
    (result,) = json.loads(run(*args, "sarif").stdout)["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("WIRE", "error")


PROCESS = """\
import numpy as np
import tffc as tff


@tff.federated_computation
def first():
    return tff.federated_value(np.int32(0), tff.SERVER)


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def count(state, data):
    return tff.federated_sum(data), state


process = tff.templates.IterativeProcess(first, count)
"""


@pytest.mark.slow
def test_a_revision(run: Run, tmp_path: pathlib.Path) -> None:
    def git(*args: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(("git", *identity, *args), check=True, cwd=tmp_path, capture_output=True)

    (tmp_path / "process.py").write_text(PROCESS)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    (tmp_path / "process.py").unlink()
    (tmp_path / "round.py").write_text(ROUND.replace("bitwidth=10", "bitwidth=12"))
    ran = run("diff", "--breaking", "git:HEAD", "round.py:training")
    assert ran.code == 2
    assert ran.stdout.startswith("WIRE: round.py:27: count was ")
    ran = run("diff", "git:HEAD", "round.py:training")
    assert ran.code == 2
    assert "initialize" not in ran.stdout
    assert ran.stdout.startswith("computation: changed\n")
    # Anywhere else, the source is named too.
    before = run("print", "git:HEAD:round.py:training")
    assert before.stdout == run("print", "old/before.py:training").stdout
    ran = run("compile", "git:HEAD:round.py:training", "--form", "mapreduce", "-o", "before")
    assert ran.code == 0, ran.stderr
    assert run("prove", "git:HEAD:round.py:training", "before").code == 0
    compiled = ("--form", "mapreduce", "-o", "process")
    assert run("compile", "git:HEAD:process.py:process", *compiled).code == 0
    assert (tmp_path / "process" / "initialize.pb").is_file(), "the first state is there too"
    ran = run("prove", "round.py:training", "before")
    assert ran.code == 1
    assert run("audit", "git:HEAD").stderr == (
        "error[E858]: git:HEAD does not say which program is meant\n"
        " = help: give git:HEAD:MODULE.py:NAME, with the path of the file of today\n"
    )
    ran = run("diff", "--breaking", "git:nowhere", "round.py:training")
    assert ran.code == 1
    assert "error[E858]: cannot read nowhere from git: " in ran.stderr
    (tmp_path / "round.py").write_text("import nothing_there\n")
    git("commit", "-qam", "broken")
    (tmp_path / "round.py").write_text(ROUND)
    ran = run("diff", "--breaking", "git:HEAD", "round.py:training")
    assert ran.code == 1
    assert "error[E858]: the old version of round.py:training cannot be traced" in ran.stderr


NOISY = """\
import numpy as np
import tensorflow as tf
import tffc as tff


@tff.tf_computation
def offset():
    return tf.random.normal([])


@tff.tf_computation(np.float32, np.float32)
def sent(x, offset):
    return x + offset + tf.random.normal([])


@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def training(state, data):
    drawn = tff.federated_broadcast(tff.federated_eval(offset, tff.SERVER))
    return state, tff.federated_sum(tff.federated_map(sent, (data, drawn)))
"""


def test_noise_that_the_server_draws_is_none_of_the_clients(
    run: Run, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "old" / "noisy.py").write_text(NOISY)
    without_own_draw = NOISY.replace("x + offset + tf.random.normal([])", "x + offset")
    (tmp_path / "noisy.py").write_text(without_own_draw)
    ran = run("diff", "--breaking", "old/noisy.py:training", "noisy.py:training")
    assert ran.stdout == (
        "PRIVACY: noisy.py:19: sum no longer depends on a fresh random draw at the clients\n"
    )
    (tmp_path / "old" / "noisy.py").write_text(without_own_draw)
    (tmp_path / "noisy.py").write_text(without_own_draw.replace("tf.random.normal([])", "1.0"))
    ran = run("diff", "--breaking", "old/noisy.py:training", "noisy.py:training")
    assert "at the clients" not in ran.stdout
