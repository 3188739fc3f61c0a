"""The folder that a run keeps, so that it can continue after being stopped at any moment.

    run.json               the run's identity, the number of finished rounds, digests of other files
    source.json            the clients and the files of the data
    state.npz              the state after the last finished round
    outputs/round-N.npz    the server output of round N
    evaluations/           the same for the evaluation of the state after round N
    clients/round-N/*.npz  each client's value after round N, if clients have one; if that is their
                           state, only of clients whose last round it was
    metrics.jsonl          a line for each round: its number, the clients, the server output
    observed.jsonl         a line for each round: how long it took, which clients were left out
    commands.jsonl         a line for each command that finished rounds, with its date
    tracked.jsonl          a line for each round that a tracker has got, with its name for the run
    run.lock               exists while a process writes to the folder

The `.json` and `.npz` files are written atomically; the `.jsonl` files are appended to.  The files
of a round are written first, its state beside that of the round before.  Then `run.json` is
replaced, which commits the round.  Last, the new state replaces the old one.  Continuing a run
completes that last step if necessary, and removes the files of an unfinished round.
`observed.jsonl` is written after the commit, on a best-effort basis, as are `commands.jsonl` and
`tracked.jsonl`.

Somebody may have changed the folder meanwhile.  Nothing is written outside of it: none of its files
and folders may be a link, and only the folders of a run's rounds are written to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import socket
import stat
from collections.abc import Generator, Mapping
from typing import Any

from tffc.language.type_parts import leaves
from tffc.language.types import Type
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.npz import encode_npz
from tffc.runtime.engines.client_states import ClientStates
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State, encode_state, read_state
from tffc.runtime.runs.command_record import COMMANDS, CommandRecord, add_command
from tffc.runtime.runs.kept_states import CLIENTS, StateFile, file_of, remove_file, state_files
from tffc.runtime.runs.metrics import MetricsRow, row_of
from tffc.runtime.runs.metrics_file import MetricsFile
from tffc.runtime.runs.observed import OBSERVED, Observed, add_observed
from tffc.runtime.runs.run_identity import RunIdentity, differences
from tffc.runtime.runs.run_record import (
    BATCHING,
    RUN,
    SOURCE,
    RunRecord,
    StateOrigin,
    altered,
    digest_of,
    encode_batching,
    encode_source,
    read_batching,
    read_record,
    reading,
    sha256,
)
from tffc.runtime.runs.tracked import TRACKED
from tffc.support.errors import DataError
from tffc.support.files import atomic, locks
from tffc.support.files.reading import kind_of, read_regular
from tffc.support.version import VERSION

STATE, METRICS, LOCK = "state.npz", "metrics.jsonl", "run.lock"
OUTPUTS, EVALUATIONS = "outputs", "evaluations"
TENSORBOARD = "tensorboard"

FILES = (RUN, SOURCE, STATE, METRICS, OBSERVED, BATCHING, COMMANDS, TRACKED)
FOLDERS = (OUTPUTS, EVALUATIONS, CLIENTS, TENSORBOARD)

ROUND = re.compile(r"round-([0-9]+)(\.npz)?")
"""Matches the name of a round's file or folder."""

LONGEST_LOCK = 2**12
"""The most bytes that are read of who holds the lock."""


def find_state(path: pathlib.Path) -> pathlib.Path:
    """Return the state file at a path, or in it if the path is the folder of a run."""
    file = path / STATE
    return file if file.is_file() else path


