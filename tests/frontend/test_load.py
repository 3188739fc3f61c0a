"""Finding what a target names: in files and modules, with and without a name."""

from __future__ import annotations

import importlib
import os
import pathlib
import py_compile
import sys
from collections.abc import Callable

import pytest

import tffc
from tests.refusals import refusal
from tffc.frontend.load import Loaded, load
from tffc.runtime.user_code.modules import split_target
from tffc.support.errors import LanguageTypeError, LoadError

HEADER = """\
import numpy as np
import tffc as tff

"""
ONE = """\
@tff.federated_computation(np.int32)
def identity(x):
    return x
"""
TWO = (
    ONE
    + """
@tff.federated_computation(np.int32, np.float32)
def second(x, y):
    return y
"""
)
PAIR = """\
@tff.federated_computation
def initialize():
    return tff.federated_value(0, tff.SERVER)

@tff.federated_computation(tff.types.at_server(np.int32))
def next(state):
    return state
"""
PROCESS = PAIR + "process = tff.templates.IterativeProcess(initialize, next)\n"
MEASURED = """\
def _add(s, v):
    return tff.templates.MeasuredProcessOutput(s, tff.federated_sum(v), s)

def _parts():
    zero = tff.federated_computation(lambda: tff.federated_value(0, tff.SERVER))
    types = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)
    return zero, tff.federated_computation(_add, *types)

def _report():
    return tff.federated_computation(lambda s: s, tff.types.at_server(np.int32))

aggregation = tff.templates.AggregationProcess(*_parts())
estimation = tff.templates.EstimationProcess(*_parts(), _report())
"""


@pytest.fixture
def module(tmp_path: pathlib.Path) -> Callable[..., str]:
    """Writes a module and gives its path, with forward slashes."""

    def write(text: str, name: str = "program.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path.as_posix()

    return write


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("a/b.py", ("a/b.py", None)),
        ("a/b.py:f", ("a/b.py", "f")),
        ("a.b", ("a.b", None)),
        ("a.b:f", ("a.b", "f")),
        ("C:\\a\\b.py", ("C:\\a\\b.py", None)),
        ("C:\\a\\b.py:f", ("C:\\a\\b.py", "f")),
    ],
)
def test_targets(target: str, parts: tuple[str, str | None]) -> None:
    assert split_target(target) == parts


def described(loaded: Loaded) -> tuple[str, str, str, str | None]:
    initialize = loaded.initialize
    return (
        loaded.kind,
        loaded.name,
        str(loaded.computation.type_signature),
        None if initialize is None else str(initialize.type_signature),
    )


IDENTITY = ("computation", "identity", "(int32 -> int32)", None)
ROUND = ("(int32@SERVER -> int32@SERVER)", "( -> int32@SERVER)")

FOUND = {
    "the only one": (HEADER + ONE, "", IDENTITY),
    "by name": (HEADER + TWO, ":identity", IDENTITY),
    "an alias is not a second candidate": (HEADER + ONE + "again = identity\n", "", IDENTITY),
    "by an alias": (
        HEADER + ONE + "again = identity\n",
        ":again",
        ("computation", "again", "(int32 -> int32)", None),
    ),
    "a process hides its parts": (HEADER + PROCESS, "", ("process", "process", *ROUND)),
    "a part of a process by name": (
        HEADER + PROCESS,
        ":initialize",
        ("computation", "initialize", "( -> int32@SERVER)", None),
    ),
    "a pair is a process": (HEADER + PAIR, "", ("process", "next", *ROUND)),
    "a pair by the name of its round": (HEADER + PAIR, ":next", ("process", "next", *ROUND)),
}


@pytest.mark.parametrize("case", FOUND)
def test_found(case: str, module: Callable[..., str]) -> None:
    text, name, expected = FOUND[case]
    assert described(load(module(text) + name)) == expected


def test_neighbours_can_be_imported(module: Callable[..., str]) -> None:
    module(HEADER + ONE, "neighbour_of_program.py")
    path = module(f"{HEADER}from neighbour_of_program import identity\n{TWO[len(ONE) :]}")
    before = list(sys.path)
    assert load(path).name == "second"
    assert sys.path == before


def test_what_is_imported_counts_where_nothing_else_does(module: Callable[..., str]) -> None:
    module(HEADER + ONE, "another_neighbour.py")
    assert load(module("from another_neighbour import identity\n")).name == "identity"


