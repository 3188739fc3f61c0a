"""A node's part of a round: checking a request and folding its clients.

A node decides for itself what it takes part in.  It runs only the programs of its own copy of the
bundle.  If it has a policy, the program must satisfy it, and compile to exactly these components,
and for an ε it takes part in so many rounds only.
Errors are sent back as codes, because their texts may contain paths and values; only the node's
operator sees the texts.
"""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
from collections.abc import Callable

from tffc.assurance.audit.audit import Audit, audit, unmasked
from tffc.assurance.audit.bundles import audit_bundle, read_for_audit
from tffc.assurance.audit.policy import (
    Policy,
    broken_rules,
    refused_by_policy,
    violations,
    without_choices,
)
from tffc.assurance.audit.policy_reading import read_policy
from tffc.assurance.privacy.answer import Privacy, privacy_of_program
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.assurance.trust.admission import admission_of, basis_of
from tffc.assurance.trust.settings import read_settings
from tffc.assurance.trust.subjects import clients_part
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import compile_form
from tffc.deploy.demands import demands_of_machine
from tffc.deploy.federation.client_states import NodeStates
from tffc.deploy.federation.messages import (
    MASKED,
    Record,
    Reply,
    Request,
    malformed,
    program_digest,
)
from tffc.deploy.federation.past import history_of
from tffc.deploy.federation.round_counts import count_round
from tffc.deploy.federation.settings import NodeSettings
from tffc.deploy.federation.store import Fetch, store_of
from tffc.deploy.federation.tasks import UNFORESEEN, WORK, Memory, refusal, reply_to
from tffc.language import nodes, wire
from tffc.language.types import Type
from tffc.language.values.conformity import conforms
from tffc.runtime.batching.pieces import OneByOne
from tffc.runtime.data.location import open_source
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.client_states import SourceWithStates
from tffc.runtime.engines.encoding import encode
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.shards import ClientWork, run_shards
from tffc.runtime.operations.counts import count_bytes, count_refusal
from tffc.runtime.runs.run_folder import RunFolder
from tffc.support.errors import ExecutionError, PolicyError, TffcError
from tffc.support.guards import is_list, is_tuple
from tffc.support.printable import printable


