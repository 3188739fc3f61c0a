"""The terms of a masked sum, on which both sides agree, and the messages that they exchange."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Mapping

from tffc.masking.keys import joined
from tffc.masking.vectors import Segment


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one masked sum.

    `label` names its round and attempt, and must be unique to it.  `threshold` is how many
    participants together can remove masks.  `segments` describe the vectors.
    """

    label: bytes
    threshold: int
    segments: tuple[Segment, ...]

    def digest(self) -> bytes:
        """Return a digest of the terms, which all keys of the sum are bound to."""
        vector = ",".join(f"{segment.modulus}:{segment.size}" for segment in self.segments)
        return hashlib.sha256(joined(self.label, str(self.threshold), vector)).digest()


@dataclasses.dataclass(frozen=True, slots=True)
class Demands:
    """The minimum that a participant demands before it takes part.

    With a threshold above two thirds of all participants, a server that lies about who survived
    needs at least a third of them on its side to see one vector; above half, an honest server
    learns nothing but the sum (theorems 6.3 and 6.5 of the paper in `tffc.masking`).
    """

    participants: int = 3
    fraction: float = 2 / 3

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
