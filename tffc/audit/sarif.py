"""SARIF 2.1.0, a format of findings that code review systems show at the lines of a program."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from tffc.errors import Span, shown_path
from tffc.printable import json_text, printable
from tffc.version import VERSION

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


def sarif(
    tool: str, rules: Mapping[str, str], findings: Iterable[Finding], source: pathlib.Path
) -> str:
    """Return a tool's findings, with descriptions of its rules.

    A finding without a line is reported at the first line of `source`.
    """
    described = [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()]
    run = {
        "tool": {"driver": {"name": tool, "version": VERSION, "rules": described}},
        "results": [_result(each, source) for each in findings],
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(found: Finding, source: pathlib.Path) -> dict[str, Any]:
    span = found.span or Span(str(source), 1)
    region = {"startLine": span.line}
    if span.column is not None:
        region["startColumn"] = span.column + 1
    location = {"artifactLocation": {"uri": _uri(shown_path(span.file))}, "region": region}
    result: dict[str, Any] = {
        "ruleId": found.rule,
        "level": found.level,
        "message": {"text": printable(found.message)},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(found)},
    }
    if found.excepted is not None:
        result["suppressions"] = [{"kind": "external", "justification": found.excepted}]
    return result


def _uri(file: str) -> str:
    """Return the URI of a file: relative, unless it is outside the working directory."""
    path = pathlib.Path(file)
    return path.as_uri() if path.is_absolute() else urllib.parse.quote(path.as_posix())


def _fingerprint(found: Finding) -> str:
    """Return a hash that identifies a finding even if its line moves."""
    return hashlib.sha256(f"{found.rule}\0{found.message}".encode(errors="replace")).hexdigest()
