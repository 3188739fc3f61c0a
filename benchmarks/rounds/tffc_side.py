"""tffc's local engine: clients in memory, in a folder of `.npz` files, and packed."""

from __future__ import annotations

import atexit
import collections
import pathlib
import shutil
import tempfile
from collections.abc import Callable

import numpy as np

import tffc
from benchmarks.rounds import averaging
from benchmarks.rounds.measured import Make, Measured, Round
from benchmarks.rounds.workloads import WORKLOADS, Arrays, clients_of
from tffc.backends.compiler import compile_bundle
from tffc.runtime.data.clients import source_of
from tffc.runtime.data.location import open_data, open_source
from tffc.runtime.data.packing import write_pack
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.cores import share_cores
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process

Open = Callable[[str, pathlib.Path, Process], ClientSource]


def _memory(name: str, folder: pathlib.Path, process: Process) -> ClientSource:
    values = [collections.OrderedDict(x=x, y=y) for x, y in clients_of(name)]
    return source_of(values, process.data_type)


def _files(name: str, folder: pathlib.Path, process: Process) -> ClientSource:
    for number, (x, y) in enumerate(clients_of(name)):
        np.savez(folder / f"{number:06}.npz", x=x, y=y)
    return open_source(folder, process.data_type)


def packed(name: str, folder: pathlib.Path, process: Process) -> ClientSource:
    loose = folder / "loose"
    loose.mkdir()
    _files(name, loose, process)
    write_pack(open_data(loose), None, folder / "packed")
    return open_source(folder / "packed", process.data_type)


def _of(open_clients: Open, batching: str = "auto", workers: int | None = None) -> Make:
    def make(name: str) -> Round:
        folder = pathlib.Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        program = averaging.build(tffc, name).to_building_block()
        process = Process(compile_bundle(program, "mapreduce"))
        engine = LocalEngine(process, workers, Batching.parse(batching))
        source = open_clients(name, folder, process)

        def run(weights: Arrays) -> Arrays:
            result = engine.run_round(tuple(weights), Cohort(source, source.clients))
            return list(result.state)

        return run

    return make


def Side() -> Measured:
    # As `tffc run` does.
    share_cores(min(each.clients for each in WORKLOADS.values()), batching=Batching.parse("auto"))
    ways = {
        "memory": _of(_memory),
        "folder": _of(_files),
        "packed": _of(packed),
        "one a call": _of(_memory, "off"),
        "one worker": _of(_memory, workers=1),
    }
    return Measured(ways, ["tensorflow", "numpy"])
