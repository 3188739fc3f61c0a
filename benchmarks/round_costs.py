"""The costs of a round on a cluster, measured for one client and extrapolated.

    python -m benchmarks.round_costs BUNDLE DATA [--clients N] [--workers W]

Prints two tables for docs/cost-model.md, which says what is assumed.  Needs `tffc[beam]`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from tffc.api.bundles import load
from tffc.backends.forms.steps import TupleAggregation
from tffc.deploy.beam.engine import BeamEngine
from tffc.deploy.beam.shipment import ROUND, Shipment, write_file
from tffc.runtime.data.location import open_source
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.process import Process

SAMPLE = 200
"""How many clients, or merges, are measured."""

BUNDLE = 1000
"""How many clients a runner is assumed to give a worker at once."""

START = "import sys; from tffc.deploy.beam.shipment import unload; unload(sys.argv[1])"


@dataclasses.dataclass(frozen=True)
class Costs:
    """The measured costs: bytes, and seconds of one core."""

    sent: int
    shipped: int
    name: float
    update: int
    accumulator: int
    read: float
    work: float
    accumulate: float
    merge: float
    beam: float
    start: float


@dataclasses.dataclass(frozen=True)
class Repeated:
    """A source with more clients, each with the data of one of another source."""

    source: ClientSource
    count: int

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(f"{number:07}" for number in range(self.count))

    def read(self, client: str) -> Any:
        return self.source.read(self.source.clients[int(client) % len(self.source.clients)])


def measure(process: Process, source: ClientSource) -> Costs:
    """Return the costs of one round's steps."""
    steps = process.steps
    aggregation = TupleAggregation(steps.aggregations)
    many = Repeated(source, SAMPLE)
    state = process.first_state().value
    carried, sent = steps.prepare(state)
    values = list(map(many.read, many.clients))
    updates = [steps.work(value, sent) for value in values]
    total = aggregation.accumulate(aggregation.zero(carried), updates[0], carried, "0")
    aggregation.merge(total, total, carried)
    content = encode(total)
    read = _seconds(lambda: [many.read(client) for client in many.clients])
    work = _seconds(lambda: [steps.work(value, sent) for value in values])
    accumulate = _seconds(lambda: [aggregation.accumulate(total, u, carried, "0") for u in updates])
    merge = _seconds(lambda: [aggregation.merge(total, decode(content), carried) for _ in updates])
    shipment = Shipment(
        process.bundle, steps, carried, source.clients, source, skip_bad_clients=False
    )
    shipped = shipment.to_bytes()
    return Costs(
        sent=len(encode(sent)),
        shipped=len(shipped),
        name=sum(map(len, source.clients)) / len(source.clients) + 9,
        update=sum(len(encode(update)) for update in updates) // SAMPLE,
        accumulator=len(content),
        read=read / SAMPLE,
        work=work / SAMPLE,
        accumulate=accumulate / SAMPLE,
        merge=merge / SAMPLE,
        beam=_overhead(process, source, (read + work + accumulate) / SAMPLE),
        start=_start(shipped),
    )


def _seconds(run: Callable[[], Any]) -> float:
    """Return the processor time that a function takes; the least of three times."""
    found: list[float] = []
    for _ in range(3):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


def _overhead(process: Process, source: ClientSource, steps: float) -> float:
    """Return what a client costs on Beam beyond its steps, from rounds of different sizes in
    process."""
    engine = BeamEngine(process)
    state = process.first_state().value

    def round_of(count: int) -> float:
        many = Repeated(source, count)
        return _seconds(lambda: engine.run_round(state, Cohort(many, many.clients)))

    return max(0.0, (round_of(5 * SAMPLE) - round_of(SAMPLE)) / (4 * SAMPLE) - steps)


def _start(shipped: bytes) -> float:
    """Return the processor time until a new process has loaded TensorFlow and the graphs."""
    with tempfile.TemporaryDirectory() as folder:
        write_file(folder, ROUND, shipped)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", START, folder], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def extrapolate(costs: Costs, clients: int, workers: int) -> Iterator[tuple[str, str]]:
    """Return the costs of a round of a number of clients on workers of one core each."""
    bundles = max(workers, math.ceil(clients / BUNDLE))
    fanout = round(math.sqrt(bundles))
    client = costs.read + costs.work + costs.accumulate + costs.beam
    files = costs.shipped + clients * costs.name
    yield "read by each worker, broadcast", _bytes(costs.sent)
    yield "read by each worker, the rest", _bytes(files)
    yield "read by all workers", _bytes(workers * (costs.sent + files))
    yield "updates, which stay on their worker", _bytes(clients * costs.update)
    yield f"accumulators sent, of {bundles:,} bundles", _bytes(bundles * costs.accumulator)
    yield "CPU of all clients", _time(clients * client)
    yield "CPU to start all workers", _time(workers * costs.start)
    yield "last merge on one core", _time(bundles * costs.merge)
    yield f"last merges with --fanout={fanout}", _time((bundles / fanout + fanout) * costs.merge)
    elapsed = costs.start + clients / workers * client
    yield "a round, with fan-out", _time(elapsed + (bundles / fanout + fanout) * costs.merge)


def _table(head: tuple[str, str], rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield f"| {head[0]} | {head[1]} |"
    yield "|---|---|"
    for name, value in rows:
        yield f"| {name} | {value} |"


def _measured(costs: Costs) -> Iterator[tuple[str, str]]:
    yield "broadcast", _bytes(costs.sent)
    yield "bundle and what the server keeps", _bytes(costs.shipped)
    yield "name of a client", _bytes(costs.name)
    yield "update of a client", _bytes(costs.update)
    yield "accumulator", _bytes(costs.accumulator)
    yield "CPU of a client, reading", _time(costs.read)
    yield "CPU of a client, work", _time(costs.work)
    yield "CPU of a client, accumulate", _time(costs.accumulate)
    yield "CPU of a client, Beam's own", _time(costs.beam)
    yield "CPU of a merge, with decoding", _time(costs.merge)
    yield "CPU to start a worker", _time(costs.start)


def _bytes(count: float) -> str:
    return _shown(count, (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3), ("bytes", 1)))


def _time(seconds: float) -> str:
    return _shown(seconds, (("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("µs", 1e-6)))


def _shown(value: float, units: Sequence[tuple[str, float]]) -> str:
    """Return a value in the largest unit in which it is at least one."""
    name, size = next((unit for unit in units if value >= unit[1]), units[-1])
    return f"{value / size:.3g} {name}"


@click.command()
@click.argument("bundle", type=click.Path(path_type=pathlib.Path))
@click.argument("data")
@click.option("--clients", default=1_000_000, show_default=True)
@click.option("--workers", default=1000, show_default=True)
def main(bundle: pathlib.Path, data: str, clients: int, workers: int) -> None:
    """Measure the costs of a round and extrapolate them."""
    process = load(bundle).process
    costs = measure(process, open_source(data, process.data_type))
    tables = (
        _table(("measured per unit", ""), _measured(costs)),
        iter([""]),
        _table(
            (f"{clients:,} clients on {workers:,} workers", ""),
            extrapolate(costs, clients, workers),
        ),
    )
    for line in itertools.chain.from_iterable(tables):
        click.echo(line)


if __name__ == "__main__":
    main()
