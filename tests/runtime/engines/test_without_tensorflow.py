"""Rounds of bundles where TensorFlow is not installed, in new interpreters."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.processes import ROOT, run_python

DIGITS = ROOT / "examples" / "digits"

WITHOUT = """\
import sys
sys.modules["tensorflow"] = None
from tffc.cli import main
try:
    main()
finally:
    assert sys.modules["tensorflow"] is None
    loaded = [name for name in sys.modules if name.startswith("tensorflow.")]
    assert not loaded, loaded
"""
"""tffc's command; TensorFlow cannot be imported, and is not."""

Ran = subprocess.CompletedProcess[str]


def without_tensorflow(*arguments: str, cwd: pathlib.Path) -> Ran:
    return run_python("-c", WITHOUT, *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pathlib.Path]:
    """Compiles a program, with TensorFlow."""

    def compiled(source: str, form: str = "mapreduce") -> pathlib.Path:
        folder = tmp_path_factory.mktemp("bundles") / "bundle"
        command = ["compile", source, "--form", form, "--out", str(folder)]
        ran = run_python("-m", "tffc", *command, cwd=folder.parent)
        assert ran.returncode == 0, ran.stderr
        return folder

    return compiled


def arrays(path: pathlib.Path) -> dict[str, Any]:
    with np.load(path) as loaded:
        # The digest of the program is no array.
        values = {name: loaded[name] for name in loaded.files}
        return {name: array for name, array in values.items() if isinstance(array, np.ndarray)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [
        "mapreduce",
        pytest.param("distribute-aggregate", marks=pytest.mark.long),
        pytest.param("mergeable", marks=pytest.mark.long),
    ],
)
def test_the_digits_are_learned_alike(
    form: str, bundle: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    folder = bundle(f"{DIGITS / 'federated_averaging.py'}:training", form)
    run = ["run", str(folder), "--data", str(DIGITS / "train"), "--clients-per-round", "9"]
    first = without_tensorflow(*run, "--rounds", "2", "--out", "one", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    resumed = without_tensorflow(*run, "--rounds", "3", "--out", "one", "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    with_it = run_python("-m", "tffc", *run, "--rounds", "3", "--out", "other", cwd=tmp_path)
    assert with_it.returncode == 0, with_it.stderr
    one, other = arrays(tmp_path / "one" / "state.npz"), arrays(tmp_path / "other" / "state.npz")
    assert one.keys() == other.keys()
    for name, array in one.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(array, other[name], rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(array, other[name])


PROGRAMS = """\
import numpy as np
import tensorflow as tf
import tffc as tff

NONE = tff.types.at_server(())


@tff.tf_computation(np.int64)
def square(x):
    return x * x


@tff.federated_computation(NONE, tff.types.at_clients(np.int64))
def bounded(state, data):
    return state, tff.federated_secure_sum(tff.federated_map(square, data), 10)


@tff.federated_computation(NONE, tff.types.at_clients(np.int64))
def squares(state, data):
    return tff.federated_map(square, data)


@tff.tf_computation(np.str_)
def length(text):
    return tf.strings.length(text)


@tff.federated_computation(NONE, tff.types.at_clients(np.str_))
def lengths(state, data):
    return state, tff.federated_sum(tff.federated_map(length, data))
"""

IN_JAX = """\
import numpy as np
import tffc as tff


@tff.jax_computation(np.float32)
def square(x):
    return x * x


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.float32))
def total(state, data):
    return state, tff.federated_mean(tff.federated_map(square, data))
"""


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(5):
        np.savez(folder / f"{number}.npz", np.int64(number))
    return folder


@pytest.mark.slow
def test_a_client_beyond_a_bound_is_named(
    bundle: Callable[..., pathlib.Path], tmp_path: pathlib.Path, data: pathlib.Path
) -> None:
    (tmp_path / "p.py").write_text(PROGRAMS)
    folder = bundle(f"{tmp_path / 'p.py'}:bounded")
    command = ["run", str(folder), "--data", str(data), "--rounds", "1"]
    ran = without_tensorflow(*command, cwd=tmp_path)
    assert ran.returncode == 1
    assert "E663" in ran.stderr
    assert "it was at work on the data of client 4" in ran.stderr
    (data / "4.npz").write_bytes(b"no array")
    ran = without_tensorflow(*command, "--skip-bad-clients", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "14" in ran.stdout.split()


@pytest.mark.slow
def test_results_of_clients(
    bundle: Callable[..., pathlib.Path], tmp_path: pathlib.Path, data: pathlib.Path
) -> None:
    (tmp_path / "p.py").write_text(PROGRAMS)
    folder = bundle(f"{tmp_path / 'p.py'}:squares", "broadcast")
    command = ["run", str(folder), "--data", str(data), "--rounds", "1", "--out", "run"]
    ran = without_tensorflow(*command, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    clients = tmp_path / "run" / "clients" / "round-1"
    assert [int(arrays(clients / f"{at}.npz")["0"]) for at in range(5)] == [0, 1, 4, 9, 16]


@pytest.mark.slow
def test_a_program_of_jax_alone(
    bundle: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "p.py").write_text(IN_JAX)
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(4):
        np.savez(folder / f"{number}.npz", np.float32(number))
    ran = without_tensorflow(
        *["run", str(bundle(f"{tmp_path / 'p.py'}:total")), "--data", "data", "--rounds", "1"],
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[-1] == "3.500"


@pytest.mark.slow
def test_its_compiler_is_refused(
    bundle: Callable[..., pathlib.Path], tmp_path: pathlib.Path, data: pathlib.Path
) -> None:
    (tmp_path / "p.py").write_text(PROGRAMS)
    command = ["run", str(bundle(f"{tmp_path / 'p.py'}:bounded")), "--data", str(data)]
    for options in ([], ["--batching", "4"], ["--batching", "auto", "--device", "cpu"]):
        named = [*command, "--rounds", "1", "--out", "run", "--compiler", "tensorflow", *options]
        ran = without_tensorflow(*named, cwd=tmp_path)
        assert ran.returncode == 1
        assert ran.stderr == (
            "error[E701]: TensorFlow is not installed, and the compiler 'tensorflow' needs it\n"
            " = help: pip install tensorflow, or leave the choice of a compiler to tffc\n"
            " = explain: tffc explain E701\n"
        )
        assert not [*(tmp_path / "run").iterdir()]


@pytest.mark.slow
def test_what_needs_tensorflow_says_why(
    bundle: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "p.py").write_text(PROGRAMS)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "0.npz", np.array("text"))
    ran = without_tensorflow(
        *["run", str(bundle(f"{tmp_path / 'p.py'}:lengths")), "--data", "data", "--rounds", "1"],
        cwd=tmp_path,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith(
        "error[E701]: TensorFlow is not installed, and a part of the program needs it\n"
        " = note: it cannot be compiled without TensorFlow: it takes or gives strings\n"
        " = note: it is in the bundle's `work`\n"
        " = note: it was at work on the data of client 0\n"
        " = help: pip install tensorflow\n"
    ), ran.stderr
