"""Runs that are killed and gone on with: run by a test, in a process of its own.

    python -m tests.hostile.killed_runs ENGINE [KILLS SEED]

A run of three rounds is killed at each of its changes to files, and then gone on with.  With a
number and a seed, so many runs are killed at random changes, and what goes on with them too, before
it may go on to the end.  Prints how many were killed, and what they left that an undisturbed run
does not leave.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import tffc as tff
from tests.hostile.kills import contents, every_kill, is_killed
from tffc.backends.compiler import compile_bundle
from tffc.deploy.engines import make_engine
from tffc.runtime.data.identity import source_identity
from tffc.runtime.data.location import open_source
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import run_rounds
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State
from tffc.runtime.runs.run_folder import RunFolder
from tffc.runtime.runs.run_identity import RunIdentity

ROUNDS, CLIENTS, CHANGES = 3, 4, 60


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def total(state: Any, data: Any) -> Any:
    return tff.federated_sum(data), tff.federated_sum(data)


class Runs:
    """Runs of a form that needs no TensorFlow, in the working directory."""

    def __init__(self, engine: str) -> None:
        self._process = Process(compile_bundle(total.node, "distribute-aggregate"))
        self._engine = engine
        pathlib.Path("data").mkdir()
        for number in range(CLIENTS):
            np.savez(f"data/{number}.npz", np.int32(number))
        self._source = open_source("data", self._process.data_type)

    def run(self, name: str) -> None:
        """Begin the run in the folder of a name, or go on with it."""
        sampling = Sampling(2, 7)
        identity = RunIdentity.of(
            self._process, sampling, source_identity(self._source), skip_bad_clients=False
        )
        given = State(np.int32(5), self._process.program, 0)
        engine = make_engine(
            self._engine, self._process, workers=1 if self._engine == "local" else None
        )
        with contextlib.closing(RunFolder(pathlib.Path(name), self._process)) as folder:
            state = folder.begin(identity, given, resume=True) or given
            left = ROUNDS - state.rounds
            for each in run_rounds(engine, state, self._source, left, sampling):
                folder.save(each)

    def left(self, name: str) -> dict[str, bytes | None]:
        """What a run leaves that goes on until it ends."""
        assert not is_killed(lambda: self.run(name), 0)
        found = contents(pathlib.Path(name))
        shutil.rmtree(name)
        return found


def random_kills(runs: Runs, count: int, seed: int) -> Iterator[int]:
    """Kill runs, and what goes on with them, at random changes."""
    choose = random.Random(seed)
    for _ in range(count):
        for step in (choose.randint(1, CHANGES), choose.randint(1, CHANGES)):
            is_killed(lambda step=step: runs.run("killed"), step)
        yield step


def main(engine: str, count: str = "", seed: str = "") -> None:
    """Print how many runs of an engine were killed, and what is wrong."""
    if engine == "beam":
        import tffc.deploy.beam.transforms  # noqa: F401 - once, and not in every process
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        runs = Runs(engine)
        whole = runs.left("whole")
        at = random_kills(runs, int(count), int(seed)) if count else None
        killed, wrong = 0, []
        for step in at or every_kill(lambda: runs.run("killed")):
            found = runs.left("killed")
            killed += 1
            wrong += [
                (step, name)
                for name in {*found, *whole}
                if found.get(name, 0) != whole.get(name, 0)
            ]
        print(f"{killed} killed, wrong: {wrong}")


if __name__ == "__main__":
    main(*sys.argv[1:])
