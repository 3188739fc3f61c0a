"""Reading the files that a run keeps: states, outputs, and clients' final values.

The files may come from anybody, so they are read under the limits of clients' data.  Reading them
does not need the program.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from tffc.runtime.data.arrays import Field
from tffc.runtime.data.npz import open_npz
from tffc.runtime.engines.state import MEMBER, About, about_state
from tffc.runtime.runs.kept_states import CLIENTS
from tffc.runtime.runs.run_folder import EVALUATIONS, OUTPUTS, STATE
from tffc.runtime.runs.run_record import RUN, read_record
from tffc.support.errors import DataError
from tffc.support.files.reading import Identity


@dataclasses.dataclass(frozen=True, slots=True)
class KeptFile:
    """An `.npz` file: its arrays, and if it holds a state, what it says about that."""

    path: pathlib.Path
    identity: Identity
    fields: Mapping[str, Field]
    about: About | None

    def read(self, fields: list[Field]) -> list[Any]:
        """Return some arrays as tensors are in memory.

        Raises:
          DataError: the file cannot be read, has changed, or takes too much memory.
        """
        with open_npz(self.path, self.identity) as file:
            return file.read_fields(fields)


class KeptRound(NamedTuple):
    """A round in a run's folder: the number of rounds, this one's number, and its files.

    Only the last round has a state.
    """

    rounds: int
    number: int
    state: KeptFile | None
    output: KeptFile | None
    evaluation: KeptFile | None
    clients: tuple[pathlib.Path, ...]


def open_kept(path: pathlib.Path) -> KeptFile:
    """Open an `.npz` file, without reading its arrays yet.

    Raises:
      DataError: the file cannot be read, or holds an array that is not a tensor.
    """
    with open_npz(path) as file:
        return KeptFile(path, file.identity, file.fields(), about_state(path, file.text(MEMBER)))


def is_run(path: pathlib.Path) -> bool:
    """Return whether a path is the folder of a run."""
    return os.path.lexists(path / RUN)


def open_round(folder: pathlib.Path, number: int | None = None) -> KeptRound:
    """Open the files of a round, by default the last one, in the folder of a run.

    Raises:
      DataError: there is no such round, or the files cannot be read.
    """
    record = read_record(folder)
    rounds = 0 if record is None else record.rounds
    if number is None:
        number = rounds
    elif not 1 <= number <= rounds:
        done = "no round is" if rounds == 0 else f"{rounds} round{'s are' if rounds > 1 else ' is'}"
        last = f", such as {folder}:{rounds}" if rounds else ", or none"
        raise DataError(
            "E803",
            f"the run in {folder} has no round {number}: {done} finished",
            help=f"give the number of one that is{last}",
        )
    state = _if_there(folder / STATE)
    if state is not None and (0 if state.about is None else state.about.rounds) != number:
        state = None
    output = _if_there(folder / OUTPUTS / f"round-{number}.npz")
    evaluation = _if_there(folder / EVALUATIONS / f"round-{number}.npz")
    clients = sorted((folder / CLIENTS / f"round-{number}").glob("*.npz"))
    return KeptRound(rounds, number, state, output, evaluation, tuple(clients))


def _if_there(path: pathlib.Path) -> KeptFile | None:
    return open_kept(path) if os.path.lexists(path) else None
