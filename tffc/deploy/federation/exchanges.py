"""Counting what the rounds of a federation exchange with nodes, for runs and for operators."""

from __future__ import annotations

from collections.abc import Collection

from tffc.deploy.federation.messages import Record
from tffc.runtime.engines.rounds import Exchange
from tffc.runtime.operations.counts import count_bytes

LONGEST_REASON = 200
"""The most characters that are kept of why a node was left out."""


class ExchangeCount:
    """Counts for one round at a time, from `begin` on, over all its attempts."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin the next round."""
        self.attempts = self.sent = self.received = 0
        self._clients: dict[str, int] = {}
        self._left_out: dict[str, str] = {}

    def begin_attempt(self) -> None:
        """Begin an attempt, which alone says who takes part."""
        self.attempts += 1
        self._clients.clear()
        self._left_out.clear()

    def send(self, record: Record) -> None:
        """Count a request to a node."""
        self.sent += record.size
        count_bytes(sent=record.size)

    def receive(self, record: Record) -> None:
        """Count an answer."""
        self.received += record.size
        count_bytes(received=record.size)

    def take(self, node: str, clients: int) -> None:
        """Count the clients that a node says it had."""
        if clients:
            self._clients[node] = self._clients.get(node, 0) + clients

    def leave_out(self, node: str, reason: str) -> None:
        """Keep why a node does not take part."""
        self._left_out[node] = reason[:LONGEST_REASON]

    def exchange(self, took_part: Collection[str]) -> Exchange:
        """Return what a finished round has exchanged, in which these nodes took part."""
        clients = {node: count for node, count in self._clients.items() if node in took_part}
        reasons = {node: why for node, why in self._left_out.items() if node not in took_part}
        return Exchange(self.attempts, self.sent, self.received, clients, reasons)
