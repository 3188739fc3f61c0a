"""Reproducers: text files that replay the failure of a pass.

    ; tffc reproducer 1
    ; failure: E142: the name `x` is bound twice
    ; versions: {"tffc": "0.1.0", "python": "3.11.7"}
    ; passes: unique-names,call-dominant
    ; given: closed
    ; verify-each: true
    ; verify-roundtrip: false
    ; section: 0123...abcd BASE64
    (x: int32 -> x)

The program is the last sound one, in the typed notation; the passes are the remaining ones,
beginning with the one that failed.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tffc.language.invariants import INVARIANTS
from tffc.language.nodes import Node
from tffc.language.notation import parse, sections, typed
from tffc.support.errors import PipelineError, reader
from tffc.support.files.strict_json import is_table, is_text, read_json

FORMAT = "; tffc reproducer 1"

FIELDS = ("failure", "versions", "passes", "given", "verify-each", "verify-roundtrip")
"""The names of lines of the header, besides sections."""

FLAGS = {"true": True, "false": False}


@dataclasses.dataclass(frozen=True, slots=True)
class Reproducer:
    """The program before the failure, and the passes and options to run on it."""

    program: Node
    passes: str
    given: tuple[str, ...]
    failure: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    verify_each: bool = True
    verify_roundtrip: bool = False

    def encode(self) -> str:
        """Return the text of the file.

        Raises:
          NotationError: the program is too large to print.
        """
        fields = {
            "failure": self.failure.replace("\n", " "),
            "versions": json.dumps(dict(self.versions)),
            "passes": self.passes,
            "given": ",".join(self.given),
            "verify-each": json.dumps(self.verify_each),
            "verify-roundtrip": json.dumps(self.verify_roundtrip),
        }
        lines = [FORMAT, *(f"; {name}: {value}" for name, value in fields.items())]
        for digest, payload in sections(self.program).items():
            lines.append(f"; section: {digest} {base64.b64encode(payload).decode()}")
        return "\n".join([*lines, typed(self.program), ""])

    @property
    def file_name(self) -> str:
        """A file name that distinguishes reproducers."""
        digest = hashlib.sha256(self.encode().encode()).hexdigest()
        return f"tffc-reproducer-{digest[:8]}.txt"


@reader("a reproducer", PipelineError)
def decode_reproducer(text: str, file: str) -> Reproducer:
    """Parse the text of a file.

    Raises:
      PipelineError: it is not a reproducer.
      NotationError: its program is not in the notation.
    """
    head, _, _ = text.partition("\n")
    if head != FORMAT:
        raise PipelineError(
            "E383",
            f"{file} is not a reproducer of this version of tffc",
            notes=(f"its first line must be `{FORMAT}`",),
        )
    try:
        options, payloads = _read_head(text)
    except (KeyError, ValueError) as error:
        raise PipelineError(
            "E383", f"the header of the reproducer {file} is damaged: {error}"
        ) from None
    # Header lines become empty ones, so that errors have the line numbers of the file.
    program = "\n".join("" if line.startswith("; ") else line for line in text.splitlines())
    return Reproducer(parse(program, payloads, file), **options)


def _read_head(text: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    fields: dict[str, str] = {}
    payloads: dict[str, bytes] = {}
    for line in text.splitlines()[1:]:
        if not line.startswith("; "):
            break
        name, _, value = line.removeprefix("; ").partition(": ")
        if name == "section":
            digest, _, content = value.partition(" ")
            payloads[digest] = base64.b64decode(content, validate=True)
        elif name in fields or name not in FIELDS:
            raise ValueError(f"{name!r} is there twice, or unknown")
        else:
            fields[name] = value
    invariants = tuple(filter(None, fields["given"].split(",")))
    if not set(invariants) <= INVARIANTS.keys():
        raise ValueError("one of the invariants is unknown")
    versions = read_json(fields["versions"])
    if not is_table(versions, is_text):
        raise ValueError("'versions' are not texts by name")
    options = {
        "passes": fields["passes"],
        "given": invariants,
        "failure": fields["failure"],
        "versions": versions,
        "verify_each": FLAGS[fields["verify-each"]],
        "verify_roundtrip": FLAGS[fields["verify-roundtrip"]],
    }
    return options, payloads
