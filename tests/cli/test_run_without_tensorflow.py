"""`tffc run` of TensorFlow's programs where TensorFlow is not installed."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence

import numpy as np
import pytest

from tests.cli.conftest import ENVIRONMENT, EXPLAIN, ROOT, Ran, Run
from tests.processes import run_python

pytestmark = pytest.mark.slow

CHILD = """\
import sys

sys.modules["tensorflow"] = None
import json

from click.testing import CliRunner

from tffc.cli.application import application

told = []
for command in json.loads(sys.argv[1]):
    ran = CliRunner().invoke(application, command)
    told.append((ran.exit_code, ran.stdout, ran.stderr))
loaded = {name.partition(".")[0] for name, module in sys.modules.items() if module is not None}
assert not loaded & {"tensorflow", "keras", "tf_keras"}, loaded
print(json.dumps(told))
"""


def without_tensorflow(*commands: Sequence[str]) -> list[Ran]:
    """Run commands in a fresh interpreter that cannot import TensorFlow."""
    environment = {**ENVIRONMENT, "COLUMNS": "100"}
    done = run_python("-c", CHILD, json.dumps(commands), env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return [Ran(code, printed, EXPLAIN.sub("", said)) for code, printed, said in told]


def assert_same_states(one: pathlib.Path, other: pathlib.Path) -> None:
    """Check that two states are the same, floats to 1e-6."""
    with np.load(one) as ones, np.load(other) as others:
        names = sorted(set(ones.files) - {"state.json"})
        assert names == sorted(set(others.files) - {"state.json"})
        assert names
        for name in names:
            assert ones[name].dtype == others[name].dtype
            np.testing.assert_allclose(ones[name], others[name], rtol=1e-6, atol=1e-6)


def arguments(bundle: str, data: pathlib.Path | str, *options: str) -> list[str]:
    return ["run", bundle, "--data", str(data), *options]


def test_digits(run: Run, tmp_path: pathlib.Path) -> None:
    """Also a run that is interrupted and resumed."""
    program = f"{ROOT}/examples/digits/federated_averaging.py:training"
    assert run("compile", program, "--form", "mapreduce", "--out", "digits").code == 0
    data = ROOT / "examples" / "digits" / "train"
    sampled = arguments("digits", data, "--clients-per-round", "6")
    with_it = run(*sampled, "--rounds", "3", "--state-out", "with.npz")
    resuming = [*sampled, "--out", "folder", "--resume"]
    whole, first, then = without_tensorflow(
        [*sampled, "--rounds", "3", "--state-out", "without.npz"],
        [*resuming, "--rounds", "2"],
        [*resuming, "--rounds", "3", "--state-out", "resumed.npz"],
    )
    assert (with_it.code, whole.code, first.code, then.code) == (0, 0, 0, 0), [whole, first, then]
    assert_same_states(tmp_path / "without.npz", tmp_path / "with.npz")
    assert_same_states(tmp_path / "resumed.npz", tmp_path / "with.npz")
    assert whole.stdout.splitlines()[0] == with_it.stdout.splitlines()[0]


PROGRAM = """\
import collections

import numpy as np
import tensorflow as tf
import tffc as tff

HELD = tff.SequenceType(collections.OrderedDict(x=np.float32, label=np.int32))
STATE = collections.OrderedDict(weight=np.float32, rounds=np.int32)


@tff.tf_computation
def initial():
    return collections.OrderedDict(weight=0.5, rounds=0)


@tff.tf_computation(STATE, HELD)
def work(state, data):
    weight = tf.Variable(state["weight"])
    count = data.reduce(0, lambda s, e: s + 1)

    @tf.function
    def train(batches):
        for batch in batches:
            error = weight * batch["x"] - tf.cast(batch["label"], tf.float32)
            weight.assign_sub(0.1 * tf.reduce_mean(error * batch["x"]))
        return weight.read_value()

    return collections.OrderedDict(weight=train(data.repeat(2).batch(2)), count=count)


@tff.tf_computation(STATE, np.float32)
def step(state, weight):
    return collections.OrderedDict(weight=weight, rounds=state["rounds"] + 1)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(HELD))
def train(state, data):
    done = tff.federated_map(work, (tff.federated_broadcast(state), data))
    mean = tff.federated_mean(done["weight"], weight=as_float(done["count"]))
    counts = (
        tff.federated_secure_sum(done["count"], 5),
        tff.federated_secure_sum_bitwidth(done["count"], 4),
        tff.federated_max(done["count"]),
    )
    return tff.federated_map(step, (state, mean)), counts


@tff.tf_computation(np.int32)
def to_float(count):
    return tf.cast(count, tf.float32)


