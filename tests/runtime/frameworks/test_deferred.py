"""TensorFlow is loaded without Keras and JAX, and has both where a program uses them."""

from __future__ import annotations

import importlib
import json
import pathlib
import sys

import pytest

from tests.processes import run_python
from tffc.runtime.frameworks.tensorflow.deferred import deferring

LOADS = """\
import json, sys
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow, quiet_import
{load}
heavy = {{"keras", "jax", "tf_keras", "sklearn", "matplotlib"}}
seen = {{"loaded": sorted(heavy & sys.modules.keys())}}
with tf.Graph().as_default() as graph:
    seen["losses"] = tf.losses.MeanSquaredError.__module__
seen["nodes"] = len(graph.get_operations())
import keras
seen["same"] = tf.keras.Model is keras.Model and tf.optimizers.Adam is keras.optimizers.Adam
print(json.dumps(seen))
"""


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "load", ["tf = load_tensorflow()", "quiet_import(); import tensorflow as tf"]
)
def test_keras_is_loaded_when_it_is_used(tmp_path: pathlib.Path, load: str) -> None:
    ran = run_python("-c", LOADS.format(load=load), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "loaded": [],
        "losses": "keras.src.losses.losses",
        "nodes": 0,
        "same": True,
    }


CONVERTS = """\
import sys
import numpy as np
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
tf = load_tensorflow()
assert "jax" not in sys.modules
arguments = [[("x", np.ones(3, np.float32))]]
converter = tf.lite.TFLiteConverter.experimental_from_jax([lambda x: x * 2], arguments)
assert converter.convert()
assert "jax" in sys.modules
"""


@pytest.mark.slow
@pytest.mark.tensorflow
def test_functions_of_jax_are_converted_as_ever(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("jax", reason="an optional package")
    ran = run_python("-c", CONVERTS, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_others_import_them_meanwhile(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jax.py").write_text("")
    (tmp_path / "user_of_jax.py").write_text("import jax\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("jax", "user_of_jax"):
        # Sets the name first, so that it is restored, or removed, after the test.
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    with deferring():
        user = importlib.import_module("user_of_jax")
    assert user.jax.__file__ == str(tmp_path / "jax.py")
