"""What comes back from the pipeline of a round: records in Avro files.

What tffc refuses while it works is a result too.  Repeating it would not help, so no runner gets to
see it as a failure that it would repeat.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import os
from collections.abc import Iterator
from typing import Any

from tffc.engines.encoding import decode, encode

SCHEMA = {
    "type": "record",
    "name": "Result",
    "fields": [
        {"name": "kind", "type": "string"},
        {"name": "name", "type": "bytes"},
        {"name": "value", "type": "bytes"},
    ],
}
"""The schema of the files: a kind, the name of a client or an aggregation, and encoded bytes."""


class ResultKind(enum.StrEnum):
    """What a result is."""

    UPDATE = "update"
    """What a client contributes; it goes on to the aggregations."""

    CLIENT = "client"
    """What a client has in the end."""

    SKIPPED = "skipped"
    """The error in the data of a client that is left out."""

    ERROR = "error"
    """Why a client's work, or an aggregation, was refused."""

    SPENT = "spent"
    """Where the time of a worker went, and what was decided about batches."""

    REPORT = "report"
    """What an aggregation reports, under its position among them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """One result."""

    kind: ResultKind
    name: str
    value: Any

    def to_record(self) -> dict[str, Any]:
        """Return the record in a file."""
        name = os.fsencode(self.name)
        return {"kind": str(self.kind), "name": name, "value": encode(self.value)}

    @classmethod
    def from_record(cls, record: Any) -> Result:
        """Return the result that a record holds."""
        return cls(ResultKind(record["kind"]), os.fsdecode(record["name"]), decode(record["value"]))


def read_results(prefix: str) -> Iterator[Result]:
    """Yield the results in all files whose names begin with `prefix`, which may be in any file
    system that Beam knows."""
    fastavro = importlib.import_module("fastavro")
    files = importlib.import_module("apache_beam.io.filesystems").FileSystems
    (matched,) = files.match([f"{prefix}*"])
    for found in matched.metadata_list:
        with files.open(found.path) as stream:
            yield from map(Result.from_record, fastavro.reader(stream))