class Node:
    """One node, with its copy of the bundle.

    `read` returns the bundle, given a function that fetches files from the node's store; `settle`
    returns the node's configuration.  Both may raise.  `tell` receives the texts of errors, for the
    node's operator.  `open_source` opens the data that the configuration names.
    """

    def __init__(
        self,
        read: Callable[[Fetch], Bundle],
        settle: Callable[[], NodeSettings],
        tell: Callable[[str], None],
        open_source: Callable[[str, Type], ClientSource] = open_source,
    ) -> None:
        self._read = read
        self._settle = settle
        self._tell = tell
        self._open_source = open_source
        self._process: Process | None = None
        self._audited: tuple[Audit, nodes.Node] | None = None
        self._privacies: dict[tuple[PrivacyQuestion, bool], Privacy] = {}
        self._admitted: dict[bool, str] = {}
        self._part_digest: str | None = None
        self.memory = Memory()

    def answer(self, record: Record, kind: str = WORK) -> Record:
        """Return the reply to a request of a kind; errors become replies too."""
        request: Request | None = None
        try:
            request = Request.from_record(record)
            reply = self._reply(request, kind)
        except TffcError as error:
            self._tell(str(error.whole or error))
            count_refusal(error.code)
            reply = refusal(error.code, request)
        except Exception as error:  # noqa: BLE001  (its text must not reach the server)
            self._tell(printable(f"{type(error).__name__}: {error}"))
            count_refusal(UNFORESEEN)
            reply = refusal(UNFORESEEN, request)
        answer = reply.to_record()
        count_bytes(sent=answer.size, received=record.size)
        return answer

    def _reply(self, request: Request, kind: str) -> Reply:
        settings = self._settle()
        process = self._opened(settings)
        self._check_request(request, process)
        limits = _Limits()
        demanded = self._check_admitted(settings, request, process.bundle)
        if demanded is not None:
            limits = limits.with_policy(demanded)
        if settings.policy is not None:
            policy = without_choices(read_policy(settings.policy))
            self._check_policy(policy, request, process.bundle)
            limits = limits.with_policy(policy)
        if request.secure_sums == MASKED:
            return self._masked(request, kind, settings, process, limits)
        least = limits.least_clients
        reply = self._work(request, request.sent, settings, process, limits)
        if reply.totals is not None:
            _check_clients(reply, least)
        self.memory = Memory(request.round, self.memory.participant)
        return reply

    def _masked(
        self,
        request: Request,
        kind: str,
        settings: NodeSettings,
        process: Process,
        limits: _Limits,
    ) -> Reply:
        """Return the reply in a step of a masked sum."""
        # Imported late: it imports cryptography.
        from tffc.deploy.federation.masked_node import MaskedNode, MaskedStep

        least = limits.least_clients

        def work(sent: object) -> Reply:
            reply = self._work(request, sent, settings, process, limits)
            # What is not masked is seen by the server, so it must be enough by itself.
            pairs = zip(process.steps.aggregations, reply.accumulators, strict=False)
            seen = [total for steps, total in pairs if steps.secure_sum(request.carried) is None]
            _check_clients(reply, max(1, least if _holds_values(seen) else 0))
            return reply

        masked = MaskedNode(settings, self.memory.participant, least)
        round = self.memory.last_round
        try:
            if kind == MaskedStep.WORK:
                reply, totals = masked.work(request, process.steps, work)
                reply = dataclasses.replace(reply, totals=totals)
            else:
                reply = reply_to(request, totals=masked.step(MaskedStep(kind), request))
            round = request.round
        finally:
            # Also after a failure, after which the sum is over.
            self.memory = Memory(round, masked.memory)
        return reply

    def _work(
        self,
        request: Request,
        sent: object,
        settings: NodeSettings,
        process: Process,
        limits: _Limits,
    ) -> Reply:
        """Return a reply with the accumulators of the node's clients."""
        _check_parameters(request, process)
        if not conforms(sent, process.steps.sent_type):
            raise malformed("what it sends to the clients is not of the program's type")
        folder = None
        if process.client_output_type is not None:
            folder = _folder_of_outputs(settings)
        source: ClientSource = self._open_source(settings.data, process.data_type)
        clients = source.clients[settings.partition_id or 0 :: settings.num_partitions or 1]
        states = _states(request, settings, process)
        if states is not None:
            source = SourceWithStates(source, states.before(), clients)
        if limits.rounds is not None:
            count_round(settings.memory, request.program, limits.rounds)
        skip = settings.skip_bad_clients
        work = ClientWork(process.steps, source, request.carried, sent, skip)
        result = run_shards(work, [[OneByOne(clients)]])
        if result.error is not None:
            raise result.error
        if states is not None:
            states.keep(result.outputs)
        elif folder is not None:
            run = RunFolder(folder, process)
            for client, output in result.outputs:
                run.save_client(request.round, client, output)
        count, skipped = len(clients) - len(result.skipped), len(result.skipped)
        return reply_to(request, clients=count, skipped=skipped, totals=result.totals)

    def _opened(self, settings: NodeSettings) -> Process:
        if self._process is None:
            bundle = self._read(store_of(settings).fetch)
            self._process = Process(bundle, settings.allow_effects)
        return self._process

    def _check_admitted(
        self, settings: NodeSettings, request: Request, bundle: Bundle
    ) -> Policy | None:
        """Check that a bundle meets the node's demands, again whenever something that they name has
        changed, and return their policy, if they have one.

        Raises:
          TrustError: it does not.
        """
        file = settings.demands or demands_of_machine()
        if file is None:
            return None
        demands = read_settings(file)
        are_masked = request.secure_sums == MASKED
        if self._part_digest is None:
            self._part_digest = clients_part(bundle).digest
        basis = basis_of(demands, self._part_digest, datetime.date.today())
        if self._admitted.get(are_masked) != basis:
            # A node sees to nothing of how clients are chosen.
            admission = admission_of(
                bundle, demands, "the app", are_masked=are_masked, are_drawn=False
            )
            self._tell(admission.line())
            admission.check()
            self._admitted[are_masked] = basis
        return None if demands.policy is None else read_policy(demands.policy)

    def _check_policy(self, policy: Policy, request: Request, bundle: Bundle) -> None:
        """Check that a round satisfies the node's policy.

        Raises:
          PolicyError: it does not, or the audited program compiles to other components.
        """
        if self._audited is None:
            self._audited = _audited(bundle)
        audited, program = self._audited
        if request.secure_sums != MASKED:
            audited = unmasked(audited)
        privacy = None
        if policy.epsilon is not None:
            about = policy.epsilon, request.secure_sums == MASKED
            if about not in self._privacies:
                self._privacies[about] = privacy_of_program(
                    program, audited.form, audited, bundle.initialize, policy.epsilon
                )
            privacy = self._privacies[about]
        reasons = broken_rules(violations(audited, policy, datetime.date.today(), privacy))
        if policy.epsilon is not None and audited.may_be_buffered:
            reasons.append("epsilon: the rounds: a node cannot see that they are not buffered")
        if privacy is not None:
            reasons.extend(privacy.unseen())
        if reasons:
            raise refused_by_policy(reasons)

    def _check_request(self, request: Request, process: Process) -> None:
        if request.program != program_digest(process):
            raise ExecutionError(
                "E763",
                "the server asks for a round of another program than the one in the node's app",
                help="let the server and all nodes run one app",
            )
        is_masked = history_of(self.memory.participant).has_begun(request.program, request.round)
        is_mixed = request.round == self.memory.last_round and (
            is_masked != (request.secure_sums == MASKED)
        )
        if request.round < max(1, self.memory.last_round) or is_mixed:
            raise ExecutionError(
                "E774",
                f"the server asks for round {request.round} after round {self.memory.last_round}",
                notes=(
                    "it was asked for with masks before, and now without, or the reverse"
                    if is_mixed
                    else "a message of an earlier round was held back, or sent again",
                ),
                help="begin a new run to repeat rounds",
            )


