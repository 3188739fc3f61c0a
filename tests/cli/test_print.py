"""The output of `tffc print` and `tffc trace`."""

from __future__ import annotations

import os
import pathlib
import pty
import subprocess
import sys

import pytest

from tests.cli.conftest import ROUND, Run
from tests.processes import ENVIRONMENT
from tffc.language import wire

COMPACT = (
    "(count_arg -> (let fc_count_symbol_0=federated_sum(count_arg[1]) "
    "in <count_arg[0],fc_count_symbol_0>))\n"
)


@pytest.fixture(autouse=True)
def module(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)


def test_formatted_is_the_default(run: Run) -> None:
    assert run("print", "round.py", "--sexpr").stdout == (
        "(count_arg -> (let\n"
        "  fc_count_symbol_0=federated_sum(count_arg[1])\n"
        " in <\n"
        "  count_arg[0],\n"
        "  fc_count_symbol_0\n"
        ">))\n"
    )


def test_compact(run: Run) -> None:
    assert run("print", "round.py", "--sexpr", "--style", "compact").stdout == COMPACT


def test_structural(run: Run) -> None:
    assert run("print", "round.py", "--style", "structural").stdout == (
        "                         Lambda(count_arg)\n"
        "                         |\n"
        "                         Block\n"
        "                        /               \\\n"
        "[fc_count_symbol_0=Call]                 Struct\n"
        "                  /    \\                 |\n"
        "     federated_sum      Sel(1)           [Sel(0), Ref(fc_count_symbol_0)]\n"
        "                        |                 |\n"
        "                        Ref(count_arg)    Ref(count_arg)\n"
    )


def test_a_file_prints_as_its_module_does(run: Run) -> None:
    assert run("trace", "round.py", "-o", "round.pb").stderr == (
        "wrote round.pb: (<state=int32@SERVER,data={int32}@CLIENTS> -> "
        "<int32@SERVER,int32@SERVER>)\n"
    )
    assert run("print", "round.pb", "--style", "compact").stdout == COMPACT


def test_a_trace_goes_through_a_pipe(run: Run, tmp_path: pathlib.Path) -> None:
    assert run("trace", "round.py", "-o", "round.pb").code == 0
    data = (tmp_path / "round.pb").read_bytes()
    assert run("print", "-", "--style", "compact", input=data).stdout == COMPACT


def test_a_trace_without_output_goes_to_stdout(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "tffc", "trace", "round.py"]
    ran = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, env=ENVIRONMENT)
    assert ran.stderr == b""
    assert str(wire.from_bytes(ran.stdout)) + "\n" == COMPACT


def test_what_a_module_prints_is_no_data(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text("print('hello')\n" + ROUND)
    ran = run("print", "round.py", "--style", "compact")
    assert (ran.stdout, ran.stderr) == (COMPACT, "hello\n")


def test_a_process_is_printed_with_its_first_state(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(
        ROUND + "\n\n@tff.federated_computation\ndef first():\n"
        "    return tff.federated_value(np.int32(1), tff.SERVER)\n"
        "\n\nprocess = tff.templates.IterativeProcess(first, count)\n"
    )
    assert run("print", "round.py", "--style", "compact").stdout == (
        "; initialize: ( -> int32@SERVER)\n"
        "( -> (let fc_first_symbol_0=federated_value_at_server(1) in fc_first_symbol_0))\n"
        "\n"
        "; next: (<state=int32@SERVER,data={int32}@CLIENTS> -> <int32@SERVER,int32@SERVER>)\n"
        + COMPACT
    )


def test_a_bundle_is_printed_part_by_part(run: Run) -> None:
    assert run("compile", "round.py", "--form", "mapreduce", "--out", "out").stderr == (
        "wrote out: mapreduce, 10 components\n"
    )
    lines = run("print", "out").stdout.splitlines()
    assert [line for line in lines if line.startswith(";")] == [
        "; computation: (<state=int32@SERVER,data={int32}@CLIENTS> -> <int32@SERVER,int32@SERVER>)",
        "; prepare: (int32 -> <>)",
        "; work: (<int32,<>> -> <<int32>,<>,<>,<>>)",
        "; zero: ( -> <int32>)",
        "; accumulate: (<<int32>,<int32>> -> <int32>)",
        "; merge: (<<int32>,<int32>> -> <int32>)",
        "; report: (<int32> -> <int32>)",
        "; secure_sum_bitwidth: ( -> <>)",
        "; secure_sum_max_input: ( -> <>)",
        "; secure_modular_sum_modulus: ( -> <>)",
        "; update: (<int32,<<int32>,<>,<>,<>>> -> <int32,int32>)",
    ]


@pytest.mark.slow
def test_a_reader_that_stops_early_ends_the_command_in_silence(tmp_path: pathlib.Path) -> None:
    (tmp_path / "wide.py").write_text(
        "import numpy as np\nimport tffc as tff\n"
        "wide = tff.federated_computation(lambda x: [x] * 100_000, np.int32)\n"
    )
    command = f"{sys.executable} -m tffc print wide.py | head -n 1; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (141, "(<lambda>_arg -> <\n", "")


def test_nothing_binary_is_written_to_a_terminal(tmp_path: pathlib.Path) -> None:
    terminal, stdout = pty.openpty()
    command = [sys.executable, "-m", "tffc", "trace", "round.py"]
    ran = subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=ENVIRONMENT
    )
    os.close(stdout)
    os.close(terminal)
    assert ran.returncode == 2
    assert ran.stderr.endswith("Error: a serialized computation is not text: give -o FILE.pb\n")
