"""Outputs that are full, closed or read by nobody end a command with a code, and lose nothing."""

from __future__ import annotations

import json
import os
import pathlib
import select
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from tests.cli.conftest import EXPLAIN, ROUND
from tests.hostile.doubling import PLUS, function_tower
from tests.processes import ENVIRONMENT
from tffc.cli.application import application
from tffc.support.errors import LoadError
from tffc.support.files.atomic import write_file

pytestmark = pytest.mark.slow

COMMANDS = ("print round.py", "trace round.py", "explain", "--help", "print --help", "--version")
FULL = pathlib.Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")

COUNTS = """\
def clients():
    return {f"c{i}": i for i in range(3)}
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with a round and clients' data."""
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "counts.py").write_text(COUNTS)
    return tmp_path


def tffc(folder: pathlib.Path, line: str) -> tuple[int, str, str]:
    """Run a line of a shell, in which `tffc` is ours; how it ended, stdout and stderr."""
    script = f'tffc() {{ "{sys.executable}" -m tffc "$@"; }}; {line}'
    ran = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )
    return ran.returncode, ran.stdout, EXPLAIN.sub("", ran.stderr)


@needs_full
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_stdout(folder: pathlib.Path, command: str) -> None:
    assert tffc(folder, f"tffc {command} >/dev/full") == (
        1,
        "",
        "error[E851]: cannot write to stdout: No space left on device\n"
        " = help: redirect stdout to where there is room for it\n",
    )


@pytest.mark.parametrize("command", ["print round.py", "trace round.py", "--help"])
def test_a_closed_stdout(folder: pathlib.Path, command: str) -> None:
    assert tffc(folder, f"tffc {command} >&-") == (
        1,
        "",
        "error[E851]: cannot write to stdout: it is closed\n"
        " = help: redirect stdout to where there is room for it\n",
    )


def test_a_closed_stdout_that_nothing_is_written_to(folder: pathlib.Path) -> None:
    ran = tffc(
        folder, "tffc compile round.py --form mapreduce --out bundle >&- && tffc print bundle"
    )
    assert (ran[0], ran[2]) == (0, "wrote bundle: mapreduce, 10 components\n")


@pytest.mark.parametrize("where", [">&-", pytest.param(">/dev/full", marks=needs_full)])
def test_nobody_can_be_told(folder: pathlib.Path, where: str) -> None:
    assert tffc(folder, f"tffc trace round.py -o x.pb 2{where}") == (0, "", "")
    assert tffc(folder, f"tffc print no.pb 2{where}") == (1, "", "")


def test_a_closed_stdin(folder: pathlib.Path) -> None:
    said = "error[E850]: cannot read stdin: it is closed\n = help: pipe or redirect a file to it\n"
    assert tffc(folder, "tffc print - <&-") == (1, "", said)
    assert tffc(folder, "tffc parse - -o x.pb <&-") == (1, "", said)


