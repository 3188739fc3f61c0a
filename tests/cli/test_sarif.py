"""SARIF output has the fields that code review systems require."""

from __future__ import annotations

import json
import pathlib
import re
import urllib.parse
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_audit import ROUND

POLICY = """\
operators: []
never-leave: ['data.pixels']
largest-bytes: 1
protection: secure
exceptions:
  - {channel: total, content: CONTENT, rule: protection, reason: reviewed, expires: 2999-01-31}
"""
FOLDER = "rounds of today"
"""A folder whose name is not the text of a URI."""


@pytest.fixture
def module(tmp_path: pathlib.Path, run: Run) -> str:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "round.py").write_text(ROUND)
    (tmp_path / FOLDER / "other.py").write_text(ROUND.replace("bitwidth=10", "bitwidth=12"))
    source = f"{FOLDER}/round.py:training"
    report = json.loads(run("audit", source, "--format", "json").stdout)
    content = report["audit"]["channels"][0]["content"]
    (tmp_path / "policy.yaml").write_text(POLICY.replace("CONTENT", content))
    return source


def check(text: str) -> list[dict[str, Any]]:
    """Return the results, after checks of GitHub's requirements."""
    log = json.loads(text)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    assert all(urllib.parse.urlsplit(rule["helpUri"]).scheme for rule in driver["rules"])
    assert all(rule["help"]["text"] for rule in driver["rules"])
    assert run["automationDetails"]["id"].endswith("/")
    for artifact in run["artifacts"]:
        assert re.fullmatch("[0-9a-f]{64}", artifact["hashes"]["sha-256"])
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        (location,) = result["locations"]
        check_location(location["physicalLocation"])
        assert re.fullmatch("[0-9a-f]+", result["partialFingerprints"]["primaryLocationLineHash"])
    marks = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len(set(marks)) == len(marks)
    return run["results"]


def check_location(location: dict[str, Any]) -> None:
    uri = location["artifactLocation"]["uri"]
    parts = urllib.parse.urlsplit(uri)
    assert (parts.scheme, parts.netloc) == ("", ""), uri
    assert not parts.path.startswith("/"), uri
    assert re.fullmatch(r"[\w\-.~/%]+", uri), uri
    assert pathlib.Path(urllib.parse.unquote(uri)).is_file()
    assert location["region"]["startLine"] >= 1
    assert location["region"].get("startColumn", 1) >= 1


def test_audit(run: Run, module: str) -> None:
    ran = run("audit", module, "--policy", "policy.yaml", "--format", "sarif")
    results = check(ran.stdout)
    assert len(results) == 6
    (excepted,) = (each for each in results if "suppressions" in each)
    assert excepted["suppressions"] == [{"kind": "external", "justification": "reviewed"}]


def test_a_finding_without_a_line_is_at_the_source(run: Run, module: str) -> None:
    run("trace", module, "-o", "round.pb")
    ran = run("audit", "round.pb", "--policy", "policy.yaml", "--format", "sarif")
    assert check(ran.stdout)


def test_a_fingerprint_stays_where_lines_move(run: Run, module: str) -> None:
    args = ("audit", module, "--policy", "policy.yaml", "--format", "sarif")
    before = check(run(*args).stdout)
    path = pathlib.Path(FOLDER, "round.py")
    path.write_text("# A line more.\n" + path.read_text())
    after = check(run(*args).stdout)
    assert [each["partialFingerprints"] for each in after] == [
        each["partialFingerprints"] for each in before
    ]
    assert [each["locations"] for each in after] != [each["locations"] for each in before]


def test_diff(run: Run, module: str) -> None:
    other = f"{FOLDER}/other.py:training"
    results = check(run("diff", "--breaking", module, other, "--format", "sarif").stdout)
    assert [each["ruleId"] for each in results] == ["WIRE"]


def test_a_name_makes_no_link(run: Run, tmp_path: pathlib.Path) -> None:
    """Viewers show `[text](destination)` in a message as a link."""
    (tmp_path / "named.py").write_text(
        "import numpy as np\n"
        "import tffc as tff\n"
        "ROW = tff.StructType([('[open](https://example.com)', np.int32), ('age', np.int32)])\n"
        "STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(ROW)\n"
        "@tff.federated_computation(STATE, DATA)\n"
        "def adds(state, data):\n"
        "    return state, tff.federated_sum(data)\n"
    )
    (tmp_path / "leave.yaml").write_text("never-leave: ['data']\n")
    ran = run("audit", "named.py:adds", "--policy", "leave.yaml", "--format", "sarif")
    (result,) = check(ran.stdout)
    assert "[open]\\(https://example.com)" in result["message"]["text"]
