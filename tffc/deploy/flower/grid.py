"""The nodes reached through Flower's grid, as a `Federation`.

A registered node has its registered name.  Others, for example in simulations, are asked for their
names once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

# An extra, not installed with the rest.
from flwr.app import Message  # pyright: ignore[reportMissingImports]  # an extra
from flwr.serverapp import Grid  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.flower.asking import Arrival
from tffc.deploy.flower.messages import Record, read_name
from tffc.deploy.flower.pauses import pause_after
from tffc.deploy.flower.records import from_flower, to_flower
from tffc.deploy.flower.store import KEEP, LACKS
from tffc.deploy.flower.tasks import MASKED_STEPS, WORK
from tffc.support.errors import TffcError

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

ONLINE = ("", "online")


class GridFederation:
    """Flower's nodes; a message expires shortly after the wait for its reply."""

    def __init__(self, grid: Grid, timeout: float, tell: Callable[[str], None]) -> None:
        self._grid = grid
        self._timeout = timeout
        self._tell = tell
        self._names: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        self._pending: dict[str, str] = {}

    def names(self) -> Sequence[str]:
        """See `Federation`."""
        nodes = [node for node in self._grid.get_nodes() if node.status in ONLINE]
        unnamed = [node.node_id for node in nodes if node.node_id not in self._names]
        registered = {node.node_id: node.name for node in nodes if node.name}
        told = {**self._ask_names([n for n in unnamed if n not in registered]), **registered}
        for node in unnamed:
            if node in told:
                self._names[node] = told[node]
        self._ids = {}
        # A name that the node itself tells is not taken from the one registered under it.
        for node in sorted((n.node_id for n in nodes), key=lambda n: (n not in registered, n)):
            name = self._names.get(node)
            if name is not None and self._ids.setdefault(name, node) != node:
                self._tell(f"two nodes are called {name}: one of them is left out")
        return sorted(self._ids)

    def send(self, kind: str, records: Mapping[str, Record]) -> None:
        """See `Federation`."""
        self._pending = self._push(kind, {self._ids[n]: r for n, r in records.items()}, records)

    def receive(self, timeout: float) -> Iterator[Arrival]:
        """See `Federation`."""
        yield from self._pull(self._pending, timeout)

    def _push(
        self, kind: str, records: Mapping[int, Record], names: Sequence[Any] | Mapping[str, Any]
    ) -> dict[str, Any]:
        """Send requests; return the names of the nodes by the ids of the messages."""
        contents: dict[int, Any] = {}
        messages: list[Message] = []
        for node, record in records.items():
            content = contents.setdefault(id(record), None) or to_flower(record)
            contents[id(record)] = content
            group = str(record.entries.get("round", ""))
            ttl = self._timeout + GRACE
            messages.append(Message(content, node, TYPES[kind], ttl=ttl, group_id=group))
        pushed = zip(self._grid.push_messages(messages), names, strict=False)
        return {message: name for message, name in pushed if message}

    def _pull(self, pending: dict[str, Any], timeout: float) -> Iterator[Arrival]:
        begun = time.monotonic()
        while pending:
            for message in self._grid.pull_messages(list(pending)):
                node = pending.pop(message.metadata.reply_to_message_id, None)
                if node is not None:
                    yield _arrival(node, message)
            waited = time.monotonic() - begun
            if waited >= timeout:
                return
            if pending:
                time.sleep(min(pause_after(waited, LONGEST), timeout - waited))

    def _ask_names(self, nodes: Sequence[int]) -> dict[int, str]:
        """Return the names that nodes report; those that do not reply are left out."""
        question = Record({}, ())
        pending = self._push("describe", dict.fromkeys(nodes, question), nodes)
        found: dict[int, str] = {}
        for arrival in self._pull(pending, min(self._timeout, NAMING)):
            node: Any = arrival.node
            name = "" if arrival.record is None else read_name(arrival.record)
            found[node] = name or f"node-{node}"
        return found


def _arrival(node: Any, message: Message) -> Arrival:
    if message.has_error():
        # Use only the code, because the text may be the node's traceback, with its paths.
        return Arrival(node, None, f"Flower reports its error {message.error.code}")
    try:
        return Arrival(node, from_flower(message.content))
    except TffcError as error:
        return Arrival(node, None, error.message)