def as_float(counts):
    return tff.federated_map(to_float, counts)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(HELD))
def personal(state, data):
    return tff.federated_map(work, (tff.federated_broadcast(state), data))


training = tff.templates.IterativeProcess(tff.federated_computation(
    lambda: tff.federated_eval(initial, tff.SERVER)), train)
"""


@pytest.fixture
def program(tmp_path: pathlib.Path) -> pathlib.Path:
    """A module with rounds, and data of clients beside it: those of `large` hold too many, and one
    of `bad` is not what it should be."""
    (tmp_path / "program.py").write_text(PROGRAM)
    for folder, sizes in (("data", (3, 5, 1, 4)), ("large", (3, 6, 5)), ("bad", (2, 3))):
        (tmp_path / folder).mkdir()
        for number, size in enumerate(sizes):
            x = np.linspace(0.5, 1, size, dtype=np.float32) + np.float32(number)
            label = np.arange(size, dtype=np.int32)
            np.savez(tmp_path / folder / f"client_{number}.npz", x=x, label=label)
    np.savez(tmp_path / "bad" / "client_9.npz", x=np.zeros(3, np.int64))
    return tmp_path / "program.py"


FORMS = ("mapreduce", "distribute-aggregate", "mergeable")


def test_forms_secure_sums_and_bad_clients(run: Run, program: pathlib.Path) -> None:
    for form in FORMS:
        made = run("compile", f"{program}:training", "--form", form, "--out", form)
        assert made.code == 0, made.stderr
    commands: list[list[str]] = []
    for form in FORMS:
        commands += [
            arguments(form, "data", "--rounds", "2", "--state-out", f"{form}.npz"),
            arguments(form, "large", "--rounds", "1"),
            arguments(form, "bad", "--rounds", "1", "--skip-bad-clients"),
            arguments(form, "bad", "--rounds", "1"),
        ]
    told = without_tensorflow(*commands)
    for command, found in zip(commands, told, strict=True):
        expected = run(*[each.replace(".npz", "_with.npz") for each in command])
        assert found.code == expected.code, (command, found)
        said = found.stderr.replace(f"{program.parent}/", "")
        if "--state-out" in command:
            said = said.replace(".npz", "_with.npz")
        assert (found.stdout, said) == (expected.stdout, expected.stderr)
    for form in FORMS:
        assert_same_states(program.parent / f"{form}.npz", program.parent / f"{form}_with.npz")
    assert [each.code for each in told] == [0, 1, 0, 1] * 3
    assert "it was at work on the data of client client_1" in told[1].stderr
    assert "[E663]" in told[1].stderr


def test_broadcast(run: Run, program: pathlib.Path) -> None:
    np.savez(program.parent / "first.npz", weight=np.float32(0.25), rounds=np.int32(0))
    made = run("compile", f"{program}:personal", "--form", "broadcast", "--out", "broadcast")
    assert made.code == 0, made.stderr
    command = arguments("broadcast", "data", "--rounds", "1", "--state-in", "first.npz")
    (found,) = without_tensorflow([*command, "--out", "without"])
    expected = run(*command, "--out", "with")
    assert (found.code, found.stdout) == (expected.code, expected.stdout) == (0, expected.stdout)


JAX = "examples/jax_averaging/jax_averaging.py:training"


def test_a_program_of_jax(run: Run, tmp_path: pathlib.Path) -> None:
    assert run("compile", f"{ROOT}/{JAX}", "--form", "mergeable", "--out", "jax").code == 0
    data = ROOT / "examples" / "digits" / "train"
    command = arguments("jax", data, "--clients-per-round", "3", "--rounds", "1")
    with_it = run(*command, "--state-out", "with.npz")
    (found,) = without_tensorflow([*command, "--state-out", "without.npz"])
    assert (found.code, with_it.code) == (0, 0), (found, with_it)
    assert_same_states(tmp_path / "without.npz", tmp_path / "with.npz")


STRINGS = """\
import numpy as np
import tensorflow as tf
import tffc as tff


@tff.tf_computation(np.int32)
def work(number):
    return tf.strings.length(tf.strings.as_string(number))


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.int32))
def lengths(state, data):
    return state, tff.federated_sum(tff.federated_map(work, data))
"""


def test_a_program_that_needs_tensorflow(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "strings.py").write_text(STRINGS)
    made = run("compile", "strings.py:lengths", "--form", "mapreduce", "--out", "strings")
    assert made.code == 0, made.stderr
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "only.npz", np.int32(12345))
    (found,) = without_tensorflow(arguments("strings", "data", "--rounds", "1"))
    assert (found.code, found.stdout) == (1, "")
    assert found.stderr == ""
