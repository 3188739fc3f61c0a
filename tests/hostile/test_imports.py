"""Modules that break what they can: the error is one of ours, and the process goes on."""

from __future__ import annotations

import pathlib
import sys
import threading
from collections.abc import Iterator

import pytest

from tffc.cli.diagnostics import render, report, traceback_text
from tffc.frontend.load import load
from tffc.support.errors import LoadError, TffcError
from tffc.tff.finder import TffFinder
from tffc.tff.install import install_as_tensorflow_federated

ROUND = b"""
import numpy as np
import tffc as tff

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def total(state, data):
    return state, tff.federated_sum(data)
"""

CONFUSING = b"""
class Confusing:
    def __getattribute__(self, name):
        raise RuntimeError(name)
    def __repr__(self):
        raise RuntimeError("repr")
confusing = Confusing()
"""

REFUSED = {
    "a null byte": (b"x = 1\ny = '\0'\n", "E437", 2),
    "UTF-16": ("x = 1\n".encode("utf-16"), "E437", 1),
    "no encoding": (b"# coding: nope\n", "E437", 1),
    "an encoding of bytes": (b"# coding: hex\nx = 1\n", "E437", 1),
    "an encoding of text that is none": (b"# coding: rot13\nk = 1\n", "E437", 1),
    "an encoding that only fails": (b"# coding: undefined\nx = 1\n", "E437", 1),
    "bytes that are no text": (b"x = '\xe9'\n", "E437", 1),
    "nested too deeply": (b"x = " + b"-" * 10**5 + b"1\n", "E437", None),
    "brackets": (b"(" * 10**4, "E437", 1),
    "one that is not there any more": (
        b"import sys\ndel sys.modules[__name__]\nraise ValueError('mine')\n",
        "E437",
        3,
    ),
    "an exception without a name": (
        b"class M(type):\n    __name__ = property(lambda cls: 1 / 0)\n"
        b"class E(Exception, metaclass=M): pass\nraise E('mine')\n",
        "E437",
        4,
    ),
    "a syntax error of its own": (b"raise SyntaxError('m', (__file__, 'a', 'b', 5, 'c', 'd'))\n",
                                  "E437", 1),
    "a syntax error of no file": (
        b"e = SyntaxError('m')\ne.filename = 5\nraise e\n", "E437", 3
    ),
    "an import error of no name": (b"raise ImportError(5, name=7)\n", "E437", 1),
    "a module of no name": (b"raise ModuleNotFoundError(name=5)\n", "E437", 1),
    "a long message": (b"raise ValueError('a' * 10**6)\n", "E437", 1),
    "no finders": (b"import sys\nsys.meta_path = None\nraise ValueError\n", "E437", 3),
    "no stderr": (b"import sys\nsys.stderr = None\nraise ValueError\n", "E437", 3),
    "no folder": (
        b"import os, tempfile\nd = tempfile.mkdtemp()\nos.chdir(d)\nos.rmdir(d)\n1/0\n", "E437", 5
    ),
    "a name of the core": (
        b"import importlib\nimportlib.import_module('tensorflow_federated.a\\0\\x1b[2J')\n",
        "E180",
        2,
    ),
}  # fmt: skip

