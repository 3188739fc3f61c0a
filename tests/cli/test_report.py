"""The report of an audit says what was read, what was applied, and what came of it."""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
from typing import Any

import pytest

from tests.cli.conftest import ROUND, Run
from tffc.support.version import VERSION

POLICY = (
    "protection: system\nleast-clients: 5\nnever-leave: [{pattern: data.user, optional: true}]\n"
)

FORMATS = ("text", "json", "html", "sarif")


@pytest.fixture(autouse=True)
def files(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "policy.yaml").write_text(POLICY)


def document(run: Run, *args: str) -> dict[str, Any]:
    """Return the report as data."""
    return json.loads(run("audit", *args, "--format", "json").stdout)


def test_the_verdict(run: Run, tmp_path: pathlib.Path) -> None:
    assert document(run, "round.py")["verdict"]["word"] == "no policy"
    assert document(run, "round.py", "--policy", "policy.yaml")["verdict"]["word"] == "passes"
    (tmp_path / "policy.yaml").write_text("protection: secure\n")
    report = document(run, "round.py", "--policy", "policy.yaml")
    assert report["verdict"] == {
        "word": "violates",
        "text": "violates the policy: 1 violation",
        "violations": 1,
        "excepted": 0,
        "until": None,
    }
    assert [each["text"] for each in report["violations"]] == [
        "round.py:7: protection: sum: aggregated by the system; required: secure sum"
    ]


def test_the_policy(run: Run) -> None:
    policy = document(run, "round.py", "--policy", "policy.yaml")["policy"]
    assert policy["path"] == "policy.yaml"
    assert policy["digest"] == hashlib.sha256(POLICY.encode()).hexdigest()
    assert {rule["rule"]: (rule["requires"], rule["verdict"]) for rule in policy["rules"]} == {
        "never-leave": ("data.user (optional)", "holds"),
        "least-clients": ("5", "checked when rounds run"),
        "protection": ("aggregated by the system", "holds"),
    }


def test_the_program_and_the_tool(run: Run, tmp_path: pathlib.Path) -> None:
    assert run("trace", "round.py", "-o", "round.pb").code == 0
    assert run("compile", "round.pb", "--form", "mapreduce", "-o", "bundle").code == 0
    message = (tmp_path / "round.pb").read_bytes()
    digest = hashlib.sha256(message).hexdigest()
    for source in ("round.py", "round.pb", "bundle"):
        report = document(run, source)
        assert report["program"]["digest"] == digest
        assert report["tool"]["version"] == VERSION
        assert re.fullmatch("[0-9a-f]{64}", report["tool"]["digest"])
    assert "components/work" in document(run, "bundle")["program"]["digests"]


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_tells_of_the_machine(run: Run, tmp_path: pathlib.Path, format: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    for name, text in (("round.py", ROUND), ("policy.yaml", "protection: secure\n")):
        (tmp_path.parent / f"outer_{name}").write_text(text)
    outer = tmp_path.parent
    source = f"{outer}/outer_round.py:count"
    policy = f"{outer}/outer_policy.yaml"
    run("audit", source, "--policy", policy, "--format", format, "-o", "report")
    report = (tmp_path / "report").read_text().replace("<wbr>", "")
    assert str(outer) not in report
    assert "outer_round.py" in report


@pytest.mark.parametrize("format", FORMATS)
def test_a_report_is_the_same_twice_and_has_no_date(run: Run, format: str) -> None:
    args = ("audit", "round.py", "--policy", "policy.yaml", "--format", format)
    assert run(*args).stdout == run(*args).stdout
    assert not re.search(r"20\d\d-\d\d-\d\d", run(*args).stdout)
    dated = run(*args, "--as-of", "2031-02-03").stdout
    assert "2031-02-03" in dated


@pytest.mark.parametrize(
    "part",
    [
        "passes the policy",
        "in no channel",
        "seen of each client by whoever",
        "policy.yaml",
        hashlib.sha256(POLICY.encode()).hexdigest(),
        f"tffc {VERSION}",
    ],
)
def test_the_page_has_what_the_text_has(run: Run, part: str) -> None:
    page = run("audit", "round.py", "--policy", "policy.yaml", "--format", "html").stdout
    assert part in re.sub("<[^>]*>", "", page).lower()


def test_the_text_begins_with_the_verdict(run: Run) -> None:
    lines = run("audit", "round.py", "--policy", "policy.yaml").stdout.splitlines()
    assert lines[0] == "verdict: passes the policy"
    assert lines[1].startswith("policy: policy.yaml, SHA-256 ")
    assert lines[2:5] == [
        "  never-leave: data.user (optional): holds",
        "  least-clients: 5: checked when rounds run",
        "  protection: aggregated by the system: holds",
    ]
    assert lines[5] == "source: round.py"


def test_sarif_says_where_it_comes_from(run: Run, tmp_path: pathlib.Path) -> None:
    args = ("round.py:count", "--policy", "policy.yaml", "--format", "sarif")
    (first,) = json.loads(run("audit", *args).stdout)["runs"]
    assert first["automationDetails"]["id"] == "tffc audit/round.py:count/mapreduce/"
    digests = {each["location"]["uri"]: each["hashes"]["sha-256"] for each in first["artifacts"]}
    assert digests == {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in ("round.py", "policy.yaml")
    }
    assert first["properties"]["verdict"]["word"] == "passes"
    assert first["properties"]["program"]["digest"]
    other = ("round.py:count", "--form", "distribute-aggregate", *args[1:])
    (second,) = json.loads(run("audit", *other).stdout)["runs"]
    assert second["automationDetails"] != first["automationDetails"]


def test_an_exception_in_the_report(run: Run, tmp_path: pathlib.Path) -> None:
    content = document(run, "round.py")["audit"]["channels"][0]["content"]
    (tmp_path / "policy.yaml").write_text(
        "protection: secure\nexceptions:\n"
        + "".join(
            f"- {{channel: sum, content: {content}, rule: {rule}, reason: seen, expires: {day}}}\n"
            for rule, day in (("protection", "2030-01-02"), ("operators", "2030-01-01"))
        )
    )
    args = ("round.py", "--policy", "policy.yaml", "--as-of")
    report = document(run, *args, "2030-01-01")
    assert report["verdict"]["text"] == "passes the policy, with 1 exception until 2030-01-02"
    assert [each["state"] for each in report["policy"]["exceptions"]] == ["in use", "not needed"]
    assert [each["verdict"] for each in report["policy"]["rules"]] == ["excepted"]
    report = document(run, *args, "2030-01-03")
    assert [each["state"] for each in report["policy"]["exceptions"]] == ["ended", "not needed"]
    assert report["verdict"]["word"] == "violates"
