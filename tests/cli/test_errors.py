"""Mistakes inside of TensorFlow computations, and tracebacks of exceptions."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable

import pytest

import tffc
from tests.cli.conftest import ROUND, Run
from tffc.runtime.user_code.exception_hints import (
    CALL_THE_MODEL,
    MAKE_OUTSIDE,
    WRITE_THE_LOOP,
    likely_mistake,
)
from tffc.support.explanations import read_page

Write = Callable[[str, str], pathlib.Path]


def without_carets(text: str) -> str:
    """Return a traceback without the carets, which depend on Python's version."""
    return "".join(line for line in text.splitlines(keepends=True) if line.strip(" ~^\n"))


def test_exception_at_import(run: Run, write: Write) -> None:
    write("broken.py", "import os\n\n\ndef limit():\n    return {}['limit']\n\n\nlimit()\n")
    assert without_carets(run("print", "broken.py").refusal) == (
        "Traceback (most recent call last):\n"
        '  File "broken.py", line 8, in <module>\n'
        "    limit()\n"
        '  File "broken.py", line 5, in limit\n'
        "    return {}['limit']\n"
        "KeyError: 'limit'\n"
        "error[E437]: broken.py raised KeyError while it was imported: 'limit'\n"
        " --> broken.py:5:12\n"
        "  |\n"
        "5 |     return {}['limit']\n"
        "  |            ^^^^^^^^^^^\n"
    )


def test_exception_while_traced(run: Run, write: Write) -> None:
    write("broken.py", ROUND.replace("tff.federated_sum(data)", "no_such_table[data]"))
    assert without_carets(run("print", "broken.py").refusal) == (
        "Traceback (most recent call last):\n"
        '  File "broken.py", line 5, in <module>\n'
        "    @tff.federated_computation(tff.types.at_server(np.int32), "
        "tff.types.at_clients(np.int32))\n"
        '  File "broken.py", line 7, in count\n'
        "    return state, no_such_table[data]\n"
        "NameError: name 'no_such_table' is not defined\n"
        "error[E437]: broken.py raised NameError while it was imported: name 'no_such_table' is "
        "not defined\n"
        " --> broken.py:7:19\n"
        "  |\n"
        "7 |     return state, no_such_table[data]\n"
        "  |                   ^^^^^^^^^^^^^\n"
    )


def test_exception_in_a_function_that_a_dataset_applies(run: Run, write: Write) -> None:
    write(
        "broken.py",
        "import numpy as np\nimport tffc as tff\n\n"
        '@tff.tf_computation(tff.SequenceType([("x", np.float32)]))\n'
        "def total(data):\n"
        "    return data.reduce(\n"
        "        0.0,\n"
        '        lambda state, item: state + item["y"],\n'
        "    )\n",
    )
    shown = run("print", "broken.py").refusal
    assert shown[shown.index("error[") :] == (
        "error[E437]: broken.py raised KeyError while it was imported: 'y'\n"
        " --> broken.py:8\n"
        "  |\n"
        '8 |         lambda state, item: state + item["y"],\n'
    )


@pytest.mark.parametrize(
    "statement",
    ["return 1 if data.cardinality() > 3 else 2", "return sum(data)", "return list(tf.ones([2]))"],
)
def test_control_flow_of_python_in_a_graph(run: Run, write: Write, statement: str) -> None:
    write(
        "broken.py",
        "import numpy as np\nimport tensorflow as tf\nimport tffc as tff\n\n"
        "@tff.tf_computation(tff.SequenceType(np.float32))\n"
        f"def total(data):\n    {statement}\n",
    )
    assert run("print", "broken.py").refusal.endswith(
        " = help: decorate the function with @tf.function too, below the other decorator, or use "
        "tf.cond, tf.while_loop and the dataset's reduce\n"
    )


TRACED = """\
import numpy as np
import tensorflow as tf
import tffc as tff


@tff.tf_computation(np.float32)
{}def f(x):
    return {}
"""


@pytest.mark.parametrize(
    ("expression", "help"),
    [
        ("np.sqrt(x)", "NumPy cannot compute with tensors; use tf.sqrt in place of np.sqrt"),
        ("np.mean([x, 1.0])", "NumPy cannot compute with tensors; use tf.reduce_mean in place of "
         "np.mean"),
        ("np.tan(x)", "NumPy cannot compute with tensors; use tf.tan in place of np.tan"),
        ("np.log1p(x)", "NumPy cannot compute with tensors; use tf.math.log1p in place of "
         "np.log1p"),
        *(
            (expression, "a tensor has no value while the computation is traced; keep it a tensor, "
             "and convert its type with tf.cast(x, tf.float32) or the like")
            for expression in ("float(x)", "int(x)", "x.numpy()")
        ),
    ],
)  # fmt: skip
def test_python_where_a_graph_is_made(run: Run, write: Write, expression: str, help: str) -> None:
    write("broken.py", TRACED.format("", expression))
    assert run("print", "broken.py:f").refusal.endswith(f"\n  = help: {help}\n")


