"""Commitments to secrets and to their shares, by which a wrong share is told from a right one.

Each participant sends the server a digest of its seed, and of every share that it seals.  Seeds and
shares are random numbers of 256 bits, so their digests say nothing about them.
"""

from __future__ import annotations

import hashlib

from tffc.runtime.masking.keys import joined
from tffc.runtime.masking.shamir import PRIME

SHARE = (PRIME.bit_length() + 7) // 8
"""The size of a share in bytes."""

SEED = 32
"""The size of a commitment to a seed, which nobody can open in two ways."""

HALF = 16
"""The size of a commitment to a share, for which nobody finds another share that fits."""

BOTH = 2 * HALF
"""The size of the commitments to both shares of a holder."""

SEEDS, SECRETS = "seeds", "secrets"
"""The kinds of shares, named like the fields of `Revealed`."""


def commit_to_seed(digest: bytes, dealer: str, seed: bytes) -> bytes:
    """Return the commitment of a dealer to its seed."""
    return hashlib.sha256(joined("seed", digest, dealer, seed)).digest()


def commit_to_share(digest: bytes, dealer: str, holder: str, kind: str, share: int) -> bytes:
    """Return the commitment of a dealer to a holder's share of a kind; the share is below
    `PRIME`."""
    content = joined("share", digest, dealer, holder, kind, share.to_bytes(SHARE, "little"))
    return hashlib.sha256(content).digest()[:HALF]


def commit_to_shares(digest: bytes, dealer: str, holder: str, seed: int, secret: int) -> bytes:
    """Return the commitments of a dealer to both of a holder's shares."""
    return commit_to_share(digest, dealer, holder, SEEDS, seed) + commit_to_share(
        digest, dealer, holder, SECRETS, secret
    )


def of_kind(commitments: bytes, kind: str) -> bytes:
    """Return one of the two results of `commit_to_shares`."""
    return commitments[:HALF] if kind == SEEDS else commitments[HALF:]
