"""Secrets come back from any `threshold` shares, and only from so many."""

import itertools
import secrets

import pytest

from tffc.runtime.masking.shamir import PRIME, combine, evaluate, split, weights

PUBLISHED = {1: 1494, 2: 329, 3: 965, 4: 176, 5: 1188, 6: 775}
"""The shares of the secret 1234, modulo 1613, by the polynomial 1234 + 166 x + 94 x**2: the example
of the article on Shamir's secret sharing in Wikipedia."""


def test_shares_are_the_published_ones() -> None:
    assert {x: evaluate([1234, 166, 94], x, 1613) for x in range(1, 7)} == PUBLISHED


@pytest.mark.parametrize("points", list(itertools.permutations(PUBLISHED, 3)))
def test_any_three_published_shares_give_the_secret(points: tuple[int, ...]) -> None:
    shares = [PUBLISHED[point] for point in points]
    assert combine(shares, weights(points, 1613), 1613) == 1234


@pytest.mark.parametrize("threshold", [1, 2, 5, 9])
def test_a_secret_comes_back(threshold: int) -> None:
    secret = secrets.randbits(256)
    shares = split(secret, threshold, range(1, 10))
    chosen = secrets.SystemRandom().sample(range(1, 10), threshold)
    assert combine((shares[point - 1] for point in chosen), weights(chosen)) == secret


def test_more_shares_than_the_threshold_give_it_too() -> None:
    secret = 2**256 - 1
    shares = split(secret, 3, range(1, 8))
    assert combine(shares, weights(range(1, 8))) == secret


def test_one_share_less_than_the_threshold_fits_every_secret() -> None:
    shares = split(1, 3, (1, 2))
    other = 12345
    # The polynomial through both shares and the other secret is one that `split` may have drawn.
    factors = weights((1, 2, 3))
    third = (other - combine(shares, factors[:2])) * pow(factors[2], -1, PRIME) % PRIME
    assert combine((*shares, third), factors) == other


def test_the_prime_is_a_prime_above_all_secrets() -> None:
    # Miller and Rabin's test, by the first bases.
    odd, twos = PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        power = pow(base, odd, PRIME)
        powers = [power, *(power := power * power % PRIME for _ in range(twos - 1))]
        assert powers[0] == 1 or PRIME - 1 in powers
    assert PRIME > 2**256
