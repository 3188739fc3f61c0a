"""The state that a new run begins with, from a file or from the folder of an earlier run.

Rounds of the program that saved the state continue its numbers, and so its sampling.  Rounds of
another program, which may differ only in its learning rate, begin with 1, unless the caller asks
that the new run continues the earlier one.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib

from tffc.runtime.engines.client_states import ClientStates
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.state import State, read_saved_state
from tffc.runtime.runs.kept_states import states_of_run
from tffc.runtime.runs.run_folder import STATE, find_state
from tffc.runtime.runs.run_record import RUN, StateOrigin, digest_of
from tffc.support.errors import DataError


@dataclasses.dataclass(frozen=True, slots=True)
class FirstState:
    """A state for a process to begin with, its origin, and the file that holds it; if it is that of
    a run whose clients keep states, also these."""

    state: State
    origin: StateOrigin
    file: pathlib.Path
    client_states: ClientStates | None = None

    @property
    def is_of_another_program(self) -> bool:
        """Whether another program has saved the state."""
        return self.origin.program not in (None, self.state.program)


def read_first_state(path: pathlib.Path, process: Process, *, continues: bool) -> FirstState:
    """Return the state at a path, or the last one of the run whose folder it is.

    If `continues`, its rounds count even if another program has saved it.

    Raises:
      DataError: the file cannot be read, holds a state of another type, or does not say its number
        of rounds, which `continues` needs.
    """
    file = find_state(path)
    state, about = read_saved_state(file, process.state_type, process.program)
    if continues:
        if about is None:
            raise DataError(
                "E871",
                f"{file} does not say after which round its state is",
                notes=("states that a run saves say it",),
                help="give a run or a state that a run has saved",
                remedy="plain state",
            )
        state = dataclasses.replace(state, rounds=about.rounds)
    origin = StateOrigin(
        about and about.program, 0 if about is None else about.rounds, _digest(file)
    )
    return FirstState(state, origin, file, client_states_beside(path, process))


def client_states_beside(path: pathlib.Path, process: Process) -> ClientStates | None:
    """Return the states of clients that belong to the state at a path: those of a run, if it is the
    folder of one or the state in it.  None if it is not, or clients of the process keep none.

    Raises:
      DataError: the files cannot be read.
    """
    type = process.client_state_type
    folder = path.parent if path.name == STATE else path
    if type is None or not os.path.lexists(folder / RUN):
        return None
    return states_of_run(folder, type)


def _digest(file: pathlib.Path) -> str:
    digest = digest_of(file)
    assert digest is not None
    return digest
