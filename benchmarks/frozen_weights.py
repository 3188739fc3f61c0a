"""What frozen weights cost that a program names as a resource.

    python -m benchmarks.frozen_weights [--numbers N] [--runs N]

Two programs train 100,000 numbers beside a table of frozen ones, of which each client reads some
rows: one has a table of many numbers, the other of 1,000.  Each is measured in a process of its
own, in turn.  All but the seconds of making and writing the table, and the memory for it, should be
alike.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import numpy as np

TRAINED = (1000, 100)
"""The shape of the trained numbers; a row of the table has as many as the first size says."""

CLIENTS, BATCHES, ROWS = 20, 4, 8


@dataclasses.dataclass(frozen=True, slots=True)
class Costs:
    """The measured costs of one program: seconds, bytes, and megabytes of memory at most.

    `make` is that of drawing the table and making the resource.
    """

    make: float
    compile: float
    write: float
    read: float
    prove: float
    first: float
    round: float
    first_batched: float
    round_batched: float
    components: int
    resources: int
    broadcast: int
    memory: float


def program(frozen: Any) -> Any:
    """Return the round, whose clients read rows of the table that `frozen` gives."""
    import tensorflow as tf

    import tffc as tff

    weights = tff.TensorType(np.float32, TRAINED)
    batch = tff.to_type(
        {
            "x": tff.TensorType(np.int32, [ROWS]),
            "y": tff.TensorType(np.float32, [ROWS, TRAINED[1]]),
        }
    )

    @tff.tf_computation(weights, tff.SequenceType(batch))
    def train(weights: Any, batches: Any) -> Any:
        def step(weights: Any, batch: Any) -> Any:
            features = tf.gather(frozen(), batch["x"])
            error = features @ weights - batch["y"]
            return weights - tf.transpose(features) @ error / 100

        return batches.reduce(weights, step)

    @tff.federated_computation(
        tff.types.at_server(weights), tff.types.at_clients(tff.SequenceType(batch))
    )
    def each_round(state: Any, data: Any) -> Any:
        return tff.federated_mean(
            tff.federated_map(train, (tff.federated_broadcast(state), data))
        ), tff.federated_sum(tff.federated_value(1, tff.CLIENTS))

    return each_round


def clients(rows: int) -> dict[str, Any]:
    """Return the data of the clients."""
    draw = np.random.default_rng(1)
    return {
        f"{number}": [
            {
                "x": draw.integers(0, rows, ROWS).astype(np.int32),
                "y": draw.normal(size=(ROWS, TRAINED[1])).astype(np.float32),
            }
            for _ in range(BATCHES)
        ]
        for number in range(CLIENTS)
    }


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and what it returns."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _table(rows: int) -> Any:
    return np.random.default_rng(0).standard_normal((rows, TRAINED[0]), np.float32)


def measure(numbers: int) -> Costs:
    """Return the costs of the program with a table of so many numbers."""
    import tffc as tff
    from tffc.language.type_parts import leaves
    from tffc.language.types import FunctionType, TensorType

    rows = numbers // TRAINED[0]
    seconds, frozen = timed(lambda: tff.resource(_table(rows)))
    compiled, bundle = timed(lambda: tff.compile(program(frozen), form="mapreduce"))
    prepare = bundle.components["prepare"].type
    assert isinstance(prepare, FunctionType)
    sent = [leaf for leaf in leaves(prepare.result) if isinstance(leaf, TensorType)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch, "bundle")
        written, _ = timed(lambda: bundle.save(folder))
        read, _ = timed(lambda: tff.load(folder))
        proved, _ = timed(lambda: tff.prove(folder))
        held = sum(p.stat().st_size for p in folder.rglob("resources/*"))
        whole = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    data = clients(rows)
    first, usual = _rounds(bundle, data, "off")
    first_batched, batched = _rounds(bundle, data, 10)
    return Costs(
        make=seconds,
        compile=compiled,
        write=written,
        read=read,
        prove=proved,
        first=first,
        round=usual,
        first_batched=first_batched,
        round_batched=batched,
        components=whole - held,
        resources=held,
        broadcast=sum(4 * math.prod(size or 0 for size in leaf.shape or ()) for leaf in sent),
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _rounds(bundle: Any, data: Any, batching: Any) -> tuple[float, float]:
    """Return the seconds of the first round, and of a later one."""
    import tffc as tff

    seconds: list[float] = []
    rounds = iter(tff.run(bundle, data, 11, state=np.zeros(TRAINED, np.float32), batching=batching))
    for _ in range(11):
        seconds.append(timed(lambda: next(rounds))[0])
    return seconds[0], statistics.median(seconds[1:])


def apart(numbers: int) -> Costs:
    """Return what `measure` does in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.frozen_weights", "--measured", str(numbers)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return Costs(**json.loads(done.stdout.splitlines()[-1]))


def table_of(many: Sequence[Costs], few: Sequence[Costs]) -> Iterator[str]:
    """Yield the lines of a table: medians of the costs with many numbers and with few, and their
    ratio."""
    yield f"{'':15} {'many':>14} {'few':>14} {'ratio':>8}"
    for field in dataclasses.fields(Costs):
        one, other = (statistics.median(getattr(c, field.name) for c in cs) for cs in (many, few))
        ratio = f"{one / other:8.2f}" if other else ""
        yield f"{field.name:15} {one:14,.4f} {other:14,.4f} {ratio}"


@click.command()
@click.option("--numbers", default=100_000_000, show_default=True, help="Numbers of the table.")
@click.option("--runs", default=3, show_default=True, help="Runs of each program.")
@click.option("--measured", type=int, hidden=True)
def main(numbers: int, runs: int, measured: int | None) -> None:
    """Measure the costs of frozen weights."""
    if measured is not None:
        click.echo(json.dumps(dataclasses.asdict(measure(measured))))
        return
    pairs = [(apart(numbers), apart(1000)) for _ in range(runs)]
    many, few = zip(*pairs, strict=True)
    click.echo("\n".join(table_of(many, few)))


if __name__ == "__main__":
    main()
