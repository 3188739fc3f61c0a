"""`tffc explore`: the output file, and refusals."""

from __future__ import annotations

import pathlib
import webbrowser
from collections.abc import Callable

import pytest

from tests.cli.conftest import ROUND, Run

Write = Callable[[str, str], pathlib.Path]

LATE = ROUND.replace("federated_sum(data)", "federated_sum(sent)").replace(
    "    return", "    sent = tff.federated_broadcast(tff.federated_sum(data))\n    return"
)


def test_writes_a_page(run: Run, write: Write, tmp_path: pathlib.Path) -> None:
    write("round.py", ROUND)
    ran = run("explore", "round.py")
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "wrote explore.html\n")
    made = (tmp_path / "explore.html").read_text()
    assert made.startswith("<!doctype html>")
    assert "<title>round.py · tffc</title>" in made
    assert run("explore", "round.py:count", "-o", "other.html").code == 0
    assert run("explore", "round.py", "-o", "-").stdout == made


def test_of_a_bundle_shows_its_form(run: Run, write: Write, tmp_path: pathlib.Path) -> None:
    write("round.py", ROUND)
    assert run("compile", "round.py", "--form", "distribute-aggregate", "--out", "bundle").code == 0
    ran = run("explore", "bundle", "-o", "-")
    assert ran.code == 0
    assert '"form":"distribute-aggregate"' in ran.stdout
    assert run("explore", "bundle", "--form", "mapreduce").stderr.splitlines()[-1] == (
        "Error: bundle is a folder, and a bundle has its own form: omit --form"
    )


def test_a_refused_program_has_a_page_and_an_error(
    run: Run, write: Write, tmp_path: pathlib.Path
) -> None:
    write("round.py", LATE)
    ran = run("explore", "round.py")
    assert ran.code == 1
    wrote, error, place, *_ = ran.stderr.splitlines()
    assert wrote == "wrote explore.html"
    assert error.startswith("error[E511]: a broadcast depends on an aggregation")
    assert place == " --> round.py:7:12"
    assert '"code":"E511"' in (tmp_path / "explore.html").read_text()


def test_an_error_in_tracing_has_a_page(run: Run, write: Write, tmp_path: pathlib.Path) -> None:
    write("round.py", ROUND.replace("federated_sum(data)", "federated_sum(state)"))
    ran = run("explore", "round.py")
    assert ran.code == 1
    wrote, error, place, *_ = ran.stderr.splitlines()
    assert wrote == "wrote explore.html"
    assert error.startswith("error[E471]: the value to sum must be at CLIENTS")
    assert place == " --> round.py:7:19"
    assert '"place":{"file":0,"line":7,"end":7}' in (tmp_path / "explore.html").read_text()


def test_a_program_that_is_not_there_has_no_page(run: Run, tmp_path: pathlib.Path) -> None:
    assert run("explore", "nothing.pb").stderr == (
        "error[E850]: cannot read nothing.pb: No such file or directory\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_since_shows_changes(run: Run, write: Write) -> None:
    write("older.py", ROUND)
    write("round.py", ROUND.replace("federated_sum", "federated_max"))
    made = run("explore", "round.py", "--since", "older.py", "-o", "-").stdout
    assert '"changes":{"parts":[{"component":"computation","change":"changed"' in made
    assert (
        '"changes":{"parts":[],"sources":[]}'
        in run("explore", "older.py", "--since", "older.py", "-o", "-").stdout
    )


def test_open_needs_a_file(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    ran = run("explore", "round.py", "-o", "-", "--open")
    assert (ran.code, ran.stderr.splitlines()[-1]) == (
        2,
        "Error: '--open' needs a file: give --out a name",
    )


@pytest.mark.parametrize(
    ("is_there", "said"),
    [(True, ""), (False, "no browser was found: open explore.html in one\n")],
)
def test_opens_the_page(
    run: Run,
    write: Write,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    is_there: bool,
    said: str,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or is_there)
    write("round.py", ROUND)
    assert run("explore", "round.py", "--open").stderr == f"wrote explore.html\n{said}"
    assert opened == [(tmp_path / "explore.html").as_uri()]


def test_a_page_that_cannot_be_written_is_refused(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    assert run("explore", "round.py", "-o", "no/such/page.html").stderr == (
        "error[E851]: cannot write no/such/page.html: No such file or directory\n"
        " = help: give a path in an existing, writable folder, on a disk with enough space\n"
    )
