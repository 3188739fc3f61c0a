"""Sending requests to the nodes of a federation, and checking their untrusted replies.

Only a node's first reply to the current attempt counts, and only if the node was asked.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tffc.backends.forms.steps import TupleAggregation
from tffc.deploy.federation.exchanges import ExchangeCount
from tffc.deploy.federation.messages import Record, Reply, Request
from tffc.language.values.concrete import flatten
from tffc.language.values.conformity import conforms
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.process import Process
from tffc.support.errors import ExecutionError, TffcError
from tffc.support.explanations import has_page, read_page
from tffc.support.guards import is_list

LATE = "it did not answer in time"

CODE = re.compile(r"E\d{3}")


class Arrival(NamedTuple):
    """A node's answer: a record, or the reason why it is missing."""

    node: str
    record: Record | None
    problem: str = ""


class Federation(Protocol):
    """Nodes known by name, and message exchange with them."""

    def names(self) -> Sequence[str]:
        """Return the names of the nodes that are connected now."""
        ...

    def send(self, kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
        """Send a request of a kind to each of these nodes.

        Earlier requests are forgotten; with `more`, only those to the same nodes.
        """
        ...

    def receive(self, timeout: float) -> Iterator[Arrival]:
        """Yield what arrives within `timeout` seconds; stop early once everybody has replied.

        Messages may be duplicates, or replies to earlier requests.
        """
        ...


class TooFewError(ExecutionError):
    """Too few nodes are connected or replied; the round can be repeated from the same state."""


class Asking:
    """Sends requests to nodes in one attempt at a round, and takes the first reply of each."""

    def __init__(
        self,
        federation: Federation,
        process: Process,
        cohort: Cohort,
        carried: object,
        timeout: float,
        tell: Callable[[str], None],
        count: ExchangeCount | None = None,
    ) -> None:
        self.count = count or ExchangeCount()
        self._federation = federation
        self._process = process
        self._cohort = cohort
        self._timeout = timeout
        self._tell = tell
        self.nodes = cohort.clients
        self.carried = carried
        self.silent: frozenset[str] = frozenset()
        """The nodes that did not answer the last request in time."""

    def ask(
        self, kind: str, requests: Mapping[str, Request], unfit: Callable[[Reply], str]
    ) -> dict[str, Reply]:
        """Send requests of a kind; return the valid replies by node.

        `unfit` returns what is wrong with a reply that is not an error, or an empty text.
        """
        # Nodes that are sent the same request share its record.
        records = {id(request): request.to_record() for request in requests.values()}
        by_name = {name: records[id(request)] for name, request in requests.items()}
        federation = self._federation
        federation.send(kind, by_name)
        for record in by_name.values():
            self.count.send(record)
        answered: set[str] = set()
        replies: dict[str, Reply] = {}
        for arrival in federation.receive(self._timeout):
            node = arrival.node
            if node not in requests or node in answered:
                continue
            if arrival.record is not None:
                self.count.receive(arrival.record)
            try:
                reply = read_reply(arrival, requests[node], unfit)
            except TffcError as error:
                reply = error.message
            if reply is None:
                self.tell(f"{node} answers too late an earlier attempt")
                continue
            answered.add(node)
            if isinstance(reply, Reply):
                replies[node] = reply
                self.count.take(node, reply.clients)
                self._cohort.progress(len(replies), len(requests))
            else:
                self.leave_out(node, reply)
            if len(answered) == len(requests):
                break
        self.silent = frozenset(requests.keys() - answered)
        for node in requests:
            if node in self.silent:
                self.tell(f"{node} did not answer in time")
                self.count.leave_out(node, LATE)
        return replies

    def tell(self, line: str) -> None:
        """Log a line about the round."""
        self._tell(f"round {self._cohort.round}: {line}")

    def leave_out(self, node: str, reason: str) -> None:
        """Log and count that a node does not take part."""
        self.tell(f"{node} does not take part: {reason}")
        self.count.leave_out(node, reason)

    def unfit(self, reply: Reply) -> str:
        """Return what is wrong with the untrusted accumulators of a reply; empty if nothing is."""
        if not reply.clients:
            return "it has no clients for the round"
        return "" if self._fits(reply.totals) else "what it answers does not fit the program"

    def _fits(self, totals: object) -> bool:
        """Return whether untrusted accumulators have their types, and can be merged."""
        if not self._process.steps.aggregates:
            return totals is None
        aggregations = self._process.steps.aggregations
        if not is_list(totals) or len(totals) != len(aggregations):
            return False
        pairs = zip(totals, aggregations, strict=True)
        if not all(conforms(total, aggregation.accumulator_type) for total, aggregation in pairs):
            return False
        try:
            TupleAggregation(aggregations).merge(totals, totals, self.carried)
        except Exception:  # noqa: BLE001  (untrusted values may fail in any way)
            return False
        return True

    def _shapes(self, totals: Sequence[object]) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the secure sums in accumulators of the right types."""
        pairs = zip(self._process.steps.aggregations, totals, strict=False)
        sums = [(aggregation.secure_sum(self.carried), total) for aggregation, total in pairs]
        leaves = (flatten(total, sum.type) for sum, total in sums if sum is not None)
        return tuple(np.shape(leaf) for leaf in itertools.chain.from_iterable(leaves))

    def of_one_shape(self, replies: Mapping[str, Reply]) -> dict[str, Reply]:
        """Return the replies whose secure sums have the shapes that most have.

        Only a type with unknown sizes lets them differ, and sums of different shapes may not add
        up, or to something far larger.
        """
        shapes = {name: self._shapes(reply.accumulators) for name, reply in replies.items()}
        counts = collections.Counter(shapes.values())
        most = max(sorted(counts), key=counts.__getitem__, default=())
        for name in sorted(shapes):
            if shapes[name] != most:
                self.leave_out(name, "its secure sums have another shape")
        return {name: reply for name, reply in replies.items() if shapes[name] == most}


def read_reply(
    arrival: Arrival, request: Request, unfit: Callable[[Reply], str]
) -> Reply | str | None:
    """Parse a reply; return None if it is to another request, and a reason if it is invalid."""
    if arrival.record is None:
        return arrival.problem
    reply = Reply.from_record(arrival.record)
    could_not_read = bool(reply.error) and not reply.attempt
    if reply.attempt != request.attempt and not could_not_read:
        return None
    if reply.error:
        return _said(reply.error)
    if (reply.program, reply.round) != (request.program, request.round):
        return "it answers for another program"
    return unfit(reply) or reply


def _said(code: str) -> str:
    """Return a text for the error code that a node replied with, if the code is known here."""
    if CODE.fullmatch(code) is None or not has_page(code):
        return "it answers an error that is not known here"
    return f"{code}, {read_page(code).title}"
