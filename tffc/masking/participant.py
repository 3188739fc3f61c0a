"""A participant's side of a masked sum, which trusts the server only to carry messages."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping

from tffc.errors import ExecutionError
from tffc.masking.keys import (
    BYTES,
    Agreement,
    PrivateKey,
    PublicKey,
    joined,
    joined_names,
    seal,
    unseal,
)
from tffc.masking.shamir import PRIME, split
from tffc.masking.terms import Demands, Keys, Revealed, Terms, points
from tffc.masking.vectors import Segment, Vector, add, expand, subtract

SHARE = (PRIME.bit_length() + 7) // 8
"""The size of a share in bytes."""


class Participant:
    """Takes part in one sum, under a name; each method is called once, in order of definition.

    With a `signer` it signs its messages, and `known` verifies those of the others, by their names.
    Without them the server is trusted to tell all participants of the same keys and survivors.

    Raises:
      ExecutionError: a message from the server or another participant would reveal more than the
        sum.
        The participant then takes no further part.
    """

    def __init__(
        self,
        name: str,
        terms: Terms,
        demands: Demands | None = None,
        signer: PrivateKey | None = None,
        known: Mapping[str, PublicKey] | None = None,
    ) -> None:
        self.name = name
        self._terms = terms
        self._demands = demands or Demands()
        self._signer = signer
        self._known = known
        self._digest = terms.digest()
        self._sealing, self._masking = Agreement(), Agreement()
        self._seed = os.urandom(BYTES)
        self._keys: Mapping[str, Keys] = {}
        self._shares: dict[str, tuple[int, int]] = {}
        self._survivors: frozenset[str] | None = None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of its vector."""
        return self._terms.segments

    def to_bytes(self) -> bytes:
        """Return its whole state, including secrets, to continue in another process."""
        terms, demands = self._terms, self._demands
        return json.dumps(
            {
                "name": self.name,
                "label": terms.label.hex(),
                "threshold": terms.threshold,
                "segments": [[segment.modulus, segment.size] for segment in terms.segments],
                "demands": [demands.participants, demands.fraction],
                "sealing": self._sealing.secret.hex(),
                "masking": self._masking.secret.hex(),
                "seed": self._seed.hex(),
                "keys": {name: _hex(keys) for name, keys in self._keys.items()},
                "shares": self._shares,
                "survivors": None if self._survivors is None else sorted(self._survivors),
            }
        ).encode()

    @classmethod
    def from_bytes(
        cls,
        content: bytes,
        signer: PrivateKey | None = None,
        known: Mapping[str, PublicKey] | None = None,
    ) -> Participant:
        """Restore a participant from the result of `to_bytes`."""
        found = json.loads(content)
        segments = tuple(Segment(*each) for each in found["segments"])
        terms = Terms(bytes.fromhex(found["label"]), found["threshold"], segments)
        made = cls(found["name"], terms, Demands(*found["demands"]), signer, known)
        made._sealing = Agreement(bytes.fromhex(found["sealing"]))
        made._masking = Agreement(bytes.fromhex(found["masking"]))
        made._seed = bytes.fromhex(found["seed"])
        made._keys = {n: Keys(*map(bytes.fromhex, each)) for n, each in found["keys"].items()}
        made._shares = {name: tuple(pair) for name, pair in found["shares"].items()}
        survivors = found["survivors"]
        made._survivors = None if survivors is None else frozenset(survivors)
        return made

    def keys(self) -> Keys:
        """Return its public keys for this sum, signed if it signs."""
        keys = Keys(self._sealing.public, self._masking.public)
        signature = self._sign(keys.said(self.name, self._digest))
        return Keys(keys.sealing, keys.masking, signature)

    def shares(self, keys: Mapping[str, Keys]) -> dict[str, bytes]:
        """Return its shares for each other participant, sealed, given the keys of all.

        The secrets are split into shares for everyone, its own included, which it keeps.
        """
        self._check_keys(keys)
        self._keys = keys
        at = points(keys)
        own = (int.from_bytes(secret, "little") for secret in (self._seed, self._masking.secret))
        seeds, secrets = (split(secret, self._terms.threshold, at.values()) for secret in own)
        pairs = dict(zip(at, zip(seeds, secrets, strict=True), strict=True))
        self._shares[self.name] = pairs.pop(self.name)
        return {other: self._seal(other, *pair) for other, pair in pairs.items()}

    def masked(self, sealed: Mapping[str, bytes], vector: Vector) -> Vector:
        """Return its vector under masks, given the shares that others sealed for it.

        A participant that sealed no shares has dropped out, so there is no mask between the two.
        """
        for other in sealed:
            self._shares[other] = self._unseal(other, sealed[other])
        self._check_enough(self._shares, "shares of their secrets")
        segments = self._terms.segments
        total = add(vector, expand(self._seed, segments), segments)
        for other in sealed:
            mask = expand(self._pairwise_seed(other), segments)
            # One of the two adds the mask that both expand, the other subtracts it: it cancels in
            # the sum.
            total = (add if self.name < other else subtract)(total, mask, segments)
        return total

    def confirmed(self, survivors: Collection[str]) -> bytes:
        """Return its signature of the set of survivors, empty if participants do not sign."""
        chosen = frozenset(survivors)
        # Two sets of survivors would make it reveal both secrets of one participant, and so its
        # vector.
        if self._survivors not in (None, chosen):
            raise self._refusal("E984", "it is told of other survivors than before")
        if not chosen <= self._shares.keys() or self.name not in chosen:
            raise self._refusal("E986", "the survivors are not participants, or it is none of them")
        self._check_enough(chosen, "their vectors")
        self._survivors = chosen
        return self._sign(_said_of_survivors(self._digest, chosen))

    def revealed(self, confirmations: Mapping[str, bytes]) -> Revealed:
        """Return the shares that let the server remove the masks, given what participants
        confirmed.

        For each participant it reveals one of two secrets, never both: the seed of a survivor's own
        mask, or the key of one who dropped out, which yields the pairwise masks.
        """
        assert self._survivors is not None, "`confirmed` comes first"
        if self._known is not None:
            said = _said_of_survivors(self._digest, self._survivors)
            for other, signature in confirmations.items():
                self._verify(other, signature, said)
            self._check_enough(confirmations, "a signature under who survived")
        seeds = {name: self._shares[name][0] for name in self._survivors}
        dropped = self._shares.keys() - self._survivors
        return Revealed(seeds, {name: self._shares[name][1] for name in dropped})

    def _check_keys(self, keys: Mapping[str, Keys]) -> None:
        own = keys.get(self.name)
        if own is None or (own.sealing, own.masking) != (
            self._sealing.public,
            self._masking.public,
        ):
            raise self._refusal("E981", "its own public keys are not among those of all")
        every = [key for each in keys.values() for key in (each.sealing, each.masking)]
        if len(set(every)) < len(every):
            raise self._refusal("E987", "two participants have one public key")
        if not self._demands.met_by(len(keys), self._terms.threshold):
            raise self._refusal(
                "E988",
                f"{len(keys)} participants with a threshold of {self._terms.threshold} are less "
                f"than it demands: {self._demands.participants}, and more than "
                f"{self._demands.fraction:.0%} of them as the threshold",
            )
        if self._known is not None:
            for name, each in keys.items():
                self._verify(name, each.signature, each.said(name, self._digest))

    def _check_enough(self, names: Collection[str], gave: str) -> None:
        if len(names) < self._terms.threshold:
            raise self._refusal(
                "E989",
                f"{len(names)} participants gave {gave}, and the threshold is "
                f"{self._terms.threshold}",
            )

    def _sign(self, said: bytes) -> bytes:
        return b"" if self._signer is None else self._signer.sign(said)

    def _verify(self, name: str, signature: bytes, said: bytes) -> None:
        assert self._known is not None
        if name not in self._known or not self._known[name].verify(signature, said):
            raise self._refusal("E985", f"what {name} says is not signed with a key it knows")

    def _seal(self, other: str, seed: int, secret: int) -> bytes:
        shares = b"".join(share.to_bytes(SHARE, "little") for share in (seed, secret))
        return seal(self._sealing_key(other, self.name, other), shares)

    def _unseal(self, other: str, sealed: bytes) -> tuple[int, int]:
        shares = None
        if other in self._keys and other != self.name:
            shares = unseal(self._sealing_key(other, other, self.name), sealed)
        if shares is None:
            raise self._refusal("E982", f"the shares of {other} are damaged")
        return (
            int.from_bytes(shares[:SHARE], "little"),
            int.from_bytes(shares[SHARE:], "little"),
        )

    def _sealing_key(self, other: str, sender: str, receiver: str) -> bytes:
        purpose = purpose_of_shares(self._digest, sender, receiver)
        return self._sealing.agree(self._keys[other].sealing, purpose)

    def _pairwise_seed(self, other: str) -> bytes:
        purpose = purpose_of_mask(self._digest, self.name, other)
        return self._masking.agree(self._keys[other].masking, purpose)

    def _refusal(self, code: str, why: str) -> ExecutionError:
        return ExecutionError(
            code,
            f"{self.name} takes no further part in a masked sum: {why}",
            help="repeat the round; if it happens again, the server or a participant is not honest "
            "or runs another version",
        )


def _hex(keys: Keys) -> list[str]:
    return [each.hex() for each in (keys.sealing, keys.masking, keys.signature)]


def purpose_of_shares(digest: bytes, sender: str, receiver: str) -> bytes:
    """Return the purpose of the key that seals one participant's shares for another.

    It names the direction: all messages have the same nonce, so no two may have the same key.
    """
    return joined("shares", digest, sender, receiver)


def purpose_of_mask(digest: bytes, one: str, other: str) -> bytes:
    """Return the purpose of the pairwise mask of two participants, the same for both."""
    return joined("mask", digest, joined_names((one, other)))


def _said_of_survivors(digest: bytes, survivors: Collection[str]) -> bytes:
    return joined("survivors", digest, joined_names(survivors))
