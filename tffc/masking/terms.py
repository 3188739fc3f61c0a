"""What the two sides of a masked sum agree on, and what they say to one another."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Mapping

from tffc.masking.keys import joined
from tffc.masking.vectors import Segment


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """One masked sum: the names of its round and attempt, which no other sum may have, how many
    participants can take out masks, and what a vector is."""

    label: bytes
    threshold: int
    segments: tuple[Segment, ...]

    def digest(self) -> bytes:
        """Return a digest to which all keys of the sum are bound."""
        vector = ",".join(f"{segment.modulus}:{segment.size}" for segment in self.segments)
        return hashlib.sha256(joined(self.label, str(self.threshold), vector)).digest()


@dataclasses.dataclass(frozen=True, slots=True)
class Demands:
    """What a participant demands before it takes part.

    With a threshold above two thirds of all participants, a server that lies to participants about
    who survived needs a third of them on its side to see one's vector; above half, a server that
    does not lie sees nothing (theorems 6.3 and 6.5 of the paper).
    """

    participants: int = 3
    fraction: float = 2 / 3

    def met_by(self, participants: int, threshold: int) -> bool:
        """Return whether so many participants, and a threshold, are enough."""
        return participants >= self.participants and (
            participants >= threshold > self.fraction * participants
        )

    def threshold(self, participants: int) -> int:
        """Return the lowest threshold that is enough for so many participants."""
        return int(self.fraction * participants) + 1


@dataclasses.dataclass(frozen=True, slots=True)
class Keys:
    """The public keys of one participant: under one its shares are sealed, the other makes masks.
    The signature is empty where participants do not sign."""

    sealing: bytes
    masking: bytes
    signature: bytes = b""

    def said(self, name: str, digest: bytes) -> bytes:
        """Return what is signed."""
        return joined("keys", name, digest, self.sealing, self.masking)


@dataclasses.dataclass(frozen=True, slots=True)
class Revealed:
    """The shares that one participant gives in the end: by survivor that of his own seed, and by
    one who dropped out that of his secret key."""

    seeds: Mapping[str, int]
    secrets: Mapping[str, int]


def points(names: Collection[str]) -> dict[str, int]:
    """Return the point at which each participant has its shares."""
    return {name: point for point, name in enumerate(sorted(names), start=1)}
