"""Forms, engines, exports, trackers and passes of a package from outside, used by commands.

A package counts as installed when a `.dist-info` folder on Python's path says so.
"""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Callable

import pytest

from tests.processes import run_python

Tffc = Callable[..., "subprocess.CompletedProcess[str]"]

PACKAGE = """
import re

from tffc.backends.forms.broadcast import BroadcastForm
from tffc.backends.forms.kinds import FormKind
from tffc.deploy.export.kind import Exported, Exporter, ExportKind
from tffc.passes import Pass
from tffc.runtime.engines.kind import EngineKind
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.tracking.kind import TrackerKind


class QuietForm(BroadcastForm):
    pass


class CarefulEngine:
    def __init__(self, process, *, batching):
        self._engine = LocalEngine(process, 1, batching)
        self.process = process

    def run_round(self, state, cohort):
        print("carefully")
        return self._engine.run_round(state, cohort)

    def explain_speed(self):
        return ["it took its time"]


def note(bundle, folder):
    return Exported({"note.txt": bundle.form.encode()}, f"a note about {folder.name}")


QUIET = FormKind("quiet", lambda: QuietForm)
CAREFUL = EngineKind("careful", lambda: CarefulEngine, "this process, carefully")
NOTE = ExportKind(
    "note", "a note", lambda: Exporter(of_bundle=note, own=re.compile("note.txt"), holding="a note")
)


class Notebook:
    run, place = "notebook-1", "the notebook"

    def __init__(self, facts, run):
        print("begins", facts.name)

    def add(self, round, numbers):
        print("notes", round, numbers["metrics/output"])

    def end(self, ending, report):
        print("ends", ending)


NOTEBOOK = TrackerKind("notebook", "The notebook", lambda: Notebook)
NOTHING = Pass("nothing", lambda program: program)
BROKEN = 3
"""

ENTRIES = """\
[tffc.forms]
quiet = outside:QUIET
[tffc.engines]
careful = outside:CAREFUL
[tffc.exports]
note = outside:NOTE
[tffc.passes]
nothing = outside:NOTHING
[tffc.trackers]
notebook = outside:NOTEBOOK
"""

ROUND = "<state=int32@SERVER,data={int32}@CLIENTS>"
ADDS = f"(p: {ROUND} -> <p.state,federated_sum:({{int32}}@CLIENTS -> int32@SERVER)(p.data)>)"
SENDS = f"(p: {ROUND} -> federated_broadcast:(int32@SERVER -> int32@CLIENTS)(p.state))"


@pytest.fixture
def install(tmp_path: pathlib.Path) -> Callable[[str], pathlib.Path]:
    """Makes a package with these entry points look installed, and two programs beside it."""

    def installed(entries: str) -> pathlib.Path:
        info = tmp_path / "outside-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entries)
        (tmp_path / "outside.py").write_text(PACKAGE)
        (tmp_path / "adds.txt").write_text(ADDS)
        (tmp_path / "sends.txt").write_text(SENDS)
        return tmp_path

    return installed


@pytest.fixture
def tffc(install: Callable[[str], pathlib.Path]) -> Tffc:
    """Runs the command in the folder of a package that offers one of each kind."""
    folder = install(ENTRIES)
    return lambda *words: in_folder(folder, *words)