class RunFolder:
    """The folder of one run of a process, locked against other writers until it is closed.

    `evaluation` is the type of evaluations' results, if there are any.  `client_state` is the type
    of what is kept of each client from round to round: by default its state, if it has one.
    """

    def __init__(
        self,
        path: pathlib.Path,
        process: Process,
        evaluation: Type | None = None,
        client_state: Type | None = None,
    ) -> None:
        self.path = path
        self.process = process
        self._client_state_type = client_state or process.client_state_type
        self._evaluation = evaluation
        self._metrics = MetricsFile(path / METRICS)
        self._lock: locks.Lock | None = None
        self._record: RunRecord | None = None
        self._is_new = False
        self._command: CommandRecord | None = None
        self.batching: Mapping[str, bool] = {}
        """What the run has measured about batches; see `Batching`."""
        self.client_states: ClientStates | None = None
        """The states of clients after the last finished round, once begun, if they keep any."""
        self.sampling: Sampling | None = None
        """The sampling of the run, once begun, with the secret seed that it was begun with."""

    def begin(
        self,
        identity: RunIdentity,
        first: State | None,
        *,
        resume: bool,
        origin: StateOrigin | None = None,
        command: CommandRecord | None = None,
        client_states: ClientStates | None = None,
    ) -> State | None:
        """Lock the folder, and return the state to continue from; None before the first round.

        A new run begins with the state `first`, if there is one, and records its origin; its
        clients begin with `client_states`, if they keep any.  The command is recorded with its
        first finished round, if it is given.

        Raises:
          DataError: the folder holds a run and `resume` is not set, or it holds another run;
            another process writes to it; its files were changed; or it cannot be read or written.
        """
        self._take()
        self._command = command
        try:
            self._check_kinds()
            record = read_record(self.path)
            if record is None:
                return self._begin_new(identity, first, origin, client_states)
            if not resume:
                raise DataError(
                    "E920",
                    f"the folder {self.path} already holds a run",
                    help="go on with it, or name another folder",
                    remedy="resume",
                )
            self.batching = read_batching(self.path)
            return self._go_on(record, identity)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def abandon(self) -> None:
        """Undo what `begin` wrote, if it began a new run and no round has written files."""
        state = self.path / STATE
        folders = (OUTPUTS, EVALUATIONS, CLIENTS)
        if not self._is_new or any((self.path / name).exists() for name in folders):
            return
        with contextlib.suppress(OSError):
            if state.exists():
                # Pass through the same intermediate state as `_commit`, so that a kill here leaves
                # nothing that continuing cannot handle.
                os.replace(state, atomic.staged(state))
            (self.path / RUN).unlink()
            (self.path / SOURCE).unlink()
            (self.path / TRACKED).unlink(missing_ok=True)
            atomic.remove_leftovers(self.path)

    def save(self, finished: Round) -> None:
        """Write the results of a round.

        Raises:
          DataError: they cannot be written; the round before is kept.
        """
        type = self.process.output_type
        name = f"round-{finished.number}.npz"
        if leaves(type):
            self._save(self.path / OUTPUTS / name, finished.output, type)
        measured = self._evaluation
        if measured is not None and finished.evaluation is not None and leaves(measured):
            self._save(self.path / EVALUATIONS / name, finished.evaluation, measured)
        files = f"{OUTPUTS}/{name}", f"{EVALUATIONS}/{name}"
        with _writing(self._metrics.path):
            self._metrics.add(row_of(finished, type, self._evaluation, files))
        if finished.spent.known != self.batching:
            self.batching = finished.spent.known
            self._write(self.path / BATCHING, encode_batching(self.batching))
        assert self._record is not None
        self._commit(self._record, finished.state)
        self._is_new = False
        self._replace_states(finished)
        with contextlib.suppress(OSError):
            add_observed(self.path, Observed.of(finished))
            if self._command is not None:
                add_command(self.path, self._command)
                self._command = None

    def save_client(self, number: int, client: str, value: Any) -> None:
        """Write a client's value after a round; raises the same errors as `save`."""
        type = self.process.client_output_type
        assert type is not None
        self._save(file_of(self.path / CLIENTS, number, client), value, type)

    def _keep_state(self, number: int, client: str, state: Any) -> StateFile:
        """Write a client's state after a round; raises the same errors as `save`."""
        type = self._client_state_type
        assert type is not None
        file = file_of(self.path / CLIENTS, number, client)
        self._save(file, state, type)
        return StateFile(file, type)

    def _begin_states(self, states: ClientStates | None) -> None:
        """Begin a new run with these states of its clients, if they keep any."""
        type = self._client_state_type
        if type is not None:
            held = (states or ClientStates(type)).held
            files = {name: self._keep_state(0, name, one.read()) for name, one in held.items()}
            self.client_states = ClientStates(type, files, self._keep_state)

    def _restore_states(self, rounds: int) -> None:
        """Find the states of clients after a round, and remove those that they have replaced."""
        type = self._client_state_type
        if type is None:
            return
        files: dict[str, pathlib.Path] = {}
        with reading(self.path / CLIENTS):
            for client, file in state_files(self.path / CLIENTS, rounds):
                replaced, files[client] = files.get(client), file
                if replaced is not None:
                    remove_file(replaced)
        held = {client: StateFile(file, type) for client, file in files.items()}
        self.client_states = ClientStates(type, held, self._keep_state)

    def _replace_states(self, finished: Round) -> None:
        """Remove the states that those after a committed round have replaced."""
        before, after = self.client_states, finished.client_states
        if before is None or after is None:
            return
        for client in finished.clients:
            replaced = before.held.get(client)
            if isinstance(replaced, StateFile) and replaced != after.held.get(client):
                with contextlib.suppress(OSError):  # continuing the run removes it
                    remove_file(replaced.path)
        self.client_states = after

    def rows(self) -> list[MetricsRow]:
        """Return the metrics of the finished rounds."""
        return self._metrics.rows()

    def _take(self) -> None:
        file = self.path / LOCK
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = locks.take(file, wait=False)
            os.ftruncate(self._lock.descriptor, 0)
            os.write(self._lock.descriptor, _writer().encode())
        except BlockingIOError:
            raise DataError(
                "E939",
                f"another process writes to the run in {self.path}",
                notes=_who(file),
                help="wait until it ends, or name another folder",
            ) from None
        except OSError as error:
            self.close()
            raise _unwritable(file, error) from error

    def _check_kinds(self) -> None:
        """Check that no name of the folder leads elsewhere, and that its folders are folders."""
        for name in (*FILES, *FOLDERS):
            path = self.path / name
            with reading(path), contextlib.suppress(FileNotFoundError):
                mode = os.lstat(path).st_mode
                if stat.S_ISLNK(mode) or (name in FOLDERS and not stat.S_ISDIR(mode)):
                    expected = "folder" if name in FOLDERS else "file"
                    raise altered(path, f"is {kind_of(mode)}, expected a {expected}")

    def _begin_new(
        self,
        identity: RunIdentity,
        first: State | None,
        origin: StateOrigin | None,
        client_states: ClientStates | None,
    ) -> State | None:
        for name in (*FILES, *FOLDERS):
            if name not in (RUN, SOURCE, TENSORBOARD) and os.path.lexists(self.path / name):
                raise DataError(
                    "E861",
                    f"the folder {self.path} holds {name}, and no {RUN} that says of which run",
                    help="name another folder, or move away what is there",
                )
        source = encode_source(identity.source)
        with _writing(self.path):
            atomic.remove_leftovers(self.path)
        # Before `run.json`, so that a run which can be continued has all of them.
        self._begin_states(client_states)
        self._write(self.path / SOURCE, source)
        self._is_new = True
        self.sampling = identity.sampling
        self._record = RunRecord(
            identity, sha256(source), 0, None, self._metrics.extent, origin, VERSION
        )
        if first is None:
            self._write(self.path / RUN, self._record.encode())
        else:
            self._commit(self._record, first)
        return first

    def _go_on(self, record: RunRecord, identity: RunIdentity) -> State | None:
        self.sampling = identity.sampling.continuing(record.identity.sampling)
        identity = dataclasses.replace(identity, sampling=self.sampling)
        changes = differences(record.identity, identity)
        if changes:
            raise DataError(
                "E921",
                f"the run in {self.path} is another one",
                notes=tuple(changes),
                help="go on with what it was begun with, or begin another run in a new folder",
                remedy="another run",
            )
        self._check_rounds(record.rounds + 1)
        self._record = record
        self._finish_commit(record)
        state = None
        if record.state is not None:
            state = read_state(self.path / STATE, self.process.state_type, self.process.program)
        rounds = 0 if state is None else state.rounds
        if rounds != record.rounds:
            raise altered(
                self.path / RUN,
                f"was changed: it says that {record.rounds} rounds are finished, which were "
                f"{rounds}",
            )
        with reading(self._metrics.path):
            if not self._metrics.is_as_written(record.metrics):
                raise altered(self._metrics.path, "does not hold the rows that the run wrote")
        with _writing(self.path):
            self._remove_unfinished(record.rounds + 1)
        self._restore_states(record.rounds)
        return state

    def _check_rounds(self, last: int) -> None:
        """Check that there is nothing of rounds after `last`, which would count as theirs later."""
        for folder in (OUTPUTS, EVALUATIONS, CLIENTS):
            path = self.path / folder
            with reading(path), contextlib.suppress(FileNotFoundError):
                for name in sorted(os.listdir(path)):
                    match = ROUND.fullmatch(name)
                    if match is not None and _is_after(match[1], last):
                        raise altered(path / name, f"is of a round after {last}, the next one")

    def _commit(self, last: RunRecord, state: State) -> None:
        """Commit the round after `last`; everything except its state is already written."""
        file = self.path / STATE
        content = encode_state(state, self.process.state_type, str(file))
        record = dataclasses.replace(
            last, rounds=state.rounds, state=sha256(content), metrics=self._metrics.extent
        )
        with _writing(file):
            try:
                staged = atomic.stage_file(file, content)
                self._write(self.path / RUN, record.encode())
            except DataError:
                # `run.json` is still the old one.
                atomic.staged(file).unlink(missing_ok=True)
                raise
            self._record = record
            os.replace(staged, file)

    def _finish_commit(self, record: RunRecord) -> None:
        """Move the state of the last finished round into place, if it is not there yet."""
        file = self.path / STATE
        staged = atomic.staged(file)
        digest = digest_of(file)
        if digest == record.state:
            return
        if record.state is None or digest_of(staged) != record.state:
            what = "is gone" if digest is None else "was changed"
            raise altered(file, f"{what}: it is not the state after round {record.rounds}")
        with _writing(file):
            os.replace(staged, file)

    def _remove_unfinished(self, number: int) -> None:
        """Remove the files of an unfinished round, and temporary files."""
        for path in (
            self.path / OUTPUTS / f"round-{number}.npz",
            self.path / EVALUATIONS / f"round-{number}.npz",
            self.path / CLIENTS / f"round-{number}",
        ):
            if os.path.lexists(path):
                atomic.remove(path)
        for folder in (self.path, self.path / OUTPUTS, self.path / EVALUATIONS):
            atomic.remove_leftovers(folder)

    def _save(self, path: pathlib.Path, value: Any, type: Type) -> None:
        self._write(path, encode_npz(ArrayLayout(type).encode(value, str(path)), {}))

    def _write(self, path: pathlib.Path, content: bytes) -> None:
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.replace_file(path, content, is_shared=False)


def _writer() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}\n"


def _who(file: pathlib.Path) -> tuple[str, ...]:
    """Return who holds a lock, as stated in its file."""
    try:
        return (f"it is {read_regular(file, LONGEST_LOCK).decode().strip()}",)
    except (OSError, ValueError):
        return ()


def _is_after(digits: str, number: int) -> bool:
    """Return whether digits, which may be very many, are a number after another."""
    digits, last = digits.lstrip("0"), str(number)
    return (len(digits), digits) > (len(last), last)


@contextlib.contextmanager
def _writing(path: pathlib.Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: pathlib.Path, error: OSError) -> DataError:
    return DataError(
        "E922",
        f"cannot write {path}: {error.strerror}",
        notes=("the rounds before it are kept",),
        help="make space on the disk, or let the folder be written",
        remedy="resume later",
    )
