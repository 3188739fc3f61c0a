"""A participant's side of a masked sum, which trusts the server only to carry messages."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Collection, Generator, Mapping

from tffc.runtime.masking.commitments import BOTH, SHARE, commit_to_seed, commit_to_shares
from tffc.runtime.masking.history import History
from tffc.runtime.masking.keys import (
    BYTES,
    Agreement,
    PrivateKey,
    PublicKey,
    derived,
    distinct_points,
    joined,
    joined_names,
    seal,
    unseal,
)
from tffc.runtime.masking.purposes import (
    purpose_of_mask,
    purpose_of_own_mask,
    purpose_of_shares,
    view_of,
)
from tffc.runtime.masking.shamir import PRIME, split
from tffc.runtime.masking.terms import Confirmation, Demands, Keys, Revealed, Terms, points
from tffc.runtime.masking.vectors import Segment, Vector, add, expand, subtract
from tffc.support.errors import ExecutionError

STEPS = ("keys", "shares", "masked", "confirmed", "revealed")
"""The steps of a participant, in order."""

REPEAT = (
    "repeat the round; if it happens again, the server or a participant is not honest or runs "
    "another version"
)

UNKNOWN = "give it that key if the participant is one, or let the server ask the others alone"

OVER = ""
"""The step after the last one, and after any that failed."""


class Participant:
    """Takes part in one sum, under a name; each method is called once, in order of definition.

    With a `signer` it signs its messages, and `known` verifies those of the others, by their names.
    Without them the server is trusted to tell all participants of the same keys and survivors.  The
    `history` says what it took part in before, by default under the same signing key, and is
    changed by this sum.  Sums whose terms name no program and no round count as one round.

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
        history: History | None = None,
    ) -> None:
        self.name = name
        self.terms = terms
        self._demands = demands or Demands()
        self._signer = signer
        self._known = known
        remembered = History() if signer is None else signer.history
        self._history = remembered if history is None else history
        self._digest = terms.digest()
        self._sealing, self._masking = Agreement(), Agreement()
        self._seed = os.urandom(BYTES)
        self._keys: Mapping[str, Keys] = {}
        self._shares: dict[str, tuple[int, int]] = {}
        self._clients = 0
        self._survivors: frozenset[str] | None = None
        self._said_by_all = b""
        self._is_agreed = False
        self._next = STEPS[0]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of its vector."""
        return self.terms.segments

    def to_bytes(self) -> bytes:
        """Return its whole state, including secrets, to continue in another process.

        The history is not part of it.
        """
        terms, demands = self.terms, self._demands
        return json.dumps(
            {
                "name": self.name,
                "label": terms.label.hex(),
                "threshold": terms.threshold,
                "segments": [[segment.modulus, segment.size] for segment in terms.segments],
                "context": [terms.program, terms.round, terms.sent.hex()],
                "demands": [demands.participants, demands.fraction, demands.clients],
                "sealing": self._sealing.secret.hex(),
                "masking": self._masking.secret.hex(),
                "seed": self._seed.hex(),
                "keys": {name: _hex(keys) for name, keys in self._keys.items()},
                "shares": self._shares,
                "clients": self._clients,
                "survivors": None if self._survivors is None else sorted(self._survivors),
                "is_agreed": self._is_agreed,
                "next": self._next,
            }
        ).encode()

    @classmethod
    def from_bytes(
        cls,
        content: bytes,
        signer: PrivateKey | None = None,
        known: Mapping[str, PublicKey] | None = None,
        history: History | None = None,
    ) -> Participant:
        """Restore a participant from the result of `to_bytes`, with its history.

        Without a history, it remembers this sum alone.
        """
        held = json.loads(content)
        segments = tuple(Segment(*segment) for segment in held["segments"])
        program, round, sent = held["context"]
        label = bytes.fromhex(held["label"])
        terms = Terms(label, held["threshold"], segments, program, round, bytes.fromhex(sent))
        restored = cls(held["name"], terms, Demands(*held["demands"]), signer, known, history)
        restored._sealing = Agreement(bytes.fromhex(held["sealing"]))
        restored._masking = Agreement(bytes.fromhex(held["masking"]))
        restored._seed = bytes.fromhex(held["seed"])
        restored._keys = {n: Keys(*map(bytes.fromhex, parts)) for n, parts in held["keys"].items()}
        restored._shares = {name: tuple(pair) for name, pair in held["shares"].items()}
        restored._clients = held["clients"]
        survivors = held["survivors"]
        restored._survivors = None if survivors is None else frozenset(survivors)
        restored._is_agreed = held["is_agreed"]
        restored._next = held["next"]
        if history is None and restored._next != STEPS[0]:
            restored._history.begin(program, round, label)
        return restored

    def keys(self) -> Keys:
        """Return its public keys for this sum, signed if it signs."""
        with self._step("keys"):
            terms = self.terms
            self._check_past(self._history.begin(terms.program, terms.round, terms.label))
            keys = Keys(self._sealing.public, self._masking.public)
            signature = self._sign(keys.said(self.name, self._digest))
            return Keys(keys.sealing, keys.masking, signature)

    def shares(self, keys: Mapping[str, Keys]) -> dict[str, bytes]:
        """Return its shares for each other participant, sealed, given the keys of all.

        The secrets are split into shares for everyone, its own included, which it keeps.  Beside
        the shares are commitments to them, and under its own name that to its seed: the server
        finds wrong shares by them.
        """
        with self._step("shares"):
            self._check_keys(keys)
            self._keys = dict(keys)
            at = points(keys)
            own = (
                int.from_bytes(secret, "little") for secret in (self._seed, self._masking.secret)
            )
            seeds, secrets = (split(secret, self.terms.threshold, at.values()) for secret in own)
            pairs = dict(zip(at, zip(seeds, secrets, strict=True), strict=True))
            self._shares[self.name] = pairs[self.name]
            return {other: self._dealt(other, *pair) for other, pair in pairs.items()}

    def masked(
        self, sealed: Mapping[str, bytes], vector: Vector, received: bytes, clients: int = 1
    ) -> Vector:
        """Return its vector under masks, given the shares that others sealed for it.

        `received` is the digest of what the vector was computed from, empty if nothing was sent,
        and `clients` is how many clients are in the vector.  A participant that sealed no shares
        has dropped out, so there is no mask between the two.
        """
        with self._step("masked"):
            self._check_received(received)
            if clients < 1:
                raise self._too_few("its vector is of no client")
            segments = self.terms.segments
            if [(len(p), p.dtype) for p in vector] != [(s.size, s.dtype) for s in segments]:
                raise self._out_of_order("its vector is of another size than that of the sum")
            if not self._is_agreed:
                self._open(sealed)
            self._clients = clients
            total = add(vector, expand(self._own_seed(), segments), segments)
            for other in self._shares.keys() - {self.name}:
                mask = expand(self._pairwise_seed(other), segments)
                # One of the two adds the mask that both expand, the other subtracts it: it cancels
                # in the sum.
                total = (add if self.name < other else subtract)(total, mask, segments)
            return total

    def agree(self, sealed: Mapping[str, bytes], received: bytes) -> None:
        """Check, before the vector is computed, that it is computed from what the terms say, and
        that those who sealed the shares have the same terms."""
        with self._step("masked"):
            self._check_received(received)
            self._open(sealed)
            self._is_agreed = True
        self._next = "masked"

    def _open(self, sealed: Mapping[str, bytes]) -> None:
        for other in sealed:
            self._shares[other] = self._unseal(other, sealed[other])
        self._check_enough(self._shares, "shares of their secrets")

    def _check_received(self, received: bytes) -> None:
        """Check that what it received to compute its vector from is what the terms of all say."""
        if received != self.terms.sent:
            raise self._refusal(
                "E981", "it was sent other values than those that all participants agreed on"
            )

    def confirmed(self, survivors: Collection[str]) -> bytes:
        """Return its confirmation of the set of survivors, unsigned if participants do not sign."""
        chosen = frozenset(survivors)
        # Two sets of survivors would make it reveal both secrets of one participant, and so its
        # vector.
        if self._survivors not in (None, chosen):
            self._next = OVER
            raise self._refusal("E981", "it is told of other survivors than before")
        with self._step("confirmed"):
            if not chosen <= self._shares.keys() or self.name not in chosen:
                raise self._refusal(
                    "E981", "the survivors are not participants, or it is none of them"
                )
            self._check_enough(chosen, "their vectors")
            if len(chosen) < self._demands.participants:
                raise self._too_few(f"{len(chosen)} vectors are in the sum")
            self._survivors = chosen
            signature = self._sign(self._said(self.name, self._clients))
            return Confirmation(self._clients, signature).to_bytes()

    def revealed(self, confirmations: Mapping[str, bytes]) -> Revealed:
        """Return the shares that let the server remove the masks, given what participants
        confirmed.

        For each participant it reveals one of two secrets, never both: the seed of a survivor's own
        mask, or the key of one who dropped out, which yields the pairwise masks.
        """
        with self._step("revealed"):
            assert self._survivors is not None
            self._check_confirmations(confirmations)
            self._check_past(self._history.end(self.terms.program, self.terms.round))
            seeds = {name: self._shares[name][0] for name in self._survivors}
            dropped = self._shares.keys() - self._survivors
            return Revealed(seeds, {name: self._shares[name][1] for name in dropped})

    @contextlib.contextmanager
    def _step(self, step: str) -> Generator[None]:
        """Begin a step, and end it if it does not fail: after a failure there is none."""
        if self._next != step:
            due = self._next or "none"
            self._next = OVER
            raise self._out_of_order(f"it is asked for the step {step}, and the next is {due}")
        self._next = OVER
        yield
        self._next = (*STEPS, OVER)[STEPS.index(step) + 1]

    def _check_past(self, reason: str) -> None:
        if reason:
            raise self._refusal(
                "E774", reason, help="begin a new run, or go on with the next round"
            )

    def _check_keys(self, keys: Mapping[str, Keys]) -> None:
        own = keys.get(self.name)
        if own is None or (own.sealing, own.masking) != (
            self._sealing.public,
            self._masking.public,
        ):
            raise self._refusal("E981", "its own public keys are not among those of all")
        every = distinct_points(
            [k for key_set in keys.values() for k in (key_set.sealing, key_set.masking)]
        )
        signers = [key.to_bytes() for key in map(self._key_of, keys) if key is not None]
        if len(set(every)) < len(every) or len(set(signers)) < len(signers):
            raise self._refusal("E981", "two participants have one public key")
        if not self._demands.met_by(len(keys), self.terms.threshold):
            raise self._refusal(
                "E980",
                f"{len(keys)} participants with a threshold of {self.terms.threshold} are less "
                f"than it demands: {self._demands.participants}, and more than "
                f"{self._demands.fraction:.0%} of them as the threshold",
            )
        for name, announced in keys.items():
            self._verify(name, announced.signature, announced.said(name, self._digest))

    def _check_confirmations(self, confirmations: Mapping[str, bytes]) -> None:
        """Check that enough survivors confirmed what it confirmed; others do not count."""
        assert self._survivors is not None
        clients = {self.name: self._clients}
        for other in self._survivors & confirmations.keys():
            confirmation = Confirmation.from_bytes(confirmations[other])
            if other != self.name:
                self._verify(other, confirmation.signature, self._said(other, confirmation.clients))
                clients[other] = confirmation.clients
        self._check_enough(clients, "a signature under who survived")
        contributing = sum(count > 0 for count in clients.values())
        total = sum(clients.values())
        if contributing < self._demands.participants or total < self._demands.clients:
            raise self._too_few(f"{contributing} with {total} clients in all confirmed the sum")

    def _check_enough(self, names: Collection[str], gave: str) -> None:
        if len(names) < self.terms.threshold:
            raise self._refusal(
                "E980",
                f"{len(names)} participants gave {gave}, and the threshold is "
                f"{self.terms.threshold}",
            )

    def _said(self, name: str, clients: int) -> bytes:
        """Return what a participant signs when it confirms what this one does."""
        if not self._said_by_all:
            assert self._survivors is not None
            view = view_of(self._digest, self._keys, self._shares.keys())
            said = _said_of_survivors(view, self._survivors)
            self._said_by_all = hashlib.sha256(said).digest()
        return joined("confirmed", name, str(clients), self._said_by_all)

    def _sign(self, said: bytes) -> bytes:
        return b"" if self._signer is None else self._signer.sign(said)

    def _key_of(self, name: str) -> PublicKey | None:
        if name == self.name and self._signer is not None:
            return self._signer.public()
        return (self._known or {}).get(name)

    def _verify(self, name: str, signature: bytes, said: bytes) -> None:
        """Check what another participant signed; its own word needs no key."""
        if self._known is None or name == self.name:
            return
        if name not in self._known:
            raise self._refusal("E985", f"it knows no public key of {name}", UNKNOWN)
        if not self._known[name].verify(signature, said):
            raise self._refusal("E985", f"what {name} says is not signed with a key it knows")

    def _dealt(self, other: str, seed: int, secret: int) -> bytes:
        """Return the shares of one participant, sealed, followed by the commitments to them."""
        commitments = commit_to_shares(self._digest, self.name, other, seed, secret)
        if other == self.name:
            return commit_to_seed(self._digest, self.name, self._seed) + commitments
        shares = b"".join(share.to_bytes(SHARE, "little") for share in (seed, secret))
        return seal(self._sealing_key(other, self.name, other), shares) + commitments

    def _unseal(self, other: str, dealt: bytes) -> tuple[int, int]:
        shares, commitments = None, dealt[-BOTH:]
        if other in self._keys and other != self.name:
            key = self._sealing_key(other, other, self.name)
            shares = unseal(key, dealt[:-BOTH])
        if shares is not None and len(shares) == 2 * SHARE:
            seed, secret = (int.from_bytes(s, "little") for s in (shares[:SHARE], shares[SHARE:]))
            if max(seed, secret) < PRIME and commitments == commit_to_shares(
                self._digest, other, self.name, seed, secret
            ):
                return seed, secret
        raise self._refusal("E981", f"the shares of {other} are damaged")

    def _sealing_key(self, other: str, sender: str, receiver: str) -> bytes:
        purpose = purpose_of_shares(self._digest, sender, receiver)
        return self._sealing.agree(self._keys[other].sealing, purpose)

    def _pairwise_seed(self, other: str) -> bytes:
        purpose = purpose_of_mask(self._digest, self.name, other)
        return self._masking.agree(self._keys[other].masking, purpose)

    def _own_seed(self) -> bytes:
        return derived(self._seed, purpose_of_own_mask(self._digest, self.name))

    def _too_few(self, why: str) -> ExecutionError:
        demands = self._demands
        least = f"{demands.participants} participants with a client each"
        return self._refusal(
            "E980",
            f"{why}, and it demands {least}, and {demands.clients} clients in all",
            help="use more participants, or let them demand fewer",
        )

    def _out_of_order(self, why: str) -> ExecutionError:
        return self._refusal("E788", why)

    def _refusal(self, code: str, why: str, help: str = REPEAT) -> ExecutionError:
        message = f"{self.name} takes no further part in a masked sum: {why}"
        return ExecutionError(code, message, help=help)


def _hex(keys: Keys) -> list[str]:
    return [key.hex() for key in (keys.sealing, keys.masking, keys.signature)]


def _said_of_survivors(view: bytes, survivors: Collection[str]) -> bytes:
    return joined("survivors", view, joined_names(survivors))
