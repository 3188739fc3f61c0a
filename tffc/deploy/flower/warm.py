"""Tasks over a Unix socket, between a node's process and its worker; see
`tffc.deploy.flower.worker`.

The socket is in a folder that only the node's user can open.  A worker ends after `IDLE` seconds
without messages.  If it cannot be reached, the node's process handles the task.
"""

from __future__ import annotations

import json
import os
import pathlib
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from tffc.deploy.federation.messages import Record
from tffc.deploy.federation.tasks import Done, Memory, Task
from tffc.runtime.engines.encoding import decode, encode
from tffc.support.errors import ExecutionError
from tffc.support.files import locks
from tffc.support.guards import Array
from tffc.support.version import VERSION

SOCKET, LOCK, LOG = f"worker-{VERSION}.socket", f"worker-{VERSION}.lock", "worker.log"

IDLE = 1800.0
"""The seconds without a message after which a worker ends."""

STARTING = 120.0
"""The seconds that a worker has to start."""

LONGEST_SOCKET = 100
"""The most bytes of the path of a socket."""


Work = Callable[[Task], Done]
Sleep = Callable[[float], None]
Start = Callable[[pathlib.Path], None]


def start_worker(folder: pathlib.Path) -> None:
    """Start a worker, which outlives this process."""
    appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "tffc.deploy.flower.worker", str(folder)],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(folder / LOG), appended, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def ask_worker(
    folder: pathlib.Path, task: Task, sleep: Sleep = time.sleep, start: Start = start_worker
) -> Done | None:
    """Return the result of a task from the folder's worker, started if necessary.

    Returns None if the worker cannot be reached.

    Raises:
      ExecutionError: the folder is open to others, or its path is too long.
    """
    _check_folder(folder)
    for _ in range(2):
        try:
            with _connected(folder, sleep, start) as connection:
                _send(connection, _encode_task(task))
                return _decode_done(_receive(connection))
        except (OSError, ValueError, TypeError, EOFError):
            # The worker may just have ended; try again, which starts another.
            continue
    return None


def serve(folder: pathlib.Path, work: Work, idle: float = IDLE) -> None:
    """Handle tasks, one after another, until none arrives for `idle` seconds.

    Returns at once if another worker serves the folder.

    Raises:
      ExecutionError: the folder is open to others, or its path is too long.
    """
    _check_folder(folder)
    try:
        lock = locks.take(folder / LOCK, wait=False)
    except BlockingIOError:
        return
    path = folder / SOCKET
    with socket.socket(socket.AF_UNIX) as listening:
        path.unlink(missing_ok=True)
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(idle)
        try:
            while True:
                connection, _ = listening.accept()
                with connection:
                    _answer(connection, work)
        except TimeoutError:
            path.unlink(missing_ok=True)
        finally:
            lock.release()


def _answer(connection: socket.socket, work: Work) -> None:
    try:
        connection.settimeout(STARTING)
        task = _decode_task(_receive(connection))
        _send(connection, _encode_done(work(task)))
    except (OSError, ValueError, EOFError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201  # its log is stderr


def _check_folder(folder: pathlib.Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ExecutionError(
            "E783",
            "the folder of a node's worker is open to others",
            help="give one that nobody but the node's user may open: chmod 700",
        )
    if len(os.fsencode(folder / SOCKET)) > LONGEST_SOCKET:
        raise ExecutionError(
            "E783",
            f"the path of the worker's folder has more bytes than a socket takes: {LONGEST_SOCKET}",
            help="give a folder with a shorter path",
        )


def _connected(folder: pathlib.Path, sleep: Sleep, start: Start) -> socket.socket:
    """Return a connection to the folder's worker, starting it if necessary."""
    path = str(folder / SOCKET)
    is_begun = False
    for _ in range(int(STARTING / 0.1)):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if not is_begun:
                start(folder)
                is_begun = True
            sleep(0.1)
            continue
        return connection
    raise TimeoutError("the worker does not begin")


# A message is a size in eight bytes, followed by that many bytes.


def _send(connection: socket.socket, content: bytes) -> None:
    connection.sendall(struct.pack("<Q", len(content)) + content)


def _receive(connection: socket.socket) -> bytes:
    (size,) = struct.unpack("<Q", _exactly(connection, 8))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = connection.recv(min(size, 2**20))
        if not part:
            raise EOFError("the other side ended")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _encode_task(task: Task) -> bytes:
    about = [task.bundle, dict(task.node_config), dict(task.run_config), task.kind]
    return encode((_json(about), *_memory_parts(task.memory), *_record_parts(task.record)))


def _decode_task(content: bytes) -> Task:
    about, last_round, participant, *record = decode(content)
    bundle, node_config, run_config, kind = json.loads(about)
    memory = Memory(int(last_round), participant)
    return Task(bundle, node_config, run_config, memory, _record(*record), kind)


def _encode_done(done: Done) -> bytes:
    return encode((_json(done.log), *_memory_parts(done.memory), *_record_parts(done.record)))


def _decode_done(content: bytes) -> Done:
    log, last_round, participant, *record = decode(content)
    return Done(_record(*record), Memory(int(last_round), participant), json.loads(log))


def _memory_parts(memory: Memory) -> tuple[np.int64, bytes]:
    return np.int64(memory.last_round), memory.participant


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _record_parts(record: Record) -> tuple[bytes, object, list[Array]]:
    """Return the entries as JSON without `rest`, the bytes of `rest`, and the arrays."""
    entries = dict(record.entries)
    rest = entries.pop("rest", b"")
    return _json(entries), rest, list(record.arrays)


def _record(entries: bytes, rest: bytes, arrays: Sequence[object]) -> Record:
    about = json.loads(entries)
    return Record({**about, "rest": rest} if rest else about, list(map(np.asarray, arrays)))
