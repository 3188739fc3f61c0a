"""The pipeline of a round: clients' work, and a `CombineFn` for each aggregation.

    chunks ─▶ windows ─▶ Work ─▶ updates ─▶ an AggregateTransform each ─▶ results ─▶ Avro files
                          ▲  └─▶ clients' values, skipped clients, errors ──▲
                      broadcast

A window is a single client, or several whose batches are planned together; in the pipeline it is
the position of its first client in the round.  Its update is the accumulator of all its clients.
So batches depend only on the clients of the round, not on the runner.

Nothing is secret from workers: they see updates, also those of secure sums.  This is the only
module that cannot be imported without Beam.
"""

# Beam may not be installed; then its types are unknown, and so are those of all that it makes.
# What it calls is annotated with what it checks, for it reads the annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedClassDecorator=false

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# An extra, not installed with the rest.
import apache_beam as beam  # pyright: ignore[reportMissingImports]  # an extra
import numpy as np

# An extra, not installed with the rest.
from apache_beam.options.pipeline_options import (  # pyright: ignore[reportMissingImports]  # an extra
    DirectOptions,
    PipelineOptions,
    StandardOptions,
    WorkerOptions,
)

# An extra, not installed with the rest.
from apache_beam.transforms.window import GlobalWindows  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.beam.results import SCHEMA, Result, ResultKind
from tffc.deploy.beam.shipment import BROADCAST, Shipment, read_file, unload
from tffc.runtime.engines.encoding import decode, encode, error_to_bytes
from tffc.runtime.engines.shards import ClientWork, WindowPlanner, run_shards
from tffc.runtime.engines.showing import client_code
from tffc.runtime.engines.speed import Stopwatch
from tffc.support.errors import TffcError

CHUNK = 1000
"""The number of clients in an element of the first collection."""


class RoundOptions(PipelineOptions):
    """tffc's own options among those of a pipeline."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        parser.add_argument(
            "--fanout",
            type=int,
            default=0,
            help="In how many groups updates are combined before all are.",
        )


def parse_options(words: Sequence[str], runner: str) -> PipelineOptions:
    """Return the options of a pipeline, with a runner if they name none.

    Workers log warnings, unless the options say otherwise.

    Raises:
      SystemExit: they cannot be parsed; the reason is on stderr.
    """
    options = PipelineOptions(list(words))
    standard = options.view_as(StandardOptions)
    standard.runner = standard.runner or runner
    workers = options.view_as(WorkerOptions)
    workers.default_sdk_harness_log_level = workers.default_sdk_harness_log_level or "WARNING"
    return options


def in_memory(options: PipelineOptions) -> PipelineOptions:
    """Return options with which Beam starts no processes of its own."""
    options.view_as(DirectOptions).direct_running_mode = "in_memory"
    return options


def write_results(prefix: str) -> Any:
    """Return a transform that writes results to files with this prefix."""
    return "Write" >> beam.io.WriteToAvro(prefix, SCHEMA, codec="null", file_name_suffix=".avro")


class RoundValue:
    """Stands for values of rounds in type hints."""


class ValueCoder(beam.coders.Coder):
    """Encodes values of rounds deterministically and without pickling."""

    def encode(self, value: Any) -> bytes:
        return encode(value)

    def decode(self, encoded: bytes) -> Any:
        return decode(encoded)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return RoundValue


beam.coders.registry.register_coder(RoundValue, ValueCoder)

Worked = tuple[str, bytes, RoundValue]
"""The outcome of a client's work: the kind, the client, and a value."""


