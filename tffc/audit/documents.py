"""An audit as JSON and SARIF."""

from __future__ import annotations

import dataclasses
import enum
import pathlib
from collections.abc import Sequence
from typing import Any

from tffc.audit.audit import Audit
from tffc.audit.policy import RULES, Violation
from tffc.audit.sarif import Finding, sarif
from tffc.errors import Span, shown_path
from tffc.printable import json_text


def audit_json(audit: Audit, found: Sequence[Violation]) -> str:
    """Return an audit and the violations of a policy as JSON."""
    content = {"audit": plain(audit), "violations": [plain(each) for each in found]}
    return json_text(content, indent=2) + "\n"


def plain(value: Any) -> Any:
    """Convert a value to JSON: a dataclass to its fields, an enumeration member to its name, a span
    to file and line."""
    if isinstance(value, Span):
        return {"file": shown_path(value.file), "line": value.line}
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def audit_sarif(found: Sequence[Violation], source: pathlib.Path) -> str:
    """Return the violations of a policy as SARIF; one without a line is reported at `source`."""
    findings = (
        Finding(each.rule, "error", f"{each.subject}: {each.message}", each.span, each.excepted)
        for each in found
    )
    return sarif("tffc audit", RULES, findings, source)