LOADED = {
    "a proxy": b"class P:\n    __class__ = property(lambda self: 1 / 0)\np = P()\n" + ROUND,
    "a confusing object": CONFUSING + ROUND,
    "a lazy module": b"import sys, types\nclass Lazy(types.ModuleType):\n"
    b"    __dict__ = property(lambda self: 1 / 0)\nsys.modules['lazy'] = Lazy('lazy')\n" + ROUND,
    "strange events": b"import sys\nsys.audit('open', 1)\nsys.audit('open', 'x', 0, None)\n"
    + ROUND,
    "no name": ROUND + b"del __name__\n",
    "a name of its own": ROUND
    + b"class Name:\n    def __eq__(self, other):\n        1 / 0\n    __ne__ = __eq__\n"
    b"__name__ = Name()\n",
    "names that are no texts": ROUND + b"globals()[5] = 7\n",
    "a process without its parts": ROUND
    + b"class Process(tff.templates.IterativeProcess):\n    def __init__(self):\n        pass\n"
    b"process = Process()\n",
    "a process that raises": ROUND
    + b"class Process(tff.templates.IterativeProcess):\n    def __init__(self):\n        pass\n"
    b"    next = initialize = property(lambda self: 1 / 0)\nprocess = Process()\n",
    "a computation without its parts": ROUND
    + b"class Its(tff.Computation):\n    def __init__(self):\n        pass\nits = Its()\n",
    "a computation of nowhere": ROUND + b"total.__module__ = 5\n",
    "no path": b"import sys\nsys.path = None\n" + ROUND,
    "no finders": b"import sys\nsys.meta_path.clear()\n" + ROUND,
    "no stdout": b"import sys\nsys.stdout = None\n" + ROUND,
    "no file": b"__file__ = 5\n" + ROUND,
    "itself": b"import program\n" + ROUND,
}


@pytest.fixture
def program(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A file in a folder of its own; afterwards all is as it was."""
    monkeypatch.chdir(tmp_path)
    path, finders, modules = list(sys.path), list(sys.meta_path), set(sys.modules)
    yield tmp_path / "program.py"
    sys.path[:], sys.meta_path[:] = path, finders
    for name in set(sys.modules) - modules:
        if name.startswith("program") or name == "lazy":
            del sys.modules[name]


@pytest.mark.parametrize("what", REFUSED)
def test_a_module_is_refused(
    what: str, program: pathlib.Path, capsys: pytest.CaptureFixture[str], hang: None
) -> None:
    content, code, line = REFUSED[what]
    program.write_bytes(content)
    state = sys.stdout, sys.stderr, list(sys.path)
    known = set(sys.modules)
    with pytest.raises(TffcError) as caught:
        load(str(program))
    error = caught.value
    assert error.code == code
    assert (None if error.span is None else error.span.line) == line
    report(error, debug=False)
    assert "\x1b[2J" not in capsys.readouterr().err
    assert (sys.stdout, sys.stderr, sys.path) == state
    assert "program" not in set(sys.modules) - known
    assert any(isinstance(finder, TffFinder) for finder in sys.meta_path)


@pytest.mark.parametrize("what", LOADED)
def test_a_module_is_loaded(what: str, program: pathlib.Path) -> None:
    program.write_bytes(LOADED[what])
    state = sys.stdout, sys.stderr, list(sys.path)
    assert load(str(program)).name == "total"
    assert (sys.stdout, sys.stderr, sys.path) == state
    assert any(isinstance(finder, TffFinder) for finder in sys.meta_path)


@pytest.mark.parametrize("name", ["confusing.x", "confusing", "missing"])
def test_a_name_that_raises(name: str, program: pathlib.Path) -> None:
    """The module's own code runs when a name is looked up."""
    raising = b"def __getattr__(name):\n    raise KeyError(name)\n"
    program.write_bytes(CONFUSING + raising + ROUND)
    with pytest.raises(LoadError) as caught:
        load(f"{program}:{name}")
    assert caught.value.code == ("E465" if name == "confusing" else "E437")
    render(caught.value)


def test_a_traceback_is_shown_whatever_was_raised(tmp_path: pathlib.Path) -> None:
    """Python's own fails if a file in it names an encoding that is none of text."""
    file = tmp_path / "file.py"
    file.write_text("# coding: hex\n1 / 0\n")
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("\n1 / 0", str(file), "exec"))
    assert traceback_text(caught.value) == "ZeroDivisionError\n"
    assert len(traceback_text(ValueError("a" * 10**6))) < 10**5


def test_threads_install_one_finder(program: pathlib.Path) -> None:
    for finder in [each for each in sys.meta_path if isinstance(each, TffFinder)]:
        sys.meta_path.remove(finder)
    ready = threading.Barrier(16)

    def install() -> None:
        ready.wait()
        install_as_tensorflow_federated()

    threads = [threading.Thread(target=install) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(finder, TffFinder) for finder in sys.meta_path) == 1