def test_training_by_keras_where_a_graph_is_made(run: Run, write: Write) -> None:
    write("model.py", "class Model:\n    def fit(self, data):\n        return data.numpy()\n")
    write("broken.py", "from model import Model\n" + TRACED.format("", "Model().fit(x)"))
    said = run("print", "broken.py:f").refusal
    assert " = help: a tensor has no value" in said
    assert likely_mistake("not 'SymbolicTensor'", "    model.fit(data)") == WRITE_THE_LOOP
    words = "int() argument must be a string, a bytes-like object or a real number, not 'NoneType'"
    assert likely_mistake(words, "    return model.predict(x)[:, 0]") == CALL_THE_MODEL
    assert likely_mistake(words, "    int(None)") is None


def test_a_model_is_pointed_at_where_it_is_made(run: Run, write: Write) -> None:
    write(
        "broken.py",
        "import numpy as np\nimport tensorflow as tf\nimport tffc as tff\n\n\n"
        "def make():\n    return tf.Variable(1.0)\n\n\n"
        "@tff.tf_computation(np.float32)\n@tf.function(autograph=False)\ndef f(x):\n"
        "    return make() + x\n",
    )
    assert " --> broken.py:7:12\n" in run("print", "broken.py").refusal


def test_what_tensorflow_says_at_length_is_said_once(run: Run, write: Write) -> None:
    write("broken.py", TRACED.format("", "1 if x > 0 else 2"))
    said = run("print", "broken.py:f").refusal
    assert said.count("You can attempt the following") == 1
    assert (
        "error[E437]: broken.py raised OperatorNotAllowedInGraphError while it was imported\n"
        in said
    )
    assert "  = note: Using a symbolic `tf.Tensor` as a Python `bool` is not allowed\n" in said


def test_a_variable_in_a_function_that_begins_with_an_argument(run: Run, write: Write) -> None:
    write("broken.py", TRACED.format("@tf.function\n", "tf.Variable(x) + x"))
    assert f" = help: {MAKE_OUTSIDE}\n" in run("print", "broken.py:f").refusal


def test_a_variable_that_tensorflow_refuses(run: Run, write: Write) -> None:
    """It is the user's mistake, although the traceback has no frame of TensorFlow."""
    variable = "tf.Variable([1.0, 2.0], shape=[3])"
    write("broken.py", TRACED.format("@tf.function\n", variable))
    said = run("print", "broken.py:f").refusal
    assert "error[E437]: broken.py raised ValueError" in said
    assert str(pathlib.Path(tffc.__file__).parent) not in said.partition("in user code")[0]


def test_the_page_about_variables_shows_what_works(run: Run, write: Write) -> None:
    head = "import numpy as np\nimport tensorflow as tf\nimport tffc as tff\n\n"
    broken, mended = re.findall(r"```python\n(.*?)```", read_page("E830").text, re.DOTALL)
    write("broken.py", head + broken)
    assert "error[E830]" in run("print", "broken.py:total").refusal
    write("mended.py", head + mended)
    assert run("print", "mended.py:total").code == 0


def test_a_function_of_numpy_on_a_value(run: Run, write: Write) -> None:
    write("broken.py", ROUND.replace("tff.federated_sum(data)", "np.max(data)"))
    assert run("print", "broken.py").refusal.endswith(
        "  = help: NumPy cannot compute with values of a program; write it in a TensorFlow "
        "computation\n"
    )


def test_truncated_pb(run: Run, write: Write, tmp_path: pathlib.Path) -> None:
    write("round.py", ROUND)
    assert run("trace", "round.py", "-o", "x.pb").code == 0
    content = (tmp_path / "x.pb").read_bytes()
    (tmp_path / "x.pb").write_bytes(content[:-7])
    assert run("compile", "x.pb", "--form", "mapreduce", "--out", "out").refusal == (
        "error[E203]: x.pb is not a serialized computation: a field of 531 bytes, of which 524 are "
        "there\n"
        " = note: at byte 129\n"
        " = help: write one with tffc trace\n"
    )
