"""Which clients take part in a round: all, a number of them, or each with a probability.

A choice depends only on the seed, the number of the round and the clients' names, and on nobody's
random numbers.  So it is the same on every engine, and rounds that are continued from a saved state
are the same as without interruption.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import secrets
from typing import Literal, TypeAlias

from tffc.support.errors import DataError, LanguageValueError

SamplingKind: TypeAlias = Literal["poisson", "fixed", "all", "buffered"]
"""How a round gets its clients: each with a probability, so many without replacement, all, or those
whose contributions arrive first."""

SECRET_BITS = 128
"""The bits of a seed that is drawn in secret."""

SEEDS = 2**64
"""The numbers that a seed stays below, as does its negative: those that a record can hold."""

HASH_BITS = 256
"""The bits of a hash that decides about a client."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sampling:
    """The choice of clients for each round: all; a number of them, drawn by a seed; or each with
    the probability `rate`, whatever becomes of the others.

    `seed_is_secret` says that the operating system drew the seed.  Then only the record of the run
    may tell it: without a secret, everybody can compute who takes part.
    """

    clients: int | None = None
    seed: int = 0
    rate: float | None = None
    seed_is_secret: bool = False

    def __post_init__(self) -> None:
        """Check the number of clients, or the rate, and the seed.

        Raises:
          LanguageValueError: they are out of range, or there are both a number and a rate.
        """
        if self.clients is not None and self.rate is not None:
            raise LanguageValueError(
                "E706",
                f"a round cannot have both {self.clients} clients and each client with "
                f"probability {self.rate}",
                help="give a number of clients or a sampling rate",
            )
        if self.clients is not None and self.clients < 1:
            raise LanguageValueError(
                "E706",
                f"cannot sample {self.clients} clients for a round",
                help="give a positive number, or None for all clients",
            )
        if self.rate is not None and not is_rate(self.rate):
            raise LanguageValueError(
                "E706",
                f"cannot sample clients with probability {self.rate!r}",
                help="give a number above 0, of at most 1, or None for all clients",
            )
        if not self.seed_is_secret and abs(self.seed) >= SEEDS:
            raise LanguageValueError(
                "E706",
                "the seed for sampling clients has more than 64 bits",
                help="give a smaller one; a sampling rate without a seed gets a secret one",
            )

    @classmethod
    def of(cls, clients: int | None, rate: float | None, seed: int | None) -> Sampling:
        """Return the sampling that a user asks for.

        If no seed is given, that of a rate is drawn in secret, and any other is 0.

        Raises:
          LanguageValueError: the numbers are out of range, or there are both.
        """
        if rate is not None and seed is None:
            return cls(clients, secrets.randbits(SECRET_BITS), rate, seed_is_secret=True)
        return cls(clients, seed or 0, rate)

    @property
    def kind(self) -> SamplingKind:
        """How a round gets its clients."""
        if self.rate is not None:
            return "poisson"
        return "all" if self.clients is None else "fixed"

    def continuing(self, begun: Sampling) -> Sampling:
        """Return the sampling with the seed of the run that it continues, if both are secret."""
        if self.seed_is_secret and begun.seed_is_secret:
            return dataclasses.replace(self, seed=begun.seed)
        return self

    def draw(self, clients: tuple[str, ...], number: int) -> tuple[str, ...]:
        """Return the clients that take part in round `number`, in their order; with a rate, these
        may be none.

        Raises:
          DataError: there are fewer clients than are to be sampled.
        """
        if self.rate is not None:
            return sample_by_rate(clients, self.rate, self.seed, number)
        return sample(clients, self.clients, self.seed, number)

    def __str__(self) -> str:
        if self.rate is not None:
            return f"each client with probability {self.rate}"
        return "all clients" if self.clients is None else f"{self.clients} clients"


ALL = Sampling()


def is_rate(value: object) -> bool:
    """Return whether a value is a probability above 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1


def sample(clients: tuple[str, ...], count: int | None, seed: int, number: int) -> tuple[str, ...]:
    """Return the clients that take part in round `number`, sorted by name.

    They are those with the lowest hashes of seed, round and name.  So a client can compute its own
    hash, and nothing depends on a library's random numbers.

    Raises:
      DataError: there are fewer than `count` clients.
    """
    if count is None:
        return clients
    if count > len(clients):
        raise DataError(
            "E662",
            f"cannot sample {count} clients of {len(clients)}",
            help="sample fewer",
            remedy="sample size",
        )

    def rank(client: str) -> bytes:
        return hashlib.sha256(f"{seed}/{number}/{client}".encode(errors="surrogateescape")).digest()

    return tuple(sorted(sorted(clients, key=rank)[:count]))


def sample_by_rate(
    clients: tuple[str, ...], rate: float, seed: int, number: int
) -> tuple[str, ...]:
    """Return the clients that take part in round `number`, each with probability `rate`.

    A client takes part if its HMAC-SHA-256 of round and name under the seed, as a fraction of all
    its values, is below the rate.  The comparison is one of integers, exact for the rate as a
    binary fraction of 256 bits.
    """
    key = str(seed).encode()
    numerator, denominator = rate.as_integer_ratio()
    limit = (numerator << HASH_BITS) // denominator

    def takes_part(client: str) -> bool:
        message = f"{number}/{client}".encode(errors="surrogateescape")
        return int.from_bytes(hmac.digest(key, message, "sha256"), "big") < limit

    return tuple(filter(takes_part, clients))
