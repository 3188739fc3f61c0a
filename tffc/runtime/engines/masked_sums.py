"""Secure sums of a round as masked sums between its clients, to test programs with the protocol.

Each secure sum is a separate masked sum: when the first client contributes to it, all clients of
the round agree on masks, and those that are left out of the round count as dropouts.  A masked
value has the type of the value, so accumulators hold it like any other; the remaining masks are
subtracted from the final sum.  Sums modulo a number are masked modulo that number, all others
modulo the range of their element type, where they wrap around.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tffc.language.nodes import Node
from tffc.language.types import Type
from tffc.language.values.concrete import flatten, unflatten
from tffc.runtime.engines.runtime import EngineRuntime
from tffc.runtime.engines.secure_sums import SecureSum
from tffc.runtime.masking.aggregator import Aggregator
from tffc.runtime.masking.participant import Participant
from tffc.runtime.masking.terms import Demands, Terms
from tffc.runtime.masking.vectors import Segment, Vector, subtract
from tffc.support.errors import ExecutionError

DEMANDS = Demands(participants=1, fraction=0.5)
"""The demands of clients in one process, who can trust the server: any number may be in a round,
and fewer than half of them may be left out."""


class MaskedRound:
    """The clients of one round and their masked sums; `masked` is thread-safe."""

    def __init__(self, clients: Sequence[str]) -> None:
        self._clients = clients
        self._label = os.urandom(16)
        self._sums: dict[Hashable, _ClientsSum] = {}
        self._lock = threading.Lock()

    def masked(self, place: Hashable, client: str, values: Vector, moduli: Sequence[int]) -> Vector:
        """Return the vector that a client sends for the secure sum at a place of the program.

        Raises:
          ExecutionError: clients' vectors differ in length.
        """
        with self._lock:
            if place not in self._sums:
                segments = (Segment(m, v.size) for m, v in zip(moduli, values, strict=True))
                label = self._label + len(self._sums).to_bytes(4, "little")
                self._sums[place] = _ClientsSum(self._clients, label, tuple(segments))
            return self._sums[place].masked(client, values)

    def masks(self, place: Hashable) -> tuple[Vector, tuple[Segment, ...]]:
        """Return the masks left in the sum of the masked vectors, and their segments; both are
        empty if no vector was sent.

        Raises:
          ExecutionError: too few clients sent a value.
        """
        clients_sum = self._sums.get(place)
        return ([], ()) if clients_sum is None else (clients_sum.masks(), clients_sum.segments)


class _ClientsSum:
    """The masked sum of the clients, after the exchange of their shares."""

    def __init__(self, clients: Sequence[str], label: bytes, segments: tuple[Segment, ...]) -> None:
        terms = Terms(label, DEMANDS.threshold(len(clients)), segments)
        self.segments = segments
        self._server = Aggregator(clients, terms)
        self._clients = {name: Participant(name, terms, DEMANDS) for name in clients}
        for name, client in self._clients.items():
            self._server.receive_keys(name, client.keys())
        keys = self._server.all_keys()
        for name, client in self._clients.items():
            self._server.receive_shares(name, client.shares(keys))
        self._shares = self._server.all_shares()

    def masked(self, name: str, values: Vector) -> Vector:
        if [len(v) for v in values] != [s.size for s in self.segments]:
            raise ExecutionError(
                "E789",
                f"the client {name} adds another number of values to a secure sum than those "
                "before it",
                help="let all clients add tensors of one shape, or run with secure sums in the "
                "open",
            )
        # The engine sends nothing: all clients compute from the same values in this process.
        masked = self._clients[name].masked(self._shares[name], values, b"")
        self._server.receive_masked(name, masked)
        return masked

    def masks(self) -> Vector:
        survivors = self._server.survivors()
        for name in survivors:
            self._server.receive_confirmed(name, self._clients[name].confirmed(survivors))
        confirmations = self._server.confirmations()
        for name in survivors:
            self._server.receive_revealed(name, self._clients[name].revealed(confirmations))
        return self._server.masks()


class MaskedRuntime(EngineRuntime):
    """Runs the components of one round, with masked sums between its clients."""

    def __init__(self, clients: Sequence[str], programs: Mapping[str, Node]) -> None:
        super().__init__(programs)
        self._masks = MaskedRound(clients)

    def secure_sum(
        self, place: Hashable, uri: str, type: Type, bound: Any, bound_type: Type
    ) -> SecureSum:
        """See `Runtime`."""
        return MaskedSum(self._masks, place, uri, type, bound, bound_type)


class MaskedSum(SecureSum):
    """A secure sum to which clients contribute masked values."""

    def __init__(self, masks: MaskedRound, place: Hashable, *sum: Any) -> None:
        super().__init__(*sum)
        self._masks = masks
        self._place = place

    def contribution(self, value: Any, client: str) -> Any:
        """See `SecureSum`."""
        self.check(value, client)
        parts = [np.asarray(part) for part in flatten(value, self.type)]
        moduli = [self.modulus(*pair) for pair in zip(parts, self.limits, strict=True)]
        vector = list(map(residues, parts, moduli))
        return self._like(self._masks.masked(self._place, client, vector, moduli), parts)

    def report(self, total: Any) -> Any:
        """See `SecureSum`."""
        masks, segments = self._masks.masks(self._place)
        if not segments:
            return total
        parts = [np.asarray(part) for part in flatten(total, self.type)]
        sums = [residues(p, s.modulus) for p, s in zip(parts, segments, strict=True)]
        return self._like(subtract(sums, masks, segments), parts)

    def _like(self, vector: Vector, parts: Sequence[Any]) -> Any:
        pairs = zip(vector, parts, strict=True)
        signed = (v.astype(p.dtype).reshape(p.shape)[()] for v, p in pairs)
        return unflatten(signed, self.type)


def residues(part: Any, modulus: int) -> Any:
    """Return the numbers of an array modulo `modulus`, as a vector of that segment."""
    flat = part.reshape(-1)
    dtype = Segment(modulus, flat.size).dtype
    wraps = modulus == 256**part.dtype.itemsize
    return (flat if wraps else np.mod(flat, modulus)).astype(dtype)
