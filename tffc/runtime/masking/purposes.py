"""What each key of a masked sum is for, and what participants sign.

All of it names the digest of the terms: who was told other terms, for example other values to
compute from, has other keys and other masks, and what it signs counts nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from tffc.runtime.masking.keys import joined, joined_names
from tffc.runtime.masking.terms import Keys


def purpose_of_shares(digest: bytes, sender: str, receiver: str) -> bytes:
    """Return the purpose of the key that seals one participant's shares for another.

    It names the direction: all messages have the same nonce, so no two may have the same key.
    """
    return joined("shares", digest, sender, receiver)


def purpose_of_mask(digest: bytes, one: str, other: str) -> bytes:
    """Return the purpose of the pairwise mask of two participants, the same for both."""
    return joined("mask", digest, joined_names((one, other)))


def purpose_of_own_mask(digest: bytes, name: str) -> bytes:
    """Return the purpose of the mask that a participant derives from its seed."""
    return joined("own mask", digest, name)


def view_of(digest: bytes, keys: Mapping[str, Keys], sharing: Collection[str]) -> bytes:
    """Return the digest of what a participant was told before its vector: the terms, the public
    keys of all, and who shared secrets."""
    announced = (joined(name, keys[name].sealing, keys[name].masking) for name in sorted(keys))
    return hashlib.sha256(joined("view", digest, *announced, joined_names(sharing))).digest()
