"""The terms of a masked sum, on which both sides agree, and the messages that they exchange."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Mapping

from tffc.runtime.masking.keys import joined
from tffc.runtime.masking.vectors import Segment

COUNT = 8
"""The bytes of a number of clients in a confirmation."""


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one masked sum.

    `label` names its attempt, and must be unique to it.  `threshold` is how many participants
    together can remove masks.  `segments` describe the vectors.  `program` is the digest of what
    participants compute, `round` its number, and `sent` the digest of all that the server sends
    them to compute it from.
    """

    label: bytes
    threshold: int
    segments: tuple[Segment, ...]
    program: str = ""
    round: int = 0
    sent: bytes = b""

    def digest(self) -> bytes:
        """Return a digest of the terms, which all keys and masks of the sum are bound to."""
        vector = ",".join(f"{segment.modulus}:{segment.size}" for segment in self.segments)
        numbers = str(self.threshold), str(self.round)
        parts = ("masked sum", self.label, vector, *numbers, self.program, self.sent)
        return hashlib.sha256(joined(*parts)).digest()


@dataclasses.dataclass(frozen=True, slots=True)
class Demands:
    """The minimum that a participant demands before it takes part.

    With a threshold above two thirds of all participants, a server that lies about who survived
    needs at least a third of them on its side to see one vector; above half, an honest server
    learns nothing but the sum (theorems 6.3 and 6.5 of the paper in `tffc.runtime.masking`).

    Before it reveals anything, a participant demands that at least `participants` with a client
    each confirmed the sum, and that they have `clients` in all.
    """

    participants: int = 3
    fraction: float = 2 / 3
    clients: int = 0

    def met_by(self, participants: int, threshold: int) -> bool:
        """Return whether this number of participants and this threshold are enough."""
        return participants >= self.participants and (
            participants >= threshold > self.fraction * participants
        )

    def threshold(self, participants: int) -> int:
        """Return the lowest threshold that is enough for this number of participants."""
        return int(self.fraction * participants) + 1


@dataclasses.dataclass(frozen=True, slots=True)
class Keys:
    """The public keys of one participant: `sealing` for shares, `masking` for pairwise masks.

    The signature is empty if participants do not sign.
    """

    sealing: bytes
    masking: bytes
    signature: bytes = b""

    def said(self, name: str, digest: bytes) -> bytes:
        """Return the message that the signature signs."""
        return joined("keys", name, digest, self.sealing, self.masking)


@dataclasses.dataclass(frozen=True, slots=True)
class Confirmation:
    """What one participant confirms: how many clients are in its vector, under its signature."""

    clients: int
    signature: bytes

    def to_bytes(self) -> bytes:
        """Return the confirmation as a message."""
        return self.clients.to_bytes(COUNT, "little") + self.signature

    @classmethod
    def from_bytes(cls, content: bytes) -> Confirmation:
        """Restore a confirmation; a message that is too short has no clients and no signature."""
        if len(content) < COUNT:
            return cls(0, b"")
        return cls(int.from_bytes(content[:COUNT], "little"), content[COUNT:])


@dataclasses.dataclass(frozen=True, slots=True)
class Revealed:
    """The shares that one participant reveals at the end.

    `seeds` has, by survivor, its share of that one's seed; `secrets` has, by participant that
    dropped out, its share of that one's masking key.
    """

    seeds: Mapping[str, int]
    secrets: Mapping[str, int]


def points(names: Collection[str]) -> dict[str, int]:
    """Return the point at which each participant's shares are evaluated."""
    return {name: point for point, name in enumerate(sorted(names), start=1)}