@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_reads(folder: pathlib.Path, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-m", "tffc", *command.split()],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.tensorflow
def test_a_run_that_nobody_reads_keeps_its_state_and_says_so(folder: pathlib.Path) -> None:
    assert tffc(folder, "tffc compile round.py --form mapreduce --out bundle")[0] == 0
    write_state(folder)
    run = "tffc run bundle --data python:counts:clients --rounds 5 --state-in state.npz --out kept"
    # The reader ends before the first round does, for it reads nothing.
    code, _, said = tffc(folder, f"{run} --log jsonl | true; exit ${{PIPESTATUS[0]}}")
    assert (code, said) == (
        141,
        "nobody reads stdout any more: the run ends after round 1\n"
        "the state after round 1 is in kept/state.npz\n",
    )
    assert (folder / "kept" / "state.npz").exists()


def write_state(folder: pathlib.Path) -> None:
    """The state 0 of the round, so that no section has to make it."""
    import numpy as np

    from tffc.backends.bundle.bundle import read_bundle
    from tffc.runtime.engines import state
    from tffc.runtime.engines.process import Process

    process = Process(read_bundle(folder / "bundle"))
    first = state.State(np.int32(0), process.program, 0)
    state.write_state(folder / "state.npz", first, process.state_type)


def test_text_that_the_encoding_of_stdout_does_not_have(folder: pathlib.Path) -> None:
    (folder / "name.sexpr").write_text("(日本: int32 -> 日本)", encoding="utf-8")
    ran = tffc(folder, "export PYTHONIOENCODING=latin-1; tffc print name.sexpr")
    assert ran == (0, "(\\u65e5\\u672c -> \\u65e5\\u672c)\n", "")


def test_what_the_system_refuses_is_no_defect(folder: pathlib.Path) -> None:
    name = "n" * 300 + ".pb"
    assert tffc(folder, f"tffc print {name}/x")[0] == 1
    code, _, said = tffc(folder, f"mkdir d; tffc compile round.py --form mapreduce --out {name}")
    assert (code, "defect" in said) == (1, False)


def test_the_text_of_what_the_system_refuses() -> None:
    from tffc.cli.failures import refused_by_system

    refused = refused_by_system(OSError(36, "File name too long", "a\nb"))
    assert isinstance(refused, LoadError)
    assert str(refused) == (
        "cannot use a\\nb: File name too long [E811]\n"
        "  help: `tffc --debug ...` shows where it happened"
    )
    assert refused_by_system(OSError("odd")).message == "the system refused: odd"


@pytest.mark.parametrize(
    "line",
    [
        "ln -s loop loop.pb; ln -s loop.pb loop; tffc trace round.py -o loop.pb",
        "ln -s loop loop.pb; ln -s loop.pb loop; tffc compile round.py --form mapreduce --out loop",
        "mkdir folder.pb; tffc trace round.py -o folder.pb",
        "tffc trace round.py -o round.py/x.pb",
        "tffc trace round.py -o $(printf 'n%.0s' $(seq 300)).pb",
        "tffc trace round.py -o /dev/full",
        "tffc trace round.py -o nowhere/x.pb",
        "tffc compile round.py --form mapreduce --out round.py/bundle",
        "tffc compile round.py --form mapreduce --out /proc/bundle",
        "tffc opt round.py --passes call-dominant --print-dir round.py/steps",
    ],
)
def test_places_that_nothing_can_be_written_to(folder: pathlib.Path, line: str) -> None:
    code, _, said = tffc(folder, line)
    assert (code, said[:7]) == (1, "error[E")
    assert "Traceback" not in said


def test_memory_that_runs_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(json, "dumps", refuse)
    ran = CliRunner().invoke(application, ["passes", "--json"])
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert EXPLAIN.sub("", ran.stderr) == (
        "error[E815]: this needs more memory than is available\n"
        " = help: give the process more memory, or less to do: a part of a file, or fewer clients\n"
    )


@pytest.mark.parametrize(
    "command",
    ["trace round.py -o fifo", "opt round.sexpr --passes call-dominant -o fifo"],
)
def test_a_fifo_that_nobody_reads(folder: pathlib.Path, command: str) -> None:
    os.mkfifo(folder / "fifo")
    assert tffc(folder, "tffc print round.py --style typed >round.sexpr")[0] == 0
    assert tffc(folder, f"timeout -k 1 60 {sys.executable} -m tffc {command}") == (
        1,
        "",
        "error[E851]: cannot write fifo: it is a FIFO that nobody reads\n"
        " = help: start a reader first, or give the path of a file\n",
    )


def test_a_reproducer_is_not_written_to_a_fifo_that_nobody_reads(folder: pathlib.Path) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "round.sexpr").write_text(function_tower(40, f"{PLUS}(<y,y>)"))
    code, _, err = tffc(
        folder, "tffc opt round.sexpr --passes call-dominant --reproducer fifo </dev/null"
    )
    assert code == 1
    assert err.startswith("no reproducer was written: [Errno 6] it is a FIFO that nobody reads\n")


@pytest.mark.parametrize(
    "target",
    [">(cat >copy; echo done)", "/dev/stdout | cat >copy; echo done", "copy; echo done"],
    ids=["process", "pipe", "file"],
)
def test_what_the_shell_hands_over_is_written_to(folder: pathlib.Path, target: str) -> None:
    code, out, err = tffc(folder, f"tffc trace round.py -o {target} | cat; tffc trace round.py >it")
    assert (code, out) == (0, "done\n"), err
    assert (folder / "copy").read_bytes() == (folder / "it").read_bytes() != b""


def test_a_fifo_with_a_reader_is_written_to(folder: pathlib.Path) -> None:
    os.mkfifo(folder / "fifo")
    content = b"0123456789" * 100_000
    read: list[bytes] = []
    descriptor = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)

    def read_all() -> None:
        # Before anybody writes, a read would say that all has been read.
        select.select([file], [], [])
        read.append(file.read())

    with os.fdopen(descriptor, "rb") as file:
        reader = threading.Thread(target=read_all)
        reader.start()
        write_file(folder / "fifo", content)
        reader.join()
    assert read == [content]
