"""Shamir's secret sharing: any `threshold` shares give the secret, fewer reveal nothing about it.

A. Shamir, "How to share a secret", CACM 22 (1979): the secret is the value at 0 of a polynomial of
degree `threshold - 1` over the integers modulo a prime, whose other coefficients are random.  A
share is its value at another point.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

PRIME = 2**256 + 297
"""The smallest prime above every secret of 32 bytes."""


def split(secret: int, threshold: int, points: Iterable[int]) -> list[int]:
    """Return the share of a secret below `PRIME` at each point; points are distinct and
    positive."""
    polynomial = [secret, *(secrets.randbelow(PRIME) for _ in range(threshold - 1))]
    return [evaluate(polynomial, point) for point in points]


def evaluate(polynomial: Sequence[int], point: int, prime: int = PRIME) -> int:
    """Return the value of a polynomial at a point modulo a prime; coefficients are given lowest
    first."""
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * point + coefficient) % prime
    return value


def weights(points: Sequence[int], prime: int = PRIME) -> list[int]:
    """Return the factors by which to multiply the shares at these points so that they sum to the
    secret.

    These are the Lagrange basis polynomials' values at 0: for point x, the product of y / (y - x)
    over the other points y.  They depend on the points alone, so they serve for all secrets shared
    there.
    """
    # `product` includes x itself, which the factor x in `below` cancels: so it is computed once.
    product = 1
    for point in points:
        product = product * point % prime
    factors: list[int] = []
    for point in points:
        below = point
        for other in points:
            if other != point:
                below = below * (other - point) % prime
        factors.append(product * pow(below, -1, prime) % prime)
    return factors


def combine(shares: Iterable[int], factors: Iterable[int], prime: int = PRIME) -> int:
    """Return the secret from at least `threshold` shares and the `weights` of their points."""
    pairs = zip(shares, factors, strict=True)
    return sum(share * factor for share, factor in pairs) % prime
