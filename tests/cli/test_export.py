"""`tffc export`: its files and messages."""

from __future__ import annotations

import os
import pathlib
import warnings
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.cli.conftest import Run
from tests.processes import ROOT, run_python
from tffc.language.notation.type_parser import parse_type
from tffc.runtime.engines.state import State, write_state

ERROR = "error[{}]: "


def export(run: Run, bundle: pathlib.Path, *options: str, to: str = "saved_model") -> str:
    return run("export", str(bundle), "--to", to, *options).refusal


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["saved_model", "tflite"])
def test_a_fresh_process_is_silent_but_for_what_it_wrote(
    tmp_path: pathlib.Path, temperature: pathlib.Path, kind: str
) -> None:
    command = ("-m", "tffc", "export", str(temperature), "--to", kind, "-o", "m")
    ran = run_python(*command, cwd=tmp_path, check=True)
    assert ran.stdout == ""
    files = sorted(file.name for file in (tmp_path / "m").iterdir())
    nothing = (
        "  left out secure_sum_bitwidth: it has no result\n"
        "  left out secure_sum_max_input: it has no result\n"
        "  left out secure_modular_sum_modulus: it has no result\n"
    )
    if kind == "saved_model":
        assert files == ["saved_model.pb"]
        assert ran.stderr == (
            "wrote m: a SavedModel with 8 signatures\n"
            "  prepare(arg) -> result_0\n"
            "  work(arg_0, arg_1_0) -> result_0_0_0, result_0_0_1\n"
            "  zero() -> result_0_0, result_0_1\n"
            "  accumulate(arg_0_0_0, arg_0_0_1, arg_1_0_0, arg_1_0_1) -> result_0_0, result_0_1\n"
            "  merge(arg_0_0_0, arg_0_0_1, arg_1_0_0, arg_1_0_1) -> result_0_0, result_0_1\n"
            "  report(arg_0_0, arg_0_1) -> result_0_0, result_0_1\n"
            "  update(arg_0, arg_1_0_0_0, arg_1_0_0_1) -> result_0, result_1\n"
            "  initialize() -> result\n" + nothing
        )
        return
    assert "zero.tflite" in files
    first, *_ = ran.stderr.splitlines()
    assert first == f"wrote m: {len(files)} LiteRT models"
    assert ran.stderr.endswith(nothing)


def test_models_are_replaced_only_if_asked(run: Run, temperature: pathlib.Path) -> None:
    args = ("export", str(temperature), "--to", "saved_model", "-o", "m")
    assert run(*args).code == 0
    assert export(run, temperature, "-o", "m") == (
        "error[E956]: the folder m already holds models\n"
        " = help: replace it, or name another folder; --force replaces it\n"
    )
    assert run(*args, "--force").code == 0


@pytest.mark.parametrize("to", ["saved_model", "flower"])
def test_other_things_are_never_replaced(
    run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path, to: str
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "notes.txt").write_text("mine")
    assert export(run, temperature, "-o", "m", "--force", to=to) == (
        "error[E861]: the folder m is in use: it holds notes.txt\n = help: name a new folder\n"
    )
    assert export(run, temperature, "-o", "m/notes.txt", to=to) == (
        "error[E861]: m/notes.txt is not a folder\n = help: name a new folder\n"
    )
    assert os.listdir(tmp_path / "m") == ["notes.txt"]


def test_a_folder_that_cannot_be_written(
    run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path
) -> None:
    (tmp_path / "file").write_text("")
    assert export(run, temperature, "-o", "file/m") == (
        "error[E851]: cannot write the folder file/m: File exists\n = note: nothing was written\n"
        " = help: give a path in a folder that exists and can be written\n"
    )


def test_what_leaves_components_out_is_refused(run: Run, tmp_path: pathlib.Path) -> None:
    target = str(ROOT / "examples/temperature/temperature.py:share_over_threshold")
    assert run("compile", target, "--form", "distribute-aggregate", "-o", "b").code == 0
    refused = export(run, pathlib.Path("b"), "-o", "m")
    why = "it is not a graph but a program of the language"
    assert refused == (
        "error[E870]: 5 of 6 components cannot be exported, and nothing was written\n"
        f" = note: server_prepare: {why}\n"
        f" = note: server_to_client_broadcast: {why}\n"
        f" = note: client_work: {why}\n"
        f" = note: client_to_server_aggregation: {why}\n"
        f" = note: server_result: {why}\n"
        " = help: write only the other; --partial does so\n"
    )
    assert not (tmp_path / "m").exists()
    ran = run("export", "b", "--to", "saved_model", "-o", "m", "--partial")
    assert (ran.code, ran.stdout) == (0, "")
    assert ran.stderr.startswith(
        "wrote m: a SavedModel with 1 signature\n"
        "  initialize() -> result\n"
        f"  left out server_prepare: {why}\n"
    )


