"""Noise of several rounds: combinations of draws, of which rounds may have the same ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tffc.assurance.privacy.quantities.combinations import Combination, Shape


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The noise of each round: `weights` of the draws with the numbers `draws`, which have the
    shape `inner`."""

    draws: Any
    weights: Any
    inner: Shape

    def scaled(self, factor: float) -> Stream:
        """Return a multiple."""
        return dataclasses.replace(self, weights=self.weights * factor)

    def added(self, other: Stream) -> Stream:
        """Return the sum with noise of the same shape."""
        draws = np.union1d(self.draws, other.draws)
        weights = np.zeros((len(self.weights), len(draws)))
        for each in (self, other):
            weights[:, np.searchsorted(draws, each.draws)] += each.weights
        return Stream(draws, weights, self.inner)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The noise of one round: the draws that have a weight, and these weights."""

    draws: Any
    weights: Any
    inner: Shape


def row(value: Combination) -> Row:
    """Return a single combination as the noise of a round."""
    draws = np.flatnonzero(value.weights)
    return Row(draws, value.weights[draws], value.inner)


def stream_of(rows: Sequence[Row]) -> Stream | None:
    """Return the noise of rounds, if it has the same shape in all of them; it may be none."""
    if not rows or any(each.inner != rows[0].inner for each in rows):
        return None
    draws = np.unique(np.concatenate([each.draws for each in rows])).astype(np.int64)
    weights = np.zeros((len(rows), len(draws)))
    for number, each in enumerate(rows):
        weights[number, np.searchsorted(draws, each.draws)] = each.weights
    return Stream(draws, weights, rows[0].inner)


# The matrix mechanism.

MOST_ERROR = 1e-7
"""By how much an inverse may be wrong."""

SAME = 1e-9
"""By how much matrices of the same noise may differ."""


def precision_of(stream: Stream) -> Any:
    """Return the inverse of the covariance of the noise of all rounds; None if it has none.

    Denisov et al., "Improved differential privacy for SGD via optimal private linear operators on
    adaptive streams", NeurIPS 2022: with the covariance S = L L^T of the noise of rounds, and any
    root S = K K^T of lower triangular form, the rounds tell what K^-1 (x + noise) tells, in which
    each round adds one Gaussian mechanism to those before, so that it does not matter whether
    clients' values depend on earlier rounds.  A client that adds vectors d_t changes that by the
    norm of K^-1 d, whose square is the sum of <d_s, d_t> (S^-1)_st.
    """
    covariance = stream.weights @ stream.weights.T
    scale = np.sqrt(np.diag(covariance))
    if not np.isfinite(covariance).all() or not (scale > 0).all():
        return None
    even = covariance / np.outer(scale, scale)
    try:
        root = np.linalg.inv(np.linalg.cholesky(even))
    except np.linalg.LinAlgError:
        return None
    inverse = root.T @ root
    error = np.abs(inverse @ even - np.eye(len(even))).max()
    if not error < MOST_ERROR:
        return None
    return inverse / np.outer(scale, scale)


def largest_change(precision: Any, participations: int | None) -> float:
    """Return the largest square of what a client changes whose vectors have a norm of at most one,
    in at most that number of the rounds, or in all.

    <d_s, d_t> is at most 1, in magnitude, and 1 for s = t.
    """
    magnitudes = np.abs(precision)
    rounds = len(magnitudes)
    most = rounds if participations is None else min(participations, rounds)
    if most == rounds:
        return float(magnitudes.sum())
    others = np.sort(magnitudes - np.diag(np.diag(magnitudes)), axis=1)
    sums = np.diag(magnitudes) + others[:, rounds - most + 1 :].sum(axis=1)
    return float(np.sort(sums)[rounds - most :].sum())


def ratio_of(precision: Any, other: Any) -> float | None:
    """Return the number by which all elements of one matrix differ from those of another."""
    ratio = float(precision[0, 0] / other[0, 0])
    differences = np.abs(precision - ratio * other).max()
    return ratio if differences <= SAME * np.abs(precision).max() else None
