"""Modules whose programs call functions of Python: they run where they are traced, and no file
holds them."""

from __future__ import annotations

import pathlib

import pytest

from tests.cli.conftest import Run

MODULE = """\
import numpy as np
import tensorflow as tf
import tffc as tff


def doubled(x):
    return np.int32(2 * x)


@tff.tf_computation(np.int32)
def each(x):
    return tf.ensure_shape(tf.numpy_function(doubled, [x], tf.int32), [])


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.int32))
def total(state, data):
    return state, tff.federated_sum(tff.federated_map(each, data))


def clients():
    return {"a": np.int32(1), "b": np.int32(2)}
"""
CALLBACK = """\
import jax
import numpy as np
import tffc as tff


@tff.jax.computation(np.float32)
def shown(x):
    jax.debug.print("{}", x)
    return x
"""
FILES = ["callback.py", "module.py"]


@pytest.fixture(autouse=True)
def module(tmp_path: pathlib.Path) -> None:
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "callback.py").write_text(CALLBACK)


@pytest.mark.parametrize(
    "command",
    [
        ("compile", "module.py:total", "--form", "mapreduce", "-o", "out"),
        ("compile", "module.py:total", "--form", "mapreduce", "-o", "out", "--prove"),
        ("compile", "module.py:total", "--form", "distribute-aggregate", "-o", "out"),
        ("trace", "module.py:total", "-o", "out"),
        ("trace", "module.py:each", "-o", "out"),
        ("opt", "module.py:total", "--passes", "call-dominant", "-o", "out.pb"),
        ("print", "module.py:total", "--style", "typed", "--sections", "out"),
    ],
    ids=" ".join,
)
def test_no_file_is_written(command: tuple[str, ...], run: Run, tmp_path: pathlib.Path) -> None:
    ran = run(*command)
    assert ran.code == 1
    assert "error[E907]" in ran.stderr
    assert "module.py:12\n" in ran.stderr
    assert "to run this needs consent" not in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


@pytest.mark.slow
def test_it_runs_in_the_process_that_traces_it(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ran = run("run", "module.py:total", "--data", "python:module.py:clients", "--rounds", "1")
    assert ran.code == 0
    assert ran.stdout.split()[-1] == "6"
    assert not (tmp_path / "cache").exists()


def test_what_prints_it_says_where_it_runs(run: Run) -> None:
    ran = run("print", "module.py:total")
    assert (ran.code, ran.stderr) == (
        0,
        "note: this runs in the process that traces it, never from a file: PyFunc\n",
    )


def test_callbacks_are_refused_when_traced(run: Run) -> None:
    for command in ("print", "verify", "trace"):
        ran = run(command, "callback.py:shown", *(["-o", "out"] if command == "trace" else []))
        assert ran.code == 1
        assert ran.stderr.startswith(
            "error[E906]: a JAX computation calls a Python function when it runs\n"
            " --> callback.py:8:5\n"
        )
