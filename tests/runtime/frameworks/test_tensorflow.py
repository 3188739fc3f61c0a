"""TensorFlow is loaded late, and is not heard."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from tests.processes import ENVIRONMENT, run_python

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
import tffc as tff

def train(data):
    import keras
    import tensorflow as tf
    model = keras.Sequential([keras.layers.InputLayer((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    @tf.function
    def epoch():
        for x, y in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    epoch()
    tf.debugging.assert_equal(1, 1)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    return model.trainable_variables, table.lookup(tf.constant("a"))

element = ((np.float32, [None, 2]), (np.float32, [None, 1]))
computation = tff.tf_computation(train, tff.SequenceType(element))
computation([(np.ones((2, 2), np.float32), np.ones((2, 1), np.float32))])
failing = tff.tf_computation(lambda x: 1 // x, np.int32)
try:
    failing(0)
except RuntimeError as error:
    assert "Integer division by zero" in str(error)
"""

LIGHT = """
import sys
import tffc.runtime.frameworks.sections, tffc.runtime.frameworks.tensorflow.load
import tffc.runtime.frameworks.tensorflow.quiet
tffc.runtime.frameworks.tensorflow.quiet.keep_quiet()
assert "tensorflow" not in sys.modules and "numpy" not in sys.modules
"""


def run(code: str, folder: pathlib.Path, **environment: str) -> subprocess.CompletedProcess[str]:
    # TensorFlow rewrites functions whose source it can read, so the code has to be a file.
    path = folder / "program.py"
    path.write_text(code)
    kept = {k: v for k, v in ENVIRONMENT.items() if not k.startswith("TF_")}
    environment = {**kept, **environment}
    return run_python(str(path), env=environment)


def test_nothing_is_heard(tmp_path: pathlib.Path) -> None:
    done = run(PROGRAM, tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_nothing_is_loaded_before_it_is_needed(tmp_path: pathlib.Path) -> None:
    done = run(LIGHT, tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)


def test_what_the_user_set_is_kept(tmp_path: pathlib.Path) -> None:
    code = (
        "import os, tffc.runtime.frameworks.tensorflow.quiet as t\n"
        "t.keep_quiet()\n"
        "print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    )
    assert run(code, tmp_path).stdout == "3\n"
    assert run(code, tmp_path, TF_CPP_MIN_LOG_LEVEL="0").stdout == "0\n"


def test_without_tensorflow(tmp_path: pathlib.Path) -> None:
    code = (
        "import sys\nsys.modules['tensorflow'] = None\n"
        "from tffc.runtime.frameworks.tensorflow.load import load_tensorflow\n"
        "try:\n    load_tensorflow()\nexcept RuntimeError as error:\n    print(error)\n"
    )
    assert run(code, tmp_path).stdout == (
        "TensorFlow is not installed, and this computation needs it [E701]\n"
        "  help: pip install tensorflow\n"
    )


def test_a_tensorflow_that_cannot_be_imported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise ValueError('a value that is not taken')\n")
    code = (
        "import sys\nsys.path.insert(0, '.')\n"
        "from tffc.runtime.frameworks.tensorflow.load import load_tensorflow\n"
        "try:\n    load_tensorflow()\nexcept RuntimeError as error:\n    print(error)\n"
    )
    assert run(code, tmp_path).stdout == (
        "TensorFlow cannot be imported: ValueError: a value that is not taken [E701]\n"
        "  help: see whether `python -c 'import tensorflow'` works, and install it again if not\n"
    )


def test_what_a_user_imported_first_is_not_heard_while_we_run(tmp_path: pathlib.Path) -> None:
    code = (
        "import os, sys\nimport numpy as np\nimport tensorflow as tf\nimport tffc as tff\n"
        "os.write(2, b'imported\\n')\n"
        "@tff.tf_computation(np.int32)\ndef doubled(x):\n    return 2 * x\n"
        "assert doubled(1) == 2\n"
        "print('mine', file=sys.stderr)\n"
    )
    assert run(code, tmp_path).stderr.rpartition("imported\n")[2] == "mine\n"
