"""The nodes reached through Flower's grid, as a `Federation`.

A registered node has its registered name.  Others, for example in simulations, are asked for their
names once.
"""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

# An extra, not installed with the rest.
from flwr.app import Message, RecordDict  # pyright: ignore[reportMissingImports]  # an extra
from flwr.serverapp import Grid  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.federation.asking import Arrival
from tffc.deploy.federation.messages import Record, read_name
from tffc.deploy.federation.pauses import pause_after
from tffc.deploy.federation.store import KEEP, LACKS
from tffc.deploy.federation.tasks import MASKED_STEPS, WORK
from tffc.deploy.flower.records import from_flower, to_flower
from tffc.support.errors import ExecutionError, TffcError

TYPES = {
    "describe": "query.describe",
    LACKS: "query.lacks",
    KEEP: "train.keep",
    WORK: "train.work",
    **{kind: f"train.{kind}" for kind in MASKED_STEPS},
}
"""The message types of the kinds of requests."""

LONGEST = 1.0
"""The most seconds between two polls for replies."""

GRACE = 30.0
"""The seconds between the end of the wait for a reply and the expiry of the message."""

NAMING = 120.0
"""The seconds that a node has to reply with its name."""

REPEATING = 60.0
"""The seconds for which the server's app repeats what the SuperLink fails to do."""

AGAIN = 2.0
"""The seconds before it is repeated."""

ONLINE = ("", "online")

MEANINGS = {
    1: "the app cannot be loaded there",
    2: "the app failed there",
    3: "the message was lost before it got there",
    4: "the reply was lost",
    5: "the node is offline",
    8: "the process of the app ended there",
}
"""What the codes of Flower's errors mean, for those who operate the server."""

R = TypeVar("R")
K = TypeVar("K", int, str)


class GridFederation:
    """Flower's nodes; a message expires shortly after the wait for its reply.

    What the SuperLink fails to do is repeated for `REPEATING` seconds.
    """

    def __init__(
        self,
        grid: Grid,
        timeout: float,
        tell: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._sleep = sleep
        self._grid = grid
        self._timeout = timeout
        self._tell = tell
        self._names: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        self._pending: dict[str, str] = {}

    def names(self) -> Sequence[str]:
        """See `Federation`."""
        nodes = [node for node in self._repeated(self._grid.get_nodes) if node.status in ONLINE]
        unnamed = [node.node_id for node in nodes if node.node_id not in self._names]
        registered = {node.node_id: node.name for node in nodes if node.name}
        asked = [node for node in unnamed if node not in registered]
        names = {**self._ask_names(asked), **registered}
        for node in unnamed:
            if node in names:
                self._names[node] = names[node]
        self._ids = {}
        # A name that the node itself tells is not taken from the one registered under it.
        ids = [node.node_id for node in nodes]
        for node in sorted(ids, key=lambda node: (node not in registered, node)):
            name = self._names.get(node)
            if name is not None and self._ids.setdefault(name, node) != node:
                self._tell(f"two nodes are called {name}: one of them is left out")
        return sorted(self._ids)

    def send(self, kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
        """See `Federation`."""
        earlier = self._pending.items() if more else ()
        pushed = self._push(kind, {self._ids[n]: r for n, r in records.items()}, records)
        self._pending = {sent: node for sent, node in earlier if node not in records} | pushed

    def receive(self, timeout: float) -> Iterator[Arrival]:
        """See `Federation`."""
        for node, message in self._pull(self._pending, timeout):
            yield _arrival(node, message)

    def _push(self, kind: str, records: Mapping[int, Record], keys: Iterable[K]) -> dict[str, K]:
        """Send requests; return the keys of the nodes by the ids of the messages."""
        if not records:
            return {}
        contents: dict[int, RecordDict] = {}
        messages: list[Message] = []
        for node, record in records.items():
            content = contents.get(id(record))
            if content is None:
                content = contents[id(record)] = to_flower(record)
            group = str(record.entries.get("round", ""))
            ttl = self._timeout + GRACE
            messages.append(Message(content, node, TYPES[kind], ttl=ttl, group_id=group))
        pushes = 0

        def push() -> list[str]:
            nonlocal pushes
            pushes += 1
            return list(self._grid.push_messages(messages))

        ids = self._repeated(push)
        if pushes > 1:
            # A SuperLink names no message that it already has.
            own = (message.metadata.message_id for message in messages)
            ids = [id or message for id, message in zip(ids, own, strict=False)]
        return {message: key for message, key in zip(ids, keys, strict=False) if message}

    def _repeated(self, call: Callable[[], R]) -> R:
        """Return what a call to the SuperLink returns, repeating it while the SuperLink fails.

        Raises:
          ExecutionError: it has failed for too long.
        """
        waited = 0.0
        while True:
            try:
                return call()
            except Exception as error:
                status = _status_of(error)
                if status is None:
                    raise
                if waited >= REPEATING:
                    raise _failing(status) from error
            self._tell(f"the SuperLink fails with status {status}: it is asked again")
            self._sleep(AGAIN)
            waited += AGAIN

    def _pull(self, pending: dict[str, K], timeout: float) -> Iterator[tuple[K, Message]]:
        """Yield the messages that arrive, with the keys of their nodes."""
        begun = time.monotonic()
        while pending:
            asked = list(pending)
            for message in self._repeated(lambda: self._grid.pull_messages(asked)):  # noqa: B023
                node = pending.pop(message.metadata.reply_to_message_id, None)
                if node is not None:
                    yield node, message
            waited = time.monotonic() - begun
            if waited >= timeout:
                return
            if pending:
                time.sleep(min(pause_after(waited, LONGEST), timeout - waited))

    def _ask_names(self, nodes: Sequence[int]) -> dict[int, str]:
        """Return the names that nodes report; those that do not reply are left out."""
        question = Record({}, ())
        pending = self._push("describe", dict.fromkeys(nodes, question), nodes)
        names: dict[int, str] = {}
        for node, message in self._pull(pending, min(self._timeout, NAMING)):
            record = _arrival("", message).record
            name = "" if record is None else read_name(record)
            names[node] = name or f"node-{node}"
        return names


def _status_of(error: Exception) -> int | None:
    """Return the HTTP status of an error that the SuperLink answered with, if it is its own."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) and status >= 500 else None


def _failing(status: int) -> ExecutionError:
    return ExecutionError(
        "E784",
        f"the SuperLink fails with status {status}, for {REPEATING:g} s",
        help="see its log; if it says that the database is locked, start it with python -m "
        "tffc.deploy.flower.superlink and resume the run",
    )


def _arrival(node: str, message: Message) -> Arrival:
    if message.has_error():
        # Use only the code, because the text may be the node's traceback, with its paths.
        code = message.error.code
        meaning = MEANINGS.get(code)
        told = f"Flower reports its error {code}"
        return Arrival(node, None, f"{told}: {meaning}" if meaning else told)
    try:
        return Arrival(node, from_flower(message.content))
    except TffcError as error:
        return Arrival(node, None, error.message)