def in_folder(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from tffc.cli import main; main()"
    return run_python("-c", code, *words, cwd=folder)


@pytest.mark.slow
def test_a_form_is_compiled_to_and_read_back(tffc: Tffc) -> None:
    ran = tffc("compile", "sends.txt", "--form", "quiet", "--out", "bundle")
    assert (ran.returncode, ran.stderr) == (0, "wrote bundle: quiet, 2 components\n")
    assert tffc("audit", "bundle").returncode == 0
    assert tffc("decompile", "bundle", "--out", "back.pb").returncode == 0
    assert tffc("diff", "back.pb", "back.pb").returncode == 0
    assert tffc("prove", "bundle").returncode == 3, "nobody has told the prover how it runs"


@pytest.mark.slow
def test_exports_and_passes_are_used(tffc: Tffc) -> None:
    ran = tffc("compile", "adds.txt", "--form", "mapreduce", "--out", "bundle")
    assert ran.returncode == 0, ran.stderr
    ran = tffc("opt", "adds.txt", "--passes", "nothing")
    assert ran.returncode == 0, ran.stderr
    ran = tffc("export", "bundle", "--to", "note", "-o", "notes")
    assert (ran.returncode, ran.stderr) == (0, "wrote notes: a note about notes\n")
    ran = tffc("export", "bundle", "--to", "note", "-o", "notes", "--state", "s.npz")
    assert "a note starts from the first state: omit --state and --part" in ran.stderr


@pytest.mark.slow
def test_help_and_errors_know_the_names(tffc: Tffc) -> None:
    for command, name in (("compile", "quiet"), ("run", "careful"), ("export", "note")):
        assert name in tffc(command, "--help").stdout
    ran = tffc("run", "b", "--data", "d", "--rounds", "1", "--engine", "carefull")
    assert "Did you mean 'careful'?" in ran.stderr


@pytest.mark.slow
@pytest.mark.tensorflow
def test_an_engine_runs_rounds(tffc: Tffc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "data.py").write_text("def clients():\n    return {'a': 2, 'b': 3}\n")
    words = ("adds.txt", "--form", "mapreduce", "--data", "python:data.py:clients", "--rounds", "1")
    run_python("-c", START, cwd=tmp_path, check=True)
    ran = tffc("run", *words, "--engine", "careful", "--explain-speed", "--state-in", "state.npz")
    assert ran.returncode == 0, ran.stderr
    assert "carefully" in ran.stdout
    assert "it took its time" in ran.stderr
    ran = tffc("run", *words, "--state-in", "state.npz", "--track", "notebook")
    assert "The notebook has this run: the notebook" in ran.stderr
    shown = [line.split() for line in ran.stdout.splitlines()]
    assert shown == [
        ["begins", "adds.txt"],
        ["notes", "1", "5.0"],
        ["round", "output"],
        ["1", "5"],
        ["ends", "finished"],
    ]
    refused = tffc("run", *words, "--engine", "careful", "--workers", "2")
    assert "the engine careful takes no number of workers" in refused.stderr


START = """
import pathlib
import numpy as np
import tffc
from tffc.api.programs import read_program
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.state import State, write_state

process = Process(tffc.compile(read_program("adds.txt"), "mapreduce"))
first = State(np.int32(0), process.program, 0)
write_state(pathlib.Path("state.npz"), first, process.state_type)
"""


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "[tffc.forms]\nquiet = outside:BROKEN\n",
            "outside offers the form 'quiet', but outside:BROKEN is not a FormKind of that name",
        ),
        (
            "[tffc.forms]\nquiet = nowhere:QUIET\n",
            "outside offers the form 'quiet', but nowhere:QUIET cannot be loaded",
        ),
        (
            "[tffc.forms]\nmapreduce = outside:MAPREDUCE\n",
            "outside offers a form 'mapreduce', but so does tffc",
        ),
    ],
)
@pytest.mark.slow
def test_a_broken_package_is_named_where_it_matters(
    install: Callable[[str], pathlib.Path], entry: str, message: str
) -> None:
    folder = install(entry)
    with (folder / "outside.py").open("a") as module:
        module.write("MAPREDUCE = FormKind('mapreduce', lambda: QuietForm)\n")
    ran = in_folder(folder, "check", "adds.txt", "--form", "quiet")
    assert ran.returncode == 1
    assert message in ran.stderr
    assert in_folder(folder, "check", "adds.txt", "--form", "mapreduce").returncode == 0
    assert in_folder(folder, "check", "--help").returncode == 0