class RoundTransform(beam.PTransform):
    """The whole pipeline of the round that is shipped in a folder."""

    def __init__(self, folder: str, shipment: Shipment, fanout: int) -> None:
        super().__init__()
        self._folder = folder
        self._clients = len(shipment.clients)
        self._window = shipment.window
        self._aggregations = len(shipment.steps.aggregations)
        self._fanout = fanout

    def expand(self, pipeline: Any) -> Any:
        chunk = self._window * max(1, CHUNK // self._window)
        sent = (
            pipeline
            | "Folder" >> beam.Create([self._folder])
            | "Broadcast" >> beam.Map(_read_broadcast).with_output_types(RoundValue)
        )
        worked = (
            pipeline
            | "Chunks" >> beam.Create(list(range(0, self._clients, chunk)), reshuffle=True)
            | "Windows" >> beam.FlatMap(_windows, self._clients, chunk, self._window)
            | "Spread" >> beam.Reshuffle()
            | "Work"
            >> beam.ParDo(Work(self._folder), beam.pvalue.AsSingleton(sent)).with_output_types(
                Worked
            )
        )
        updates = worked | "Updates" >> beam.FlatMap(_update).with_output_types(RoundValue)
        others = worked | "Others" >> beam.FlatMap(_other)
        reports = [
            updates
            | f"Aggregate {index} unprotected"
            >> AggregateTransform(self._folder, index, self._fanout)
            for index in range(self._aggregations)
        ]
        return (others, *reports) | "Results" >> beam.Flatten()


def _read_broadcast(folder: str) -> Any:
    return decode(read_file(folder, BROADCAST))


def _windows(start: int, clients: int, chunk: int, window: int) -> Iterable[int]:
    """Return the position of the first client of each window in a chunk."""
    return range(start, min(start + chunk, clients), window)


class Work(beam.DoFn):
    """Yields the update of a window, its clients' final values and its skipped clients, or the
    error."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def setup(self) -> None:
        self._shipment = unload(self._folder)
        self._plans = WindowPlanner(self._shipment.steps, self._shipment.batches)

    def start_bundle(self) -> None:
        self._stopwatch = Stopwatch()
        self._work: ClientWork | None = None

    def process(self, position: int, sent: Any) -> Iterator[tuple[str, bytes, Any]]:
        shipment, stopwatch = self._shipment, self._stopwatch
        source, clients = shipment.source, shipment.clients[position : position + shipment.window]
        if self._work is None:
            self._work = ClientWork(
                shipment.steps,
                source,
                shipment.carried,
                sent,
                shipment.skip_bad_clients,
                self._plans.planner,
                stopwatch,
            )
        result = run_shards(self._work, [self._plans.pieces(source, clients, stopwatch)])
        first = os.fsencode(clients[0])
        if result.error is not None:
            yield ResultKind.ERROR, first, error_to_bytes(result.error)
            return
        for client in result.skipped:
            yield ResultKind.SKIPPED, os.fsencode(client), b""
        for client, output in result.outputs:
            yield ResultKind.CLIENT, os.fsencode(client), output
        if result.totals is not None:
            yield ResultKind.UPDATE, first, result.totals

    def finish_bundle(self) -> Iterator[Any]:
        news = [line.encode() for line in self._plans.news()]
        spent = np.array(self._stopwatch.times()), news
        yield GlobalWindows.windowed_value((ResultKind.SPENT, b"", spent))


def _update(worked: tuple[str, bytes, Any]) -> Iterator[Any]:
    kind, _, value = worked
    if kind == ResultKind.UPDATE:
        yield value


def _other(worked: tuple[str, bytes, Any]) -> Iterator[dict[str, Any]]:
    kind, client, value = worked
    if kind != ResultKind.UPDATE:
        yield Result(ResultKind(kind), os.fsdecode(client), value).to_record()


class AggregateTransform(beam.PTransform):
    """The result of one aggregation over all updates; nothing if there are none.

    With a fan-out, updates are first combined in that many groups.  Beam's own `with_fanout` does
    the same, but pickles the accumulators in between.
    """

    def __init__(self, folder: str, index: int, fanout: int) -> None:
        super().__init__()
        self._folder = folder
        self._index = index
        self._fanout = fanout

    def expand(self, updates: Any) -> Any:
        if self._fanout > 1:
            grouped = tuple[int, RoundValue]
            partial = (
                updates
                | "Group" >> beam.ParDo(Group(self._fanout)).with_output_types(grouped)
                | "Combine groups" >> beam.CombinePerKey(CombinePart(self._folder, self._index))
                | "Parts" >> beam.Values().with_output_types(RoundValue)
            )
            combine = CombineParts(self._folder, self._index)
        else:
            partial = updates
            combine = Combine(self._folder, self._index)
        return partial | "Combine" >> beam.CombineGlobally(combine).without_defaults()


class Group(beam.DoFn):
    """Gives each update one of a number of keys.

    Updates that are processed together get the same key, so that they are combined before they are
    sent.
    """

    def __init__(self, groups: int) -> None:
        self._groups = groups

    def start_bundle(self) -> None:
        self._key = random.randrange(self._groups)

    def process(self, update: Any) -> Iterator[tuple[int, Any]]:
        yield self._key, update


class Combine(beam.CombineFn):
    """One aggregation of a round, from the updates of windows.

    An accumulator is a pair: an error as bytes, or None, and the accumulator of the aggregation.
    """

    def __init__(self, folder: str, index: int) -> None:
        self._folder = folder
        self._index = index

    def setup(self) -> None:
        shipment = unload(self._folder)
        self._carried = shipment.carried
        self._aggregation = shipment.steps.aggregations[self._index]

    def get_accumulator_coder(self) -> ValueCoder:
        return ValueCoder()

    def create_accumulator(self) -> Any:
        return None, self._aggregation.zero(self._carried)

    def add_input(self, accumulator: Any, element: Any) -> Any:
        return self._merge(accumulator, (None, element[self._index]))

    def merge_accumulators(self, accumulators: Iterable[Any]) -> Any:
        merged, *others = accumulators
        for other in others:
            merged = self._merge(merged, other)
        return merged

    def _merge(self, first: Any, second: Any) -> Any:
        errors = [error for error, _ in (first, second) if error is not None]
        if errors:
            return min(errors), first[1]
        try:
            with client_code():
                return None, self._aggregation.merge(first[1], second[1], self._carried)
        except TffcError as error:
            return error_to_bytes(error), first[1]

    def extract_output(self, accumulator: Any) -> Any:
        failure, total = accumulator
        if failure is None:
            try:
                with client_code():
                    report = self._aggregation.report(total, self._carried)
                return Result(ResultKind.REPORT, str(self._index), report).to_record()
            except TffcError as error:
                failure = error_to_bytes(error)
        return Result(ResultKind.ERROR, "", failure).to_record()


@beam.typehints.with_input_types(RoundValue)
@beam.typehints.with_output_types(RoundValue)
class CombinePart(Combine):
    """Combines a group of updates into an accumulator, without reporting."""

    def extract_output(self, accumulator: Any) -> Any:
        return accumulator


class CombineParts(Combine):
    """Merges the accumulators of groups and reports."""

    def add_input(self, accumulator: Any, element: Any) -> Any:
        return self._merge(accumulator, element)
