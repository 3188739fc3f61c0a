"""Secrets in shares, any `threshold` of which give the secret, and fewer nothing about it.

Shamir, "How to share a secret", CACM 22 (1979): the secret is the value at 0 of a polynomial of
degree `threshold - 1` over the integers modulo a prime, whose other coefficients are random, and a
share is its value at another point.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

PRIME = 2**256 + 297
"""The smallest prime above every secret of 32 bytes."""


def split(secret: int, threshold: int, points: Iterable[int]) -> list[int]:
    """Return the share of a secret, below `PRIME`, at each point; points are positive."""
    polynomial = [secret, *(secrets.randbelow(PRIME) for _ in range(threshold - 1))]
    return [evaluate(polynomial, point) for point in points]


def evaluate(polynomial: Sequence[int], point: int, prime: int = PRIME) -> int:
    """Return the value of a polynomial at a point, modulo a prime; its constant comes first."""
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * point + coefficient) % prime
    return value


def weights(points: Sequence[int], prime: int = PRIME) -> list[int]:
    """Return by what to multiply the shares at these points, so that their sum is the secret.

    These are the values at 0 of Lagrange's basis polynomials.  They serve for all secrets that are
    shared at the same points.
    """
    product = 1
    for point in points:
        product = product * point % prime
    found: list[int] = []
    for point in points:
        below = point
        for other in points:
            if other != point:
                below = below * (other - point) % prime
        found.append(product * pow(below, -1, prime) % prime)
    return found


def combine(shares: Iterable[int], factors: Iterable[int], prime: int = PRIME) -> int:
    """Return the secret of at least `threshold` shares; the factors are the `weights` of their
    points."""
    pairs = zip(shares, factors, strict=True)
    return sum(share * factor for share, factor in pairs) % prime
