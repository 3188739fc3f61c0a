"""Splits of one table among clients, for experiments.

Each is decided by a seed.  Random numbers are the raw 64-bit output of Philox, keyed by SHA-256 of
the seed and the kind of split, and whatever is computed of them is exact: integers, comparisons,
and single divisions, which IEEE 754 defines.  So a split is the same on every machine and with
every version of NumPy.
"""

from __future__ import annotations

import hashlib

import numpy as np

from tffc.support.errors import DataError
from tffc.support.guards import Array

MOST_DRAWS = 20
"""The draws of a split until each client has enough rows."""


class RawNumbers:
    """Random numbers for one purpose, by a seed."""

    def __init__(self, purpose: str, seed: int) -> None:
        digest = hashlib.sha256(f"{purpose}/{seed}".encode()).digest()
        self._generator = np.random.Philox(key=int.from_bytes(digest[:16], "little"))

    def raw(self, count: int) -> Array:
        """Return integers between 0 and 2**64."""
        return self._generator.random_raw(count)

    def permutation(self, count: int) -> Array:
        """Return the numbers below `count` in random order."""
        return np.argsort(self.raw(count), kind="stable")

    def below(self, limits: Array) -> Array:
        """Return for each limit, up to 2**32, a number from 0 to below it."""
        return (
            ((self.raw(len(limits)) >> np.uint64(32)) * limits.astype(np.uint64)) >> np.uint64(32)
        ).astype(np.int64)

    def fractions(self, count: int) -> Array:
        """Return numbers from 0 to below 1."""
        return (self.raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def names_of(clients: int) -> list[str]:
    """Return the names of a number of clients: their numbers, with as many digits for each."""
    width = len(str(clients - 1))
    return [str(number).zfill(width) for number in range(clients)]


def iid(rows: int, clients: int, seed: int) -> Array:
    """Return for each row its client, so that sizes differ by one at most."""
    split: Array = np.empty(rows, np.int64)
    split[RawNumbers("iid", seed).permutation(rows)] = np.arange(rows) * clients // max(rows, 1)
    return split


def among(clients: int, count: int, seed: int) -> Array:
    """Return for each client whether it is among `count` that are drawn."""
    chosen: Array = np.zeros(clients, bool)
    chosen[RawNumbers("clients", seed).permutation(clients)[:count]] = True
    return chosen


def shards(labels: Array, clients: int, each: int, seed: int) -> Array:
    """Return for each row its client, which has `each` shards of the rows sorted by label."""
    order = np.argsort(labels, kind="stable")
    count = clients * each
    owner = RawNumbers("shards", seed).permutation(count) // each
    split: Array = np.empty(len(labels), np.int64)
    split[order] = owner[np.arange(len(labels)) * count // max(len(labels), 1)]
    return split


def dirichlet(labels: Array, clients: int, alpha: float, seed: int, least: int) -> Array:
    """Return for each row its client, drawn for each label with proportions from a Dirichlet
    distribution of that concentration.

    Raises:
      DataError: some client has too few rows however often it is drawn.
    """
    draws = RawNumbers("dirichlet", seed)
    for _ in range(MOST_DRAWS):
        split: Array = np.empty(len(labels), np.int64)
        order = np.argsort(labels, kind="stable")
        for rows in np.split(order, np.cumsum(np.bincount(labels))[:-1]):
            split[rows] = _urn(len(rows), clients, alpha, draws)
        if np.bincount(split, minlength=clients).min() >= least:
            return split
    raise DataError(
        "E662",
        f"of {clients} clients, some have fewer than {least} rows in each of {MOST_DRAWS} draws "
        f"with alpha={alpha:g} from {len(labels)} rows",
        help="split among fewer clients, with a larger alpha, or with least_rows=0, which leaves "
        "out clients without rows",
    )


def _urn(rows: int, clients: int, alpha: float, draws: RawNumbers) -> Array:
    """Return clients for the rows of one label.

    This is Pólya's urn: row i takes the client of an earlier row, any of them, or with probability
    clients * alpha / (clients * alpha + i) one of all clients.  Its clients are distributed as if
    proportions were drawn from the Dirichlet distribution first, and needs no logarithms, which
    differ between machines.
    """
    total = clients * alpha
    before = np.arange(rows)
    is_new = draws.fractions(rows) < total / (total + before)
    fresh = draws.below(np.full(rows, clients))
    earlier = draws.below(np.maximum(before, 1))
    source = np.where(is_new, before, earlier)
    # Following sources twice as far each time ends at the row whose client is new.
    while True:
        further = source[source]
        if (further == source).all():
            return fresh[source]
        source = further
