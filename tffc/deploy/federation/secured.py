"""The secure sums in accumulators, as vectors that can be masked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tffc.backends.forms.steps import RoundSteps, SecureSumSteps
from tffc.language.values.concrete import flatten, unflatten
from tffc.runtime.engines.masked_sums import residues
from tffc.runtime.masking.vectors import Array, Segment, Vector


class SecuredParts:
    """The secure sums in the accumulators of all aggregations of a round."""

    def __init__(self, steps: RoundSteps, carried: object) -> None:
        self._sums = [aggregation.secure_sum(carried) for aggregation in steps.aggregations]

    def segments(self, totals: Sequence[object]) -> tuple[Segment, ...]:
        """Return the segments of the vector of these accumulators."""
        return tuple(Segment(modulus, part.size) for part, modulus in self._parts(totals))

    def vector(self, totals: Sequence[object]) -> Vector:
        """Return the vector of these accumulators."""
        return [residues(part, modulus) for part, modulus in self._parts(totals)]

    def with_vector(self, totals: Sequence[object], vector: Vector) -> list[object]:
        """Return the accumulators with their vector replaced."""
        parts = iter(vector)
        pairs = zip(self._sums, totals, strict=True)
        return [total if sum is None else _like(total, sum, parts) for sum, total in pairs]

    def _parts(self, totals: Sequence[object]) -> Iterator[tuple[Array, int]]:
        for sum, total in zip(self._sums, totals, strict=True):
            if sum is not None:
                leaves = flatten(total, sum.type)
                for leaf, limit in zip(leaves, sum.limits, strict=True):
                    yield np.asarray(leaf), sum.modulus(leaf, limit)


def _like(value: object, sum: SecureSumSteps, parts: Iterator[Array]) -> object:
    leaves = (np.asarray(leaf) for leaf in flatten(value, sum.type))
    sums = (next(parts).astype(leaf.dtype).reshape(leaf.shape)[()] for leaf in leaves)
    return unflatten(sums, sum.type)
