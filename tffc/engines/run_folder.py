"""The folder that a run keeps: enough to go on after it was stopped at any moment.

    run.json               program, seed and number of clients a round
    state.npz              the state after the last finished round
    outputs/round-N.npz    the server output of round N
    clients/round-N/*.npz  what each client has after round N, where the form does not aggregate
    metrics.jsonl          one line a round: its number, how many clients, the server output

Every file appears whole or not at all.  The state is written last, so a round counts as finished
if all of its files are there; going on writes those of an unfinished round again.
"""

from __future__ import annotations

import json
import pathlib
import urllib.parse
from typing import Any

from tffc.backends import atomic
from tffc.backends.manifest import encode_json
from tffc.data.arrays import Layout
from tffc.data.npz import encode_npz
from tffc.engines.engine import Round, Sampling
from tffc.engines.metrics import JsonLines, Row, row_of
from tffc.engines.process import Process
from tffc.engines.state import State, read_state, write_state
from tffc.errors import DataError
from tffc.ir.types import Type, leaves


class RunFolder:
    """The folder of one run of a process."""

    def __init__(self, path: pathlib.Path, process: Process) -> None:
        self.path = path
        self.process = process
        self._metrics = JsonLines(path / "metrics.jsonl")
        self._is_new = False

    def begin(self, sampling: Sampling, *, resume: bool) -> State | None:
        """Prepares the folder, and gives the state to go on from, or None for the first round.

        Raises:
          DataError: the folder holds a run and `resume` is not set, or one with other clients; or
            it can not be read or written.
        """
        about = {
            "program": self.process.program,
            "seed": sampling.seed,
            "clients_per_round": sampling.clients,
        }
        file = self.path / "run.json"
        if file.exists():
            self._check(file, about, resume=resume)
        else:
            self._write(file, encode_json(about))
            self._is_new = True
        state = None
        if (self.path / "state.npz").exists():
            state = read_state(
                self.path / "state.npz", self.process.state_type, self.process.program
            )
        try:
            self._metrics.keep(0 if state is None else state.rounds)
        except OSError as error:
            raise _unwritable(self._metrics.path, error) from error
        return state

    def abandon(self) -> None:
        """Takes back what `begin` wrote, if the run was begun here and nothing came of it."""
        if self._is_new and [each.name for each in self.path.iterdir()] == ["run.json"]:
            (self.path / "run.json").unlink()

    def save(self, finished: Round) -> None:
        """Writes what a round gave.

        Raises:
          DataError: it can not be written; the round before it is as it was.
        """
        if leaves(self.process.output_type):
            name = f"round-{finished.number}.npz"
            self._save(self.path / "outputs" / name, finished.output, self.process.output_type)
        try:
            self._metrics.add(row_of(finished, self.process.output_type))
        except OSError as error:
            raise _unwritable(self._metrics.path, error) from error
        write_state(self.path / "state.npz", finished.state, self.process.state_type)

    def save_client(self, number: int, client: str, value: Any) -> None:
        """Writes what a client has after a round; raises as `save` does."""
        type = self.process.client_output_type
        assert type is not None
        file = urllib.parse.quote(client, safe=" ", errors="surrogateescape") + ".npz"
        self._save(self.path / "clients" / f"round-{number}" / file, value, type)

    def rows(self) -> list[Row]:
        """The metrics of the rounds that are finished."""
        return self._metrics.rows()

    def _check(self, file: pathlib.Path, about: dict[str, Any], *, resume: bool) -> None:
        if not resume:
            raise DataError(
                "E920",
                f"the folder {self.path} already holds a run",
                help="add --resume to go on with it, or name another folder",
            )
        try:
            found = json.loads(file.read_text())
        except (OSError, ValueError):
            found = None
        if found != about:
            raise DataError(
                "E921",
                f"the run in {self.path} is another one",
                notes=(f"it was begun with {found}", f"this one has {about}"),
                help="go on with the same bundle, --seed and --clients-per-round",
            )

    def _save(self, path: pathlib.Path, value: Any, type: Type) -> None:
        self._write(path, encode_npz(Layout(type).encode(value, str(path)), {}))

    def _write(self, path: pathlib.Path, content: bytes) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_file(path, content)
        except OSError as error:
            raise _unwritable(path, error) from error


def _unwritable(path: pathlib.Path, error: OSError) -> DataError:
    return DataError(
        "E922",
        f"can not write {path}: {error.strerror}",
        notes=("the rounds before it are kept; --resume goes on with them",),
    )
