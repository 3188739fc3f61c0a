"""The exact frames of exceptions in the user's code: the user's alone, whoever called it.

Every program is run as a script and traced from the command line.
"""

from __future__ import annotations

import pathlib
import re
import runpy
import traceback
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from tffc.cli.application import application

IMPORTS = "import numpy as np\nimport tensorflow as tf\nimport tffc as tff\n"

PROGRAMS = {
    "federated": """
@tff.federated_computation(np.int32)
def outer(x):
    return helper(x)
""",
    "federated without types": """
@tff.federated_computation
def outer():
    return helper(1)
""",
    "wrapped": """
def outer(x):
    return helper(x)

wrapped = tff.federated_computation(outer, np.int32)
""",
    "TensorFlow": """
@tff.tensorflow.computation(np.int32)
def outer(x):
    return helper(x)
""",
    "TensorFlow in TensorFlow": """
@tff.tensorflow.computation
def inner(x):
    return helper(x)

@tff.tensorflow.computation(np.int32)
def outer(x):
    return inner(x)
""",
    "TensorFlow in federated": """
@tff.federated_computation(tff.types.at_clients(np.int32))
def outer(x):
    @tff.tensorflow.computation(np.int32)
    def inner(y):
        return helper(y)
    return tff.federated_map(inner, x)
""",
    "polymorphic TensorFlow in federated": """
@tff.tensorflow.computation
def inner(x):
    return helper(x)

@tff.federated_computation(tff.types.at_clients(np.int32))
def outer(x):
    return tff.federated_map(inner, x)
""",
    "a function of TensorFlow": """
@tff.tensorflow.computation((np.float32, [2, 3]))
def outer(x):
    return tf.matmul(x, x)
""",
    "a decision on a tensor": """
@tff.tensorflow.computation(np.int32)
def outer(x):
    return 1 if x else 2
""",
    "tf.function": """
@tf.function
def inner(x):
    return helper(x)

@tff.tensorflow.computation(np.int32)
def outer(x):
    return inner(x)
""",
    "a dataset": """
@tff.tensorflow.computation(tff.SequenceType(np.int32))
def outer(xs):
    return xs.map(helper)
""",
}

HELPER = """
def helper(x):
    raise RuntimeError("not today")

"""

EXPECTED = {
    "federated": [(8, "<module>"), (10, "outer"), (6, "helper")],
    "federated without types": [(8, "<module>"), (10, "outer"), (6, "helper")],
    "wrapped": [(11, "<module>"), (9, "outer"), (6, "helper")],
    "TensorFlow": [(8, "<module>"), (10, "outer"), (6, "helper")],
    "TensorFlow in TensorFlow": [
        (12, "<module>"),
        (14, "outer"),
        (10, "inner"),
        (6, "helper"),
    ],
    "TensorFlow in federated": [
        (8, "<module>"),
        (10, "outer"),
        (12, "inner"),
        (6, "helper"),
    ],
    "polymorphic TensorFlow in federated": [
        (12, "<module>"),
        (14, "outer"),
        (10, "inner"),
        (6, "helper"),
    ],
    "a function of TensorFlow": [(8, "<module>"), (10, "outer")],
    "a decision on a tensor": [(8, "<module>"), (10, "outer")],
    # What AutoGraph has rewritten is told in the message of its exception.
    "tf.function": [(12, "<module>"), (14, "outer")],
    "a dataset": [(8, "<module>"), (10, "outer")],
}

FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+), in (?P<name>.*)')


def as_script(path: pathlib.Path) -> str:
    """What Python prints for a script, without the frames that ran it."""
    try:
        runpy.run_path(str(path), run_name="__main__")
    except Exception as error:  # noqa: BLE001 - whatever the script raises is looked at
        names = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        tb = error.__traceback__
        for _ in range(names.index(str(path))):
            assert tb is not None
            tb = tb.tb_next
        return "".join(traceback.format_exception(type(error), error, tb))
    raise AssertionError("the script raised nothing")


def from_the_command_line(path: pathlib.Path) -> str:
    result = CliRunner(catch_exceptions=False).invoke(
        application, ["trace", str(path), "-o", str(path.with_suffix(".pb"))]
    )
    assert result.exit_code == 1
    return result.stderr


@pytest.mark.parametrize("way", [as_script, from_the_command_line], ids=["script", "cli"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_frames(program: str, way: Callable[[pathlib.Path], str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(IMPORTS + HELPER + PROGRAMS[program].lstrip("\n"), encoding="utf-8")
    lines = way(path).splitlines()
    frames = [match for line in lines if (match := FRAME.fullmatch(line))]
    assert {match["file"] for match in frames} == {str(path)}
    assert [(int(match["line"]), match["name"]) for match in frames] == EXPECTED[program]


def test_what_autograph_says_is_kept(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "program.py"
    # A name of its own, for AutoGraph remembers what it has rewritten by the code alone.
    text = HELPER + PROGRAMS["tf.function"].lstrip("\n")
    text = text.replace("inner", "rewritten").replace("helper", "helping")
    path.write_text(IMPORTS + text, encoding="utf-8")
    said = from_the_command_line(path)
    assert f'File "{path}", line 10, in rewritten  *' in said
    assert (
        f"error[E437]: {path} raised RuntimeError while it was imported: not today\n --> {path}:6\n"
    ) in said
