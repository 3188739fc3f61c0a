"""Rounds with clients' data in memory, beside rounds from a packed folder.

python -m benchmarks.memory [--clients N] [--rows N] [--sampled N] [--runs N]

Measured are the processor seconds until a frame of pandas is ready, and those of rounds that sample
clients: from the frame, from an Arrow table, from a mapping of each client's arrays, and from the
same data packed, in turn.  A round is given as a ratio to one from the pack, once for a program
that hardly computes, and once for federated averaging.
"""

from __future__ import annotations

import collections
import importlib
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

import tffc as tff
from benchmarks.averaging import FEATURES, SHAPES, build
from tffc.runtime.data.clients import source_of
from tffc.runtime.data.packed import PackedFolder
from tffc.runtime.data.packing import write_pack
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import run_rounds
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State


def counting() -> Any:
    """Return a round that counts examples and adds up their classes."""
    examples = tff.SequenceType(
        collections.OrderedDict(
            x=tff.TensorType(np.float32, [FEATURES]), y=tff.TensorType(np.int32)
        )
    )

    @tff.tensorflow.computation(examples)
    def work(data: Any) -> Any:
        return data.reduce(np.int32(0), lambda total, example: total + example["y"])

    @tff.federated_computation(
        tff.FederatedType(np.int32, tff.SERVER), tff.FederatedType(examples, tff.CLIENTS)
    )
    def each_round(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(work, data))

    return each_round


def frame_of(clients: int, rows: int) -> Any:
    """Return a frame whose rows belong to clients in random order."""
    pandas = importlib.import_module("pandas")
    random = np.random.RandomState(0)
    columns = {f"f{at:02}": random.rand(rows).astype(np.float32) for at in range(FEATURES)}
    users = np.concatenate([np.arange(clients), random.randint(0, clients, rows - clients)])
    return pandas.DataFrame({"user": users, **columns, "y": random.randint(0, 10, rows)})


def seconds(run: Callable[[], Any]) -> float:
    """Return the processor seconds of a call."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def rounds_of(process: Process, state: Any, source: ClientSource, sampled: int) -> Any:
    """Return a function that runs the next round."""
    engine = LocalEngine(process, workers=1)
    held = State(state, process.program, 0)

    def run() -> None:
        nonlocal held
        (finished,) = run_rounds(engine, held, source, 1, Sampling(sampled))
        held = State(state, process.program, finished.number)

    return run


@click.command()
@click.option("--clients", default=10_000, show_default=True)
@click.option("--rows", default=200_000, show_default=True)
@click.option("--sampled", default=100, show_default=True)
@click.option("--runs", default=9, show_default=True)
def main(clients: int, rows: int, sampled: int, runs: int) -> None:
    """Measure rounds with data in memory and print their costs."""
    pandas, arrow = map(importlib.import_module, ("pandas", "pyarrow"))
    random = np.random.RandomState(0)
    large = pandas.DataFrame(
        {
            "user": random.randint(0, 10_000, 1_000_000),
            "x": random.rand(1_000_000),
            "y": random.randint(0, 10, 1_000_000),
        }
    )
    for name, column in (("integers", large.user), ("text", large.user.astype(str))):
        table = large.assign(user=column)
        took = seconds(lambda table=table: tff.data.clients(table, by="user"))
        click.echo(f"1,000,000 rows of 10,000 clients, named by {name}: ready in {took:.2f} s")
    frame = frame_of(clients, rows)
    vector = [f"f{at:02}" for at in range(FEATURES)]
    columns = {"x": vector, "y": "y"}
    x, y = frame[vector].to_numpy(), frame.y.to_numpy()
    with tempfile.TemporaryDirectory() as folder:
        packed = pathlib.Path(folder) / "packed"
        programs = {
            "counting": (counting(), np.int32(0)),
            "averaging": (build(tff), tuple(np.zeros(shape, np.float32) for shape in SHAPES)),
        }
        for name, (computation, state) in programs.items():
            process = Process(tff.compile(computation, "mapreduce"), is_own=True)
            type = process.data_type
            held = tff.data.clients(frame, by="user", columns=columns)
            if not packed.exists():
                write_pack(held, type, packed, digest="0" * 64)
            table = arrow.table(
                {"user": frame.user, "x": arrow.array(list(x)), "y": arrow.array(y)}
            )
            arrays = {
                str(user): {"x": x[rows], "y": y[rows]}
                for user, rows in frame.groupby("user").indices.items()
            }
            sources = {
                "packed": PackedFolder(packed).typed(type),
                "frame": source_of(held, type),
                "Arrow table": source_of(tff.data.clients(table, by="user"), type),
                "arrays": source_of(arrays, type),
            }
            runners = {
                kind: rounds_of(process, state, source, sampled) for kind, source in sources.items()
            }
            figures: dict[str, list[float]] = {kind: [] for kind in runners}
            for number in range(runs + 1):
                for kind, run in runners.items():
                    took = seconds(run)
                    if number:
                        figures[kind].append(took)
            for kind, times in figures.items():
                ratios = [a / b for a, b in zip(times, figures["packed"], strict=True)]
                click.echo(
                    f"{name}, {sampled} of {clients} clients, {kind}: "
                    f"{statistics.median(times) * 1000:.0f} ms a round, "
                    f"{statistics.median(ratios):.2f} of packed"
                )
    click.echo(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