MODULE = """\
import collections

import keras
import numpy as np
import tensorflow as tf

import tffc as tff

MODEL = collections.OrderedDict(
    kernel=tff.TensorType(np.float32, [2, 1]), bias=tff.TensorType(np.float32, [1])
)


@tff.tf_computation(MODEL, tff.TensorType(np.float32, [4, 2]))
def predict(model, batch):
    return tf.linalg.matmul(batch, model["kernel"]) + model["bias"]


@tff.tf_computation(MODEL, np.str_)
def note(model, name):
    return tf.io.read_file(name)


@tff.federated_computation
def nothing():
    return 1


def make_model():
    print("made")
    return keras.Sequential([keras.Input([2]), keras.layers.Dense(1, name="line")])
"""


def test_the_arrays_of_a_trained_state(trained: Run, run: Run, tmp_path: pathlib.Path) -> None:
    load_file = pytest.importorskip("safetensors.numpy").load_file
    args = ("export", "build", "--to", "safetensors", "--part", "model", "-o", "line.safetensors")
    ran = run(*args)
    assert (ran.code, ran.stdout) == (0, "")
    assert ran.stderr == "wrote line.safetensors: a file of 2 arrays\n"
    arrays = load_file(tmp_path / "line.safetensors")
    np.testing.assert_array_equal(arrays["kernel"], [[1], [2]])
    assert run(*args).stderr.startswith("error[E956]")
    assert run(*args, "--force").code == 0
    ran = run(*args, "--state", "build")
    assert (ran.code, "safetensors writes what is in the state" in ran.stderr) == (2, True)


def write_line(folder: pathlib.Path, bias: float) -> None:
    """Write the state of a line with a bias, in the place of another one."""
    (folder / "build" / "state.npz").unlink(missing_ok=True)
    type = "<model=<kernel=float32[2,1],bias=float32[1]>,round=int32>"
    value = ((np.array([[1], [2]], np.float32), np.array([bias], np.float32)), np.int32(1))
    write_state(folder / "build" / "state.npz", State(value, "", 1), parse_type(type))


@pytest.fixture
def trained(run: Run, tmp_path: pathlib.Path) -> Run:
    """Exports from `MODULE` with a state whose part `model` is a line."""
    (tmp_path / "line.py").write_text(MODULE)
    (tmp_path / "build").mkdir()
    write_line(tmp_path, 3)
    return lambda target, kind, *options: run(
        "export", target, "--state", "build", "--to", kind, *options
    )


BATCH = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32)
LINE = [[4], [5], [6], [3]]


def test_a_trained_saved_model(trained: Run, tmp_path: pathlib.Path) -> None:
    ran = trained("line.py:predict", "saved_model", "--part", "model", "-o", "m")
    assert (ran.code, ran.stdout, ran.stderr) == (
        0,
        "",
        "wrote m: a SavedModel with 1 signature\n  serving_default(batch) -> result\n",
    )
    model: Any = tf.saved_model.load(str(tmp_path / "m"))
    found = model.signatures["serving_default"](batch=tf.constant(BATCH))
    np.testing.assert_array_equal(found["result"], LINE)
    again = trained("line.py:predict", "saved_model", "--part", "model", "-o", "m")
    assert again.stderr.startswith("error[E956]")


def test_a_trained_model_from_a_serialized_computation(trained: Run, run: Run) -> None:
    assert run("trace", "line.py:predict", "-o", "predict.pb").code == 0
    ran = trained("predict.pb", "saved_model", "--part", "model", "-o", "m")
    assert ran.stderr.endswith("  serving_default(batch) -> result\n")
    assert run("trace", "line.py:note", "-o", "note.pb").code == 0
    ran = trained("note.pb", "saved_model", "--part", "model", "-o", "n")
    assert (ran.code, ran.stderr.startswith("error[E705]")) == (1, True)
    allowed = ("--allow-effects", "files")
    assert trained("note.pb", "saved_model", "--part", "model", "-o", "n", *allowed).code == 0


