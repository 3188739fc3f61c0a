"""Whether two samples of random numbers can be of one distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FAR = 3
"""A distance that one pair of samples in thirty million of one distribution reaches."""


def distance(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """The statistic of Kolmogorov and Smirnov for two samples of one size, whatever that is."""
    ones, others = np.sort(np.ravel(first)), np.sort(np.ravel(second))
    points = np.concatenate([ones, others])
    below = [np.searchsorted(sample, points, side="right") for sample in (ones, others)]
    return float(np.abs(below[0] - below[1]).max() / np.sqrt(2 * len(ones)))