def test_dotted_names(
    module: Callable[..., str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module("", "package_of_programs/__init__.py")
    module("from .part import identity\n", "package_of_programs/rounds.py")
    module(HEADER + ONE, "package_of_programs/part.py")
    monkeypatch.chdir(tmp_path)
    assert load("package_of_programs.rounds:identity").name == "identity"
    assert load("package_of_programs.part").name == "identity"


def test_what_a_package_shows_is_still_its_modules_own(
    module: Callable[..., str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module("from .rounds import process\n", "package_that_shows/__init__.py")
    module(HEADER + PROCESS, "package_that_shows/rounds.py")
    monkeypatch.chdir(tmp_path)
    assert load("package_that_shows.rounds").name == "process"


def test_what_a_library_makes_is_no_import(module: Callable[..., str]) -> None:
    module(
        HEADER + "def make():\n    return tff.federated_computation(lambda x: x, np.int32)\n",
        "library_of_program.py",
    )
    module(HEADER + TWO, "imported_by_program.py")
    text = "import library_of_program\nfrom imported_by_program import second\n"
    assert load(module(f"{text}made = library_of_program.make()\n")).name == "made"


def test_files_named_like_modules_do_not_replace_them(module: Callable[..., str]) -> None:
    json = sys.modules["json"]
    assert load(module(HEADER + ONE, "json.py")).name == "identity"
    assert sys.modules["json"] is json


def test_what_is_saved_twice_within_a_second_is_read_again(module: Callable[..., str]) -> None:
    path = module(HEADER + ONE.replace("return x", "return 1"))
    first = str(load(path).computation.type_signature.result)
    py_compile.compile(path)
    when = os.stat(path)
    module(HEADER + ONE.replace("return x", "return ()").removesuffix("\n"))
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    assert (first, str(load(path).computation.type_signature.result)) == ("int32", "<>")


def test_loading_again_runs_the_file_again(module: Callable[..., str]) -> None:
    path = module(HEADER + ONE, "edited.py")
    load(path)
    module(HEADER + TWO[len(ONE) :], "edited.py")
    assert load(path).name == "second"


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("process.next", "(int32@SERVER -> int32@SERVER)"),
        ("process.initialize", "( -> int32@SERVER)"),
        ("Holder.kept", "(int32 -> int32)"),
        ("Holder.process.next", "(int32@SERVER -> int32@SERVER)"),
    ],
)
def test_attributes_are_named_with_dots(
    name: str, signature: str, module: Callable[..., str]
) -> None:
    held = "class Holder:\n    kept = identity\n    process = process\n"
    loaded = load(f"{module(HEADER + ONE + PROCESS + held)}:{name}")
    assert (loaded.kind, loaded.name) == ("computation", name)
    assert str(loaded.computation.type_signature) == signature


def test_the_parts_of_a_pair_are_named_with_dots(module: Callable[..., str]) -> None:
    path = module(HEADER + PAIR)
    assert load(f"{path}:next").kind == "process"
    assert load(f"{path}:next.next").kind == "computation"


def test_of_several_the_only_one_that_fits_is_taken(module: Callable[..., str]) -> None:
    path = module(HEADER + TWO + PROCESS)
    found = load(path, lambda each: str(each.type_signature.result) == "int32@SERVER")
    assert (found.kind, found.name, found.passed_over) == (
        "process",
        "process",
        ("identity", "second"),
    )
    with pytest.raises(LoadError) as caught:
        load(path, lambda each: "@SERVER" not in str(each.type_signature))
    assert str(caught.value).endswith(
        f"help: give the name after a colon, for example {path}:second"
    )


def test_a_measured_process_is_its_rounds(module: Callable[..., str]) -> None:
    path = module(HEADER + MEASURED)
    loaded = load(f"{path}:aggregation")
    assert (loaded.kind, loaded.name) == ("process", "aggregation")
    assert str(loaded.computation.type_signature) == (
        "(<state=int32@SERVER,data={int32}@CLIENTS> -> "
        "<int32@SERVER,<result=int32,measurements=int32>@SERVER>)"
    )
    assert str(load(f"{path}:aggregation.next").computation.type_signature).endswith(
        "<state=int32@SERVER,result=int32@SERVER,measurements=int32@SERVER>)"
    )
    assert load(f"{path}:aggregation.initialize").kind == "computation"
    assert load(f"{path}:estimation.report").kind == "computation"


def test_an_import_of_tff_that_is_halted(
    module: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tffc.install_as_tensorflow_federated()
    # What the module takes away is put back for other tests.
    ours = importlib.import_module("tensorflow_federated")
    monkeypatch.setitem(sys.modules, "tensorflow_federated", ours)
    path = module(
        "import sys\nsys.modules['tensorflow_federated'] = None\n"
        "import tensorflow_federated as tff\n"
    )
    assert refusal(LoadError, load, path) == (
        f"{path} raised ModuleNotFoundError while it was imported: import of tensorflow_federated "
        f"halted; None in sys.modules [E437]\n  at {path}:3\n"
        "  help: write import tffc as tff in its place"
    )


def test_place_of_a_syntax_error(module: Callable[..., str]) -> None:
    with pytest.raises(LoadError) as caught:
        load(module("x = 1 2\n"))
    span = caught.value.span
    assert span is not None
    assert (span.line, span.column, span.end_line, span.end_column) == (1, 6, 1, 7)


def test_errors_of_ours_pass(module: Callable[..., str]) -> None:
    path = module(f"{HEADER}@tff.federated_computation(np.int32)\ndef f(x):\n    return len(x)\n")
    with pytest.raises(LanguageTypeError) as caught:
        load(path)
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == (path, 6)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "nowhere.to_be_found",
            "there is no module named 'nowhere' [E434]\n"
            "  help: give a path that ends in .py, or a dotted name that Python can import from "
            "here",
        ),
        ("{folder}/", "{folder}/ is a folder [E434]\n  help: give the path of a .py file in it"),
        (
            "{folder}/progam.py",
            "there is no file {folder}/progam.py [E434]\n  help: did you mean {folder}/program.py?",
        ),
        ("{folder}/none/x.py", "there is no file {folder}/none/x.py [E434]"),
        (
            "/dev/null",
            "/dev/null is not a regular file [E434]\n"
            "  help: give the path of a .py file, or of a serialized computation",
        ),
    ],
)
def test_modules_not_found(
    target: str, message: str, module: Callable[..., str], tmp_path: pathlib.Path
) -> None:
    module(ONE)
    folder = tmp_path.as_posix()
    assert refusal(LoadError, load, target.format(folder=folder)) == message.format(folder=folder)
