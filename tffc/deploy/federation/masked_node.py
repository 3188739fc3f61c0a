"""A node's part of masked sums: one participant at a time, which takes each step only once.

Between messages the participant, with its secrets, is kept in the node's state, and never leaves
the node.  Beside it is the history of the node's sums, which may also be in a folder.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import TypedDict, TypeVar, cast

from tffc.backends.forms.steps import RoundSteps
from tffc.deploy.federation.masked_steps import (
    MaskedStep,
    digest_of_sent,
    label_of,
    pack_keys,
    pack_revealed,
    pack_table,
    too_far,
    unpack_bytes,
    unpack_keys,
    unpack_table,
    unpack_terms,
)
from tffc.deploy.federation.messages import Reply, Request, malformed
from tffc.deploy.federation.past import history_of, remembered
from tffc.deploy.federation.secured import SecuredParts
from tffc.deploy.federation.settings import NodeSettings
from tffc.runtime.masking.keys import PrivateKey, PublicKey, read_private_key, read_public_key
from tffc.runtime.masking.participant import Participant
from tffc.runtime.masking.terms import Demands
from tffc.support.errors import DataError, ExecutionError
from tffc.support.files.reading import read_regular
from tffc.support.guards import is_tuple

LONGEST_KEY = 2**16


T = TypeVar("T")


class _Held(TypedDict, total=False):
    """What the memory of a node has beside the history: the sum that it takes part in, and the last
    step that was done."""

    label: str
    round: int
    step: str
    participant: str


class MaskedNode:
    """The node's participant; `memory` is its serialized state between messages.

    The node takes part only in sums of at least `least_clients` clients.
    """

    def __init__(self, settings: NodeSettings, memory: bytes, least_clients: int = 0) -> None:
        self._settings = settings
        self._demands = Demands(settings.least_participants, clients=least_clients)
        self._history = history_of(memory)
        self.memory = memory

    def step(self, step: MaskedStep, request: Request) -> object:
        """Return the node's message in a step other than work.

        Raises:
          ExecutionError: it is not the next step of the sum, or a message from the server or
            another participant is wrong.
          DataError: a key or the folder of its memory cannot be read.
        """
        with remembered(self._settings.memory, self._history):
            if step is MaskedStep.KEYS:
                return self._taken(step, request, self._begun(request), _keys)
            participant = self._participant(step, request)
            does = {
                MaskedStep.SHARES: _shares,
                MaskedStep.CONFIRMED: _confirmed,
                MaskedStep.REVEALED: _revealed,
            }
            return self._taken(step, request, participant, does[step])

    def work(
        self, request: Request, steps: RoundSteps, work: Callable[[object], Reply]
    ) -> tuple[Reply, list[object]]:
        """Return a reply without accumulators, and the masked accumulators of all clients.

        `work` computes a reply with the accumulators from the values sent to clients.

        Raises:
          ExecutionError: as for `step`, the server sent other values than it said before, or the
            sums have another size than the terms say.
        """
        if not is_tuple(request.sent) or len(request.sent) != 2:
            raise malformed("it does not hold two values")
        participant = self._participant(MaskedStep.WORK, request)
        sealed, sent = request.sent
        shares = unpack_bytes(sealed)
        received = digest_of_sent(request.carried, sent)

        def does(participant: Participant, request: Request) -> tuple[Reply, list[object]]:
            # Before clients compute anything.
            participant.agree(shares, received)
            reply = work(sent)
            totals = reply.accumulators
            parts = SecuredParts(steps, request.carried)
            if parts.segments(totals) != participant.segments:
                raise ExecutionError(
                    "E789",
                    "the node's secure sums are of another size than the server says",
                    help="let all clients add tensors of one shape, which the program's types say",
                )
            vector = parts.vector(totals)
            masked = participant.masked(shares, vector, received, reply.clients)
            return reply, parts.with_vector(totals, masked)

        return self._taken(MaskedStep.WORK, request, participant, does)

    def _begun(self, request: Request) -> Participant:
        name, terms = unpack_terms(request)
        self._check_name(name)
        signer, known = self._signer(), self._known()
        return Participant(name, terms, self._demands, signer, known, self._history)

    def _participant(self, step: MaskedStep, request: Request) -> Participant:
        """Return the participant, if this is the next step of its sum."""
        held = self._held()
        order = [step.value for step in MaskedStep]
        is_this = held.get("label") == label_of(request.attempt)
        is_this = is_this and held.get("round") == request.round
        done = order.index(held.get("step", "")) + 1 if is_this else 0
        expected = order[done] if done < len(order) else "none"
        if step.value != expected or not is_this:
            raise too_far(step.value, expected)
        content = held.get("participant", "").encode()
        return Participant.from_bytes(content, self._signer(), self._known(), self._history)

    def _taken(
        self,
        step: MaskedStep,
        request: Request,
        participant: Participant,
        does: Callable[[Participant, Request], T],
    ) -> T:
        """Take a step; save the participant and return the step's message.

        It is saved before the message is sent, so that the step cannot be repeated with other data,
        which could reveal more than the sum.  After a failure the sum is over.
        """
        try:
            message = does(participant, request)
        except BaseException:
            # A sum that may not begin does not end the one before it.
            self._keep(self._held() if step is MaskedStep.KEYS else {})
            raise
        # After the last step nothing needs its secrets.
        is_last = step is MaskedStep.REVEALED
        self._keep(
            {
                "label": label_of(request.attempt),
                "round": request.round,
                "step": step.value,
                "participant": "" if is_last else participant.to_bytes().decode(),
            }
        )
        return message

    def _held(self) -> _Held:
        # The node itself wrote its memory.
        return cast("_Held", json.loads(self.memory)) if self.memory else {}

    def _keep(self, held: _Held) -> None:
        self.memory = json.dumps({**held, "history": self._history.to_json()}).encode()

    def _check_name(self, name: str) -> None:
        own = self._settings.name
        if own and name != own:
            raise ExecutionError(
                "E766",
                f"the server calls the node {name!r}, which is {own!r}",
                help="register the node under its name, or leave the name out of its configuration",
            )

    def _signer(self) -> PrivateKey | None:
        path = self._settings.key
        return None if path is None else read_private_key(_read(path))

    def _known(self) -> Mapping[str, PublicKey] | None:
        """Return the public keys of the nodes that this one knows, by name."""
        folder = self._settings.known
        if folder is None:
            return None
        return {path.stem: read_public_key(_read(path)) for path in sorted(folder.glob("*.pub"))}


def _keys(participant: Participant, request: Request) -> object:
    return pack_keys(participant.keys())


def _shares(participant: Participant, request: Request) -> object:
    keys = {name: unpack_keys(packed) for name, packed in unpack_table(request.sent).items()}
    return pack_table(participant.shares(keys))


def _confirmed(participant: Participant, request: Request) -> object:
    return participant.confirmed(_names(request.sent))


def _revealed(participant: Participant, request: Request) -> object:
    return pack_revealed(participant.revealed(unpack_bytes(request.sent)))


def _names(packed: object) -> list[str]:
    encoded = packed if is_tuple(packed) else (None,)
    names = [name.decode(errors="replace") for name in encoded if isinstance(name, bytes)]
    if len(names) != len(encoded):
        raise malformed("it does not hold names")
    return names


def _read(path: pathlib.Path) -> bytes:
    try:
        return read_regular(path, LONGEST_KEY)
    except OSError as error:
        raise DataError(
            "E787",
            f"cannot read the key {path}: {error.strerror}",
            help="give the path of a key that the node's user may read",
        ) from error
