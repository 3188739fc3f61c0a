"""The states of a node's clients between rounds, which stay at the node.

The states that a round has left are in one folder, under a name that the server gives; the server
remembers, for each node, the name of the last states that counted.

    PROGRAM/RUN/NODE/NAME.BEFORE/CLIENT.npz    after an attempt that began with the states BEFORE

A round may be repeated, and messages may come late or twice.  So a node removes the states BEFORE
only when the server begins with states that came after them: until then it can go back to them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pathlib
import secrets
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from tffc.deploy.federation.messages import STATE_NAME, StateNames
from tffc.language.dtypes import DType
from tffc.language.types import TensorType, Type
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.npz import encode_npz
from tffc.runtime.engines.client_states import ClientStates
from tffc.runtime.runs.kept_states import StateFile, file_name, states_in
from tffc.runtime.runs.run_record import reading
from tffc.support.errors import DataError, ExecutionError
from tffc.support.files import atomic

FIRST = "first"
"""What stands for the name of the states that clients begin a run with."""

RECEIPT = TensorType(DType.STRING)
"""The type of what the server remembers of a node's states: their name, after that of the run."""


def names_for(
    receipts: ClientStates, run: str, nodes: Iterable[str], after: str
) -> dict[str, StateNames]:
    """Return the names for each node in an attempt at a round of a run.

    Raises:
      DataError: what was remembered of a node cannot be read, or is of another run.
    """
    names: dict[str, StateNames] = {}
    for node in nodes:
        receipt = receipts.of(node)
        of_run, before = _parsed(receipt, node) if receipt else (run, "")
        if of_run != run:
            raise _unreadable(node)
        names[node] = StateNames(run, _digest(node), before, after)
    return names


def run_name(receipts: ClientStates) -> str:
    """Return the name of the run that receipts are of, or a new one if there are none.

    Raises:
      DataError: what was remembered of a node cannot be read.
    """
    for node in sorted(receipts.held):
        return _parsed(receipts.of(node), node)[0]
    return secrets.token_hex(16)


def _digest(node: str) -> str:
    """Return what stands for the name of a node, which may be no name of a folder."""
    return hashlib.sha256(node.encode()).hexdigest()[:32]


def _parsed(receipt: bytes, node: str) -> tuple[str, str]:
    run, _, name = receipt.decode("ascii", "replace").partition("/")
    if STATE_NAME.fullmatch(run) is None or STATE_NAME.fullmatch(name) is None:
        raise _unreadable(node)
    return run, name


def _unreadable(node: str) -> DataError:
    return DataError(
        "E938",
        f"what the run holds of {node} does not say which states its clients have",
        help="put the folder of the run back as it was, or begin another run in a new folder",
    )


class NodeStates:
    """The states, all of a type, of one node's clients in the rounds of a program."""

    def __init__(self, folder: pathlib.Path, program: str, names: StateNames, type: Type) -> None:
        self._run = folder / program / names.run / names.node
        self._names = names
        self._type = type

    def before(self) -> ClientStates:
        """Return the states that the clients begin with.

        Raises:
          ExecutionError: the node does not have them.
          DataError: their files were changed, or cannot be read.
        """
        files = self._files_before()
        held = {client: StateFile(file, self._type) for client, file in files.items()}
        return ClientStates(self._type, held)

    def keep(self, states: Sequence[tuple[str, Any]]) -> None:
        """Write the states that clients have after the round; the others have those before it.

        What the server cannot go back to is removed.

        Raises:
          ExecutionError: the node has done the round in this attempt before.
          DataError: they cannot be written.
        """
        folder = self._run / f"{self._names.after}.{self._names.before or FIRST}"
        if folder.exists():
            raise ExecutionError(
                "E774",
                "the node has already answered this request",
                notes=("its clients keep the states that belong to the first answer",),
                help="a message that arrives twice needs nothing; else begin a new run",
            )
        files: dict[str, atomic.Content] = {
            file.name: functools.partial(_copy, file) for file in self._files_before().values()
        }
        layout = ArrayLayout(self._type)
        for client, state in states:
            name = file_name(client)
            files[name] = encode_npz(layout.encode(state, str(folder / name)), {})
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic.write_folder(folder, files)
            self._remove_older()
        except OSError as error:
            raise DataError(
                "E851",
                f"cannot keep the states of clients in {folder}: {error.strerror}",
                help="let the folder be written, or name another one as 'out'",
            ) from error

    def _files_before(self) -> dict[str, pathlib.Path]:
        """Return the files of the states before the round, by client."""
        name = self._names.before
        if not name:
            return {}
        folders = sorted(self._run.glob(f"{name}.*"))
        if not folders:
            raise ExecutionError(
                "E774",
                f"the node does not have the states of its clients after {name}",
                notes=(f"those in {self._run} are of later rounds, or were removed",),
                help="begin a new run",
            )
        with reading(folders[0]):
            return dict(states_in(folders[0]))

    def _remove_older(self) -> None:
        """Remove the states that are neither those before the round nor after them."""
        before = self._names.before
        for folder in self._run.iterdir() if before else ():
            name, _, begun_with = folder.name.partition(".")
            if before not in (name, begun_with) and not atomic.is_leftover(folder.name):
                with contextlib.suppress(OSError):  # the next round removes it
                    atomic.remove(folder)


def _copy(file: pathlib.Path, target: BinaryIO) -> None:
    with file.open("rb") as source:
        shutil.copyfileobj(source, target)