@dataclasses.dataclass(frozen=True, slots=True)
class _Limits:
    """What policies say of a node's part in rounds: the least number of clients, and how many
    rounds of a program there may be, if that is limited."""

    least_clients: int = 0
    rounds: int | None = None

    def with_policy(self, policy: Policy) -> _Limits:
        """Return the limits that a policy leaves."""
        rounds = [] if policy.epsilon is None else [policy.epsilon.rounds]
        return _Limits(
            max(self.least_clients, policy.least_clients),
            min([*rounds, *([] if self.rounds is None else [self.rounds])], default=None),
        )


def _audited(bundle: Bundle) -> tuple[Audit, nodes.Node]:
    """Return the audit of a bundle's program, and the program, after checking that its components
    compute it: that is proved, or the program compiles to them here.

    Raises:
      PolicyError: neither is so.
    """
    reading = read_for_audit(bundle)
    if reading.is_proved:
        return audit_bundle(bundle, reading), reading.program
    compiled = compile_form(bundle.computation, bundle.form).components()
    if {n: wire.to_bytes(c) for n, c in compiled.items()} != {
        n: wire.to_bytes(c) for n, c in bundle.components.items()
    }:
        raise PolicyError(
            "E775",
            "the components of the bundle are not what its program compiles to here",
            notes=("the policy is held against the program, and says nothing of them",),
            help="compile the bundle with the node's version of tffc, and without other passes",
        )
    return audit(bundle.computation, bundle.form), bundle.computation


def _check_parameters(request: Request, process: Process) -> None:
    """Check that aggregations are given what the program gives them, such as bounds.

    Raises:
      ExecutionError: the server sends something else, or the program does not tell.
    """
    if encode(process.steps.parameters()) != encode(request.carried):
        raise ExecutionError(
            "E779",
            "the server sends other bounds or first accumulators than the program has",
            help="do not trust the server; or let the program draw none of them at random",
        )


def _check_clients(reply: Reply, least: int) -> None:
    """Check that enough clients of the node are in what leaves it."""
    if reply.clients < least:
        raise ExecutionError(
            "E746",
            f"what would leave the node is of {reply.clients} clients, and {least} are the least",
            help="add clients to the node, or demand fewer with least-clients in its policy",
        )


def _holds_values(accumulators: object) -> bool:
    """Return whether there is any value in accumulators, which may be empty structs."""
    stack = [accumulators]
    while stack:
        item = stack.pop()
        members: object = getattr(item, "members", item)
        if not is_list(members) and not is_tuple(members):
            return True
        stack.extend(members)
    return False


def _folder_of_outputs(settings: NodeSettings) -> pathlib.Path:
    if settings.out is None:
        raise ExecutionError(
            "E766",
            "clients have something in the end of a round, and the node has no folder for it",
            help="start the node with --node-config 'out=\"/path/to/folder\" ...'",
        )
    return settings.out


def _states(request: Request, settings: NodeSettings, process: Process) -> NodeStates | None:
    """Return the states of the node's clients, if they keep any.

    Raises:
      ExecutionError: the server does not say which, or the node has no folder for them.
    """
    type = process.client_state_type
    if type is None:
        return None
    if request.states is None:
        raise malformed("it does not say which states the clients begin with")
    # With other parts the node has other clients.
    part, parts = settings.partition_id, settings.num_partitions
    name = "states" if part is None else f"states-{part}-of-{parts}"
    folder = _folder_of_outputs(settings) / name
    return NodeStates(folder, request.program, request.states, type)
