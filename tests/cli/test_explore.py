"""`tffc explore`: the output file, and refusals."""

from __future__ import annotations

import pathlib
import subprocess
import webbrowser
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import ROUND, Run
from tests.explorer.test_page import Reader

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
    changed = changes_in(run("explore", "round.py", "--since", "older.py", "-o", "-").stdout)
    assert [each["change"] for each in changed["parts"]] == ["changed"]
    assert {each["breaks"] for each in changed["breaking"]} == {"wire", "privacy"}
    same = changes_in(run("explore", "older.py", "--since", "older.py", "-o", "-").stdout)
    assert (same["parts"], same["breaking"], same["sources"]) == ([], [], [])


def changes_in(page: str) -> Any:
    return Reader(page).data("description")["changes"]


@pytest.mark.parametrize("name", ["round.py", "folder/round.py"])
def test_since_understands_revisions(run: Run, tmp_path: pathlib.Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(ROUND)
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    file.write_text(ROUND.replace("federated_sum", "federated_max"))
    ran = run("explore", name, "--since", "git:HEAD", "-o", "-")
    assert ran.code == 0
    changed = changes_in(ran.stdout)
    assert "wire" in {each["breaks"] for each in changed["breaking"]}
    ((before, after),) = ((each["before"], each["after"]) for each in changed["sources"])
    assert before["lines"] == ROUND.splitlines()
    assert after["lines"] == file.read_text().splitlines()
    assert run("explore", name, "--since", "git:nothing", "-o", "-").code == 1


def test_a_policy_has_a_verdict(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    write("policy.yaml", "protection: secure\n")
    ran = run("explore", "round.py", "--policy", "policy.yaml", "--as-of", "2030-01-01", "-o", "-")
    assert (ran.code, ran.stderr) == (0, "verdict: violates the policy: 1 violation\n")
    report = Reader(ran.stdout).data("description")["report"]
    assert report["verdict"]["word"] == "violates"
    assert report["as_of"] == "2030-01-01"
    assert [each["rule"] for each in report["violations"]] == ["protection"]
    assert (
        Reader(run("explore", "round.py", "-o", "-").stdout).data("description")["report"][
            "verdict"
        ]["word"]
        == "no policy"
    )


def test_a_policy_that_says_nothing_of_the_round_is_refused(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    write("policy.yaml", "never-leave: [data.nothing]\n")
    ran = run("explore", "round.py", "--policy", "policy.yaml", "-o", "-")
    assert ran.code == 1
    assert ran.stdout == ""
    assert ran.stderr.startswith("error[E97")


def test_a_day_needs_a_policy(run: Run, write: Write) -> None:
    write("round.py", ROUND)
    ran = run("explore", "round.py", "--as-of", "2030-01-01")
    assert "--as-of" in ran.stderr
    assert "--policy" in ran.stderr


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