def test_a_trained_lite_model(trained: Run, tmp_path: pathlib.Path) -> None:
    ran = trained("line.py:predict", "tflite", "--part", "model", "-o", "m")
    assert (ran.code, ran.stderr) == (0, "wrote m: 1 LiteRT model\n  model.tflite\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(str(tmp_path / "m" / "model.tflite"))
    found = interpreter.get_signature_runner("model")(batch=BATCH)
    np.testing.assert_array_equal(found["result"], LINE)


def test_a_trained_keras_model(trained: Run, tmp_path: pathlib.Path) -> None:
    args = ("line.py:make_model", "keras", "--part", "model", "-o", "line.keras")
    ran = trained(*args)
    assert (ran.code, ran.stdout) == (0, "")
    assert ran.stderr == (
        "made\n"
        "wrote line.keras: a Keras model with 2 weights, given by name\n"
        "  line/kernel <- kernel\n"
        "  line/bias <- bias\n"
    )
    model: Any = keras.models.load_model(tmp_path / "line.keras")
    np.testing.assert_array_equal(model(BATCH), LINE)
    assert trained(*args).stderr == (
        "error[E956]: line.keras already exists\n"
        " = help: replace it, or name another file; --force replaces it\n"
    )
    assert trained(*args, "--force").code == 0
    ran = trained(*args, "--check")
    assert (ran.code, ran.stderr.endswith("cannot be checked: it has the time in it\n")) == (
        2,
        True,
    )


def test_trained_models_are_checked(trained: Run, tmp_path: pathlib.Path) -> None:
    args = ("line.py:predict", "saved_model", "--part", "model", "-o", "m")
    assert trained(*args).code == 0
    assert trained(*args, "--check").code == 0
    write_line(tmp_path, 4)
    ran = trained(*args, "--check")
    assert (ran.code, ran.stderr.startswith("error[E866]: m does not hold")) == (1, True)


def test_arrays_are_checked(run: Run, trained: Run, tmp_path: pathlib.Path) -> None:
    args = ("export", "build", "--to", "safetensors", "--part", "model", "-o", "line.safetensors")
    assert run(*args).code == 0
    assert run(*args, "--check").stderr == "line.safetensors holds what this exports\n"
    write_line(tmp_path, 4)
    assert run(*args, "--check").stderr.startswith(
        "error[E866]: line.safetensors does not hold what this exports\n"
        " = note: line.safetensors: it has other content\n"
    )


def test_a_function_that_is_not_the_models(trained: Run, tmp_path: pathlib.Path) -> None:
    ran = trained("line.py:predict", "saved_model", "-o", "m")
    assert ran.stderr.startswith("error[E853]: the function cannot be given the state, which")
    assert " = help: name the part of the state to give it: model\n" in ran.stderr
    ran = trained("line.py:predict", "saved_model", "--part", "mdl", "-o", "m")
    assert ran.stderr.startswith("error[E803]: the state has no part 'mdl'\n")
    ran = trained("line.py:nothing", "saved_model", "-o", "m")
    assert ran.stderr.startswith("error[E873]")
    ran = trained("line.py:make_model", "saved_model", "--part", "model", "-o", "m")
    assert ran.stderr == (
        "error[E465]: 'make_model' in line.py is not a computation but the Python function "
        "'make_model'\n"
        " = help: decorate a function with @tff.federated_computation(...), or with "
        "@tff.tf_computation(...) if it is TensorFlow; if it makes one, name what it returns: "
        "process = make_model()\n"
    )
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("line.py:make_model", "--to", "keras", "-o", "m.keras"), "add --state STATE"),
        (
            ("line.py:predict", "--to", "saved_model", "-o", "m"),
            "line.py:predict is a function, which is exported with a trained state: add --state",
        ),
        (("build", "--to", "saved_model", "--part", "model", "-o", "m"), "add --state STATE"),
        (
            ("build", "--state", "build", "--to", "saved_model", "-o", "m"),
            "--state needs a function: give MODULE:NAME instead of the bundle",
        ),
        (
            ("line.py:make_model", "--state", "build", "--to", "keras", "-o", "m.h5"),
            "a Keras model is a file whose name ends in .keras, not m.h5",
        ),
    ],
)
def test_wrong_usage(trained: Run, run: Run, args: tuple[str, ...], said: str) -> None:
    ran = run("export", *args)
    assert (ran.code, ran.stdout) == (2, "")
    assert said in ran.stderr
