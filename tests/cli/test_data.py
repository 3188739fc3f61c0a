"""`tffc data describe`, and runs with bad clients."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tests.cli.conftest import ROUND, Run
from tests.runtime.engines.programs import tallied
from tffc.backends.bundle.bundle import write_bundle
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.queries import as_round

Write = Callable[[str, str], pathlib.Path]

SOURCE = "csv:readings.csv?columns=degrees"


def test_without_a_bundle(run: Run, write: Write) -> None:
    write("readings.csv", "client,degrees\nroof,1\n")
    ran = run("data", "describe", SOURCE)
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == (
        f"{SOURCE}: 1 client, 1 row, 22 bytes\n"
        "  degrees  text    1 different: 1 1\n"
        "  rows a client: 1\n"
    )


def test_all_clients_fit(run: Run, write: Write, temperature: pathlib.Path) -> None:
    write("readings.csv", "client,degrees\nroof,1\nroof,2\ncellar,3\n")
    ran = run("data", "describe", SOURCE, "--for", str(temperature))
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == (
        f"{SOURCE}: 2 clients\n"
        "  degrees  text\n"
        "  `float32*`: 1 to 2 elements a client, 3 in all\n"
        "2 clients fit `float32*`\n"
    )


def test_for_a_bundle_whose_clients_keep_states(run: Run, tmp_path: pathlib.Path) -> None:
    write_bundle(compile_bundle(as_round(tallied.node), "client-state"), pathlib.Path("kept"))
    pathlib.Path("counts.csv").write_text("client,data\nroof,1\ncellar,2\n")
    ran = run("data", "describe", "csv:counts.csv?columns=data", "--for", "kept")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.endswith("2 clients fit `int32`\n")


def test_for_what_is_not_compiled(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    write("counts.csv", "client,data\nroof,1\ncellar,x\n")
    assert run("trace", "round.py", "-o", "round.pb").code == 0
    write("round.sexpr", run("print", "round.py", "--style", "typed").stdout)
    for program in ("round.py:count", "round.py", "round.pb", "round.sexpr"):
        ran = run("data", "describe", "csv:counts.csv?columns=data", "--for", program)
        assert ran.code == 1
        assert ran.stdout.endswith("1 of 2 clients does not fit `int32`\n")
        assert ran.stderr.startswith("error[E677]: counts.csv:3: client cellar: ")


def test_for_what_is_not_a_round(run: Run, write: Write) -> None:
    write("local.py", ROUND.replace("    return state, ", "    return "))
    write("counts.csv", "client,data\nroof,1\n")
    ran = run("data", "describe", "csv:counts.csv", "--for", "local.py")
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error[E510]: a round returns two values, ")


def test_json_shows_what_can_be_seen_and_escapes_the_rest(run: Run, write: Write) -> None:
    write("readings.csv", "client,degrees\nJoão 東京,1\na\u202eb\x7f\U000e0001,2\n")
    ran = run("data", "describe", SOURCE, "--json")
    assert (
        '  "clients": [\n    "João 東京",\n    "a\\u202eb\\u007f\\udb40\\udc01"\n  ],\n'
        in ran.stdout
    )
    assert json.loads(ran.stdout)["clients"] == ["João 東京", "a\u202eb\x7f\U000e0001"]


def test_every_client_that_does_not_fit_is_shown(
    run: Run, write: Write, temperature: pathlib.Path
) -> None:
    rows = "".join(f"c{number:02},x\n" for number in range(12))
    write("readings.csv", f"client,degrees\nroof,1\n{rows}")
    ran = run("data", "describe", SOURCE, "--for", str(temperature))
    assert ran.code == 1
    assert ran.stdout.splitlines()[-1] == "12 of 13 clients do not fit `float32*`"
    errors = ran.stderr.splitlines()
    assert errors[0] == (
        "error[E677]: readings.csv:3: client c00: the cell of 'degrees' is 'x', expected float32"
    )
    assert len(errors) == 11
    assert errors[-1] == "... and 2 more; --json shows all"


def test_what_helps_all_clients_is_said_once(
    run: Run, write: Write, temperature: pathlib.Path
) -> None:
    write("readings.csv", "client,degrees\nroof,\ncellar,\nattic,x\n")
    ran = run("data", "describe", SOURCE, "--for", str(temperature))
    assert ran.stderr == (
        "error[E677]: readings.csv:4: client attic: the cell of 'degrees' is 'x', expected "
        "float32\n"
        "error[E677]: readings.csv:3: client cellar: the cell of 'degrees' is empty, expected "
        "float32\n"
        " = help: say what stands for such cells with empty=degrees:VALUE, or leave such rows out "
        "with empty=degrees:skip\n"
        "error[E677]: readings.csv:2: client roof: the cell of 'degrees' is empty, expected "
        "float32\n"
    )


def test_no_client_fits(run: Run, write: Write, temperature: pathlib.Path) -> None:
    write("readings.csv", "client,minutes\nroof,1\n")
    ran = run("data", "describe", SOURCE, "--for", str(temperature))
    assert ran.code == 1
    assert ran.stdout.splitlines()[-1] == "no client fits `float32*`"
    assert ran.stderr.startswith("error[E657]: readings.csv: columns= names 'degrees', and ")


def test_for_programs(run: Run, write: Write, temperature: pathlib.Path) -> None:
    write("readings.csv", "client,degrees\nroof,1\ncellar,x\n")
    ran = run("data", "describe", SOURCE, "--for", str(temperature), "--json")
    assert (ran.code, ran.stderr) == (1, "")
    assert json.loads(ran.stdout) == {
        "source": SOURCE,
        "clients": ["cellar", "roof"],
        "found": {"degrees": "text"},
        "type": "float32*",
        "fits": False,
        "lengths": {"roof": [1]},
        "errors": {
            "cellar": {
                "code": "E677",
                "message": "readings.csv:3: client cellar: the cell of 'degrees' is 'x', expected "
                "float32",
                "notes": [],
                "help": None,
            }
        },
        "error": None,
    }


def test_a_first_client_that_cannot_be_read(
    run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path
) -> None:
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "ada.npz").write_text("")
    np.savez(tmp_path / "clients" / "bob.npz", np.zeros(3, np.float32))
    ran = run("data", "describe", "clients", "--for", str(temperature))
    assert ran.code == 1
    assert ran.stdout.splitlines()[-1] == "1 of 2 clients does not fit `float32*`"
    assert ran.stderr.startswith("error[E627]: clients/ada.npz is not an .npz file, or is damaged")
    assert run("data", "describe", "clients").code == 1


def test_a_bad_client_fails_its_round_or_is_left_out(
    run: Run, write: Write, temperature: pathlib.Path
) -> None:
    write("readings.csv", "client,degrees\nroof,30\ncellar,x\n")
    args = ("run", str(temperature), "--data", SOURCE, "--rounds", "1")
    assert run(*args).refusal == (
        "error[E677]: readings.csv:3: client cellar: the cell of 'degrees' is 'x', "
        "expected float32\n"
        " = help: mend the data, or leave out clients whose data cannot be read, with "
        "--skip-bad-clients\n"
    )
    skipped = run(*args, "--skip-bad-clients")
    assert (skipped.code, skipped.stderr) == (0, "")
    assert skipped.stdout == "round    output\n    1     1.000  (1 client left out)\n"


def test_packing(run: Run, write: Write, temperature: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]'")
    write("readings.csv", "client,degrees\nroof,1\nroof,2\ncellar,3\n")
    assert run("data", "pack", SOURCE, "-o", "packed").refusal == (
        "error[E616]: data of the kind csv is packed as a program takes it\n"
        " = help: name the program that is to take it; --for names it\n"
    )
    ran = run("data", "pack", SOURCE, "--for", str(temperature), "-o", "packed")
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "packed 2 clients into packed\n")
    ran = run("data", "describe", "packed", "--for", str(temperature))
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == (
        "packed: 2 clients\n"
        "  0  float32[1..2]\n"
        "  `float32*`: 1 to 2 elements a client, 3 in all\n"
        "2 clients fit `float32*`\n"
    )
    ran = run("data", "pack", SOURCE, "--for", str(temperature), "-o", "packed")
    assert ran.stderr == (
        "error[E603]: the folder packed already holds a pack\n"
        " = help: replace it, or name another; --force replaces it\n"
    )
    ran = run("data", "pack", SOURCE, "--for", str(temperature), "-o", "packed", "--force")
    assert ran.code == 0


def test_packing_without_pyarrow(
    run: Run, write: Write, temperature: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write("readings.csv", "client,degrees\nroof,1\n")
    ran = run("data", "pack", SOURCE, "--for", str(temperature), "-o", "packed")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E680]: packing clients' data needs pyarrow\n"
        " = help: in tffc's checkout: pip install '.[parquet]'\n",
    )


def test_a_run_packs_its_data_once(run: Run, write: Write, temperature: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]'")
    write("readings.csv", "client,degrees\nroof,1\nroof,2\ncellar,3\n")
    args = ("run", str(temperature), "--data", SOURCE, "--rounds", "1", "--log", "jsonl")
    outputs = [run(*args, *more).stdout for more in ((), ("--pack", "p"), ("--pack", "p"))]
    assert outputs[0] == outputs[1] == outputs[2] != ""
    assert run(*args, "--pack", ".").stderr.startswith(
        "error[E602]: clients' data cannot be packed into .: it holds "
    )
