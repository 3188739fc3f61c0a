"""SARIF 2.1.0, a format of findings that code review systems show at the lines of a program."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from tffc.assurance.audit.places import report_path
from tffc.support.errors import Span
from tffc.support.printable import json_text, printable
from tffc.support.version import VERSION

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A violated rule, its level ("error" or "note"), and its span, if known.

    `excepted` is the reason why it is allowed.
    """

    rule: str
    level: str
    message: str
    span: Span | None
    excepted: str | None = None


ANALYZED, CONFIGURING = "analysisTarget", "userSpecifiedConfiguration"
"""The roles of files that the user gives: programs and policies."""


@dataclasses.dataclass(frozen=True, slots=True)
class Input:
    """A file that the user gave, its SHA-256, and its role."""

    path: str
    digest: str
    role: str


def analyzed(source: str) -> tuple[Input, ...]:
    """Return the file that the argument of a command names, if it names one that can be read."""
    path = pathlib.Path(source.partition(":")[0])
    try:
        content = path.read_bytes() if path.is_file() else None
    except OSError:
        content = None
    if content is None:
        return ()
    return (Input(str(path), hashlib.sha256(content).hexdigest(), ANALYZED),)


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A run of a tool on a source.

    `category` tells apart what several runs are about, `rules` has descriptions, and `help` is the
    topic of `tffc help` about them.  `inputs` are the files that the user gave, and `properties`
    all else that says where the findings come from.
    """

    tool: str
    category: str
    source: pathlib.Path
    rules: Mapping[str, str]
    help: str
    inputs: tuple[Input, ...] = ()
    properties: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])


def sarif(run: Run, findings: Iterable[Finding]) -> str:
    """Return the findings of a run.

    A finding without a line is reported at the first line of the source.
    """
    content = {
        "tool": {
            "driver": {
                "name": run.tool,
                "version": VERSION,
                "rules": [_rule(run, name, text) for name, text in run.rules.items()],
            }
        },
        "automationDetails": {"id": printable(f"{run.tool}/{run.category}/")},
        "artifacts": [
            {
                "location": {"uri": _uri(report_path(file.path))},
                "roles": [file.role],
                "hashes": {"sha-256": file.digest},
            }
            for file in run.inputs
        ],
        "results": [_result(finding, run.source) for finding in findings],
        "properties": dict(run.properties),
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [content]}, indent=2) + "\n"


def _rule(run: Run, name: str, text: str) -> dict[str, Any]:
    topic = f"tffc help {run.help}"
    return {
        "id": name,
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "help": {"text": f"{text} `{topic}` has more.", "markdown": f"{text} `{topic}` has more."},
        "helpUri": f"urn:tffc:help:{run.help}#{name}",
    }


def _result(finding: Finding, source: pathlib.Path) -> dict[str, Any]:
    span = finding.span or Span(str(source), 1)
    region = {"startLine": span.line}
    if span.column is not None:
        region["startColumn"] = span.column + 1
    location = {"artifactLocation": {"uri": _uri(report_path(span.file))}, "region": region}
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": finding.level,
        "message": {"text": _without_links(printable(finding.message))},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(finding)},
    }
    if finding.excepted is not None:
        result["suppressions"] = [{"kind": "external", "justification": finding.excepted}]
    return result


def _without_links(text: str) -> str:
    """Return a text in which SARIF's viewers find no link of the form `[text](destination)`."""
    return text.replace("](", "]\\(")


def _uri(file: str) -> str:
    """Return the URI of a file: relative, unless it is outside the working directory."""
    path = pathlib.Path(file)
    return path.as_uri() if path.is_absolute() else urllib.parse.quote(path.as_posix())


def _fingerprint(finding: Finding) -> str:
    """Return a hash that identifies a finding even if its line moves."""
    return hashlib.sha256(f"{finding.rule}\0{finding.message}".encode(errors="replace")).hexdigest()
