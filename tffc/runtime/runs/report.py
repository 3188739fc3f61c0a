"""The content of a report about a run: its identity, its metrics, and observations."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from tffc.runtime.runs.command_record import CommandRecord, read_commands
from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.metrics_file import Extent, read_rows
from tffc.runtime.runs.observed import Observed, read_observed
from tffc.runtime.runs.run_folder import FILES, FOLDERS, METRICS
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.runtime.runs.run_record import (
    RUN,
    RunRecord,
    StateOrigin,
    altered,
    encode_source,
    read_record,
    reading,
    sha256,
)
from tffc.support.errors import DataError, reader
from tffc.support.files.inputs import remember
from tffc.support.files.reading import read_regular

LONGEST_METRICS = 2**31
"""The limit on the bytes of a file of metrics."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunReport:
    """A named run: its record, the rows of its finished rounds, and the observations and commands
    there are.  `privacy` is what its rounds say of clients together, if that is known."""

    name: str
    record: RunRecord
    rows: Sequence[MetricsRow]
    observed: Mapping[int, Observed]
    commands: Sequence[CommandRecord] = ()
    privacy: str | None = None

    @classmethod
    def in_memory(
        cls,
        name: str,
        identity: RunIdentity,
        rows: Sequence[MetricsRow],
        observed: Sequence[Observed],
        command: CommandRecord | None = None,
        origin: StateOrigin | None = None,
    ) -> RunReport:
        """Return the report of a run that kept no folder."""
        rounds = rows[-1].round if rows else 0
        source = sha256(encode_source(identity.source))
        record = RunRecord(identity, source, rounds, None, Extent(0, sha256(b"")), origin)
        seen = {observation.round: observation for observation in observed}
        return cls(name, record, rows, seen, () if command is None else (command,))


@reader("the metrics of a run", DataError)
def read_report(folder: pathlib.Path) -> RunReport:
    """Return the report of the run in a folder, even while the run continues.

    All files of the run count as read.

    Raises:
      DataError: there is no run, or its files were changed or cannot be read.
    """
    record = read_record(folder)
    if record is None:
        raise DataError(
            "E856",
            f"{folder} is not the folder of a run: it has no {RUN}",
            help="give the folder of a run",
            remedy="run folder",
        )
    file = folder / METRICS
    with reading(file):
        try:
            content = read_regular(file, LONGEST_METRICS)[: record.metrics.bytes]
        except FileNotFoundError:
            content = b""
    if Extent(len(content), sha256(content)) != record.metrics:
        raise altered(file, "does not hold the rows that the run wrote")
    for path in (*FILES, *(p for subfolder in FOLDERS for p in (folder / subfolder).rglob("*"))):
        remember(folder / path)
    seen = read_observed(folder)
    rows = read_rows(file, content)
    known = {row.round: seen[row.round] for row in rows if row.round in seen}
    return RunReport(folder.resolve().name, record, rows, known, read_commands(folder))
