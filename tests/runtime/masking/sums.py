"""Masked sums in this process, with what everyone saw of them."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tffc.runtime.masking.aggregator import Aggregator
from tffc.runtime.masking.history import History
from tffc.runtime.masking.keys import PrivateKey
from tffc.runtime.masking.participant import Participant
from tffc.runtime.masking.terms import Demands, Keys, Terms
from tffc.runtime.masking.vectors import Segment, Vector, add
from tffc.support.errors import ExecutionError

SEGMENTS = (Segment(2**32, 5), Segment(1000, 3), Segment(2**64, 1))
STEPS = ("keys", "shares", "masked", "confirmed", "revealed")
NAMES = [f"silo-{number}" for number in range(6)]


def vector(number: int) -> Vector:
    """A vector of one participant."""
    draw = random.Random(number)
    return [np.array([draw.randrange(s.modulus) for _ in range(s.size)], s.dtype) for s in SEGMENTS]


Test = TypeVar("Test", bound=Callable[..., None])

PLAYED: set[str] = set()
"""The attacks of the table in docs/secure-sums.md that tests play."""


def plays(attack: str) -> Callable[[Test], Test]:
    """Say which attack a test plays."""
    PLAYED.add(attack)
    return lambda test: test


@dataclasses.dataclass
class Sum:
    """One masked sum in this process, with what everyone saw of it."""

    threshold: int = 5
    names: list[str] = dataclasses.field(default_factory=lambda: list(NAMES))
    signing: bool = False
    label: bytes = b"round 1"
    demands: Demands = dataclasses.field(default_factory=Demands)
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The other fields of the terms."""
    told: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    """The fields of the terms that the server tells some participants otherwise."""
    histories: Mapping[str, History] = dataclasses.field(default_factory=dict)
    signers: Mapping[str, PrivateKey] = dataclasses.field(default_factory=dict)
    clients: Mapping[str, int] = dataclasses.field(default_factory=dict)
    vectors: dict[str, Vector] = dataclasses.field(
        default_factory=lambda: {name: vector(i) for i, name in enumerate(NAMES)}
    )

    def __post_init__(self) -> None:
        self.terms = Terms(self.label, self.threshold, SEGMENTS, **self.about)
        self.signers = self.signers or signers_of(self.names) if self.signing else {}
        self.people = {name: self.participant(name) for name in self.names}
        self.server = Aggregator(self.names, self.terms)
        self.masked: dict[str, Vector] = {}

    def participant(self, name: str) -> Participant:
        """A participant, which knows the signing keys of the others, and not its own."""
        terms = dataclasses.replace(self.terms, **self.told.get(name, {}))
        known = {n: key.public() for n, key in self.signers.items() if n != name}
        signer = self.signers.get(name)
        history = self.histories.get(name, History())
        known = known if self.signing else None
        return Participant(name, terms, self.demands, signer, known, history)

    def keys(self) -> dict[str, Keys]:
        """The public keys that all give."""
        return {name: each.keys() for name, each in self.people.items()}

    def expected(self, survivors: Iterable[str]) -> list[list[int]]:
        """The sum of these participants' vectors."""
        total: Vector = [np.zeros(s.size, s.dtype) for s in SEGMENTS]
        for name in survivors:
            total = add(total, self.vectors[name], SEGMENTS)
        return [part.tolist() for part in total]

    def run(
        self,
        lost: Callable[[str, str], bool] = lambda step, name: False,
        order: Callable[[list[str]], list[str]] = list,
        doubled: Callable[[], bool] = lambda: False,
    ) -> list[list[int]]:
        """Return the sum; messages come in an order, may be lost for good, and may be doubled."""
        alive = list(self.names)

        def each(step: str, receive: Callable[[str], Callable[[], None]]) -> None:
            # Who drops out at a step says nothing in it, nor later.
            alive[:] = [name for name in alive if not lost(step, name)]
            for name in order(alive):
                deliver = receive(name)
                deliver()
                if doubled():
                    deliver()

        server, people = self.server, self.people

        def receive_keys(name: str) -> Callable[[], None]:
            return functools.partial(server.receive_keys, name, people[name].keys())

        each("keys", receive_keys)
        keys = server.all_keys()

        def receive_shares(name: str) -> Callable[[], None]:
            return functools.partial(server.receive_shares, name, people[name].shares(keys))

        each("shares", receive_shares)
        shares = server.all_shares()

        def receive_masked(name: str) -> Callable[[], None]:
            person = people[name]
            clients, sent = self.clients.get(name, 1), person.terms.sent
            self.masked[name] = person.masked(shares[name], self.vectors[name], sent, clients)
            return functools.partial(server.receive_masked, name, self.masked[name])

        each("masked", receive_masked)
        survivors = server.survivors()

        def receive_confirmed(name: str) -> Callable[[], None]:
            return functools.partial(
                server.receive_confirmed, name, people[name].confirmed(survivors)
            )

        each("confirmed", receive_confirmed)
        confirmations = server.confirmations()

        def receive_revealed(name: str) -> Callable[[], None]:
            revealed = people[name].revealed(confirmations)
            return functools.partial(server.receive_revealed, name, revealed)

        each("revealed", receive_revealed)
        return [part.tolist() for part in server.total()]


def signers_of(names: Iterable[str]) -> dict[str, PrivateKey]:
    """New signing keys."""
    return {name: PrivateKey(Ed25519PrivateKey.generate()) for name in names}


def refused(call: Callable[[], object]) -> str:
    """The text of the refusal."""
    with pytest.raises(ExecutionError) as refusal:
        call()
    return f"{refusal.value.code}: {refusal.value.message}"
