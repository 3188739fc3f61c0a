"""What a node remembers of masked sums, in the memory of its run and in a folder of its own.

The memory of a run ends with the run, and with the node's process.  A node with a `memory` folder
also remembers there which rounds of which program it revealed shares in, so that neither a new run
nor a restart brings another sum of the same round.  The folder holds no secrets.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Generator

from tffc.runtime.masking.history import History
from tffc.support.errors import DataError, reader
from tffc.support.files import atomic, locks
from tffc.support.files.reading import read_regular
from tffc.support.guards import is_dict

FILE, LOCK = "masked-sums.json", "masked-sums.lock"

LONGEST = 2**26


@reader("a history of masked sums", DataError)
def history_of(memory: bytes) -> History:
    """Return the history in the memory of a node's run."""
    return History.from_json(json.loads(memory).get("history", {}) if memory else {})


@contextlib.contextmanager
def remembered(folder: pathlib.Path | None, history: History) -> Generator[None]:
    """Add to a history what the folder says, and keep there what changes; no other process does so
    meanwhile.

    Raises:
      DataError: the folder cannot be read or written, or holds something else.
    """
    if folder is None:
        yield
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = locks.take(folder / LOCK, wait=True)
    except OSError as error:
        raise _unusable(folder, str(error.strerror)) from error
    try:
        before = _read(folder)
        history.add(before)
        try:
            yield
        finally:
            if history.to_json() != before.to_json():
                _write(folder, history)
    finally:
        lock.release()


@reader("a history of masked sums", DataError)
def _read(folder: pathlib.Path) -> History:
    try:
        return History.from_json(_object(read_regular(folder / FILE, LONGEST)))
    except FileNotFoundError:
        return History()
    except (OSError, ValueError) as error:
        raise _unusable(folder, str(error)) from error


def _write(folder: pathlib.Path, history: History) -> None:
    try:
        atomic.replace_file(folder / FILE, json.dumps(history.to_json()).encode(), is_shared=False)
    except OSError as error:
        raise _unusable(folder, str(error.strerror)) from error


def _object(content: bytes) -> dict[str, object]:
    parsed = json.loads(content)
    if not is_dict(parsed):
        raise ValueError("it is not an object of JSON")
    return {str(name): value for name, value in parsed.items()}


def _unusable(folder: pathlib.Path, reason: str) -> DataError:
    return DataError(
        "E959",
        f"what the node remembers of masked sums in {folder} cannot be used: {reason}",
        notes=("without it, the node cannot know whether it revealed shares in a round before",),
        help="let the node's user write the folder, or name another one as 'memory'",
    )
