"""The results of a round's pipeline, as records in Avro files.

An error of tffc is a result too: it would happen again, so the runner must not retry it.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from tffc.runtime.engines.encoding import decode, encode

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
    """The kind of a result."""

    UPDATE = "update"
    """The accumulators of a window, which are the input of the aggregations."""

    CLIENT = "client"
    """A client's final value."""

    SKIPPED = "skipped"
    """A client that is left out."""

    ERROR = "error"
    """The error of a client's work or of an aggregation."""

    SPENT = "spent"
    """The times that a worker measured, and its decisions about batches."""

    REPORT = "report"
    """An aggregation's report, named by the index of the aggregation."""


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """A single result."""

    kind: ResultKind
    name: str
    value: Any

    def to_record(self) -> dict[str, str | bytes]:
        """Return the record to write to a file."""
        name = os.fsencode(self.name)
        return {"kind": str(self.kind), "name": name, "value": encode(self.value)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Result:
        """Return the result in a record."""
        return cls(ResultKind(record["kind"]), os.fsdecode(record["name"]), decode(record["value"]))


def read_results(prefix: str) -> Iterator[Result]:
    """Yield the results in all files with this prefix, in any file system that Beam knows."""
    fastavro = importlib.import_module("fastavro")
    files = importlib.import_module("apache_beam.io.filesystems").FileSystems
    (matched,) = files.match([f"{prefix}*"])
    for file in matched.metadata_list:
        with files.open(file.path) as stream:
            yield from map(Result.from_record, fastavro.reader(stream))
