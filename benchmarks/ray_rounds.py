"""`python -m benchmarks.ray_rounds`: the costs of rounds on Ray and in the local engine.

Both run in turn, on clients that are packed, with two workers: threads of this process, and actors
of a cluster of two machines that this process starts, with one processor each.  Processor time of
Ray is that of this process and of the actors; that of Ray's own processes is told of apart.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import click
import numpy as np

import tffc
from benchmarks.rounds import averaging
from benchmarks.rounds.tffc_side import packed
from benchmarks.rounds.workloads import WORKLOADS
from tffc.backends.compiler import compile_bundle
from tffc.deploy.ray.engine import RayEngine
from tffc.runtime.engines.cores import share_cores
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process

WORKERS = 2


@contextlib.contextmanager
def cluster() -> Iterator[None]:
    """Run a Ray cluster of two machines with one processor each."""
    import ray  # pyright: ignore[reportMissingImports]  # only where it is installed
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]  # an extra

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()
        made.shutdown()


def seconds_of_others() -> tuple[float, float]:
    """Return the processor time of all actors so far, and that of Ray's own processes."""
    actors = others = 0.0
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            # The fields that follow the name, which may have spaces; see proc(5).
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            if command.startswith(b"ray::Worker"):
                actors += seconds
            elif b"/ray/" in command:
                others += seconds
    return actors, others


class Measured:
    """Rounds of an engine: the seconds of each, of the processor, of Ray's own processes, and on
    the clock."""

    def __init__(self, engine: Any, source: Any, state: tuple[Any, ...]) -> None:
        self._engine = engine
        self._cohort = Cohort(source, source.clients)
        self.state: Any = state
        self.taken: list[tuple[float, float, float]] = []

    def run(self) -> None:
        """Run a round."""
        actors, others = seconds_of_others()
        busy, begun = time.process_time(), time.perf_counter()
        self.state = self._engine.run_round(self.state, self._cohort).state
        clock, busy = time.perf_counter() - begun, time.process_time() - busy
        after = seconds_of_others()
        self.taken.append((busy + after[0] - actors, after[1] - others, clock))

    def median(self, column: int) -> float:
        """Return the median of a column."""
        return statistics.median(each[column] for each in self.taken)

    def mean(self, column: int) -> float:
        """Return the mean of a column: processes' times are known to a hundredth of a second."""
        return statistics.fmean(each[column] for each in self.taken)


def measure(
    name: str, batching: Batching, runs: int, warm: int, tell: Callable[[str], None]
) -> None:
    """Measure a workload, and print a row of the table."""
    program = averaging.build(tffc, name).to_building_block()
    process = Process(compile_bundle(program, "mapreduce"))
    first = tuple(WORKLOADS[name].first_weights())
    with tempfile.TemporaryDirectory() as folder:
        source = packed(name, pathlib.Path(folder), process)
        local = Measured(LocalEngine(process, WORKERS, batching), source, first)
        words = [f"--workers={WORKERS}"]
        ray = Measured(RayEngine(process, words, batching), source, first)
        for run in range(warm + runs):
            if run == warm:
                local.taken.clear()
                ray.taken.clear()
            local.run()
            ray.run()
    same = all(np.array_equal(a, b) for a, b in zip(local.state, ray.state, strict=True))
    for title, each in (("local", local), ("Ray", ray)):
        ratio = each.mean(0) / local.mean(0)
        cells = (name, title, *(f"{each.mean(at):.3f} s" for at in range(3)), f"{ratio:.2f}")
        tell(f"| {' | '.join(cells)} |")
    tell(f"<!-- {name}: {runs} rounds; the same state: {same} -->")


@click.command()
@click.option("--runs", default=20, show_default=True, help="Rounds of each, in turn.")
@click.option("--warm", default=5, show_default=True, help="Rounds before.")
@click.option("--only", multiple=True, type=click.Choice(list(WORKLOADS)), default=("W1", "W2"))
@click.option("--batching", default="off", show_default=True, help="off, or clients a call.")
def main(runs: int, warm: int, only: tuple[str, ...], batching: str) -> None:
    """Measure rounds on Ray and in the local engine."""
    share_cores(WORKERS)  # as `tffc run` does
    click.echo("| workload | engine | processor | Ray's own processes | clock | ratio |")
    click.echo("|---|---|---|---|---|---|")
    with cluster():
        for name in only:
            measure(name, Batching.parse(batching), runs, warm, click.echo)


if __name__ == "__main__":
    main()
