"""Common refusals: their exact text and exit code."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable

import pytest

import tffc
from tests.cli.conftest import ROUND, Run
from tffc.backends.forms.kinds import FORMS
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


def test_no_such_file(run: Run, write: Write) -> None:
    write("averaging.py", "")
    assert run("print", "avraging.py").refusal == (
        "error[E434]: there is no file avraging.py\n = help: did you mean averaging.py?\n"
    )


def test_no_such_module(run: Run) -> None:
    assert run("print", "no_such.module:name").refusal == (
        "error[E434]: there is no module named 'no_such'\n"
        " = help: give a path that ends in .py, or a dotted name that Python can import from here\n"
    )


def test_syntax_error(run: Run, write: Write) -> None:
    write("broken.py", "import tffc as tff\n\ndef f(x:\n    return x\n")
    assert run("print", "broken.py").refusal == (
        "error[E437]: the module is not valid Python: '(' was never closed\n"
        " --> broken.py:3:6\n"
        "  |\n"
        "3 | def f(x:\n"
        "  |      ^\n"
        "  |\n"
        "  = help: correct it there; what counts is the Python that tffc runs in\n"
    )


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


def test_a_variable_in_a_function_of_tensorflow(run: Run, write: Write) -> None:
    write("broken.py", TRACED.format("@tf.function\n", "tf.Variable(0.0) + x"))
    assert run("print", "broken.py:f").refusal == (
        "error[E830]: a variable, or a model that has some, is made inside of a function that "
        "@tf.function decorates, which would make it again at every call\n"
        " --> broken.py:9\n"
        "  |\n"
        "9 |     return tf.Variable(0.0) + x\n"
        "  |\n"
        "  = help: make variables and models in the TensorFlow computation itself, without "
        "@tf.function, and put the loop that uses them into an inner function under "
        "@tf.function\n"
    )


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


def test_a_type_that_is_none(run: Run, write: Write) -> None:
    write("types.py", "import tffc as tff\n\nVECTOR = tff.TensorType('vector')\n")
    assert run("print", "types.py").refusal == (
        "error[E110]: 'vector' is not an element type\n"
        " --> types.py:3:10\n"
        "  |\n"
        "3 | VECTOR = tff.TensorType('vector')\n"
        "  |          ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  |\n"
        "  = help: give a NumPy or TensorFlow dtype, or a Python class such as int\n"
    )


def test_misused_operator(run: Run, write: Write) -> None:
    write("broken.py", ROUND.replace("tff.federated_sum(data)", "tff.federated_sum(state)"))
    assert run("print", "broken.py").refusal == (
        "error[E471]: the value to sum must be at CLIENTS, but is of type `int32@SERVER`\n"
        " --> broken.py:7:19\n"
        "  |\n"
        "7 |     return state, tff.federated_sum(state)\n"
        "  |                   ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  |\n"
        "  = help: it is at the server; bring it to the clients with tff.federated_broadcast\n"
    )


def test_no_candidate(run: Run, write: Write) -> None:
    write("plain.py", "def f(x):\n    return x\n")
    assert run("compile", "plain.py", "--form", "mapreduce", "--out", "out").refusal == (
        "error[E465]: plain.py defines no computation and no iterative process\n"
        " = note: plain Python functions: f\n"
        " = help: decorate a function with @tff.federated_computation(...), with the types of its "
        "parameters\n"
    )


def test_several_candidates(run: Run, write: Write) -> None:
    write("several.py", ROUND + "\n\nidentity = tff.federated_computation(lambda x: x, np.int32)\n")
    assert run("trace", "several.py", "-o", "x.pb").refusal == (
        "error[E449]: several.py has 2 candidates, so one must be named\n"
        " = note: count: (<state=int32@SERVER,data={int32}@CLIENTS> -> "
        "<int32@SERVER,int32@SERVER>)\n"
        " = note: identity: (int32 -> int32)\n"
        " = help: give the name after a colon, for example several.py:identity\n"
    )


def test_wrong_name(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    assert run("print", "round.py:coumt").refusal == (
        "error[E439]: round.py defines nothing named 'coumt'\n"
        " = note: count: (<state=int32@SERVER,data={int32}@CLIENTS> -> "
        "<int32@SERVER,int32@SERVER>)\n"
        " = help: did you mean 'count'?\n"
    )


def test_wrong_type_for_the_form(run: Run, write: Write) -> None:
    write("identity.py", ROUND.replace("return state, ", "return "))
    ran = run("compile", "identity.py", "--form", "mapreduce", "--out", "out")
    assert ran.refusal == (
        "error[E510]: a round returns two values, the new server state and the server output; "
        "found `(<state=int32@SERVER,data={int32}@CLIENTS> -> int32@SERVER)`\n"
        " --> identity.py:7:12\n"
        "  |\n"
        "7 |     return tff.federated_sum(data)\n"
        "  |            ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  |\n"
        "  = note: expected `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`\n"
        "  = help: return both; an empty struct stands for no output\n"
    )


def test_no_such_pb(run: Run) -> None:
    assert run("print", "x.pb").refusal == (
        "error[E850]: cannot read x.pb: No such file or directory\n"
    )


NEAR = {
    "print rounds.pb": ("E850", "cannot read rounds.pb: No such file or directory", "round.pb"),
    "parse rounds.txt -o x.pb": (
        "E850",
        "cannot read rounds.txt: No such file or directory",
        "round.txt",
    ),
    "opt round.pb --pipeline mine.yml": (
        "E850",
        "cannot read the pipeline mine.yml: No such file or directory",
        "mine.yaml",
    ),
    "data describe csv:rounds.csv": (
        "E626",
        "cannot read rounds.csv: No such file or directory",
        "round.csv",
    ),
    "data describe parquet:rounds.parquet": (
        "E640",
        "rounds.parquet: there is no file",
        "round.parquet",
    ),
    "data describe in/clients": ("E640", "there is no folder in/clients", "in/client"),
    "decompile bundel -o x.pb": ("E604", "no bundle: there is no folder bundel", "bundle"),
    "print ruond": ("E434", "there is no module named 'ruond'", "round.py"),
    "print rounds.py": ("E434", "there is no file rounds.py", "round.py"),
    "print ROUND.py": ("E434", "there is no file ROUND.py", "round.py"),
}


@pytest.mark.parametrize("command", NEAR)
def test_a_path_that_is_nearly_right(run: Run, tmp_path: pathlib.Path, command: str) -> None:
    for name in ("in/client", "bundle"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("pb", "txt", "csv", "parquet", "py"):
        (tmp_path / f"round.{name}").touch()
    for name in ("mine.yaml", "in/clients.npz", "bundel.txt"):
        (tmp_path / name).touch()
    code, message, near = NEAR[command]
    assert run(*command.split()).refusal == (
        f"error[{code}]: {message}\n = help: did you mean {near}?\n"
    )


def test_a_file_in_the_place_of_a_bundle(run: Run, write: Write) -> None:
    write("round.pb", "")
    assert run("decompile", "round.pb", "-o", "x.pb").refusal == (
        "error[E604]: no bundle: round.pb is a file, not a folder\n"
        " = help: write one with tffc compile\n"
    )


def test_a_bundle_in_the_place_of_a_program(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    assert run("compile", "round.py", "--form", "mapreduce", "--out", "bundle").code == 0
    assert run("check", "bundle", "--form", "broadcast").refusal == (
        "error[E856]: bundle is a bundle, but this command takes a program\n"
        " = help: the program that it was compiled from is bundle/computation.pb\n"
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "notes.json",
            "error[E434]: there is no module named 'notes'\n"
            " = help: notes.json is a file, but programs are in files that end in .py, .pb, .sexpr "
            "or .txt\n",
        ),
        (
            "folder",
            "error[E434]: folder is a folder\n = help: give the path of a .py file in it\n",
        ),
        (
            "",
            "error[E434]: there is no module named ''\n = help: give a path that ends in .py, or a "
            "dotted name that Python can import from here\n",
        ),
    ],
)
def test_what_is_no_module(
    run: Run, write: Write, tmp_path: pathlib.Path, source: str, said: str
) -> None:
    write("notes.json", "")
    (tmp_path / "folder").mkdir()
    assert run("trace", source).refusal == said


def test_a_path_in_a_folder_that_is_not_there(run: Run) -> None:
    assert run("print", "nowhere/round.pb").refusal == (
        "error[E850]: cannot read nowhere/round.pb: No such file or directory\n"
    )


def test_malformed_pb(run: Run, write: Write) -> None:
    write("x.pb", "hello")
    assert run("print", "x.pb").refusal == (
        "error[E203]: x.pb is not a serialized computation: field 13 has the wire type 4, which is "
        "not in use\n"
        " = note: at byte 2\n"
        " = help: write one with tffc trace\n"
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


def test_output_folder_in_use(run: Run, write: Write, tmp_path: pathlib.Path) -> None:
    write("round.py", ROUND)
    (tmp_path / "out").mkdir()
    write("out/diary.txt", "")
    assert run("compile", "round.py", "--form", "mapreduce", "--out", "out").refusal == (
        "error[E602]: the folder out is in use: it holds diary.txt\n"
        " = note: a bundle takes a new folder, an empty one, or the place of another bundle\n"
        " = help: name another folder\n"
    )


def test_output_file_that_cannot_be_written(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    assert run("trace", "round.py", "-o", "no/such/folder/x.pb").refusal == (
        "error[E851]: cannot write no/such/folder/x.pb: No such file or directory\n"
        " = help: give a path in an existing, writable folder, on a disk with enough space\n"
    )


def test_no_such_pipeline(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    args = ("compile", "round.py", "--form", "mapreduce", "--out", "out", "--pipeline", "no.yaml")
    assert run(*args).refusal == (
        "error[E850]: cannot read the pipeline no.yaml: No such file or directory\n"
    )


def test_a_first_state_that_the_round_does_not_take(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    write(
        "first.py",
        "import numpy as np\n"
        "import tffc as tff\n"
        "\n"
        "@tff.federated_computation\n"
        "def first():\n"
        "    return tff.federated_value(np.int64(1), tff.SERVER)\n",
    )
    assert run("trace", "first.py", "-o", "first.pb").code == 0
    args = ("compile", "round.py", "--form", "mapreduce", "--out", "out")
    assert run(*args, "--initialize", "first.pb").refusal == (
        "error[E853]: the first state is of type `int64`, but the round takes one of type `int32`\n"
    )


def test_no_bundle(run: Run) -> None:
    assert run("run", "out", "--data", "data", "--rounds", "1").refusal == (
        "error[E604]: no bundle: there is no folder out\n = help: write one with tffc compile\n"
    )


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("print",), "Missing argument 'FILE.pb|BUNDLE|MODULE[:NAME]'."),
        (
            ("compile", "x.pb", "--out", "out"),
            "Missing option '--form'. Choose from:\n\t" + ",\n\t".join(FORMS),
        ),
        (
            ("run",),
            "Missing argument 'BUNDLE|MODULE[:NAME]|FILE.pb'.\n"
            "Missing option '--data'.\n"
            "Missing option '--rounds'.",
        ),
        (("comple",), "No such command 'comple'. Did you mean 'compile'?"),
        (("RUN",), "No such command 'RUN'. Did you mean 'run'?"),
        (("describe", "x"), "No such command 'describe'. Did you mean 'data describe'?"),
        (("data", "Describe"), "No such command 'Describe'. Did you mean 'describe'?"),
        (("xyzzy",), "No such command 'xyzzy'."),
        (
            ("run", "out", "--data", "d", "--rounds", "0"),
            "Invalid value for '--rounds': 0 is not in the range x>=1.",
        ),
    ],
)
def test_wrong_usage(run: Run, args: tuple[str, ...], text: str) -> None:
    ran = run(*args)
    assert ran.code == 2
    assert ran.stdout == ""
    assert ran.stderr.endswith(f"Error: {text}\n")
