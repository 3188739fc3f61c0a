"""The server's side of a masked sum, which learns the sum and who took part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Generic, TypeVar

import numpy as np

from tffc.runtime.masking.commitments import BOTH, SEED, SHARE
from tffc.runtime.masking.keys import TAG, Agreement, derived, distinct_points
from tffc.runtime.masking.purposes import purpose_of_mask, purpose_of_own_mask
from tffc.runtime.masking.recovery import Recovery
from tffc.runtime.masking.terms import Keys, Revealed, Terms, points
from tffc.runtime.masking.vectors import Segment, Vector, add, expand, subtract
from tffc.support.errors import ExecutionError

Said = TypeVar("Said")

SEALED, OWN = 2 * SHARE + TAG + BOTH, SEED + BOTH
"""The bytes of what a participant deals to another one, and to itself."""


class _Inbox(Generic[Said]):
    """The messages of one step by participant.

    The first message of each participant counts; repeated ones, those of others, and those that
    arrive after the end of the step are ignored.
    """

    def __init__(self, step: str, expected: Collection[str]) -> None:
        self.step = step
        self.expected = expected
        self.said: dict[str, Said] = {}
        self.is_open = True

    def counts(self, name: str) -> bool:
        """Return whether a message of a participant would count."""
        return self.is_open and name in self.expected and name not in self.said

    def receive(self, name: str, said: Said) -> bool:
        """Take the message of a participant; return whether it counts."""
        counts = self.counts(name)
        if counts:
            self.said[name] = said
        return counts

    def close(self, least: int) -> dict[str, Said]:
        """End the step; return all messages, sorted by participant.

        Raises:
          ExecutionError: there are fewer than `least`; the step then goes on.
        """
        self.is_open = len(self.said) < least
        if len(self.said) < least:
            raise ExecutionError(
                "E980",
                f"{len(self.said)} of {len(self.expected)} participants gave their {self.step}, "
                f"and a masked sum needs {least}",
                help="repeat the round with more participants, or wait longer for them",
            )
        return dict(sorted(self.said.items()))


class Aggregator:
    """The server's side of one sum over participants with these names.

    Each step has a method that receives the message of one participant, in any order and any number
    of times, and one that ends the step and returns what to send next.  The latter raise an
    ExecutionError if too few participants are left: the sum has to begin again, under a new label.

    `wrong` has those who revealed wrong shares, after the end of the sum.
    """

    def __init__(self, names: Collection[str], terms: Terms) -> None:
        self._terms = terms
        self._digest = terms.digest()
        self._keys: _Inbox[Keys] = _Inbox("keys", frozenset(names))
        self._shares: _Inbox[Mapping[str, bytes]] = _Inbox("shares", ())
        self._arrived: _Inbox[None] = _Inbox("vectors", ())
        self._confirmed: _Inbox[bytes] = _Inbox("confirmations", ())
        self._revealed: _Inbox[Revealed] = _Inbox("revealed shares", ())
        self._points: set[int] = set()
        self._total: Vector = _nothing(terms.segments)
        self.wrong: frozenset[str] = frozenset()

    def receive_keys(self, name: str, keys: Keys) -> None:
        """Take the public keys of a participant.

        Raises:
          ExecutionError: no participant would go on with these keys among those of all: they are
            invalid, or agree on the same secrets as a key that is there.
        """
        if not self._keys.counts(name):
            return
        points = distinct_points((keys.sealing, keys.masking))
        if len({*points} - self._points) < len(points):
            raise _unfit(name, "it has a public key of another")
        self._points.update(points)
        self._keys.receive(name, keys)

    def all_keys(self) -> dict[str, Keys]:
        """End the first step; return the keys of all participants, to be sent to each of them."""
        keys = self._keys.close(self._terms.threshold)
        self._shares.expected = keys.keys()
        return keys

    def receive_shares(self, name: str, shares: Mapping[str, bytes]) -> None:
        """Take the sealed shares that a participant made for the others, if they are complete.

        Raises:
          ExecutionError: some have another size than shares.
        """
        if shares.keys() != self._shares.expected:
            return
        if any(len(share) != (OWN if to == name else SEALED) for to, share in shares.items()):
            raise _unfit(name, "its shares have another size than shares")
        self._shares.receive(name, shares)

    def all_shares(self) -> dict[str, dict[str, bytes]]:
        """End the second step; return for each participant the shares that others sealed for it."""
        shares = self._shares.close(self._terms.threshold)
        self._arrived.expected = shares.keys()
        return {
            name: {other: sealed[name] for other, sealed in shares.items() if other != name}
            for name in shares
        }

    def receive_masked(self, name: str, vector: Vector) -> None:
        """Take the masked vector of a participant; it is added up and not kept.

        Raises:
          ExecutionError: the vector does not have the segments of this sum.
        """
        segments = self._terms.segments
        sizes = [(len(part), part.dtype) for part in vector]
        if sizes != [(segment.size, segment.dtype) for segment in segments]:
            raise ExecutionError(
                "E860",
                f"{name} sends a vector that does not belong to this masked sum",
                help="run the same version of the program on all participants",
            )
        if self._arrived.receive(name, None):
            self._total = add(self._total, vector, segments)

    def survivors(self) -> list[str]:
        """End the third step; return the participants whose vectors are in the sum, sorted."""
        survivors = list(self._arrived.close(self._terms.threshold))
        self._confirmed.expected = self._revealed.expected = survivors
        return survivors

    def receive_confirmed(self, name: str, confirmation: bytes) -> None:
        """Take a participant's confirmation of the set of survivors."""
        self._confirmed.receive(name, confirmation)

    def confirmations(self) -> dict[str, bytes]:
        """End the fourth step; return all confirmations, to be sent to everyone who confirmed."""
        return self._confirmed.close(self._terms.threshold)

    def receive_revealed(self, name: str, revealed: Revealed) -> None:
        """Take the shares that a participant reveals at the end, if they are complete."""
        is_whole = revealed.seeds.keys() == self._arrived.said.keys()
        if is_whole and set(revealed.secrets) == self._dropped():
            self._revealed.receive(name, revealed)

    def total(self) -> Vector:
        """End the sum; return the sum of the survivors' vectors; raises as `masks` does.

        After a failure more shares can be received, and the sum ended again.
        """
        return subtract(self._total, self.masks(), self._terms.segments)

    def masks(self) -> Vector:
        """End the sum; return the total of the masks that remain in the sum of the masked vectors.

        These are each survivor's own mask, and the survivors' halves of their pairwise masks with
        those who dropped out.

        Raises:
          ExecutionError: too few participants are left, or the shares are not those of this sum.
        """
        revealed = self._revealed.close(self._terms.threshold)
        recovery = Recovery(
            self._digest,
            self._terms.threshold,
            points(self._keys.said),
            revealed,
            self._shares.said,
        )
        segments = self._terms.segments
        masks = _nothing(segments)
        try:
            for name in self._arrived.said:
                purpose = purpose_of_own_mask(self._digest, name)
                own = expand(derived(recovery.seed(name), purpose), segments)
                masks = add(masks, own, segments)
            for name in self._dropped():
                agreement = recovery.agreement(name, self._keys.said[name].masking)
                masks = self._with_masks_of(name, agreement, masks)
        except ExecutionError:
            self._revealed.is_open = True
            raise
        finally:
            self.wrong = frozenset(recovery.wrong)
        return masks

    def _dropped(self) -> set[str]:
        """Return those who shared their secrets but sent no vector."""
        return self._shares.said.keys() - self._arrived.said.keys()

    def _with_masks_of(self, dropped: str, agreement: Agreement, masks: Vector) -> Vector:
        """Add to `masks` what survivors added as their halves of the pairwise masks with
        `dropped`."""
        keys, segments = self._keys.said, self._terms.segments
        for name in self._arrived.said:
            purpose = purpose_of_mask(self._digest, dropped, name)
            # A survivor added the mask if its name comes first and subtracted it otherwise.
            mask = expand(agreement.agree(keys[name].masking, purpose), segments)
            masks = (add if name < dropped else subtract)(masks, mask, segments)
        return masks


def _unfit(name: str, why: str) -> ExecutionError:
    return ExecutionError(
        "E860",
        f"the others would not go on with what {name} sends: {why}",
        help="leave the participant out if it happens again",
    )


def _nothing(segments: Iterable[Segment]) -> Vector:
    return [np.zeros(segment.size, segment.dtype) for segment in segments]
