"""Asking the nodes of a federation, and taking what they answer, which may be anything.

Only the first answer of a node to this very attempt counts, and only of one that was asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tffc.backends.forms.steps import TupleAggregation
from tffc.engines.engine import Cohort
from tffc.engines.process import Process
from tffc.errors import ExecutionError, TffcError
from tffc.explanations import has_page, read_page
from tffc.flower.messages import Record, Reply, Request

CODE = re.compile(r"E\d{3}")


class Arrival(NamedTuple):
    """What came from a node: a record, or why there is none."""

    node: str
    record: Record | None
    problem: str = ""


class Federation(Protocol):
    """Nodes known by their names, and messages to and from them."""

    def names(self) -> Sequence[str]:
        """Return the names of the nodes that are there now."""
        ...

    def send(self, kind: str, records: Mapping[str, Record]) -> None:
        """Send each of some nodes a request of a kind."""
        ...

    def receive(self, timeout: float) -> Iterator[Arrival]:
        """Give what arrives within so many seconds, and end before where everybody has answered.

        What arrives may be doubled, or an answer to an earlier request.
        """
        ...


class TooFewError(ExecutionError):
    """Too few nodes are there, or answered: the round may begin again from the same state."""


class Asking:
    """Asks nodes in one attempt at a round, and takes the first answer of each."""

    def __init__(
        self,
        federation: Federation,
        process: Process,
        cohort: Cohort,
        kept: Any,
        timeout: float,
        tell: Callable[[str], None],
    ) -> None:
        self._federation = federation
        self._process = process
        self._cohort = cohort
        self._timeout = timeout
        self._tell = tell
        self.nodes = cohort.clients
        self.kept = kept

    def ask(
        self, kind: str, requests: Mapping[str, Request], unfit: Callable[[Reply], str]
    ) -> dict[str, Reply]:
        """Return the answers of nodes to requests of a kind, of those that are of use.

        `unfit` is asked what is wrong with an answer that is none of an error; it says nothing of
        one that is right.
        """
        records = {id(each): each.to_record() for each in requests.values()}
        federation = self._federation
        federation.send(kind, {name: records[id(each)] for name, each in requests.items()})
        answered: set[str] = set()
        replies: dict[str, Reply] = {}
        for arrival in federation.receive(self._timeout):
            node = arrival.node
            if node not in requests or node in answered:
                continue
            try:
                reply = _read(arrival, requests[node], unfit)
            except TffcError as error:
                reply = error.message
            if reply is None:
                self.tell(f"{node} answers too late an earlier attempt")
                continue
            answered.add(node)
            if isinstance(reply, Reply):
                replies[node] = reply
                self._cohort.progress(len(replies), len(requests))
            else:
                self.tell(f"{node} does not take part: {reply}")
            if len(answered) == len(requests):
                break
        for node in requests:
            if node not in answered:
                self.tell(f"{node} did not answer in time")
        return replies

    def tell(self, line: str) -> None:
        """Say something of the round in the log."""
        self._tell(f"round {self._cohort.round}: {line}")

    def unfit(self, reply: Reply) -> str:
        """Return what is wrong with the accumulators of an answer, which may be anything."""
        if not reply.clients:
            return "it has no clients for the round"
        process = self._process
        if process.client_output_type is not None or _fits(process, reply, self.kept):
            return ""
        return "what it answers does not fit the program"


def _read(arrival: Arrival, request: Request, unfit: Callable[[Reply], str]) -> Reply | str | None:
    """Return an answer; None if it is to another request, and a text if it is of no use."""
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


def _fits(process: Process, reply: Reply, kept: Any) -> bool:
    """Return whether the accumulators of an answer can be merged, which may be anything."""
    aggregation = TupleAggregation(process.steps.aggregations)
    try:
        zero = aggregation.zero(kept)
        is_alike = len(zero) == len(reply.totals) and all(map(_is_alike, zero, reply.totals))
        return is_alike and bool(aggregation.merge(reply.totals, reply.totals, kept) or True)
    except Exception:  # noqa: BLE001  (what a node sends may fail in any way)
        return False


def _said(code: str) -> str:
    """Return the error that a node answers; of its text nothing is taken but the code."""
    if CODE.fullmatch(code) is None or not has_page(code):
        return "it answers an error that is not known here"
    return f"{code}, {read_page(code).title}"


def _is_alike(zero: Any, totals: Any) -> bool:
    """Return whether an accumulator has the structs and the element types of that of no client;
    where that one is None, it is not known which."""
    stack = [(zero, totals)]
    while stack:
        one, other = stack.pop()
        if one is None:
            continue
        members = getattr(one, "members", one), getattr(other, "members", other)
        if isinstance(members[0], (tuple, list)):
            if type(one) is not type(other) or len(members[0]) != len(members[1]):
                return False
            stack.extend(zip(*members, strict=True))
        elif getattr(one, "dtype", None) != getattr(other, "dtype", None):
            return False
    return True
