"""`tffc explain`: the page of an error, the list of all, and suggestions for a mistyped code."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.cli.conftest import Run
from tffc.cli.application import application
from tffc.cli.diagnostics import render
from tffc.support.errors import TffcError
from tffc.support.explanations import codes, read_page


@pytest.mark.parametrize("written", ["E471", "e471", "471"])
def test_a_page(run: Run, written: str) -> None:
    ran = run("explain", written)
    assert (ran.code, ran.stdout, ran.stderr) == (0, read_page("E471").text, "")


def test_all_codes(run: Run) -> None:
    lines = run("explain").stdout.splitlines()
    assert lines[0] == "Types and nodes"
    assert [line.split()[0] for line in lines if line.startswith("  ")] == codes()


@pytest.mark.parametrize("written", ["E12", "e12", "12"])
def test_the_beginning_of_a_code(run: Run, written: str) -> None:
    ran = run("explain", written)
    assert (ran.code, ran.stdout) == (2, "")
    said, *pages = ran.stderr.partition("Error: ")[2].splitlines()
    assert said == f"there is no error code {written}; those that begin so are"
    beginning = [code for code in codes() if code.startswith("E12")]
    assert len(beginning) > 1
    assert pages == [f"  {code}  {read_page(code).title}" for code in beginning]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("E1011", "Error: there is no error code E1011; did you mean E101 or E111?\n"),
        (
            "E967",
            "Error: there is no error code E967; those about Validation, audits, engines and "
            "export are E900 to E985\n",
        ),
        ("placement", "Error: there is no error code placement; `tffc explain` lists them all\n"),
    ],
)
def test_an_unknown_code(run: Run, written: str, message: str) -> None:
    ran = run("explain", written)
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(message)


def test_every_error_names_the_command_that_explains_it() -> None:
    ran = CliRunner().invoke(application, ["print", "missing.pb"])
    assert ran.stderr == (
        "error[E850]: cannot read missing.pb: No such file or directory\n"
        " = explain: tffc explain E850\n"
    )


def test_an_error_without_a_page_names_no_command() -> None:
    assert render(TffcError("E000", "no page")).endswith(": no page")
