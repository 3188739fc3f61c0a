"""`tffc check`, `compile` and `decompile`."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.cli.conftest import ROUND, Run
from tffc.language import wire


@pytest.fixture(autouse=True)
def modules(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "identity.py").write_text(ROUND.replace("return state, ", "return "))


def test_check_accepts(run: Run) -> None:
    ran = run("check", "round.py", "--form", "mapreduce")
    assert (ran.code, ran.stdout, ran.stderr) == (
        0,
        "",
        "round.py can be compiled to mapreduce\n",
    )


def test_check_refuses(run: Run) -> None:
    ran = run("check", "identity.py", "--form", "mapreduce")
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error[E510]: a round returns two values")


def test_check_tells_json(run: Run) -> None:
    ran = run("check", "identity.py", "--form", "mapreduce", "--json")
    found = json.loads(ran.stdout)
    assert ran.code == 1
    assert (found["compatible"], found["code"], found["form"]) == (False, "E510", "mapreduce")
    found = json.loads(run("check", "round.py", "--form", "mapreduce", "--json").stdout)
    assert found["compatible"]
    assert found["components"]["work"] == "(<int32,<>> -> <<int32>,<>,<>,<>>)"


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_decompiled_and_compiled_again_a_bundle_has_the_same_parts(
    run: Run, tmp_path: pathlib.Path, form: str
) -> None:
    assert run("compile", "round.py", "--form", form, "--out", "one").code == 0
    ran = run("decompile", "one", "-o", "again.pb")
    assert ran.stderr == (
        "wrote again.pb: (<state=int32@SERVER,data={int32}@CLIENTS> -> "
        "<int32@SERVER,int32@SERVER>)\n"
    )
    assert run("compile", "again.pb", "--form", form, "--out", "two").code == 0
    one, two = (json.loads((tmp_path / n / "manifest.json").read_bytes()) for n in ("one", "two"))
    assert one["components"] == two["components"]


def test_a_pipeline_of_ones_own(run: Run, tmp_path: pathlib.Path) -> None:
    compiling = ("compile", "round.py", "--form", "mapreduce", "--pipeline", "mine.yaml")
    (tmp_path / "mine.yaml").write_text("name: mine\npasses: [call-dominant]\n")
    assert run(*compiling, "--out", "out").code == 0
    (tmp_path / "mine.yaml").write_text("name: mine\npasses: [call-dominat]\n")
    assert run(*compiling, "--out", "other").refusal == (
        "error[E361]: in mine.yaml, there is no pass 'call-dominat'\n"
        " --> mine.yaml:2:10\n"
        "  |\n"
        "2 | passes: [call-dominat]\n"
        "  |          ^^^^^^^^^^^^\n"
        "  |\n"
        "  = help: did you mean 'call-dominant'?\n"
    )
    assert not (tmp_path / "other").exists()


def test_a_bundle_from_a_file_is_that_from_the_module(run: Run, tmp_path: pathlib.Path) -> None:
    assert run("trace", "round.py", "-o", "round.pb").code == 0
    for source, out in (("round.py", "one"), ("round.pb", "two")):
        assert run("compile", source, "--form", "mapreduce", "--out", out).code == 0
    for path in (tmp_path / "one").rglob("*.*"):
        twin = tmp_path / "two" / path.relative_to(tmp_path / "one")
        if path.name != "manifest.json":
            assert path.read_bytes() == twin.read_bytes()


def test_force_replaces_a_bundle(run: Run, tmp_path: pathlib.Path) -> None:
    compiling = ("compile", "round.py", "--form", "mapreduce", "--out", "out")
    assert run(*compiling).code == 0
    assert run(*compiling).refusal == (
        "error[E603]: the folder out already holds a bundle\n"
        " = help: replace it, or name another folder; --force replaces it\n"
    )
    assert run(*compiling, "--force").code == 0


def test_a_first_state_from_a_file(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "first.py").write_text(
        "import numpy as np\nimport tffc as tff\n"
        "first = tff.federated_computation(lambda: tff.federated_value(7, tff.SERVER))\n"
    )
    assert run("trace", "first.py", "-o", "first.pb").code == 0
    args = ("--form", "mapreduce", "--out", "out", "--initialize", "first.pb")
    assert run("compile", "round.py", *args).code == 0
    initialize = wire.from_bytes((tmp_path / "out" / "initialize.pb").read_bytes())
    assert str(initialize.type) == "( -> int32)"
