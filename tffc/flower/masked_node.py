"""A node's part of masked sums: one participant at a time, which takes each step only once.

Between messages the participant, with its secrets, is kept in the node's state, and never leaves
the node.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from tffc.backends.forms.steps import RoundSteps, TupleAggregation
from tffc.errors import DataError, ExecutionError
from tffc.files.reading import read_regular
from tffc.flower.masked_steps import (
    MaskedStep,
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
from tffc.flower.messages import Request, malformed
from tffc.flower.secured import SecuredParts
from tffc.flower.settings import NodeSettings
from tffc.masking.keys import PrivateKey, PublicKey, read_private_key, read_public_key
from tffc.masking.participant import Participant
from tffc.masking.terms import Demands

LONGEST_KEY = 2**16


class MaskedNode:
    """The node's participant; `memory` is its serialized state between messages."""

    def __init__(self, settings: NodeSettings, memory: bytes) -> None:
        self._settings = settings
        self.memory = memory

    def step(self, step: MaskedStep, request: Request) -> Any:
        """Return the node's message in a step other than work.

        Raises:
          ExecutionError: it is not the next step of the sum, or a message from the server or
            another participant is wrong.
        """
        if step is MaskedStep.KEYS:
            name, terms = unpack_terms(request.sent, _label(request))
            self._check_name(name)
            participant = Participant(name, terms, Demands(), self._signer(), self._known())
            return self._keep(step, request, participant, pack_keys(participant.keys()))
        participant = self._participant(step, request)
        match step:
            case MaskedStep.SHARES:
                keys = {n: unpack_keys(each) for n, each in unpack_table(request.sent).items()}
                said: Any = pack_table(participant.shares(keys))
            case MaskedStep.CONFIRMED:
                said = participant.confirmed(_names(request.sent))
            case _:
                said = pack_revealed(participant.revealed(unpack_bytes(request.sent)))
        return self._keep(step, request, participant, said)

    def work(
        self, request: Request, steps: RoundSteps, work: Callable[[Any], list[Any] | None]
    ) -> list[Any]:
        """Return the masked accumulators of all clients.

        `work` computes the accumulators from the values sent to clients, or returns None if there
        are none.

        Raises:
          ExecutionError: as for `step`, or the sums have another size than the terms say.
        """
        participant = self._participant(MaskedStep.WORK, request)
        if not isinstance(request.sent, tuple) or len(request.sent) != 2:
            raise malformed("it does not hold two values")
        sealed, sent = request.sent
        totals = work(sent)
        if totals is None:
            totals = TupleAggregation(steps.aggregations).zero(request.kept)
        parts = SecuredParts(steps, request.kept)
        if parts.segments(totals) != participant.segments:
            raise ExecutionError(
                "E789",
                "the node's secure sums are of another size than the server says",
                help="let all clients add tensors of one shape, which the program's types say",
            )
        masked = participant.masked(unpack_bytes(sealed), parts.vector(totals))
        return self._keep(MaskedStep.WORK, request, participant, parts.with_vector(totals, masked))

    def _participant(self, step: MaskedStep, request: Request) -> Participant:
        """Return the participant, if this is the next step of its sum."""
        found = json.loads(self.memory) if self.memory else {"label": None, "step": ""}
        order = [each.value for each in MaskedStep]
        last = order.index(found["step"]) if found["label"] == label_of(request.attempt) else -1
        expected = order[last + 1] if last + 1 < len(order) else "none"
        if step.value != expected:
            raise too_far(step.value, expected)
        content = found["participant"].encode()
        return Participant.from_bytes(content, self._signer(), self._known())

    def _keep(self, step: MaskedStep, request: Request, participant: Participant, said: Any) -> Any:
        """Save the participant after a step, and return the step's message.

        It is saved before the message is sent, so that the step cannot be repeated with other data,
        which could reveal more than the sum.
        """
        content = participant.to_bytes().decode()
        label = label_of(request.attempt)
        found = {"label": label, "step": step.value, "participant": content}
        self.memory = json.dumps(found).encode()
        return said

    def _check_name(self, name: str) -> None:
        own = self._settings.name
        if own and name != own:
            raise ExecutionError(
                "E790",
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


def _label(request: Request) -> bytes:
    try:
        return bytes.fromhex(label_of(request.attempt))
    except ValueError:
        raise malformed("its attempt has no label") from None


def _names(packed: Any) -> list[str]:
    if not isinstance(packed, tuple) or not all(isinstance(each, bytes) for each in packed):
        raise malformed("it does not hold names")
    return [each.decode(errors="replace") for each in packed]


def _read(path: pathlib.Path) -> bytes:
    try:
        return read_regular(path, LONGEST_KEY)
    except OSError as error:
        raise DataError(
            "E791",
            f"cannot read the key {path}: {error.strerror}",
            help="give the path of a key that the node's user may read",
        ) from error
