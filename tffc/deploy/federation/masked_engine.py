"""The server's part of a round with masked secure sums: five steps with all nodes.

The server gets accumulators whose secure sums are masked, and learns only the sum of the survivors'
vectors.  If too few nodes are left in any step, the round begins again with new keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from tffc.backends.forms.steps import RoundSteps, TupleAggregation
from tffc.deploy.federation.asking import Asking, TooFewError
from tffc.deploy.federation.masked_steps import (
    MaskedStep,
    attempt_of,
    digest_of_sent,
    pack_keys,
    pack_table,
    pack_terms,
    unpack_bytes,
    unpack_keys,
    unpack_revealed,
)
from tffc.deploy.federation.messages import Reply, Request, StateNames, with_states
from tffc.deploy.federation.secured import SecuredParts
from tffc.runtime.masking.aggregator import Aggregator
from tffc.runtime.masking.terms import Demands, Terms
from tffc.support.errors import ExecutionError, TffcError

Finish: TypeAlias = Callable[[Sequence[object]], list[object]]
"""A function that replaces the masked sums in merged accumulators by the true ones."""


class MaskedAttempt:
    """One attempt at a round with masked sums; `check` raises if the survivors are too few."""

    def __init__(
        self,
        asking: Asking,
        request: Request,
        steps: RoundSteps,
        states: Mapping[str, StateNames],
        check: Callable[[Collection[str]], None],
    ) -> None:
        nodes = asking.nodes
        zero = TupleAggregation(steps.aggregations).zero(asking.carried)
        parts = SecuredParts(steps, asking.carried)
        label = bytes.fromhex(request.attempt)
        self.states = states
        """Which states the clients of each node begin with, if they keep any."""
        self._check = check
        self._asking = asking
        self._request = request
        self._parts = parts
        self._terms = Terms(
            label,
            Demands().threshold(len(nodes)),
            parts.segments(zero),
            request.program,
            request.round,
            digest_of_sent(request.carried, request.sent),
        )
        self._server = Aggregator(nodes, self._terms)
        self._replies: dict[str, Reply] = {}
        self._survivors: Sequence[str] = ()
        self._confirmations: dict[str, bytes] = {}
        self._revealed: set[str] = set()
        self.can_go_on = False
        """Whether the last step failed, and some nodes may still answer.  Those that answered take
        part in no other attempt, so the round cannot begin again with them."""

    def run(self) -> tuple[dict[str, Reply], Finish]:
        """Run the steps that are left; return the survivors' replies, and a function that unmasks
        the sums.

        Raises:
          TooFewError: too few nodes are left; see `can_go_on`.
        """
        try:
            if not self._confirmations:
                self._confirm()
            return self._finish()
        except ExecutionError as error:
            # So that the round is repeated.
            raise TooFewError(
                error.code, error.message, notes=error.notes, help=error.help
            ) from error

    def _confirm(self) -> None:
        """Run the steps until enough nodes confirm who survived."""
        server = self._server
        opening = {n: pack_terms(n, self._terms) for n in self._asking.nodes}
        self._step(MaskedStep.KEYS, opening, lambda n, p: server.receive_keys(n, unpack_keys(p)))
        keys = {name: pack_keys(public) for name, public in server.all_keys().items()}
        everyone = pack_table(keys)
        self._step(
            MaskedStep.SHARES,
            dict.fromkeys(keys, everyone),
            lambda n, p: server.receive_shares(n, unpack_bytes(p)),
        )
        self._replies = self._work(server.all_shares())
        self._survivors = survivors = server.survivors()
        # Not later: nodes that revealed shares do not repeat the round.
        self._check(survivors)
        names = tuple(name.encode() for name in survivors)
        self._step(
            MaskedStep.CONFIRMED,
            dict.fromkeys(survivors, names),
            self._confirmed,
        )
        self._confirmations = server.confirmations()

    def _finish(self) -> tuple[dict[str, Reply], Finish]:
        """Ask for shares, of those that did not answer before, and take the masks from the sum."""
        server = self._server
        asked = [name for name in self._confirmations if name not in self._revealed]
        everything = pack_table(self._confirmations)
        self._step(MaskedStep.REVEALED, dict.fromkeys(asked, everything), self._receive_revealed)
        self.can_go_on = bool(self._asking.silent)
        try:
            total = server.total()
        finally:
            for name in sorted(server.wrong):
                self._asking.tell(f"{name} revealed wrong shares")
        chosen = {name: self._replies[name] for name in self._survivors}
        return chosen, lambda merged: self._parts.with_vector(merged, total)

    def _work(self, shares: Mapping[str, Mapping[str, bytes]]) -> dict[str, Reply]:
        """Ask nodes to work, and add the vectors of valid replies to the sum."""
        sent = self._request.sent
        requests: dict[str, Request] = {}
        for name, sealed in shares.items():
            asked = self._asked(MaskedStep.WORK, self._request.carried, (pack_table(sealed), sent))
            requests |= with_states(asked, (name,), self.states)

        def unfit(reply: Reply) -> str:
            wrong = self._asking.unfit(reply)
            if not wrong and self._parts.segments(reply.accumulators) != self._terms.segments:
                wrong = "its secure sums are of another size"
            return wrong

        replies = self._asking.ask(MaskedStep.WORK, requests, unfit)
        for name, reply in replies.items():
            self._server.receive_masked(name, self._parts.vector(reply.accumulators))
        return replies

    def _step(
        self,
        step: MaskedStep,
        payloads: Mapping[str, object],
        receive: Callable[[str, object], None],
    ) -> None:
        """Ask nodes for a step, and process their payloads."""
        # Nodes that are sent the same payload share a request.
        shared = {id(payload): self._asked(step, None, payload) for payload in payloads.values()}
        requests = {name: shared[id(payload)] for name, payload in payloads.items()}
        for name, reply in self._asking.ask(step, requests, lambda reply: "").items():
            try:
                receive(name, reply.totals)
            except TffcError as error:
                self._asking.leave_out(name, error.message)

    def _asked(self, step: MaskedStep, carried: object, sent: object) -> Request:
        """Return the request for a step; its attempt id does not match replies to other steps."""
        attempt = attempt_of(self._request.attempt, step)
        return dataclasses.replace(self._request, attempt=attempt, carried=carried, sent=sent)

    def _receive_revealed(self, name: str, payload: object) -> None:
        self._revealed.add(name)
        self._server.receive_revealed(name, unpack_revealed(payload))

    def _confirmed(self, name: str, payload: object) -> None:
        if isinstance(payload, bytes):
            self._server.receive_confirmed(name, payload)
