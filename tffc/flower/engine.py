"""The server's part of a round on a federation: it asks nodes, and merges what they answer.

Accumulators are merged in the order of the nodes' names, so that a result does not depend on which
answer came first.  Only the first answer to this very attempt counts, and only from a node that was
asked.  Where too few answer there is no new state; see `tffc.flower.rounds` for what happens then.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from tffc.backends.forms.steps import TupleAggregation
from tffc.engines.engine import Cohort, RoundResult
from tffc.engines.process import Process
from tffc.engines.shards import merged
from tffc.errors import DataError, ExecutionError, TffcError
from tffc.explanations import has_page, read_page
from tffc.flower.messages import OPEN, Record, Reply, Request, program_digest
from tffc.flower.settings import RunSettings
from tffc.flower.store import KEEP, LACKS, files_record, read_digests
from tffc.ir.nodes import Intrinsic
from tffc.ir.traverse import walk
from tffc.linking.aggregations import SECURE

WORK = "work"
"""The kind of request that a node folds its clients for."""

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


class Nodes:
    """The nodes of a federation as those who take part in rounds; their data stays with them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.clients = tuple(sorted(names))

    def read(self, client: str) -> Any:
        """See `ClientSource`.

        Raises:
          DataError: always.
        """
        raise DataError("E768", f"the data of the node {client} is nowhere but there")


class FlowerEngine:
    """Runs rounds of one process, each with the nodes of a cohort; `tell` is given lines of a log.

    `large` are the files of the bundle that the app does not hold, by their hashes.

    Raises:
      ExecutionError: the program has secure sums, and nobody said that they may be in the open.
    """

    def __init__(
        self,
        process: Process,
        federation: Federation,
        settings: RunSettings,
        tell: Callable[[str], None],
        large: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self.process = process
        self._large = large
        self._supplied: set[str] = set()
        self.federation = federation
        self._settings = settings
        self._tell = tell
        self._program = program_digest(process)
        self._has_secure_sums = has_secure_sums(process)
        if self._has_secure_sums and settings.secure_sums != OPEN:
            raise ExecutionError(
                "E769",
                "the program has secure sums, and nothing here would keep their parts secret",
                help="let the server see the sum of each node's clients, with "
                'secure-sums = "open" in the run configuration',
            )

    def run_round(self, state: Any, cohort: Cohort) -> RoundResult:
        """See `Engine`; raises TooFewError where too few nodes answer."""
        if self._has_secure_sums:
            self._tell(f"round {cohort.round}: secure sums are in the open; the server sees parts")
        steps = self.process.steps
        kept, sent = steps.prepare(state)
        attempt = secrets.token_hex(16)
        request = Request(self._program, cohort.round, attempt, OPEN, steps.shared(kept), sent)
        record = request.to_record()
        self._supply(cohort.clients)
        self.federation.send(WORK, dict.fromkeys(cohort.clients, record))
        replies = self._collect(request, cohort, kept)
        self._check_enough(replies, cohort)
        aggregation = TupleAggregation(steps.aggregations)
        totals = [replies[name].totals for name in cohort.clients if name in replies]
        total = merged(steps, kept, totals)
        if total is None:
            total = aggregation.zero(kept)  # rounds that do not aggregate
        new_state, output = steps.finish(kept, aggregation.report(total, kept))
        left_out = tuple(name for name in cohort.clients if name not in replies)
        return RoundResult(new_state, output, left_out)

    def _supply(self, nodes: Sequence[str]) -> None:
        """Send nodes the files of the bundle that they lack, once."""
        new = [node for node in nodes if node not in self._supplied]
        if not self._large or not new:
            return
        self.federation.send(LACKS, dict.fromkeys(new, Record({}, ())))
        wanted: dict[str, list[bytes]] = {}
        for node, record, _ in self.federation.receive(self._settings.timeout):
            if record is not None and node in new:
                digests = [each for each in read_digests(record) if each in self._large]
                wanted[node] = [self._large[digest] for digest in digests]
        self._supplied.update(node for node, files in wanted.items() if not files)
        given = {node: files_record(files) for node, files in wanted.items() if files}
        self.federation.send(KEEP, given)
        for node, record, _ in self.federation.receive(self._settings.timeout):
            if record is not None and len(read_digests(record)) == len(wanted.get(node, ())):
                self._tell(f"{node} was sent {len(wanted[node])} files of the bundle")
                self._supplied.add(node)

    def _collect(self, request: Request, cohort: Cohort, kept: Any) -> dict[str, Reply]:
        """Return the first answer of each node, of those that are of use."""
        answered: set[str] = set()
        replies: dict[str, Reply] = {}
        for arrival in self.federation.receive(self._settings.timeout):
            node = arrival.node
            if node not in cohort.clients or node in answered:
                continue
            try:
                reply = self._read(arrival, request, kept)
            except TffcError as error:
                reply = error.message
            if reply is None:
                self._tell(f"round {request.round}: {node} answers too late an earlier attempt")
                continue
            answered.add(node)
            if isinstance(reply, Reply):
                replies[node] = reply
                cohort.progress(len(replies), len(cohort.clients))
            else:
                self._tell(f"round {request.round}: {node} does not take part: {reply}")
            if len(answered) == len(cohort.clients):
                break
        for node in cohort.clients:
            if node not in answered:
                self._tell(f"round {request.round}: {node} did not answer in time")
        return replies

    def _read(self, arrival: Arrival, request: Request, kept: Any) -> Reply | str | None:
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
        if not reply.clients:
            return "it has no clients for the round"
        if self.process.client_output_type is None and not self._fits(reply, kept):
            return "what it answers does not fit the program"
        return reply

    def _fits(self, reply: Reply, kept: Any) -> bool:
        """Return whether the accumulators of an answer can be merged, which may be anything."""
        steps = self.process.steps
        aggregation = TupleAggregation(steps.aggregations)
        try:
            zero = aggregation.zero(kept)
            is_alike = all(map(_is_alike, zero, reply.totals)) and len(zero) == len(reply.totals)
            return is_alike and bool(aggregation.merge(reply.totals, reply.totals, kept) or True)
        except Exception:  # noqa: BLE001  (what a node sends may fail in any way)
            return False

    def _check_enough(self, replies: Mapping[str, Reply], cohort: Cohort) -> None:
        least, asked = self._settings.min_replies, len(cohort.clients)
        if len(replies) < least:
            raise TooFewError(
                "E770",
                f"{len(replies)} of {asked} nodes answered in round {cohort.round}, and {least} "
                "are needed",
                help="see the log for what each node answered; wait longer, or let fewer be enough",
            )


def has_secure_sums(process: Process) -> bool:
    """Return whether a program has secure sums."""
    nodes = walk(process.bundle.computation)
    return any(isinstance(node, Intrinsic) and node.uri in SECURE for node in nodes)


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
