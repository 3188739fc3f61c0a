"""Functions of the user's that give data, and do what no data does."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from tests.processes import ROOT
from tffc.cli.application import application
from tffc.language import SequenceType, StructType, TensorType, Type
from tffc.runtime.data.location import open_source
from tffc.runtime.data.source import check_all
from tffc.support.errors import DataError, LoadError

READINGS = SequenceType(TensorType(np.float32))
TENSOR = TensorType(np.float32, None)

MODULE = """
import asyncio, os, sys
from collections.abc import Mapping
import numpy as np

class Silent(Exception):
    def __str__(self):
        raise RuntimeError("not told")

class Leaving(Exception):
    def __str__(self):
        sys.exit(0)

def throw(error):
    raise error

def cyclic(count=1, first=()):
    made = list(first)
    made.extend([made] * count)
    return made

def deep(depth):
    made = [1.0]
    for _ in range(depth):
        made = [made]
    return made

def recurse():
    return recurse()

def yielding():
    yield 1.0
    raise ValueError("in the middle")

class Length(list):
    def __iter__(self):
        raise OSError("no length")

class Tensor:
    def numpy(self):
        sys.exit(3)

class Array:
    def __array__(self, *args, **kwargs):
        raise KeyError("no array")

class Data(Mapping):
    def __getitem__(self, name):
        sys.exit("no item")
    def __iter__(self):
        return iter(["ada"])
    def __len__(self):
        return 1

class Endless(Data):
    def __iter__(self):
        raise LookupError("no names")

def of(make):
    return lambda: {"ada": make}

exits = of(lambda: sys.exit(0))
exits_with_words = of(lambda: sys.exit("bye"))
silent = of(lambda: throw(Silent()))
leaving = of(lambda: throw(Leaving()))
generator_exit = of(lambda: throw(GeneratorExit()))
cancelled = of(lambda: throw(asyncio.CancelledError()))
recursing = of(recurse)
memory = of(lambda: throw(MemoryError()))
generator = of(yielding)
selves = of(cyclic)
many_selves = of(lambda: cyclic(3))
late_selves = of(lambda: cyclic(3, [1.0]))
deeply = of(lambda: deep(100_000))
lengths = of(lambda: Length([1.0]))
tensors = of(lambda: [Tensor()])
arrays = of(lambda: [Array()])
huge = of(lambda: [10 ** 5000])
far = of(lambda: [1e39])
surrogate = of(lambda: ["\\ud800"])
wide = of(lambda: [np.complex128(1j)])
items = Data
endless = Endless
whole = lambda: sys.exit(0)
names = lambda: {"\\ud800": [1.0]}
large_name = lambda: {10 ** 5000: [1.0]}
"""


@pytest.fixture(autouse=True)
def module(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.py").write_text(MODULE)


def refusal(function: str, type: Type = READINGS) -> DataError:
    with pytest.raises(DataError) as caught:
        check_all(open_source(f"python:people.py:{function}", type))
    return caught.value


@pytest.mark.parametrize(
    ("function", "code", "said"),
    [
        ("exits", "E692", "called sys.exit"),
        ("exits_with_words", "E692", "called sys.exit"),
        ("items", "E692", "called sys.exit"),
        ("whole", "E692", "making people.py:whole() called sys.exit"),
        ("tensors", "E692", "called sys.exit"),
        ("silent", "E692", "raised Silent"),
        ("leaving", "E692", "raised Leaving"),
        ("generator_exit", "E692", "raised GeneratorExit"),
        ("cancelled", "E692", "raised CancelledError"),
        ("recursing", "E692", "raised RecursionError"),
        ("memory", "E692", "raised MemoryError"),
        ("endless", "E692", "making the clients of people.py:endless() raised LookupError"),
        ("lengths", "E692", "raised OSError: no length"),
        ("arrays", "E692", "raised KeyError: 'no array'"),
        ("generator", "E620", "an object of class 'generator'"),
        ("selves", "E620", "a list of 1 elements"),
        ("many_selves", "E620", "a list of 3 elements"),
        ("late_selves", "E620", "a list of 4 elements"),
        ("deeply", "E620", "a list of 1 elements"),
        ("huge", "E620", "an integer of thousands of digits"),
        ("far", "E620", "is 1e+39"),
        ("surrogate", "E620", "is '\\ud800'"),
        ("wide", "E620", "a NumPy complex128 scalar"),
        ("names", "E689", "'\\ud800'"),
        ("large_name", "E689", "an integer of thousands of digits"),
    ],
)
def test_what_is_no_data(function: str, code: str, said: str) -> None:
    type = SequenceType(TensorType(np.str_)) if function == "surrogate" else READINGS
    error = refusal(function, type)
    assert (error.code, said in error.message) == (code, True), error.message


@pytest.mark.parametrize("function", ["selves", "many_selves", "late_selves", "deeply"])
@pytest.mark.parametrize(
    "type",
    [TENSOR, SequenceType(TENSOR), TensorType(np.float32, [None]), StructType([np.float32])],
    ids=str,
)
def test_lists_that_contain_themselves(function: str, type: Type) -> None:
    assert refusal(function, type).code == "E620"


def test_messages() -> None:
    assert str(refusal("exits")) == (
        "making the data of client ada of people.py:exits called sys.exit, which does not end a "
        "run [E692]\n"
        "  help: return what there is, or raise an exception that says what is wrong"
    )
    assert str(refusal("names")) == (
        "people.py:names() gives a client '\\ud800', which cannot be written in UTF-8 [E689]\n"
        "  help: give clients names without halves of surrogate pairs"
    )


@pytest.mark.parametrize("what", ["sys.exit(0)", "raise GeneratorExit", "raise Silent"])
def test_modules_that_end_the_program(what: str) -> None:
    pathlib.Path("ends.py").write_text(
        "import sys\nclass Silent(Exception):\n    def __str__(self): raise ValueError\n" + what
    )
    with pytest.raises(LoadError) as caught:
        open_source("python:ends.py:clients", READINGS)
    assert caught.value.code == "E437"


HANGING = """
import threading, time, sys
import numpy as np

def hang():
    open("hangs", "w").close()
    for _ in range(2000):
        {how}

def clients():
    return {{f"c{{n}}": hang if n in {who} else [np.float32(n)] for n in range(40)}}
"""

SWALLOW = """
        try:
            time.sleep(0.1)
        except BaseException:
            pass
"""

RUN = """
import sys
sys.argv = ["tffc", "run", "bundle", "--data", "python:hanging.py:clients", "--rounds", "1",
            "--workers", "2", "--skip-bad-clients"]
from tffc.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "who"),
    [("time.sleep(0.1)", range(20, 21)), (SWALLOW, range(40))],
    ids=["another thread", "every thread, and catches all"],
)
def test_an_interruption_ends_a_run(bundle: pathlib.Path, how: str, who: range) -> None:
    pathlib.Path("hanging.py").write_text(HANGING.format(how=how, who=who))
    os.symlink(bundle, "bundle")
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        try:
            wait_for_hang(process)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.count("interrupted") == 1
    assert "Traceback" not in said


def wait_for_hang(process: subprocess.Popen[str]) -> None:
    while not os.path.exists("hangs"):
        assert process.poll() is None
        time.sleep(0.05)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The mean of the clients' numbers, as a bundle."""
    path = tmp_path_factory.mktemp("bundle") / "mean"
    example = ROOT / "examples" / "temperature" / "temperature.py"
    words = ["compile", f"{example}:mean_temperature", "--form", "mapreduce", "--out", str(path)]
    result = CliRunner().invoke(application, words)
    assert result.exit_code == 0, result.output
    return path
