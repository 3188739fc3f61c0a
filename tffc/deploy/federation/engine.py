"""The server's part of a round on a federation: asking nodes and merging their replies.

Accumulators are merged in the order of the nodes' names, so the result does not depend on the order
of replies.  Only the first reply to the current attempt counts, and only from a node that was
asked.  If too few nodes reply, there is no new state, and `tffc.deploy.federation.rounds` repeats
the round.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from tffc.backends.forms.steps import TupleAggregation
from tffc.deploy.federation.asking import Asking, Federation, TooFewError
from tffc.deploy.federation.client_states import names_for, run_name
from tffc.deploy.federation.exchanges import ExchangeCount
from tffc.deploy.federation.messages import (
    MASKED,
    OPEN,
    Record,
    Reply,
    Request,
    StateNames,
    program_digest,
    with_states,
)
from tffc.deploy.federation.settings import RunSettings
from tffc.deploy.federation.store import KEEP, LACKS, Content, files_record, read_digests
from tffc.deploy.federation.tasks import WORK
from tffc.language.nodes import Intrinsic
from tffc.language.traverse import walk
from tffc.linking.aggregations import SECURE
from tffc.runtime.engines.client_states import ClientStates
from tffc.runtime.engines.engine import Cohort, RoundResult
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.shards import merged
from tffc.runtime.engines.showing import showing
from tffc.support.errors import DataError, ExecutionError

if TYPE_CHECKING:
    from tffc.deploy.federation.masked_engine import Finish, MaskedAttempt


class Nodes:
    """The nodes of a federation as a `ClientSource`; their data stays with them.

    `receipts` says of each which states its clients have, if they keep any.
    """

    def __init__(self, names: Sequence[str], receipts: ClientStates | None = None) -> None:
        self.clients = tuple(sorted(names))
        self.receipts = receipts

    def read(self, client: str) -> NoReturn:
        """See `ClientSource`.

        Raises:
          DataError: always.
        """
        raise DataError(
            "E768",
            f"the data of the node {client} is nowhere but there",
            help="run what needs it at the node, as tffc run does there",
        )


class FederationEngine:
    """Runs rounds of one process, each with a cohort of nodes; `tell` receives lines for the log.

    `large` has the files of the bundle that the nodes' copies only name, by hash.

    Raises:
      ExecutionError: the program has secure sums, and the configuration does not say how to add
        them.
    """

    def __init__(
        self,
        process: Process,
        federation: Federation,
        settings: RunSettings,
        tell: Callable[[str], None],
        large: Mapping[str, Content] = MappingProxyType({}),
    ) -> None:
        self.process = process
        self._large = large
        self._supplied: set[str] = set()
        self.federation = federation
        self.settings = settings
        self.tell = tell
        self._program = program_digest(process)
        self._unfinished: tuple[object, MaskedAttempt] | None = None
        self._run = ""
        self.count = ExchangeCount()
        """What the round exchanges with nodes."""
        self._has_secure_sums = has_secure_sums(process)
        if self._has_secure_sums and not settings.secure_sums:
            raise ExecutionError(
                "E766",
                "the program has secure sums, and it is not said how nodes add them",
                help='give secure-sums="masked" in the run configuration, or "open" where the '
                "server may see the sum of each node's clients",
            )

    def run_round(self, state: object, cohort: Cohort) -> RoundResult:
        """See `Engine`; raises TooFewError if too few nodes reply.

        If the engine is `unfinished` then, the same round with the same cohort goes on.
        """
        steps = self.process.steps
        finish: Finish | None = None
        if self._has_secure_sums and self.settings.secure_sums == MASKED:
            carried, states, (replies, finish) = self._run_masked(state, cohort)
        else:
            with showing():
                carried, sent = steps.prepare(state)
            request = self._request(carried, sent, cohort, OPEN)
            asking = self._asking(cohort, carried)
            if self._has_secure_sums:
                self.tell(
                    f"round {cohort.round}: secure sums are not masked; the server sees parts"
                )
            states = self._state_names(cohort, request)
            replies = asking.ask(WORK, with_states(request, cohort.clients, states), asking.unfit)
            replies = asking.of_one_shape(replies)
        self._check_enough(cohort, replies)
        aggregation = TupleAggregation(steps.aggregations)
        totals = [replies[name].totals for name in cohort.clients if name in replies]
        total = merged(steps, carried, totals)
        if total is None:
            # No accumulators were sent, because the round does not aggregate.
            total = aggregation.zero(carried)
        if finish is not None:
            total = finish(total)
        with showing():
            new_state, output = steps.finish(carried, aggregation.report(total, carried))
        left_out = tuple(name for name in cohort.clients if name not in replies)
        for name in states.keys() & replies.keys():
            cohort.deliver(name, states[name].receipt)
        return RoundResult(new_state, output, left_out)

    @property
    def unfinished(self) -> bool:
        """Whether the last step of a masked round failed, and can be run again."""
        return self._unfinished is not None

    def _run_masked(
        self, state: object, cohort: Cohort
    ) -> tuple[object, Mapping[str, StateNames], tuple[dict[str, Reply], Finish]]:
        """Return the server's values, which states clients begin with, and the result of
        `MaskedAttempt.run`."""
        # Imported late: it imports cryptography.
        from tffc.deploy.federation.masked_engine import MaskedAttempt

        if self._unfinished is None:
            with showing():
                carried, sent = self.process.steps.prepare(state)
            request = self._request(carried, sent, cohort, MASKED)
            check = functools.partial(self._check_enough, cohort)
            states = self._state_names(cohort, request)
            masked = MaskedAttempt(
                self._asking(cohort, carried), request, self.process.steps, states, check
            )
        else:
            carried, masked = self._unfinished
        self._unfinished = None
        try:
            return carried, masked.states, masked.run()
        except TooFewError:
            self._unfinished = (carried, masked) if masked.can_go_on else None
            raise

    def ask_for(self, carried: object, sent: object, round: int) -> Request:
        """Return a request for the work of a round, in an attempt of its own."""
        return self._request(carried, sent, Cohort(Nodes(()), (), round=round), OPEN)

    def asking(self, cohort: Cohort, carried: object) -> Asking:
        """Return how the nodes of a cohort, which have all files, are asked."""
        timeout = self.settings.timeout
        return Asking(
            self.federation, self.process, cohort, carried, timeout, self.tell, self.count
        )

    def lacking(self, nodes: Iterable[str]) -> list[str]:
        """Return the nodes that may lack files of the bundle."""
        return [node for node in nodes if self._large and node not in self._supplied]

    def _request(self, carried: object, sent: object, cohort: Cohort, mode: str) -> Request:
        attempt = secrets.token_hex(16)
        shared = self.process.steps.shared(carried)
        return Request(self._program, cohort.round, attempt, mode, shared, sent)

    def _state_names(self, cohort: Cohort, request: Request) -> dict[str, StateNames]:
        """Return which states the clients of each node begin with, if they keep any."""
        receipts = cohort.source.receipts if isinstance(cohort.source, Nodes) else None
        if receipts is None:
            return {}
        self._run = self._run or run_name(receipts)
        return names_for(receipts, self._run, cohort.clients, request.attempt)

    def _asking(self, cohort: Cohort, carried: object) -> Asking:
        self.supply(cohort.clients)
        return self.asking(cohort, carried)

    def supply(self, nodes: Sequence[str]) -> None:
        """Send each node, once, the files of the bundle that it lacks."""
        new = [node for node in nodes if node not in self._supplied]
        if not self._large or not new:
            return
        self.federation.send(LACKS, dict.fromkeys(new, Record({}, ())))
        wanted: dict[str, list[Content]] = {}
        for node, record, _ in self.federation.receive(self.settings.timeout):
            if record is not None and node in new:
                # Each file once, however often a node names it.
                named = dict.fromkeys(read_digests(record))
                digests = [digest for digest in named if digest in self._large]
                wanted[node] = [self._large[digest] for digest in digests]
        self._supplied.update(node for node, files in wanted.items() if not files)
        records = {node: files_record(files) for node, files in wanted.items() if files}
        self.federation.send(KEEP, records)
        for record in records.values():
            self.count.send(record)
        for node, record, _ in self.federation.receive(self.settings.timeout):
            if record is not None and len(read_digests(record)) == len(wanted.get(node, ())):
                self.tell(f"{node} was sent {len(wanted[node])} files of the bundle")
                self._supplied.add(node)

    def _check_enough(self, cohort: Cohort, replies: Collection[str]) -> None:
        least, asked = self.settings.min_replies, len(cohort.clients)
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
